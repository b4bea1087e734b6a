// Readouts from Gram matrices: Cholesky, panel by panel, one thread block for each network and ridge. The rows of Y'Phi
// stand below those of Phi'Phi and are carried along, which is the forward substitution.

#define PANEL 32
#define SOLVE_THREADS 256

// L(rows, panel) = G(rows, panel) - L(rows, before) L(panel, before)'.
__device__ void update_panel(double* factor, int stride, int q, int start) {
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
    for (int i0 = start + 16 * warp; i0 < q; i0 += 16 * (SOLVE_THREADS / 32)) {
        const double* upper = factor + (offset)min(i0 + g, q - 1) * stride + t;
        const double* lower = factor + (offset)min(i0 + g + 8, q - 1) * stride + t;
        const double* across[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) across[j] = factor + (offset)min(start + 8 * j + g, q - 1) * stride + t;
        double sums[4][4];
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) sums[j][e] = 0.0;
#pragma unroll 4
        for (int k = 0; k < start; k += 8) {
            const double a[4] = {upper[k], lower[k], upper[k + 4], lower[k + 4]};
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const double b[2] = {across[j][k], across[j][k + 4]};
                multiply(sums[j], a, b);
            }
        }
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int row = i0 + g + 8 * (e >> 1), column = start + 8 * j + 2 * t + (e & 1);
                if (row < q && column <= row && column < start + PANEL) factor[(offset)row * stride + column] -= sums[j][e];
            }
    }
}

extern "C" __global__ __launch_bounds__(SOLVE_THREADS, 2) void solve(const int* sizes, const double* grams, double* factors,
                                                                 int stride, const double* ridges, int ridge_count,
                                                                 double* readouts, int readout_stride, int* failed) {
    __shared__ double block[PANEL][PANEL + 1], inverse[PANEL], part[32], partial[SOLVE_THREADS / PANEL][PANEL], known[PANEL];
    __shared__ int broken;
    const int b = blockIdx.x / ridge_count, q = sizes[b], p = q - NY;
    const double* source = grams + (offset)b * stride * stride;
    double* factor = factors + (offset)blockIdx.x * stride * stride;
    readouts += (offset)blockIdx.x * NY * readout_stride;
    const double ridge = ridges[blockIdx.x % ridge_count];
    if (ridge == 0.0) {
        if (threadIdx.x == 0) failed[blockIdx.x] = 1;
        return;
    }
    double trace = 0.0;
    for (int i = threadIdx.x; i < p; i += blockDim.x) trace += source[(offset)i * stride + i];
    const double added = ridge * block_sum(trace, part) / p;
    for (int row = threadIdx.x >> 5; row < q; row += SOLVE_THREADS / 32)
        for (int column = threadIdx.x & 31; column <= row; column += 32)
            factor[(offset)row * stride + column] = source[(offset)row * stride + column] + (row == column && row < p ? added : 0.0);
    if (threadIdx.x == 0) broken = 0;
    __syncthreads();
    for (int start = 0; start < p; start += PANEL) {
        const int width = min(PANEL, p - start);
        update_panel(factor, stride, q, start);
        __syncthreads();
        if (threadIdx.x < 32) {  // the block on the diagonal: one warp, row `lane` in the registers of a lane
            const int lane = threadIdx.x;
            double row[PANEL];
#pragma unroll
            for (int c = 0; c < PANEL; ++c)
                row[c] = lane < width && c <= lane ? factor[(offset)(start + lane) * stride + start + c] : (double)(c == lane);
#pragma unroll
            for (int c = 0; c < PANEL; ++c) {
                const double pivot = __shfl_sync(0xffffffffu, row[c], c), root = sqrt(pivot), one_over = 1.0 / root;
                if (!(pivot > 0.0)) broken = 1;  // the rest is NaN, and nobody looks at it
                row[c] = lane == c ? root : row[c] * one_over;
                if (lane == c) inverse[c] = one_over;
#pragma unroll
                for (int k = c + 1; k < PANEL; ++k) row[k] = fma(-row[c], __shfl_sync(0xffffffffu, row[c], k), row[k]);
            }
#pragma unroll
            for (int c = 0; c < PANEL; ++c) {
                block[lane][c] = c <= lane ? row[c] : 0.0;
                if (c <= lane && lane < width) factor[(offset)(start + lane) * stride + start + c] = row[c];
            }
        }
        __syncthreads();
        if (broken) break;
        for (int row = start + width + threadIdx.x; row < q; row += SOLVE_THREADS) {
            double* mine = factor + (offset)row * stride + start;
            double x[PANEL];
#pragma unroll
            for (int c = 0; c < PANEL; ++c) x[c] = c < width ? mine[c] : 0.0;
#pragma unroll
            for (int k = 0; k < PANEL; ++k) {
                x[k] *= inverse[k];
#pragma unroll
                for (int c = k + 1; c < PANEL; ++c) x[c] = fma(-x[k], block[c][k], x[c]);
                asm volatile("" ::: "memory");  // else the compiler loads the whole block first and spills it
            }
#pragma unroll
            for (int c = 0; c < PANEL; ++c)
                if (c < width) mine[c] = x[c];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) failed[blockIdx.x] = broken;
    if (broken) return;

    // L' w = z from the last panel to the first; z is what the rows of Y have become.
    const int column = threadIdx.x % PANEL, group = threadIdx.x / PANEL;
    for (int o = 0; o < NY; ++o) {
        const double* z = factor + (offset)(p + o) * stride;
        double* w = readouts + (offset)o * readout_stride;
        for (int start = (p - 1) / PANEL * PANEL; start >= 0; start -= PANEL) {
            const int width = min(PANEL, p - start);
            double sum = 0.0;
            if (column < width)
                for (int row = start + width + group; row < p; row += SOLVE_THREADS / PANEL)
                    sum = fma(factor[(offset)row * stride + start + column], w[row], sum);
            partial[group][column] = sum;
            for (int row = group; row < PANEL; row += SOLVE_THREADS / PANEL)
                block[row][column] = row < width && column <= row ? factor[(offset)(start + row) * stride + start + column] : (row == column);
            __syncthreads();
            if (threadIdx.x < 32) {
                const int lane = threadIdx.x;
                double value = lane < width ? z[start + lane] : 0.0;
                for (int i = 0; i < SOLVE_THREADS / PANEL; ++i) value -= partial[i][lane];
                for (int c = PANEL - 1; c >= 0; --c) {
                    const double solved = __shfl_sync(0xffffffffu, value, c) / block[c][c];
                    if (lane == c) known[c] = solved;
                    if (lane < c) value = fma(-block[c][lane], solved, value);
                }
                __syncwarp();
                if (lane < width) w[start + lane] = known[lane];
            }
            __syncthreads();
        }
    }
}
