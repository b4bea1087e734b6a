// The CUDA sources as plain C++, for tests: threads of a block are fibers that take turns at barriers, one block after the
// other. Slow, and blind to races, but the arithmetic is that of the card.
#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(...)
#define __restrict__
#define __CUDA_ARCH__ 900

using std::isfinite;
using std::max;
using std::min;

struct Dimension {
    unsigned x, y, z;
};
static Dimension threadIdx, blockIdx, blockDim, gridDim;
static double shared[1 << 15];

namespace host {
enum State { READY, AT_WARP, AT_BLOCK, DONE };
static const size_t STACK = 1 << 18;
struct Fiber {
    jmp_buf place;
    ucontext_t context;
    State state;
    bool begun;
    std::vector<char> stack;
};
static std::vector<Fiber> fibers;
static jmp_buf scheduler;
static ucontext_t main_context;
static unsigned current;
static double slots[1024];
static int counts[1024];
static void (*body)();

static void enter() {
    body();
    fibers[current].state = DONE;
    _longjmp(scheduler, 1);
}

static void wait(State state) {
    fibers[current].state = state;
    if (!_setjmp(fibers[current].place)) _longjmp(scheduler, 1);
}

static void resume(unsigned i) {
    current = i;
    threadIdx = {i, 0, 0};
    if (_setjmp(scheduler)) return;
    Fiber& fiber = fibers[i];
    if (fiber.begun) _longjmp(fiber.place, 1);
    fiber.begun = true;
    setcontext(&fiber.context);
}

static void run_block(unsigned threads) {
    if (fibers.size() < threads) fibers.resize(threads);
    for (unsigned i = 0; i < threads; ++i) {
        Fiber& fiber = fibers[i];
        if (fiber.stack.empty()) fiber.stack.resize(STACK);
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.data();
        fiber.context.uc_stack.ss_size = STACK;
        fiber.context.uc_link = nullptr;
        makecontext(&fiber.context, enter, 0);
        fiber.state = READY;
        fiber.begun = false;
    }
    std::fill(shared, shared + (1 << 15), NAN);  // nothing may be read that was not written
    while (true) {
        bool done = true, ran = false;
        for (unsigned warp = 0; warp < threads; warp += 32) {
            const unsigned end = std::min(warp + 32, threads);
            bool again = true;
            while (again) {
                bool waiting = false, other = false;
                for (unsigned i = warp; i < end; ++i) {
                    if (fibers[i].state == READY) {
                        resume(i);
                        ran = true;
                    }
                }
                for (unsigned i = warp; i < end; ++i) {
                    waiting |= fibers[i].state == AT_WARP;
                    other |= fibers[i].state == AT_BLOCK;
                }
                if (waiting && other) __builtin_trap();  // some lanes wait for the warp and some for the block
                again = waiting;
                for (unsigned i = warp; i < end; ++i)
                    if (fibers[i].state == AT_WARP) fibers[i].state = READY;
            }
            for (unsigned i = warp; i < end; ++i) done &= fibers[i].state == DONE;
        }
        if (done) return;
        if (!ran) __builtin_trap();
        for (unsigned i = 0; i < threads; ++i)
            if (fibers[i].state == AT_BLOCK) fibers[i].state = READY;
    }
}

template <class... P, size_t... I>
static void call(void (*kernel)(P...), void** arguments, std::index_sequence<I...>) {
    kernel(*(P*)arguments[I]...);
}

static void** given;
template <class... P>
static void launch(void (*kernel)(P...), unsigned gx, unsigned gy, unsigned threads, void** arguments) {
    static void (*started)(P...);
    started = kernel;
    given = arguments;
    body = [] { call(started, given, std::index_sequence_for<P...>{}); };
    gridDim = {gx, gy, 1};
    blockDim = {threads, 1, 1};
    for (unsigned y = 0; y < gy; ++y)
        for (unsigned x = 0; x < gx; ++x) {
            blockIdx = {x, y, 0};
            run_block(threads);
        }
}
}  // namespace host

static void __syncthreads() { host::wait(host::AT_BLOCK); }
static void __syncwarp(unsigned = 0xffffffffu) { host::wait(host::AT_WARP); }

static double __shfl_sync(unsigned, double value, int lane) {
    host::slots[threadIdx.x] = value;
    __syncwarp();
    const double found = host::slots[(threadIdx.x & ~31u) + lane];
    __syncwarp();
    return found;
}

static double __shfl_xor_sync(unsigned mask, double value, int other) {
    return __shfl_sync(mask, value, (threadIdx.x & 31) ^ other);
}

static int __syncthreads_count(int predicate) {
    host::counts[threadIdx.x] = predicate != 0;
    __syncthreads();
    int total = 0;
    for (unsigned i = 0; i < blockDim.x; ++i) total += host::counts[i];
    __syncthreads();
    return total;
}
static int __syncthreads_or(int predicate) { return __syncthreads_count(predicate) > 0; }

template <class T>
static T __ldg(const T* from) {
    return *from;
}
static double __longlong_as_double(long long bits) {
    double value;
    memcpy(&value, &bits, 8);
    return value;
}
static long long __double_as_longlong(double value) {
    long long bits;
    memcpy(&bits, &value, 8);
    return bits;
}
static double __dmul_rn(double a, double b) { return a * b; }
static double __dadd_rn(double a, double b) { return a + b; }
static long long __double2ll_rn(double value) { return llrint(value); }
static unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
static void atomicAdd(unsigned long long* at, unsigned long long value) { *at += value; }

// What the sources say in assembler.
static void multiply(double* c, const double* a, const double* b) {
    static double as[32][16][8], bs[32][8][8];
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
    for (int e = 0; e < 4; ++e) as[warp][g + 8 * (e & 1)][t + 4 * (e >> 1)] = a[e];
    for (int e = 0; e < 2; ++e) bs[warp][t + 4 * e][g] = b[e];
    __syncwarp();
    for (int e = 0; e < 4; ++e)
        for (int k = 0; k < 8; ++k) c[e] += as[warp][g + 8 * (e >> 1)][k] * bs[warp][k][2 * t + (e & 1)];
    __syncwarp();
}
static void copy_async(double* to, const double* from, bool there) {
    to[0] = there ? from[0] : 0.0;
    to[1] = there ? from[1] : 0.0;
}
