// Gram matrices [Phi, Y]'[Phi, Y] by the double-precision matrix unit: lower triangle, tile by tile, each tile by one
// thread block that runs over all rows. TILE is the side of a tile, each warp holds 32 x 32 of it.

// DEPTH rows of phi are in hand, and STAGES times as many on the way from memory. Sums run in the order of the rows
// whatever they are, and whatever TILE is.
#define PITCH (TILE + 4)  // rows in shared memory start 4 doubles apart (mod 16), so that fragments meet no bank twice
#define SIDE (TILE / 32)
#define GRAM_THREADS (32 * SIDE * SIDE)

__device__ __forceinline__ void copy_async(double* to, const double* from, bool there) {
    const unsigned address = (unsigned)__cvta_generic_to_shared(to);
    const int bytes = there ? 16 : 0;  // the rest is filled with zeros
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes));
}

// DEPTH rows and TILE columns of phi to shared memory; rows beyond the last are zero. Columns beyond the matrix bring
// whatever lies there: they only reach elements that nobody stores.
__device__ __forceinline__ void load_stage(double* to, const double* phi, int width, int rows, int row) {
    for (int at = threadIdx.x; at < DEPTH * TILE / 2; at += GRAM_THREADS) {
        const int k = at / (TILE / 2), i = 2 * (at % (TILE / 2));
        const bool there = row + k < rows;
        copy_async(to + k * PITCH + i, phi + (offset)(there ? row + k : 0) * width + i, there);
    }
}

extern "C" __global__ __launch_bounds__(GRAM_THREADS) void gram(const int* sizes, const double* phi, int width, offset size,
                                                               int rows, double* grams, int stride, bool add) {
    extern __shared__ double shared[];
    const int b = blockIdx.y, q = sizes[b];
    int down = 0;
    while ((down + 1) * (down + 2) / 2 <= (int)blockIdx.x) ++down;
    const int across = blockIdx.x - down * (down + 1) / 2;
    if (down * TILE >= q) return;
    const bool same = down == across;
    const double *left = phi + b * size + down * TILE, *right = phi + b * size + across * TILE;
    double *lefts = shared, *rights = same ? shared : shared + STAGES * DEPTH * PITCH;

    // Only warps at or below the diagonal and within the matrix have work. Those of a tile on the diagonal are numbered
    // along the triangle, so that the four schedulers of a multiprocessor get as many each.
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
    int i0 = warp / SIDE, j0 = warp % SIDE;
    bool idle = false;
    if (same) {
        i0 = 0;
        while ((i0 + 1) * (i0 + 2) / 2 <= warp) ++i0;
        j0 = warp - i0 * (i0 + 1) / 2;
        idle = i0 >= SIDE;
    }
    i0 *= 32;
    j0 *= 32;
    idle = idle || down * TILE + i0 >= q || across * TILE + j0 >= q;

    double sums[2][4][4];
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) sums[i][j][e] = 0.0;

    const int steps = (rows + DEPTH - 1) / DEPTH;
#pragma unroll
    for (int stage = 0; stage < STAGES - 1; ++stage) {
        if (stage < steps) {
            load_stage(lefts + stage * DEPTH * PITCH, left, width, rows, stage * DEPTH);
            if (!same) load_stage(rights + stage * DEPTH * PITCH, right, width, rows, stage * DEPTH);
        }
        asm volatile("cp.async.commit_group;");
    }
    for (int step = 0; step < steps; ++step) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
        __syncthreads();
        const int ahead = step + STAGES - 1;
        if (ahead < steps) {
            load_stage(lefts + (ahead % STAGES) * DEPTH * PITCH, left, width, rows, ahead * DEPTH);
            if (!same) load_stage(rights + (ahead % STAGES) * DEPTH * PITCH, right, width, rows, ahead * DEPTH);
        }
        asm volatile("cp.async.commit_group;");
        if (idle) continue;
        const double *a_at = lefts + (step % STAGES) * DEPTH * PITCH + i0, *b_at = rights + (step % STAGES) * DEPTH * PITCH + j0;
#pragma unroll
        for (int k = 0; k < DEPTH; k += 8) {
            double a[2][4], b[4][2];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                a[i][0] = a_at[(k + t) * PITCH + 16 * i + g];
                a[i][1] = a_at[(k + t) * PITCH + 16 * i + g + 8];
                a[i][2] = a_at[(k + t + 4) * PITCH + 16 * i + g];
                a[i][3] = a_at[(k + t + 4) * PITCH + 16 * i + g + 8];
            }
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                b[j][0] = b_at[(k + t) * PITCH + 8 * j + g];
                b[j][1] = b_at[(k + t + 4) * PITCH + 8 * j + g];
            }
#pragma unroll
            for (int i = 0; i < 2; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) multiply(sums[i][j], a[i], b[j]);
        }
    }
    if (idle) return;
    grams += (offset)b * stride * stride;
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int row = down * TILE + i0 + 16 * i + g + 8 * (e >> 1);
                const int column = across * TILE + j0 + 8 * j + 2 * t + (e & 1);
                if (row < q && column <= row) {
                    double* at = grams + (offset)row * stride + column;
                    *at = add ? *at + sums[i][j][e] : sums[i][j][e];
                }
            }
}
