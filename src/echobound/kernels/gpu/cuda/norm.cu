// Spectral norm by Golub-Kahan bidiagonalisation: the algorithm of echobound.network.spectral_norm, with its
// limits: SETTLED is CONVERGED there.

#define MOST_STEPS 2048
#define FIXED 0x1p56  // |product| <= 1 and a sum of them <= sqrt(n): fixed-point numbers whose sum has no order

// Largest eigenvalue of a tridiagonal matrix. Above it all pivots of T - s I are negative; many shifts are tried at once.
__device__ double largest(const double* diagonal, const double* beside, int k, double low) {
    double high = low;
    for (int i = 0; i < k; ++i) {
        const double radius = (i > 0 ? fabs(beside[i - 1]) : 0.0) + (i < k - 1 ? fabs(beside[i]) : 0.0);
        high = fmax(high, diagonal[i] + radius);
    }
    const int tried = min((int)blockDim.x, 128);
    for (int round = 0; round < 64 && high - low > 4e-16 * high; ++round) {
        const double width = (high - low) / (tried + 1), shift = low + width * (threadIdx.x + 1);
        bool above = (int)threadIdx.x >= tried;
        if (!above) {
            double pivot = diagonal[0] - shift;
            above = pivot < 0.0;
            for (int i = 1; above && i < k; ++i) {
                pivot = diagonal[i] - shift - beside[i - 1] * beside[i - 1] / pivot;
                above = pivot < 0.0;
            }
        }
        const int below = __syncthreads_count(!above);  // shifts below the eigenvalue
        const double next_low = low + width * below, next_high = below == tried ? high : low + width * (below + 1);
        if (next_low == low && next_high == high) break;
        low = next_low;
        high = next_high;
    }
    return high;
}

extern "C" __global__ void normalise(const int* orders, const double* scales, int stride, double* values,
                                     const int* columns, double* factors) {
    extern __shared__ double shared[];
    const int b = blockIdx.x, n = orders[b], slots = min(SLOTS, n);
    double *right = shared, *left = right + 2 * n, *diagonal = left + n, *beside = diagonal + MOST_STEPS,
           *part = beside + MOST_STEPS;
#if !DIAGONALS
    word* sums = (word*)(part + 32);
#endif
    values += (offset)b * SLOTS * stride;
    columns += (offset)b * SLOTS * (DIAGONALS ? 1 : stride);
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        right[i] = right[n + i] = 1.0 / sqrt((double)n);
        left[i] = 0.0;
    }
    __syncthreads();
    double beta = 0.0, top = 0.0, biggest = 0.0;
    int k = 0;
    while (true) {
        double square = 0.0;
        for (int i = threadIdx.x; i < n; i += blockDim.x) {
            double sum = -beta * left[i];
            for (int j = 0; j < slots; ++j) {
#if DIAGONALS
                sum += values[(offset)j * stride + i] * right[columns[j] + i];
#else
                sum += values[(offset)j * stride + i] * right[columns[(offset)j * stride + i]];
#endif
            }
            left[i] = sum;
            square += sum * sum;
        }
        const double alpha2 = block_sum(square, part), alpha = sqrt(alpha2);
        const double here = alpha2 + beta * beta;
        biggest = fmax(biggest, here);
        if (threadIdx.x == 0) diagonal[k] = here;
        ++k;
        bool exhausted = alpha2 <= SETTLED * SETTLED * biggest || k == MOST_STEPS;
        if (!exhausted) {
            for (int i = threadIdx.x; i < n; i += blockDim.x) left[i] /= alpha;
#if !DIAGONALS
            for (int i = threadIdx.x; i < n; i += blockDim.x) sums[i] = 0;
#endif
            __syncthreads();
#if !DIAGONALS
            for (int i = threadIdx.x; i < n; i += blockDim.x)
                for (int j = 0; j < slots; ++j)
                    atomicAdd(&sums[columns[(offset)j * stride + i]],
                              (word)__double2ll_rn(FIXED * (values[(offset)j * stride + i] * left[i])));
            __syncthreads();
#endif
            square = 0.0;
            for (int i = threadIdx.x; i < n; i += blockDim.x) {
#if DIAGONALS
                double sum = 0.0;
                for (int j = 0; j < slots; ++j) {
                    int row = i - columns[j];
                    row += row < 0 ? n : 0;
                    sum += values[(offset)j * stride + row] * left[row];
                }
#else
                double sum = (double)(offset)sums[i] / FIXED;
#endif
                sum -= alpha * right[i];
                right[i] = sum;
                square += sum * sum;
            }
            const double beta2 = block_sum(square, part);
            beta = sqrt(beta2);
            exhausted = beta2 <= SETTLED * SETTLED * biggest;
        }
        if (exhausted || k % CHECK_EVERY == 0) {
            __syncthreads();
            const double before = top;
            top = largest(diagonal, beside, k, before);
            if (exhausted || top - before <= SETTLED * top) break;
        }
        __syncthreads();
        for (int i = threadIdx.x; i < n; i += blockDim.x) right[n + i] = right[i] = right[i] / beta;
        if (threadIdx.x == 0) beside[k - 1] = alpha * beta;
        __syncthreads();
    }
    const double factor = scales[b] / sqrt(top);
    if (threadIdx.x == 0) factors[b] = factor;
    for (int j = 0; j < slots; ++j)
        for (int i = threadIdx.x; i < n; i += blockDim.x) values[(offset)j * stride + i] *= factor;
}
