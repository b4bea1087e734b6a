// Philox4x64-10 and the arrays of a draw, bit for bit as echobound.draws and echobound.network.reservoir.

#define COLUMNS 1
#define VALUES 2
#define INPUT 3
#define FEEDBACK 4
#define BIAS 5
#define NOISE 7

struct Four {
    word w[4];
};

__device__ __forceinline__ Four philox(word k0, word k1, word block, word region) {
    word c0 = block + 1, c1 = region, c2 = 0, c3 = 0;
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const word m0 = 0xD2E7470EE14C6C93ULL, m1 = 0xCA5A826395121157ULL;
        const word h0 = __umul64hi(m0, c0), l0 = m0 * c0, h1 = __umul64hi(m1, c2), l1 = m1 * c2;
        c0 = h1 ^ c1 ^ k0;
        c1 = l1;
        c2 = h0 ^ c3 ^ k1;
        c3 = l0;
        k0 += 0x9E3779B97F4A7C15ULL;
        k1 += 0xBB67AE8584CAA73BULL;
    }
    Four four = {{c0, c1, c2, c3}};
    return four;
}

__device__ __forceinline__ double unit(word raw) { return (double)(raw >> 11) * 0x1p-53; }

__device__ __forceinline__ double symmetric(word raw, double scale) {
    return __dmul_rn(scale, 2.0 * unit(raw) - 1.0);  // the bracket is exact
}

// scale times numbers in [-1, 1): word i * channels + j of the region goes to out[j * stride + i].
__device__ void fill_symmetric(const word* key, int region, double scale, int n, int channels, double* out, int stride) {
    for (int block = threadIdx.x; 4 * block < n * channels; block += blockDim.x) {
        const Four four = philox(key[0], key[1], block, region);
        for (int s = 0; s < 4 && 4 * block + s < n * channels; ++s) {
            const int at = 4 * block + s;
            out[(offset)(at % channels) * stride + at / channels] = symmetric(four.w[s], scale);
        }
    }
}

__device__ __forceinline__ double level(const word* key, int at) {
    return unit(philox(key[0], key[1], at >> 2, COLUMNS).w[at & 3]);
}

// Floyd's sampling: SLOTS different columns; sample s of `samples` takes level j * samples + s for slot j.
__device__ void floyd(const word* key, int n, int slots, int sample, int samples, int* chosen, int stride) {
    for (int j = 0; j < slots; ++j) {
        const int last = n - slots + j;
        int candidate = (int)__dmul_rn(level(key, j * samples + sample), (double)(last + 1));
        for (int earlier = 0; earlier < j; ++earlier)
            if (chosen[(offset)earlier * stride] == candidate) {
                candidate = last;
                break;
            }
        chosen[(offset)j * stride] = candidate;
    }
}

// Arrays of each network: values (slot, unit), columns (slot) or (slot, unit), W_u (input, unit), W_y, bias, leak.
// `scales`: (norm, input, feedback, bias, leak; network); `leak` is left alone where its own are given.
extern "C" __global__ void draw(const word* keys, const int* orders, const double* scales, int stride, bool own_leak,
                                double* values, int* columns, double* W_u, double* W_y, double* bias, double* leak) {
    const int b = blockIdx.x, n = orders[b], slots = min(SLOTS, n);
    const word* key = keys + 2 * b;
    const int count = gridDim.x;
    scales += b;
    values += (offset)b * SLOTS * stride;
    for (int block = threadIdx.x; 4 * block < slots * n; block += blockDim.x) {
        const Four four = philox(key[0], key[1], block, VALUES);
        for (int s = 0; s < 4 && 4 * block + s < slots * n; ++s) {
            const int at = 4 * block + s;
            values[(offset)(at / n) * stride + at % n] = symmetric(four.w[s], 1.0);
        }
    }
    for (int j = slots; j < SLOTS; ++j)  // fewer units than slots: the rest multiplies a state that is there by zero
        for (int i = threadIdx.x; i < n; i += blockDim.x) values[(offset)j * stride + i] = 0.0;
#if DIAGONALS
    if (threadIdx.x == 0) {
        floyd(key, n, slots, 0, 1, columns + (offset)b * SLOTS, 1);
        for (int j = slots; j < SLOTS; ++j) columns[(offset)b * SLOTS + j] = 0;
    }
#else
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        int* mine = columns + (offset)b * SLOTS * stride + i;
        floyd(key, n, slots, i, n, mine, stride);
        for (int j = slots; j < SLOTS; ++j) mine[(offset)j * stride] = 0;
    }
#endif
    fill_symmetric(key, INPUT, scales[1 * count], n, NU, W_u + (offset)b * NU * stride, stride);
    fill_symmetric(key, FEEDBACK, scales[2 * count], n, NY, W_y + (offset)b * NY * stride, stride);
    fill_symmetric(key, BIAS, scales[3 * count], n, 1, bias + (offset)b * stride, stride);
    if (!own_leak)
        for (int i = threadIdx.x; i < n; i += blockDim.x) leak[(offset)b * stride + i] = scales[4 * count];
}

// Outputs as they are fed back in training: y + amplitude[b] * spread * (2 level - 1), y of the network's own scaling.
extern "C" __global__ void add_noise(const word* keys, const double* amplitudes, const int* kinds, const double* y,
                                     const double* spreads, offset samples, double* fed) {
    const int b = blockIdx.y;
    const word* key = keys + 2 * b;
    const double* mine = y + kinds[b] * samples * NY;
    fed += b * samples * NY;
    for (offset block = blockIdx.x * (offset)blockDim.x + threadIdx.x; 4 * block < samples * NY;
         block += (offset)gridDim.x * blockDim.x) {
        const Four four = philox(key[0], key[1], block, NOISE);
        for (int s = 0; s < 4 && 4 * block + s < samples * NY; ++s) {
            const offset at = 4 * block + s;
            const double size = __dmul_rn(amplitudes[b], spreads[kinds[b] * NY + at % NY]);
            fed[at] = __dadd_rn(mine[at], __dmul_rn(size, 2.0 * unit(four.w[s]) - 1.0));
        }
    }
}
