// Minimum-norm readouts where Cholesky cannot be used: R of a QR factorisation of [Phi, Y], row block after row block, then
// the singular values of R by one-sided Jacobi rotations, which reveal the rank. One thread block for each network.

#define BAND 128   // rows of phi that are reflected into R at once
#define REFLECTORS 16
#define QR_THREADS 256
#define HELD_ROWS (BAND / 4)

// triangle (q x q, upper) <- R of [triangle; phi]. phi is destroyed.
extern "C" __global__ __launch_bounds__(QR_THREADS) void fold_in(const int* sizes, double* phi, int width, offset size, int rows,
                                                               double* triangles, int stride) {
    __shared__ double v[REFLECTORS][BAND], part[32], taus[REFLECTORS];
    const int b = blockIdx.x, q = sizes[b], warp = threadIdx.x >> 5, lane = threadIdx.x & 31, warps = QR_THREADS / 32;
    phi += b * size;
    double* R = triangles + (offset)b * stride * stride;
    for (int top = 0; top < rows; top += BAND) {
        const int m = min(BAND, rows - top);
        double* band = phi + (offset)top * width;
        for (int start = 0; start < q; start += REFLECTORS) {
            const int count = min(REFLECTORS, q - start);
            for (int at = threadIdx.x; at < BAND * REFLECTORS; at += QR_THREADS) {
                const int k = at / REFLECTORS, c = at % REFLECTORS;
                v[c][k] = k < m && c < count ? band[(offset)k * width + start + c] : 0.0;
            }
            __syncthreads();
            for (int c = 0; c < count; ++c) {  // the panel itself
                double square = threadIdx.x < BAND ? v[c][threadIdx.x] * v[c][threadIdx.x] : 0.0;
                square = block_sum(square, part);
                double* diagonal = R + (offset)(start + c) * stride + start + c;
                const double alpha = *diagonal;
                double tau = 0.0, beta = alpha, scale = 0.0;
                if (square > 0.0) {
                    beta = -copysign(sqrt(alpha * alpha + square), alpha);
                    tau = (beta - alpha) / beta;
                    scale = 1.0 / (alpha - beta);
                }
                __syncthreads();
                if (threadIdx.x < BAND) v[c][threadIdx.x] *= scale;
                if (threadIdx.x == 0) {
                    *diagonal = beta;
                    taus[c] = tau;
                }
                __syncthreads();
                for (int other = c + 1 + warp; other < count; other += warps) {
                    double dot = 0.0;
                    for (int k = lane; k < BAND; k += 32) dot = fma(v[c][k], v[other][k], dot);
                    double* beside = R + (offset)(start + c) * stride + start + other;
                    const double before = *beside;
                    dot = tau * (before + warp_sum(dot));
                    __syncwarp();
                    if (lane == 0) *beside = before - dot;
                    for (int k = lane; k < BAND; k += 32) v[other][k] = fma(-dot, v[c][k], v[other][k]);
                }
                __syncthreads();
            }
            // The columns to the right: eight of them a warp, a quarter of each in the registers of a lane.
            for (int first = start + count + 8 * warp; first < q; first += 8 * warps) {
                const int column = first + (lane & 7), quarter = lane >> 3;
                const bool there = column < q;
                double held[HELD_ROWS];
#pragma unroll
                for (int i = 0; i < HELD_ROWS; ++i) {
                    const int k = 4 * i + quarter;
                    held[i] = there && k < m ? band[(offset)k * width + column] : 0.0;
                }
                for (int c = 0; c < count; ++c) {
                    double dot = 0.0;
#pragma unroll
                    for (int i = 0; i < HELD_ROWS; ++i) dot = fma(v[c][4 * i + quarter], held[i], dot);
                    dot += shuffled(dot, 8);
                    dot += shuffled(dot, 16);
                    double* above = R + (offset)(start + c) * stride + column;
                    const double before = there ? *above : 0.0;
                    dot = taus[c] * (before + dot);
                    if (there && quarter == 0) *above = before - dot;
#pragma unroll
                    for (int i = 0; i < HELD_ROWS; ++i) held[i] = fma(-dot, v[c][4 * i + quarter], held[i]);
                }
#pragma unroll
                for (int i = 0; i < HELD_ROWS; ++i) {
                    const int k = 4 * i + quarter;
                    if (there && k < m) band[(offset)k * width + column] = held[i];
                }
            }
            __syncthreads();
        }
    }
}

// Rows of the triangle are rotated until those of R are orthogonal: then they are s_i v_i', and Z has become U'Z.
// The readout is the sum of v_i (U'Z)_i / s_i over the s_i above p eps s_max.
extern "C" __global__ __launch_bounds__(QR_THREADS) void minimum_norm(const int* sizes, double* triangles, int stride,
                                                                    double* readouts, int readout_stride) {
    __shared__ double part[32];
    __shared__ int turned;
    const double eps = 2.220446049250313e-16;
    const int b = blockIdx.x, q = sizes[b], p = q - NY, warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const int players = p + (p & 1);  // an odd number of rows: one of them rests
    double* R = triangles + (offset)b * stride * stride;
    readouts += (offset)b * NY * readout_stride;
    double whole = 0.0;
    for (int row = warp; row < p; row += QR_THREADS / 32)
        for (int i = lane; i < p; i += 32) {
            if (i < row) R[(offset)row * stride + i] = 0.0;
            whole = fma(R[(offset)row * stride + i], R[(offset)row * stride + i], whole);
        }
    const double tiny = 1e-4 * eps * eps * block_sum(whole, part);  // squares of rows far below the cut
    for (int sweep = 0; sweep < 60; ++sweep) {
        __syncthreads();
        if (threadIdx.x == 0) turned = 0;
        __syncthreads();
        for (int round = 0; round < players - 1; ++round) {  // a tournament: everybody meets everybody once a sweep
            for (int table = warp; table < players / 2; table += QR_THREADS / 32) {
                int one = table == 0 ? players - 1 : (round + table) % (players - 1);
                int two = (round + players - 1 - table) % (players - 1);
                if (one > two) {
                    const int swap = one;
                    one = two;
                    two = swap;
                }
                if (two >= p) continue;
                double *x = R + (offset)one * stride, *y = R + (offset)two * stride;
                double xx = 0.0, yy = 0.0, xy = 0.0;
                for (int i = lane; i < p; i += 32) {
                    const double a = x[i], c = y[i];
                    xx = fma(a, a, xx);
                    yy = fma(c, c, yy);
                    xy = fma(a, c, xy);
                }
                xx = warp_sum(xx);
                yy = warp_sum(yy);
                xy = warp_sum(xy);
                if ((xx <= tiny && yy <= tiny) || fabs(xy) <= eps * sqrt((double)p) * sqrt(xx) * sqrt(yy)) continue;
                const double zeta = (yy - xx) / (2.0 * xy);
                const double tangent = copysign(1.0, zeta) / (fabs(zeta) + sqrt(1.0 + zeta * zeta));
                const double cosine = 1.0 / sqrt(1.0 + tangent * tangent), sine = cosine * tangent;
                for (int i = lane; i < q; i += 32) {
                    const double a = x[i], c = y[i];
                    x[i] = cosine * a - sine * c;
                    y[i] = sine * a + cosine * c;
                }
                if (lane == 0) turned = 1;
            }
            __syncthreads();
        }
        if (!turned) break;
    }
    double most = 0.0;
    for (int row = warp; row < p; row += QR_THREADS / 32) {
        double square = 0.0;
        for (int i = lane; i < p; i += 32) square = fma(R[(offset)row * stride + i], R[(offset)row * stride + i], square);
        most = fmax(most, warp_sum(square));
    }
    most = block_max(most, part);
    const double cut = p * eps * sqrt(most);
    for (int i = threadIdx.x; i < NY * p; i += blockDim.x) readouts[(offset)(i / p) * readout_stride + i % p] = 0.0;
    for (int row = 0; row < p; ++row) {
        double square = 0.0;
        for (int i = threadIdx.x; i < p; i += blockDim.x) square = fma(R[(offset)row * stride + i], R[(offset)row * stride + i], square);
        square = block_sum(square, part);
        if (sqrt(square) > cut)
            for (int o = 0; o < NY; ++o) {
                const double share = R[(offset)row * stride + p + o] / square;
                for (int i = threadIdx.x; i < p; i += blockDim.x)
                    readouts[(offset)o * readout_stride + i] += share * R[(offset)row * stride + i];
            }
        __syncthreads();
    }
}
