// Training of small networks on the free-run error: Levenberg-Marquardt, all networks of a batch taking a step at a time.
// A network is at most MOST units, so a warp runs it, a lane for each unit; its sensitivities are a thread for each weight,
// and no two weights need each other. The products of all sensitivities are a Gram matrix (gram.cu), the step a Cholesky
// factorisation (solve.cu).
//
// The weights theta are, in this order, W_x slot by slot, W_u, W_y and the bias row by row, and the readout row by row.
// Data come in pieces, each with a washout of its own: a thread block for each of them and each network. `table` says of
// each piece where it starts, its length and washout, and the first of its rows among those of J and of the path.

#define AHEAD 16                                  // steps whose signals are in hand
#define SIGNALS (MOST + NU + NY + 1 + TAIL)       // what weights are multiplied by: x, u, y, 1, and the rest of phi
#define RECORD (2 * MOST + 2 * NY)                // of a path: x, leak (1 - tanh^2), y, and whether y is free of its limits

struct Where {
    int slots, inputs, feedback, bias, readout, columns, count;  // first element of each in theta
};

__device__ __forceinline__ Where where_of(int n, int tail) {
    Where w;
    w.slots = min(SLOTS, n);
    w.inputs = w.slots * n;
    w.feedback = w.inputs + n * NU;
    w.bias = w.feedback + n * NY;
    w.readout = w.bias + n;
    w.columns = n + tail;
    w.count = w.readout + NY * w.columns;
    return w;
}

__device__ __forceinline__ int column_of(const int* columns, int stride, int n, int b, int slot, int unit) {
#if DIAGONALS
    int column = columns[(offset)b * SLOTS + slot] + unit;
    return column >= n ? column - n : column;
#else
    return columns[((offset)b * SLOTS + slot) * stride + unit];
#endif
}

// Theta of the networks as they were drawn and solved.
extern "C" __global__ void pack(const int* orders, const int* sees, const double* values, const double* W_u,
                                const double* W_y, const double* bias, int stride, const double* readouts,
                                int readout_stride, double* theta, int theta_stride) {
    const int b = blockIdx.x, n = orders[b];
    const Where w = where_of(n, seen(sees_of(sees, b, gridDim.x)));
    theta += (offset)b * theta_stride;
    for (int p = threadIdx.x; p < w.count; p += blockDim.x) {
        double value;
        if (p < w.inputs)
            value = values[((offset)b * SLOTS + p / n) * stride + p % n];
        else if (p < w.feedback)
            value = W_u[((offset)b * NU + (p - w.inputs) % NU) * stride + (p - w.inputs) / NU];
        else if (p < w.bias)
            value = W_y[((offset)b * NY + (p - w.feedback) % NY) * stride + (p - w.feedback) / NY];
        else if (p < w.readout)
            value = bias[(offset)b * stride + p - w.bias];
        else
            value = readouts[((offset)b * NY + (p - w.readout) / w.columns) * readout_stride + (p - w.readout) % w.columns];
        theta[p] = value;
    }
}

// The inverse, into arrays that hold a network for each theta; `alternatives` of them belong to one drawn network.
extern "C" __global__ void unpack(const int* orders, const int* sees, int alternatives, const double* theta,
                                  int theta_stride, double* values, double* W_u, double* W_y, double* bias, int stride,
                                  double* readouts, int readout_stride) {
    const int b = blockIdx.x, drawn = b / alternatives, n = orders[drawn];
    const Where w = where_of(n, seen(sees_of(sees, drawn, gridDim.x / alternatives)));
    theta += (offset)b * theta_stride;
    for (int p = threadIdx.x; p < w.count; p += blockDim.x) {
        const double value = theta[p];
        if (p < w.inputs)
            values[((offset)b * SLOTS + p / n) * stride + p % n] = value;
        else if (p < w.feedback)
            W_u[((offset)b * NU + (p - w.inputs) % NU) * stride + (p - w.inputs) / NU] = value;
        else if (p < w.bias)
            W_y[((offset)b * NY + (p - w.feedback) % NY) * stride + (p - w.feedback) / NY] = value;
        else if (p < w.readout)
            bias[(offset)b * stride + p - w.bias] = value;
        else
            readouts[((offset)b * NY + (p - w.readout) / w.columns) * readout_stride + (p - w.readout) % w.columns] = value;
    }
}

// The free run of theta + direction over a piece: its squared error, and the path that the sensitivities follow. A warp
// for each piece and network; lane i is unit i, and looks after column i of the rest of phi.
extern "C" __global__ __launch_bounds__(32) void follow(
    const int* orders, const int* sees, const int* columns, const double* leak, int stride, const double* theta,
    int theta_stride, const double* direction, int direction_stride, const int* failed, const int* trying, const double* u,
    const double* y, const int* u_of, offset samples, const offset* table, int padding, const double* importance,
    const double* limits, bool clipped, bool keep, double* path, offset path_size, double* costs) {
    __shared__ double past[RING][NY];
    const int b = blockIdx.y, piece = blockIdx.x, pieces = gridDim.x, lane = threadIdx.x, n = orders[b];
    if (!trying[b]) return;
    double* cost = costs + (offset)b * pieces + piece;
    const double infinite = __longlong_as_double(0x7ff0000000000000LL);
    const bool steps = direction != nullptr;
    if (steps && failed[b]) {
        if (lane == 0) *cost = infinite;
        return;
    }
    const Sees s = sees_of(sees, b, gridDim.y);
    const int tail = seen(s), inputs = (s.input_delays + s.present_input) * NU;
    const Where w = where_of(n, tail);
    const offset start = table[piece];
    const int length = (int)table[pieces + piece], washout = (int)table[2 * pieces + piece];
    theta += (offset)b * theta_stride;
    direction += steps ? (offset)b * direction_stride : 0;
    u += (u_of[b] * samples + start) * NU;
    y += (u_of[b] * samples + start) * NY;
    importance += u_of[b] * NY;
    path += b * path_size + table[4 * pieces + piece] * RECORD;
#define WEIGHT(p) (theta[p] + (steps ? direction[p] : 0.0))
    const bool there = lane < n;
    double value[SLOTS], w_u[NU], w_y[NY], out[NY], beside[NY], beyond = 0.0;
    int from[SLOTS];
#pragma unroll
    for (int j = 0; j < SLOTS; ++j) {
        const bool has = there && j < w.slots;
        value[j] = has ? WEIGHT(j * n + lane) : 0.0;
        from[j] = has ? column_of(columns, stride, n, b, j, lane) : 0;
    }
#pragma unroll
    for (int j = 0; j < NU; ++j) w_u[j] = there ? WEIGHT(w.inputs + lane * NU + j) : 0.0;
#pragma unroll
    for (int o = 0; o < NY; ++o) {
        w_y[o] = there ? WEIGHT(w.feedback + lane * NY + o) : 0.0;
        out[o] = there ? WEIGHT(w.readout + o * w.columns + lane) : 0.0;
        beside[o] = lane < tail ? WEIGHT(w.readout + o * w.columns + n + lane) : 0.0;
        for (int c = lane; c < w.columns; c += 32) beyond += isfinite(WEIGHT(w.readout + o * w.columns + c)) ? 0.0 : 1.0;
    }
    const double own_bias = there ? WEIGHT(w.bias + lane) : 0.0, own_leak = there ? leak[(offset)b * stride + lane] : 1.0;
    const Limits clip = limits_of(limits, clipped, u_of[b]);
    if (warp_sum(beyond) > 0.0) {  // a readout that is not finite is no better than any other
        if (lane == 0) *cost = infinite;
        return;
    }
    double x = 0.0, sum = 0.0;
    bool finite = true;
    for (int k = -padding; finite && k < length; ++k) {
        const offset at = max(k, 0);
        double* record = path + (offset)(k + padding) * RECORD;
        double y_now[NY], free[NY], inside = own_bias;
#pragma unroll
        for (int j = 0; j < NU; ++j) inside = fma(w_u[j], __ldg(u + at * NU + j), inside);
        double odd = 0.0;
#pragma unroll
        for (int j = 0; j < SLOTS; ++j) {
            const double state = __shfl_sync(0xffffffffu, x, from[j]);
            if (j & 1)
                odd = fma(value[j], state, odd);
            else
                inside = fma(value[j], state, inside);
        }
        inside += odd;
#pragma unroll
        for (int o = 0; o < NY; ++o) {
            y_now[o] = __ldg(y + at * NY + o);
            free[o] = 0.0;
        }
        if (k >= washout) {
            double sums[NY];
#pragma unroll
            for (int o = 0; o < NY; ++o) sums[o] = out[o] * x;
            for (int c = lane; c < tail; c += 32) {
                double signal = 1.0;
                if (c < inputs)
                    signal = seen_input(s, u, k, c);
                else if (c < inputs + s.output_delays * NY) {
                    const int then = k - (c - inputs) / NY - 1, o = (c - inputs) % NY;
                    signal = then >= washout ? past[then % RING][o] : __ldg(y + (offset)max(then, 0) * NY + o);
                }
#pragma unroll
                for (int o = 0; o < NY; ++o) {
                    const int p = w.readout + o * w.columns + n + c;
                    sums[o] = fma(c == lane ? beside[o] : WEIGHT(p), signal, sums[o]);
                }
            }
#pragma unroll
            for (int o = 0; o < NY; ++o) {
                const double value = warp_sum(sums[o]), low = clip.low[o], high = clip.high[o];
                const double held = !clip.any ? value : value > high ? high : value >= low ? value : low;
                const double error = (y_now[o] - held) * importance[o];
                free[o] = held == value ? 1.0 : 0.0;
                sum = fma(error, error, sum);
                finite = finite && isfinite(held);
                y_now[o] = held;
            }
            __syncwarp();
#pragma unroll
            for (int o = 0; o < NY; ++o)
                if (lane == o) past[k % RING][o] = y_now[o];
            __syncwarp();
        }
#pragma unroll
        for (int o = 0; o < NY; ++o) inside = fma(w_y[o], y_now[o], inside);
        const double bent = hyperbolic_tangent(inside);
        if (keep) {
            if (there) {
                record[lane] = x;
                record[MOST + lane] = own_leak * (1.0 - bent * bent);
            }
#pragma unroll
            for (int o = 0; o < NY; ++o)
                if (lane == o) {
                    record[2 * MOST + o] = y_now[o];
                    record[2 * MOST + NY + o] = free[o];
                }
        }
        x = own_leak == 1.0 ? bent : fma(own_leak, bent, (1.0 - own_leak) * x);
    }
#undef WEIGHT
    if (lane == 0) *cost = finite && isfinite(sum) ? sum : infinite;
}

// Rows [F, e] of the free run along its path, each output times its importance: F = dy/dtheta. A thread for each weight.
extern "C" __global__ __launch_bounds__(WEIGHTS, FITTING) void sensitivities(
    const int* orders, const int* sees, const int* columns, const double* leak, int stride, const double* theta,
    int theta_stride, const int* trying, const double* u, const double* y, const int* u_of, offset samples,
    const offset* table, int padding, const double* importance, const double* path, offset path_size, double* rows,
    int pitch, offset size) {
    __shared__ double W_x[MOST][MOST], W_y[MOST][NY], keep[MOST], out[NY][MOST], back[NY][RING * NY], weight[NY];
    __shared__ double signals[AHEAD][SIGNALS], slopes[AHEAD][MOST], frees[AHEAD][NY], errors[AHEAD][NY];
    const int b = blockIdx.y, piece = blockIdx.x, pieces = gridDim.x, p = threadIdx.x, n = orders[b];
    if (!trying[b]) return;
    const Sees s = sees_of(sees, b, gridDim.y);
    const int tail = seen(s), inputs = (s.input_delays + s.present_input) * NU, fed = s.output_delays * NY;
    const Where w = where_of(n, tail);
    const offset start = table[piece];
    const int length = (int)table[pieces + piece], washout = (int)table[2 * pieces + piece];
    theta += (offset)b * theta_stride;
    u += (u_of[b] * samples + start) * NU;
    y += (u_of[b] * samples + start) * NY;
    rows += b * size + table[3 * pieces + piece] * pitch;
    path += b * path_size + table[4 * pieces + piece] * RECORD;
    for (int i = p; i < MOST; i += blockDim.x) {
        for (int j = 0; j < MOST; ++j) W_x[i][j] = 0.0;
        if (i < n)
            for (int j = 0; j < w.slots; ++j) W_x[i][column_of(columns, stride, n, b, j, i)] += theta[j * n + i];
        keep[i] = i < n ? 1.0 - leak[(offset)b * stride + i] : 0.0;
        for (int o = 0; o < NY; ++o) {
            W_y[i][o] = i < n ? theta[w.feedback + i * NY + o] : 0.0;
            out[o][i] = i < n ? theta[w.readout + o * w.columns + i] : 0.0;
        }
    }
    for (int i = p; i < NY * RING * NY; i += blockDim.x) {
        const int o = i / (RING * NY), c = i % (RING * NY);
        back[o][c] = c < fed ? theta[w.readout + o * w.columns + n + inputs + c] : 0.0;
    }
    if (p < NY) weight[p] = importance[u_of[b] * NY + p];
    // Where this thread's weight enters: unit `row` or output `own`, multiplied by signal `source`.
    int row = -1, own = -1, source = 0;
    if (p < w.inputs) {
        row = p % n;
        source = column_of(columns, stride, n, b, p / n, row);
    } else if (p < w.feedback) {
        row = (p - w.inputs) / NU;
        source = MOST + (p - w.inputs) % NU;
    } else if (p < w.bias) {
        row = (p - w.feedback) / NY;
        source = MOST + NU + (p - w.feedback) % NY;
    } else if (p < w.readout) {
        row = p - w.bias;
        source = MOST + NU + NY;
    } else if (p < w.count) {
        const int c = (p - w.readout) % w.columns;
        own = (p - w.readout) / w.columns;
        source = c < n ? c : MOST + NU + NY + 1 + c - n;
    }
    double S[MOST], past[RING][NY];
#pragma unroll
    for (int i = 0; i < MOST; ++i) S[i] = 0.0;
#pragma unroll
    for (int d = 0; d < RING; ++d)
#pragma unroll
        for (int o = 0; o < NY; ++o) past[d][o] = 0.0;
    for (int first = -padding; first < length; first += AHEAD) {
        const int here = min(AHEAD, length - first);
        __syncthreads();
        for (int i = p; i < here * SIGNALS; i += blockDim.x) {
            const int step = i / SIGNALS, c = i % SIGNALS, k = first + step;
            const double* record = path + (offset)(k + padding) * RECORD;
            double signal = 0.0;
            if (c < MOST)
                signal = c < n ? record[c] : 0.0;
            else if (c < MOST + NU)
                signal = __ldg(u + (offset)max(k, 0) * NU + c - MOST);
            else if (c < MOST + NU + NY)
                signal = record[2 * MOST + c - MOST - NU];
            else if (c == MOST + NU + NY)
                signal = 1.0;
            else if (k >= washout) {
                const int column = c - (MOST + NU + NY + 1);
                if (column < inputs)
                    signal = seen_input(s, u, k, column);
                else if (column < inputs + fed) {
                    const int delay = (column - inputs) / NY + 1, o = (column - inputs) % NY;
                    signal = k >= delay ? (record - (offset)delay * RECORD)[2 * MOST + o] : __ldg(y + o);
                } else
                    signal = 1.0;
            }
            signals[step][c] = signal;
        }
        for (int i = p; i < here * MOST; i += blockDim.x) {
            const double* record = path + (offset)(first + i / MOST + padding) * RECORD;
            slopes[i / MOST][i % MOST] = i % MOST < n ? record[MOST + i % MOST] : 0.0;
        }
        for (int i = p; i < here * NY; i += blockDim.x) {
            const int step = i / NY, o = i % NY;
            const double* record = path + (offset)(first + step + padding) * RECORD;
            frees[step][o] = record[2 * MOST + NY + o];
            errors[step][o] = __ldg(y + (offset)max(first + step, 0) * NY + o) - record[2 * MOST + o];
        }
        __syncthreads();
        for (int step = 0; step < here; ++step) {
            const int k = first + step;
            asm volatile("" ::: "memory");  // else the compiler takes all of W_x into registers, and spills
            double F[NY];
#pragma unroll
            for (int o = 0; o < NY; ++o) F[o] = 0.0;
            const double direct = signals[step][source];
            if (k >= washout) {
#pragma unroll
                for (int o = 0; o < NY; ++o) {
                    double even = own == o ? direct : 0.0, odd = 0.0;
#pragma unroll
                    for (int i = 0; i < MOST; ++i)
                        if (i & 1)
                            odd = fma(out[o][i], S[i], odd);
                        else
                            even = fma(out[o][i], S[i], even);
#pragma unroll
                    for (int d = 0; d < RING; ++d)
#pragma unroll
                        for (int q = 0; q < NY; ++q) odd = fma(back[o][d * NY + q], past[d][q], odd);
                    F[o] = frees[step][o] != 0.0 ? even + odd : 0.0;
                }
#pragma unroll
                for (int o = 0; o < NY; ++o) {
                    double* target = rows + (offset)((k - washout) * NY + o) * pitch;
                    if (p < w.count)
                        target[p] = weight[o] * F[o];
                    else if (p == w.count)
                        target[p] = weight[o] * errors[step][o];
                }
            }
            double moved[MOST];
#pragma unroll
            for (int i = 0; i < MOST; ++i) {
                double even = i == row ? direct : 0.0, odd = 0.0;
#pragma unroll
                for (int j = 0; j < MOST; ++j)
                    if (j & 1)
                        odd = fma(W_x[i][j], S[j], odd);
                    else
                        even = fma(W_x[i][j], S[j], even);
#pragma unroll
                for (int o = 0; o < NY; ++o) even = fma(W_y[i][o], F[o], even);
                moved[i] = fma(keep[i], S[i], slopes[step][i] * (even + odd));
            }
#pragma unroll
            for (int i = 0; i < MOST; ++i) S[i] = moved[i];
#pragma unroll
            for (int d = RING - 1; d > 0; --d)
#pragma unroll
                for (int o = 0; o < NY; ++o) past[d][o] = past[d - 1][o];
#pragma unroll
            for (int o = 0; o < NY; ++o) past[0][o] = F[o];
        }
    }
}

// What a descent is at, for each network.
#define COST 0
#define DAMPING 1
#define PULL 2
#define FACTS 3
#define TRYING 0    // a step is being tried
#define ENDED 1     // no step helps any more
#define TAKEN 2     // steps
#define REJECTED 3  // of the step being tried
#define SIZE 4      // of the matrices of the step; 0 if none is tried
#define COUNTERS 5

// Cost and distance from the anchor of theta + direction, the same in all threads. One warp for each network.
__device__ double whole_cost(const double* theta, const double* direction, const double* anchor, int count,
                             const double* costs, int pieces, double pull) {
    double distance = 0.0, total = 0.0;
    for (int p = threadIdx.x; p < count; p += 32) {
        const double apart = theta[p] + (direction == nullptr ? 0.0 : direction[p]) - anchor[p];
        distance = fma(apart, apart, distance);
    }
    distance = warp_sum(distance);
    for (int piece = 0; piece < pieces; ++piece) total += costs[piece];
    return fma(pull, distance, total);
}

// Begin on other data: the cost of where a descent is.
extern "C" __global__ void begin(const int* sizes, const double* theta, int theta_stride, const double* anchor,
                                 const double* costs, int pieces, const double* pulls, double* facts, int* counters) {
    const int b = blockIdx.x, count = gridDim.x;
    theta += (offset)b * theta_stride;
    anchor += (offset)b * theta_stride;
    const double cost = whole_cost(theta, nullptr, anchor, sizes[b], costs + (offset)b * pieces, pieces, pulls[b]);
    if (threadIdx.x == 0) {
        facts[COST * count + b] = cost;
        facts[PULL * count + b] = pulls[b];
        counters[ENDED * count + b] = 0;
        counters[TRYING * count + b] = 0;
        counters[SIZE * count + b] = 0;
    }
}

// Whether a network takes another step before it has taken `target` of them. One thread for each network.
extern "C" __global__ void next_step(const int* sizes, int networks, int target, int* counters) {
    const int b = blockIdx.x * blockDim.x + threadIdx.x;
    if (b >= networks) return;
    const bool more = !counters[ENDED * networks + b] && counters[TAKEN * networks + b] < target;
    counters[TRYING * networks + b] = more;
    counters[REJECTED * networks + b] = 0;
    counters[SIZE * networks + b] = more ? sizes[b] + 1 : 0;
}

// The damped equations of a step from the Gram matrix of [J, e]; what is not finite has no step.
extern "C" __global__ void damp(const int* sizes, const double* grams, int stride, const double* theta, int theta_stride,
                                const double* anchor, const double* facts, const int* counters, double* damped,
                                int* overflowed) {
    __shared__ double part[32];
    const int b = blockIdx.x, count = gridDim.x, m = sizes[b];
    if (!counters[TRYING * count + b]) return;
    const double pull = facts[PULL * count + b], damping = facts[DAMPING * count + b];
    grams += (offset)b * stride * stride;
    damped += (offset)b * stride * stride;
    theta += (offset)b * theta_stride;
    anchor += (offset)b * theta_stride;
    double most = 0.0, broken = 0.0;
    for (int i = threadIdx.x; i < m; i += blockDim.x) most = fmax(most, grams[(offset)i * stride + i] + pull);
    most = block_max(most, part);
    for (int at = threadIdx.x; at < (m + 1) * (m + 1); at += blockDim.x) {
        const int i = at / (m + 1), j = at % (m + 1);
        if (j > i) continue;
        double value = grams[(offset)i * stride + j];
        if (i < m && i == j) {
            value += pull;
            value += damping * fmax(value, 1e-12 * most);
        } else if (i == m && j < m)
            value -= pull * (theta[j] - anchor[j]);
        if (!(i == m && j == m) && !isfinite(value)) broken += 1.0;
        damped[(offset)i * stride + j] = value;
    }
    broken = block_sum(broken, part);
    if (threadIdx.x == 0) overflowed[b] = broken > 0.0;
}

// Take the step if it helps, or try again with more damping. One warp for each network.
extern "C" __global__ void decide(const int* sizes, double* theta, int theta_stride, const double* direction,
                                  int direction_stride, const double* anchor, const double* costs, int pieces,
                                  int rejections, double flat, double* facts, int* counters) {
    const int b = blockIdx.x, count = gridDim.x, m = sizes[b];
    if (!counters[TRYING * count + b]) return;
    theta += (offset)b * theta_stride;
    anchor += (offset)b * theta_stride;
    direction += (offset)b * direction_stride;
    const double before = facts[COST * count + b], pull = facts[PULL * count + b];
    const double cost = whole_cost(theta, direction, anchor, m, costs + (offset)b * pieces, pieces, pull);
    const bool helps = cost < before;
    if (helps)
        for (int p = threadIdx.x; p < m; p += 32) theta[p] += direction[p];
    __syncwarp();
    if (threadIdx.x != 0) return;
    bool settled = helps;
    if (helps) {
        counters[ENDED * count + b] = cost > (1.0 - flat) * before;
        facts[COST * count + b] = cost;
        facts[DAMPING * count + b] /= 4.0;
    } else {
        facts[DAMPING * count + b] *= 6.0;
        settled = ++counters[REJECTED * count + b] == rejections;
        if (settled) counters[ENDED * count + b] = 1;
    }
    if (settled) {
        counters[TRYING * count + b] = 0;
        counters[SIZE * count + b] = 0;
        counters[TAKEN * count + b] += 1;
    }
}

// A solution that Cholesky could not find, and equations that are not finite, have no direction.
extern "C" __global__ void join(int networks, const int* overflowed, int* failed) {
    const int b = blockIdx.x * blockDim.x + threadIdx.x;
    if (b < networks && overflowed[b]) failed[b] = 1;
}

// Back to the start where the steps did not help on all of the data.
extern "C" __global__ void keep_better(const int* sizes, const double* start, int theta_stride, const double* before,
                                       const double* after, int pieces, double* theta) {
    const int b = blockIdx.x;
    double one = 0.0, other = 0.0;
    for (int piece = 0; piece < pieces; ++piece) {
        one += before[(offset)b * pieces + piece];
        other += after[(offset)b * pieces + piece];
    }
    if (other <= one) return;
    for (int p = threadIdx.x; p < sizes[b]; p += blockDim.x)
        theta[(offset)b * theta_stride + p] = start[(offset)b * theta_stride + p];
}
