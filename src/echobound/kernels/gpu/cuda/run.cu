// Free run and prediction. What the readout sees besides the state: u(k-1) .. u(k-d), u(k), y(k-1) .. y(k-m), 1.

struct Sees {
    int input_delays, present_input, output_delays, constant;
};

__device__ __forceinline__ Sees sees_of(const int* sees, int b, int count) {  // sees: (what, network)
    Sees s = {sees[b], sees[count + b], sees[2 * count + b], sees[3 * count + b]};
    return s;
}

__device__ __forceinline__ int seen(const Sees& s) {
    return (s.input_delays + s.present_input) * NU + s.output_delays * NY + s.constant;
}

__device__ __forceinline__ double seen_input(const Sees& s, const double* u, int k, int column) {
    const int block = column / NU, j = column - block * NU;
    const int at = block < s.input_delays ? max(k - 1 - block, 0) : k;
    return __ldg(u + (offset)at * NU + j);
}

// Columns n .. of phi and the targets behind them, for samples first .. last - 1.
extern "C" __global__ void fill_tails(const int* orders, const int* sees, const double* u, const double* fed,
                                      const double* y, const int* u_of, const int* fed_of, offset samples, offset start,
                                      int first, int last, double* phi, int width, offset size) {
    const int b = blockIdx.y, n = orders[b];
    const Sees s = sees_of(sees, b, gridDim.y);
    const int tail = seen(s), inputs = (s.input_delays + s.present_input) * NU, outputs = s.output_delays * NY;
    u += (u_of[b] * samples + start) * NU;
    fed += (fed_of[b] * samples + start) * NY;
    y += (u_of[b] * samples + start) * NY;
    phi += b * size;
    for (offset at = blockIdx.x * (offset)blockDim.x + threadIdx.x; at < (offset)(last - first) * (tail + NY);
         at += (offset)gridDim.x * blockDim.x) {
        const int row = at / (tail + NY), column = at - (offset)row * (tail + NY), k = first + row;
        double value = 1.0;
        if (column < inputs)
            value = seen_input(s, u, k, column);
        else if (column < inputs + outputs) {
            const int delay = (column - inputs) / NY + 1, j = (column - inputs) % NY;
            value = fed[(offset)max(k - delay, 0) * NY + j];
        } else if (column >= tail)
            value = y[(offset)k * NY + column - tail];
        phi[(offset)row * width + n + column] = value;
    }
}

// The readout of this thread's units, and of the first column besides them that it looks after.
struct Weights {
    double w[UNITS][NY], beside[NY];
};

__device__ __forceinline__ void take_weights(Weights& weights, const double* readout, int stride, int n, int tail) {
#pragma unroll
    for (int o = 0; o < NY; ++o) weights.beside[o] = (int)threadIdx.x < tail ? readout[(offset)o * stride + n + threadIdx.x] : 0.0;
#pragma unroll
    for (int c = 0; c < UNITS; ++c) {
        const int i = threadIdx.x + c * blockDim.x;
#pragma unroll
        for (int o = 0; o < NY; ++o) weights.w[c][o] = i < n ? readout[(offset)o * stride + i] : 0.0;
    }
}

// Between what values each output stays; `any` is false for a law that does not clip.
struct Limits {
    double low[NY], high[NY];
    bool any;
};

__device__ __forceinline__ Limits limits_of(const double* limits, bool clipped, int kind) {  // limits: (kind, end, output)
    Limits l;
    l.any = clipped;
#pragma unroll
    for (int o = 0; o < NY; ++o) {
        l.low[o] = limits[2 * kind * NY + o];
        l.high[o] = limits[(2 * kind + 1) * NY + o];
    }
    return l;
}

// y(k) of one readout into out[NY], in all threads, clipped: what is not a number is at the lower limit. Past outputs come
// from `model` at k >= from, from `y` before, y(0) before 0.
__device__ __forceinline__ void output(const Mine& mine, const Weights& weights, const double* readout, int stride, int n,
                                       const Sees& s, const Limits& limits, int tail, int inputs, const double* u,
                                       const double* y, const double* model, int from, int k, double* part, double* out) {
    double sums[NY];
#pragma unroll
    for (int o = 0; o < NY; ++o) {
        sums[o] = 0.0;
#pragma unroll
        for (int c = 0; c < UNITS; ++c) sums[o] = fma(weights.w[c][o], mine.x[c], sums[o]);
    }
    for (int column = threadIdx.x; column < tail; column += blockDim.x) {
        double value = 1.0;
        if (column < inputs)
            value = seen_input(s, u, k, column);
        else if (column < inputs + s.output_delays * NY) {
            const int at = k - (column - inputs) / NY - 1, j = (column - inputs) % NY;
            value = at >= from ? model[(offset)(at - from) * NY + j] : y[(offset)max(at, 0) * NY + j];
        }
#pragma unroll
        for (int o = 0; o < NY; ++o) {
            const bool first = column == (int)threadIdx.x;
            sums[o] = fma(first ? weights.beside[o] : readout[(offset)o * stride + n + column], value, sums[o]);
        }
    }
#pragma unroll
    for (int o = 0; o < NY; ++o) {
        sums[o] = warp_sum(sums[o]);
        if ((threadIdx.x & 31) == 0) part[o * 32 + (threadIdx.x >> 5)] = sums[o];
    }
    __syncthreads();
#pragma unroll
    for (int o = 0; o < NY; ++o) {
        double four[4] = {0.0, 0.0, 0.0, 0.0};  // side by side, since one sum waits for its last addition
        for (int warp = 0; warp < (int)blockDim.x >> 5; warp += 4)
#pragma unroll
            for (int s = 0; s < 4; ++s) four[s] += part[o * 32 + warp + s];  // zero beyond the last warp
        const double value = (four[0] + four[1]) + (four[2] + four[3]);
        const double low = limits.low[o], high = limits.high[o];
        out[o] = !limits.any ? value : value > high ? high : value >= low ? value : low;
    }
}

__device__ __forceinline__ void zero_parts(double* part) {
    for (int i = threadIdx.x; i < 32 * NY; i += blockDim.x) part[i] = 0.0;
}

#define RUN_PARAMETERS                                                                                                    \
    const int *orders, const double *values, const int *columns, const double *W_u, const double *W_y, const double *bias, \
        const double *leak, int stride, const int *sees, const double *readouts, int readout_stride, int ridges,           \
        const double *u, const double *y, const int *u_of, offset samples, offset start, int length, int washout,          \
        int padding, const double *limits, bool clipped, double *outputs, offset rows, offset row

// Outputs at k >= washout of each readout, the model's own output fed back; after a value that is not finite, NaN.
extern "C" __global__ BOUNDS void free_run(RUN_PARAMETERS) {
    extern __shared__ double shared[];
    const int b = blockIdx.x / ridges, n = orders[b];
    const Net net = network(values, columns, W_u, W_y, bias, leak, stride, b);
    const double* readout = readouts + (offset)blockIdx.x * NY * readout_stride;
    const Sees s = sees_of(sees, b, gridDim.x / ridges);
    const int tail = seen(s), inputs = (s.input_delays + s.present_input) * NU;
    Mine mine;
    take(mine, net, n);
    Weights weights;
    take_weights(weights, readout, readout_stride, n, tail);
    const Limits clip = limits_of(limits, clipped, u_of[b]);
    double *part = shared, *now = shared + 32 * NY, *next = now + STATE_SIZE(n);
    u += (u_of[b] * samples + start) * NU;
    y += (u_of[b] * samples + start) * NY;
    outputs += (blockIdx.x * rows + row) * NY;
    zero_parts(part);
    zero_state(mine, now, n);
    double u_now[NU], y_now[NY], u_next[NU];
    for (int k = -padding; k < washout; ++k) {
        const offset at = max(k, 0);
        fetch<NU>(u_now, u + at * NU);
        fetch<NY>(y_now, y + at * NY);
        advance(mine, net, now, next, n, u_now, y_now);
        double* swap = now;
        now = next;
        next = swap;
    }
    bool finite = true;
    int k = washout;
    fetch<NU>(u_next, u + (offset)min(k, length - 1) * NU);
    for (; finite && k < length; ++k) {
#pragma unroll
        for (int j = 0; j < NU; ++j) u_now[j] = u_next[j];
        fetch<NU>(u_next, u + (offset)min(k + 1, length - 1) * NU);
        double inside[UNITS];
#pragma unroll
        for (int c = 0; c < UNITS; ++c) inside[c] = recurrent(mine, net, now, c, n, driven(mine, c, u_now));
        output(mine, weights, readout, readout_stride, n, s, clip, tail, inputs, u, y, outputs, washout, k, part, y_now);
#pragma unroll
        for (int o = 0; o < NY; ++o) {
            finite = finite && isfinite(y_now[o]);
            if (threadIdx.x == o) outputs[(offset)(k - washout) * NY + o] = y_now[o];
        }
#pragma unroll
        for (int c = 0; c < UNITS; ++c) {
            const int i = threadIdx.x + c * blockDim.x;
            if (i < n) put(next, i, n, mine.x[c] = stepped(mine, c, fed_back(mine, c, inside[c], y_now)));
        }
        __syncthreads();
        double* swap = now;
        now = next;
        next = swap;
    }
    for (offset at = (offset)(k - washout) * NY + threadIdx.x; at < (offset)(length - washout) * NY; at += blockDim.x)
        outputs[at] = __longlong_as_double(0x7ff8000000000000LL);
}

// Outputs at k >= washout of each readout, each predicted from the measured outputs up to k - horizon.
// `ahead` holds `horizon` predicted outputs for each readout.
extern "C" __global__ BOUNDS void predict(RUN_PARAMETERS, int horizon, double* ahead) {
    extern __shared__ double shared[];
    const int b = blockIdx.x / ridges, n = orders[b];
    const Net net = network(values, columns, W_u, W_y, bias, leak, stride, b);
    const double* readout = readouts + (offset)blockIdx.x * NY * readout_stride;
    const Sees s = sees_of(sees, b, gridDim.x / ridges);
    const int tail = seen(s), inputs = (s.input_delays + s.present_input) * NU;
    Mine mine;
    take(mine, net, n);
    Weights weights;
    take_weights(weights, readout, readout_stride, n, tail);
    const Limits clip = limits_of(limits, clipped, u_of[b]);
    const int size = STATE_SIZE(n);
    double *part = shared, *measured = shared + 32 * NY, *other = measured + size, *now = other + size, *next = now + size;
    u += (u_of[b] * samples + start) * NU;
    y += (u_of[b] * samples + start) * NY;
    outputs += (blockIdx.x * rows + row) * NY;
    ahead += (offset)blockIdx.x * horizon * NY;
    zero_parts(part);
    zero_state(mine, measured, n);
    double kept[UNITS], u_now[NU], y_now[NY];
    int reached = -padding;
    for (int end = washout; end < length; ++end) {
        const int first = max(end - horizon + 1, 0);
        for (; reached < first; ++reached) {
            fetch<NU>(u_now, u + (offset)max(reached, 0) * NU);
            fetch<NY>(y_now, y + (offset)max(reached, 0) * NY);
            advance(mine, net, measured, other, n, u_now, y_now);
            double* swap = measured;
            measured = other;
            other = swap;
        }
#pragma unroll
        for (int c = 0; c < UNITS; ++c) kept[c] = mine.x[c];
        const double* from = measured;
        for (int k = first; k <= end; ++k) {
            output(mine, weights, readout, readout_stride, n, s, clip, tail, inputs, u, y, ahead, first, k, part, y_now);
#pragma unroll
            for (int o = 0; o < NY; ++o)
                if (threadIdx.x == o) {
                    if (k < end)
                        ahead[(k - first) * NY + o] = y_now[o];
                    else
                        outputs[(offset)(end - washout) * NY + o] = y_now[o];
                }
            if (k < end) {
                fetch<NU>(u_now, u + (offset)k * NU);
                advance(mine, net, from, now, n, u_now, y_now);
                from = now;
                double* swap = now;
                now = next;
                next = swap;
            }
        }
        __syncthreads();
#pragma unroll
        for (int c = 0; c < UNITS; ++c) mine.x[c] = kept[c];
    }
}

// Outputs back to their own units, in place, and the root mean square of the error of each output (inf: not finite), scaled
// by the largest error, so that nothing overflows. Also at how many samples it is beyond one of its `ends` (end, output).
extern "C" __global__ void measure(const double* measured, const int* u_of, const double* spans, const double* offsets,
                                   const double* ends, int ridges, offset rows, double* outputs, double* rms, double* held) {
    __shared__ double part[32];
    const int b = blockIdx.x / ridges;
    outputs += (offset)blockIdx.x * rows * NY;
    for (int o = 0; o < NY; ++o) {
        const double span = spans[u_of[b] * NY + o], shift = offsets[u_of[b] * NY + o];
        const double low = ends[o], high = ends[NY + o];
        double size = 0.0, at_limit = 0.0;  // whole numbers, whose sum has no rounding
        int broken = 0;
        for (offset k = threadIdx.x; k < rows; k += blockDim.x) {
            const double value = __dadd_rn(__dmul_rn(outputs[k * NY + o], span), shift);
            const double error = fabs(value - measured[k * NY + o]);
            outputs[k * NY + o] = value;
            broken |= !isfinite(error);
            at_limit += value <= low || value >= high ? 1.0 : 0.0;
            size = fmax(size, error);
        }
        broken = __syncthreads_or(broken);
        size = block_max(size, part);
        at_limit = block_sum(at_limit, part);
        if (size == 0.0) size = 1.0;
        double sum = 0.0;
        for (offset k = threadIdx.x; k < rows; k += blockDim.x) {
            const double error = (outputs[k * NY + o] - measured[k * NY + o]) / size;
            sum += error * error;
        }
        sum = block_sum(sum, part);
        if (threadIdx.x == 0) {
            rms[(offset)blockIdx.x * NY + o] = broken ? __longlong_as_double(0x7ff0000000000000LL) : size * sqrt(sum / rows);
            held[(offset)blockIdx.x * NY + o] = at_limit;
        }
    }
}
