// What all stages share. The number of inputs NU and of outputs NY are given to the compiler, as are other sizes in
// capital letters that a stage does not define itself.
//
// One thread block works on one network. All sums run in an order that depends on the network's own order alone, so that
// a row never depends on what else is in the batch.

typedef unsigned long long word;
typedef long long offset;

__device__ __forceinline__ double shuffled(double value, int lane_mask) {
    return __shfl_xor_sync(0xffffffffu, value, lane_mask);
}

__device__ __forceinline__ double warp_sum(double value) {
#pragma unroll
    for (int mask = 16; mask > 0; mask >>= 1) value += shuffled(value, mask);
    return value;
}

// Sum over the block, the same in all threads. `part` holds 32 numbers; the caller may reuse it after the next barrier.
__device__ __forceinline__ double block_sum(double value, double* part) {
    value = warp_sum(value);
    __syncthreads();
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = value;
    __syncthreads();
    double total = 0.0;
    for (int warp = 0; warp < (int)(blockDim.x >> 5); ++warp) total += part[warp];
    return total;
}

__device__ __forceinline__ double block_max(double value, double* part) {
#pragma unroll
    for (int mask = 16; mask > 0; mask >>= 1) value = fmax(value, shuffled(value, mask));
    __syncthreads();
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = value;
    __syncthreads();
    double most = part[0];
    for (int warp = 1; warp < (int)(blockDim.x >> 5); ++warp) most = fmax(most, part[warp]);
    return most;
}

// c += a b for a 16 x 8 x 8 product of doubles by the matrix unit. Lane l holds, with g = l / 4 and t = l % 4: a(g, t),
// a(g + 8, t), a(g, t + 4), a(g + 8, t + 4); b(t, g), b(t + 4, g); c(g, 2t), c(g, 2t + 1), c(g + 8, 2t), c(g + 8, 2t + 1).
__device__ __forceinline__ void multiply(double* c, const double* a, const double* b) {
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else  // the same in four pieces
#pragma unroll
    for (int k = 0; k < 2; ++k)
#pragma unroll
        for (int half = 0; half < 2; ++half)
            asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                         : "+d"(c[2 * half]), "+d"(c[2 * half + 1])
                         : "d"(a[2 * k + half]), "d"(b[k]));
#endif
}
