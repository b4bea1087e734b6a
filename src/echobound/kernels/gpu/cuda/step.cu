// One step of the state equation. A thread holds UNITS units: tid, tid + blockDim.x, ... The state lies in shared memory
// in two buffers, so that one barrier a step is enough, and in each of them twice in a row, so that a cyclic diagonal never
// wraps (not where it would take too much room).

#define HELD (UNITS * SLOTS <= 20)  // the weights of a thread's units stay in its registers
#define DOUBLED (DIAGONALS && UNITS <= 4)
#define STATE_SIZE(n) (DOUBLED ? 2 * (n) : (n))
#define BOUNDS __launch_bounds__(THREADS, RESIDENT)

// As the CPU's: (e - 1) / (e + 1) with e = exp(2 |x|), exp(2|x|) - 1 = 2^k expm1(r) + (2^k - 1), |r| <= ln(2) / 2. A step
// waits for this chain of operations, so everything that can goes beside it: the polynomial in pairs, numerator and
// denominator at once, the case of large |x| at the end. The quotient is the hardware's estimate (20 bits) corrected to the
// third order.
__device__ __forceinline__ double hyperbolic_tangent(double x) {
    const double size = fabs(x), magic = 6755399441055744.0;  // leaves the nearest integer in the lowest bits
    const double shifted = fma(size, 2.0 * 1.4426950408889634, magic), k = shifted - magic;
    const double r = fma(-k, 1.90821492927058770002e-10, fma(-k, 6.93147180369123816490e-01, size + size));
    const double power = __longlong_as_double((__double_as_longlong(shifted) + 1023) << 52);
    const double r2 = r * r, r4 = r2 * r2;
    const double low = fma(r2, fma(r, 1.0 / 120.0, 1.0 / 24.0), fma(r, 1.0 / 6.0, 0.5));
    const double middle = fma(r2, fma(r, 1.0 / 362880.0, 1.0 / 40320.0), fma(r, 1.0 / 5040.0, 1.0 / 720.0));
    const double high = fma(r2, fma(r, 1.0 / 6227020800.0, 1.0 / 479001600.0), fma(r, 1.0 / 39916800.0, 1.0 / 3628800.0));
    const double small = fma(r2, fma(r4, fma(r4, high, middle), low), r);
    const double e = fma(power, small, power - 1.0), d = fma(power, small, power + 1.0);
    double estimate;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(estimate) : "d"(d));
    const double miss = fma(-d, estimate, 1.0), value = e * estimate;
    const double quotient = fma(value, fma(miss, miss, miss), value);
    return copysign(size > 20.0 ? 1.0 : quotient, x);  // NaN passes through
}

struct Net {
    const double* values;  // (slot, unit)
    const int* columns;    // (slot), or (slot, unit)
    const double *W_u, *W_y, *bias, *leak;
    int stride;
};

__device__ __forceinline__ Net network(const double* values, const int* columns, const double* W_u, const double* W_y,
                                       const double* bias, const double* leak, int stride, int b) {
    Net net = {values + (offset)b * SLOTS * stride, columns + (offset)b * SLOTS * (DIAGONALS ? 1 : stride),
               W_u + (offset)b * NU * stride,       W_y + (offset)b * NY * stride,
               bias + (offset)b * stride,           leak + (offset)b * stride,
               stride};
    return net;
}

// What a thread knows of its units.
struct Mine {
    double x[UNITS], w_u[UNITS][NU], w_y[UNITS][NY], bias[UNITS], leak[UNITS];
#if HELD
    double values[UNITS][SLOTS];
#if !DIAGONALS
    int columns[UNITS][SLOTS];
#endif
#endif
#if DIAGONALS
    int at[SLOTS];
#endif
};

__device__ __forceinline__ void take(Mine& mine, const Net& net, int n) {
#pragma unroll
    for (int c = 0; c < UNITS; ++c) {
        const int i = threadIdx.x + c * blockDim.x;
        const bool there = i < n;
        mine.x[c] = 0.0;
        mine.bias[c] = there ? net.bias[i] : 0.0;
        mine.leak[c] = there ? net.leak[i] : 1.0;
#pragma unroll
        for (int j = 0; j < NU; ++j) mine.w_u[c][j] = there ? net.W_u[(offset)j * net.stride + i] : 0.0;
#pragma unroll
        for (int j = 0; j < NY; ++j) mine.w_y[c][j] = there ? net.W_y[(offset)j * net.stride + i] : 0.0;
#if HELD
#pragma unroll
        for (int j = 0; j < SLOTS; ++j) {
            mine.values[c][j] = there ? net.values[(offset)j * net.stride + i] : 0.0;
#if !DIAGONALS
            mine.columns[c][j] = there ? net.columns[(offset)j * net.stride + i] : 0;
#endif
        }
#endif
    }
#if DIAGONALS
#pragma unroll
    for (int j = 0; j < SLOTS; ++j) mine.at[j] = net.columns[j] + threadIdx.x;
#endif
}

// W_x x + drive of unit number c of this thread; two sums side by side, since one waits for its last addition.
__device__ __forceinline__ double recurrent(const Mine& mine, const Net& net, const double* x, int c, int n, double drive) {
    const int shift = c * blockDim.x;
    if ((int)threadIdx.x + shift >= n) return 0.0;
    double even = drive, odd = 0.0;
#pragma unroll
    for (int j = 0; j < SLOTS; ++j) {
#if HELD
        const double value = mine.values[c][j];
#else
        const double value = net.values[(offset)j * net.stride + threadIdx.x + shift];
#endif
#if DIAGONALS
        int at = mine.at[j] + shift;
        if (!DOUBLED && at >= n) at -= n;
        const double state = x[at];
#elif HELD
        const double state = x[mine.columns[c][j]];
#else
        const double state = x[net.columns[(offset)j * net.stride + threadIdx.x + shift]];
#endif
        if (j & 1)
            odd = fma(value, state, odd);
        else
            even = fma(value, state, even);
    }
    return even + odd;
}

// W_u u + b: needs no state, so it is ready before the barrier.
__device__ __forceinline__ double driven(const Mine& mine, int c, const double* u) {
    double inside = mine.bias[c];
#pragma unroll
    for (int j = 0; j < NU; ++j) inside = fma(mine.w_u[c][j], u[j], inside);
    return inside;
}

__device__ __forceinline__ double fed_back(const Mine& mine, int c, double inside, const double* y) {
#pragma unroll
    for (int j = 0; j < NY; ++j) inside = fma(mine.w_y[c][j], y[j], inside);
    return inside;
}

__device__ __forceinline__ double stepped(const Mine& mine, int c, double inside) {
    const double target = hyperbolic_tangent(inside);
    return mine.leak[c] == 1.0 ? target : fma(mine.leak[c], target, (1.0 - mine.leak[c]) * mine.x[c]);
}

__device__ __forceinline__ void put(double* x, int i, int n, double value) {
    x[i] = value;
    if (DOUBLED) x[n + i] = value;
}

// One whole step with known inputs and outputs, from `from` to `to`.
__device__ __forceinline__ void advance(Mine& mine, const Net& net, const double* from, double* to, int n, const double* u,
                                        const double* y) {
#pragma unroll
    for (int c = 0; c < UNITS; ++c) {
        const int i = threadIdx.x + c * blockDim.x;
        const double inside = recurrent(mine, net, from, c, n, fed_back(mine, c, driven(mine, c, u), y));
        if (i < n) put(to, i, n, mine.x[c] = stepped(mine, c, inside));
    }
    __syncthreads();
}

__device__ __forceinline__ void zero_state(Mine& mine, double* x, int n) {
#pragma unroll
    for (int c = 0; c < UNITS; ++c) mine.x[c] = 0.0;
    for (int i = threadIdx.x; i < 2 * STATE_SIZE(n); i += blockDim.x) x[i] = 0.0;
    __syncthreads();
}

template <int COUNT>
__device__ __forceinline__ void fetch(double* into, const double* from) {
#pragma unroll
    for (int j = 0; j < COUNT; ++j) into[j] = __ldg(from + j);
}

// States forced by measured signals, samples first .. last - 1 of a segment; row k - washout - row of phi gets x(k).
// The state goes on from where the last call left it; at first == 0 it starts from rest.
extern "C" __global__ BOUNDS void states(
    const int* orders, const double* values, const int* columns, const double* W_u, const double* W_y, const double* bias,
    const double* leak, int stride, const double* u, const double* fed, const int* u_of, const int* fed_of, offset samples,
    offset start, int first, int last, int washout, int padding, double* state, double* phi, int width, offset size, int row) {
    extern __shared__ double shared[];
    const int b = blockIdx.x, n = orders[b];
    const Net net = network(values, columns, W_u, W_y, bias, leak, stride, b);
    Mine mine;
    take(mine, net, n);
    double *now = shared, *next = shared + STATE_SIZE(n);
    u += (u_of[b] * samples + start) * NU;
    fed += (fed_of[b] * samples + start) * NY;
    phi += b * size;
    state += (offset)b * stride;
    zero_state(mine, shared, n);
    double u_now[NU], y_now[NY], u_next[NU], y_next[NY];
    if (first == 0) {
        fetch<NU>(u_now, u);
        fetch<NY>(y_now, fed);
        for (int k = 0; k < padding; ++k) {
            advance(mine, net, now, next, n, u_now, y_now);
            double* swap = now;
            now = next;
            next = swap;
        }
    } else {
#pragma unroll
        for (int c = 0; c < UNITS; ++c) {
            const int i = threadIdx.x + c * blockDim.x;
            if (i < n) put(now, i, n, mine.x[c] = state[i]);
        }
        __syncthreads();
    }
    fetch<NU>(u_next, u + (offset)first * NU);
    fetch<NY>(y_next, fed + (offset)first * NY);
    for (int k = first; k < last; ++k) {
#pragma unroll
        for (int j = 0; j < NU; ++j) u_now[j] = u_next[j];
#pragma unroll
        for (int j = 0; j < NY; ++j) y_now[j] = y_next[j];
        const int after = min(k + 1, last - 1);
        fetch<NU>(u_next, u + (offset)after * NU);
        fetch<NY>(y_next, fed + (offset)after * NY);
        if (k >= washout)
#pragma unroll
            for (int c = 0; c < UNITS; ++c) {
                const int i = threadIdx.x + c * blockDim.x;
                if (i < n) phi[(offset)(k - washout - row) * width + i] = mine.x[c];
            }
        advance(mine, net, now, next, n, u_now, y_now);
        double* swap = now;
        now = next;
        next = swap;
    }
#pragma unroll
    for (int c = 0; c < UNITS; ++c) {
        const int i = threadIdx.x + c * blockDim.x;
        if (i < n) state[i] = mine.x[c];
    }
}
