/* @title
 */
#include "ctl.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* @tables */

#define FIRST_INPUT CTL_STATES
#define FIRST_OUTPUT (FIRST_INPUT + CTL_INPUTS)
#define FIRST_UNIT (FIRST_OUTPUT + CTL_OUTPUTS)

static double ctl_between(double value, double low, double high)
{
    return (value > high) ? high : ((value >= low) ? value : low);
}

/* ---- The model: one step in scaled units, w = [state, inputs, outputs, units]. ---- */

static void ctl_units(double w[CTL_WIDTH])
{
    for (size_t i = 0U; i < CTL_UNITS; i++) {
        double sum = ctl_bias[i];
        for (size_t k = ctl_activation_ends[i]; k < ctl_activation_ends[i + 1U]; k++) {
            sum += ctl_activation_values[k] * w[ctl_activation_columns[k]];
        }
        w[FIRST_UNIT + i] = tanh(sum);
    }
}

static void ctl_load(double w[CTL_WIDTH], const double state[CTL_STATES], const double u[CTL_INPUTS])
{
    for (size_t i = 0U; i < CTL_WIDTH; i++) {
        w[i] = (i < CTL_STATES) ? state[i] : 0.0;
    }
    for (size_t i = 0U; i < CTL_INPUTS; i++) {
        w[FIRST_INPUT + i] = (u[i] - ctl_input_offset[i]) / ctl_input_span[i];
    }
}

/* The own outputs of this sample, scaled; whether each is free, that is not clipped. */
static void ctl_own(double w[CTL_WIDTH], double own[CTL_OUTPUTS], int is_free[CTL_OUTPUTS])
{
    if (CTL_UNITS_FIRST != 0) {
        ctl_units(w);
    }
    for (size_t i = 0U; i < CTL_OUTPUTS; i++) {
        double sum = ctl_constant[i];
        for (size_t k = ctl_readout_ends[i]; k < ctl_readout_ends[i + 1U]; k++) {
            sum += ctl_readout_values[k] * w[ctl_readout_columns[k]];
        }
        own[i] = (CTL_CLIPS != 0) ? ctl_between(sum, ctl_clip_low[i], ctl_clip_high[i]) : sum;
        is_free[i] = 1;
        if ((own[i] < sum) || (own[i] > sum)) {
            is_free[i] = 0;
        }
    }
}

/* The next state, with these scaled outputs fed back. */
static void ctl_next(double w[CTL_WIDTH], const double fed[CTL_OUTPUTS], double state[CTL_STATES])
{
    for (size_t i = 0U; i < CTL_OUTPUTS; i++) {
        w[FIRST_OUTPUT + i] = fed[i];
    }
    if (CTL_UNITS_FIRST == 0) {
        ctl_units(w);
    }
    for (size_t i = 0U; i < CTL_STATES; i++) {
        double sum = 0.0;
        for (size_t k = ctl_next_ends[i]; k < ctl_next_ends[i + 1U]; k++) {
            sum += ctl_next_values[k] * w[ctl_next_columns[k]];
        }
        state[i] = sum;
    }
}

static double ctl_scaled(double y, size_t output)
{
    return (y - ctl_output_offset[output]) / ctl_output_span[output];
}

static void ctl_advance(ctl_controller *c, const double y[CTL_OUTPUTS])
{
    double w[CTL_WIDTH];
    double own[CTL_OUTPUTS];
    double fed[CTL_OUTPUTS];
    int is_free[CTL_OUTPUTS];
    ctl_load(w, c->state, c->input);
    ctl_own(w, own, is_free);
    for (size_t i = 0U; i < CTL_OUTPUTS; i++) {
        fed[i] = ctl_scaled(y[i], i);
    }
    ctl_next(w, fed, c->state);
}

/* The own outputs at this sample in the data's units; its input is not known yet, and the last one stands in. */
static void ctl_present(const ctl_controller *c, double y[CTL_OUTPUTS])
{
    double w[CTL_WIDTH];
    int is_free[CTL_OUTPUTS];
    ctl_load(w, c->state, c->input);
    ctl_own(w, y, is_free);
    for (size_t i = 0U; i < CTL_OUTPUTS; i++) {
        y[i] = (y[i] * ctl_output_span[i]) + ctl_output_offset[i];
    }
}

/* ---- The observer ---- */

/* The median of the innovations that are kept of an output. */
static double ctl_median(const ctl_controller *c, size_t output)
{
    double sorted[CTL_WINDOW];
    const size_t count = (c->seen[output] < CTL_WINDOW) ? c->seen[output] : CTL_WINDOW;
    for (size_t i = 0U; i < count; i++) {
        const double value = c->innovations[output][i];
        size_t j = i;
        while ((j > 0U) && (sorted[j - 1U] > value)) {
            sorted[j] = sorted[j - 1U];
            j--;
        }
        sorted[j] = value;
    }
    return 0.5 * (sorted[(count - 1U) / 2U] + sorted[count / 2U]);
}

/* Offsets and what is fed back, from a measurement; lost and refused ones are replaced by the own output. */
static void ctl_measure(ctl_controller *c, const double y[CTL_OUTPUTS], ctl_result *result)
{
    double own[CTL_OUTPUTS];
    ctl_present(c, own);
    for (size_t i = 0U; i < CTL_OUTPUTS; i++) {
        result->lost[i] = 1; /* NAN, too */
        if (fabs(y[i] - ctl_output_offset[i]) <= ctl_believable[i]) {
            result->lost[i] = 0;
        }
        result->refused[i] = 0;
        if (result->lost[i] == 0) {
            const double innovation = fabs(y[i] - (own[i] + c->offset[i]));
            int far = 0;
            if (c->seen[i] >= CTL_FEWEST) {
                const double spread = 1.4826 * ctl_median(c, i);
                const double least = (spread > ctl_floor[i]) ? spread : ctl_floor[i];
                if (innovation > (CTL_GATE * least)) {
                    far = 1;
                }
            }
            if ((far != 0) && (c->far[i] < CTL_PATIENCE)) {
                result->refused[i] = 1;
            }
            c->far[i] = (far != 0) ? (c->far[i] + 1U) : 0U;
            c->innovations[i][c->seen[i] % CTL_WINDOW] = innovation;
            c->seen[i]++;
            if (c->seen[i] >= (2U * CTL_WINDOW)) {
                c->seen[i] -= CTL_WINDOW; /* so that it never overflows */
            }
        }
        if ((result->lost[i] == 0) && (result->refused[i] == 0)) {
            c->offset[i] += CTL_GAIN * (y[i] - own[i] - c->offset[i]);
            c->fed[i] = y[i];
        } else {
            c->fed[i] = own[i] + c->offset[i];
        }
    }
}

/* ---- Planned inputs and what they lead to ---- */

static double ctl_span(size_t moved)
{
    return ctl_input_high[moved] - ctl_input_low[moved];
}

static size_t ctl_block(size_t step)
{
    return (step < CTL_BLOCKS) ? step : (CTL_BLOCKS - 1U);
}

static double ctl_input_of(const double v[CTL_PLANNED], size_t step, size_t moved)
{
    const double u = ctl_input_low[moved] + (v[(ctl_block(step) * CTL_MOVED) + moved] * ctl_span(moved));
    return ctl_between(u, ctl_input_low[moved], ctl_input_high[moved]);
}

/* The change of planned input p against the block before. */
static double ctl_move(const ctl_controller *c, const double v[CTL_PLANNED], size_t p)
{
    const size_t moved = p % CTL_MOVED;
    if (p >= CTL_MOVED) {
        return v[p] - v[p - CTL_MOVED];
    }
    return v[p] - ((c->applied[moved] - ctl_input_low[moved]) / ctl_span(moved));
}

/* result[i][] = sum of values[k] changes[columns[k]][] over the row i, for the first `used` planned inputs. */
static void ctl_change(const ctl_controller *c, const double values[], const uint32_t columns[], size_t first,
    size_t last, size_t used, double result[])
{
    for (size_t p = 0U; p < used; p++) {
        result[p] = 0.0;
    }
    for (size_t k = first; k < last; k++) {
        const double factor = values[k];
        const double *row = c->changes[columns[k]];
        for (size_t p = 0U; p < used; p++) {
            result[p] += factor * row[p];
        }
    }
}

static void ctl_unit_changes(ctl_controller *c, const double w[CTL_WIDTH], size_t used)
{
    for (size_t i = 0U; i < CTL_UNITS; i++) {
        double sum[CTL_PLANNED];
        const double h = w[FIRST_UNIT + i];
        ctl_change(c, ctl_activation_values, ctl_activation_columns, ctl_activation_ends[i],
            ctl_activation_ends[i + 1U], used, sum);
        for (size_t p = 0U; p < used; p++) {
            c->changes[FIRST_UNIT + i][p] = (1.0 - (h * h)) * sum[p];
        }
    }
}

/* Outputs at the next samples, with their derivatives by the planned inputs if `sensitive`. */
static void ctl_outlook(ctl_controller *c, ctl_plan *plan, int sensitive)
{
    double state[CTL_STATES];
    double w[CTL_WIDTH];
    double fed[CTL_OUTPUTS];
    (void)memcpy(state, c->state, sizeof(state));
    if (sensitive != 0) {
        (void)memset(c->changes, 0, sizeof(c->changes));
        (void)memset(plan->slopes, 0, sizeof(plan->slopes));
    }
    for (size_t i = 0U; i < CTL_OUTPUTS; i++) {
        fed[i] = ctl_scaled(c->fed[i], i);
    }
    for (size_t j = 0U; j <= CTL_HORIZON; j++) {
        double u[CTL_INPUTS];
        double own[CTL_OUTPUTS];
        int is_free[CTL_OUTPUTS];
        const size_t block = ctl_block((j < CTL_HORIZON) ? j : (CTL_HORIZON - 1U));
        const size_t used = (block + 1U) * CTL_MOVED; /* later planned inputs have no influence yet */
        for (size_t i = 0U; i < CTL_INPUTS; i++) {
            const size_t source = ctl_source[i];
            u[i] = (source < CTL_MOVED) ? ctl_input_of(plan->v, block, source) : c->known[j][source - CTL_MOVED];
        }
        ctl_load(w, state, u);
        ctl_own(w, own, is_free);
        if (sensitive != 0) {
            for (size_t i = 0U; i < CTL_INPUTS; i++) {
                const size_t source = ctl_source[i];
                if (source < CTL_MOVED) {
                    double *row = c->changes[FIRST_INPUT + i];
                    (void)memset(row, 0, sizeof(c->changes[0]));
                    row[(block * CTL_MOVED) + source] = ctl_span(source) / ctl_input_span[i];
                }
            }
            if (CTL_UNITS_FIRST != 0) {
                ctl_unit_changes(c, w, used);
            }
        }
        if (j > 0U) {
            for (size_t i = 0U; i < CTL_OUTPUTS; i++) {
                fed[i] = own[i] + (c->offset[i] / ctl_output_span[i]);
                plan->outputs[j - 1U][i] = (fed[i] * ctl_output_span[i]) + ctl_output_offset[i];
            }
            if (sensitive != 0) {
                double rows[CTL_OUTPUTS][CTL_PLANNED];
                for (size_t i = 0U; i < CTL_OUTPUTS; i++) {
                    ctl_change(c, ctl_readout_values, ctl_readout_columns, ctl_readout_ends[i],
                        ctl_readout_ends[i + 1U], (is_free[i] != 0) ? used : 0U, rows[i]);
                    for (size_t p = (is_free[i] != 0) ? used : 0U; p < CTL_PLANNED; p++) {
                        rows[i][p] = 0.0;
                    }
                }
                for (size_t i = 0U; i < CTL_OUTPUTS; i++) {
                    for (size_t p = 0U; p < CTL_PLANNED; p++) {
                        c->changes[FIRST_OUTPUT + i][p] = rows[i][p];
                        plan->slopes[j - 1U][i][p] = rows[i][p] * ctl_output_span[i];
                    }
                }
            }
        }
        if (j < CTL_HORIZON) {
            ctl_next(w, fed, state);
            if (sensitive != 0) {
                if (CTL_UNITS_FIRST == 0) {
                    ctl_unit_changes(c, w, used);
                }
                for (size_t i = 0U; i < CTL_STATES; i++) {
                    ctl_change(c, ctl_next_values, ctl_next_columns, ctl_next_ends[i], ctl_next_ends[i + 1U], used,
                        c->next_changes[i]);
                }
                for (size_t i = 0U; i < CTL_STATES; i++) {
                    (void)memcpy(c->changes[i], c->next_changes[i], used * sizeof(double));
                }
                for (size_t i = 0U; i < CTL_OUTPUTS; i++) {
                    /* The next readout may not see the outputs of this sample: they are in the state by now. */
                    (void)memset(c->changes[FIRST_OUTPUT + i], 0, sizeof(c->changes[0]));
                }
            }
        }
    }
}

/* What the planned inputs of a plan lead to and cost; infinite if that is not a number. */
static void ctl_evaluate(ctl_controller *c, ctl_plan *plan, int sensitive)
{
    double cost = 0.0;
    ctl_outlook(c, plan, sensitive);
    for (size_t j = 0U; j < CTL_HORIZON; j++) {
        for (size_t i = 0U; i < CTL_OUTPUTS; i++) {
            const double y = plan->outputs[j][i];
            const double error = y - c->wanted[j][i];
            const double above = y - ctl_output_high[i];
            const double below = ctl_output_low[i] - y;
            const double outside = (above > below) ? above : below;
            plan->slack[j][i] = (outside > 0.0) ? (outside / ctl_output_scale[i]) : 0.0;
            cost += (ctl_output_weight[i] * error * error) + (ctl_output_price[i] * y);
            cost += plan->slack[j][i] * (CTL_SLACK_LINEAR + (CTL_SLACK_SQUARE * plan->slack[j][i]));
        }
    }
    for (size_t p = 0U; p < CTL_PLANNED; p++) {
        const double moved = ctl_move(c, plan->v, p);
        cost += (ctl_move_weight[p % CTL_MOVED] * moved * moved) + (ctl_input_price[p] * plan->v[p]);
    }
    plan->cost = (isfinite(cost) != 0) ? cost : (double)INFINITY;
}

/* ---- Quadratic programs in x = [changes of the planned inputs, slacks] ---- */

/* The row of a constraint: bounds of variables first, then changes of inputs, then output bounds. */
static void ctl_row(const ctl_controller *c, size_t constraint, double row[CTL_VARIABLES])
{
    const size_t rates = c->variables + ctl_rates;
    for (size_t p = 0U; p < c->variables; p++) {
        row[p] = 0.0;
    }
    if (constraint < c->variables) {
        row[constraint] = 1.0;
    } else if (constraint < rates) {
        const size_t p = ctl_rated[constraint - c->variables];
        row[p] = 1.0;
        if (p >= CTL_MOVED) {
            row[p - CTL_MOVED] = -1.0;
        }
    } else if (CTL_BOUNDED != 0) {
        const size_t step = c->owner[constraint] / CTL_OUTPUTS;
        const size_t output = c->owner[constraint] % CTL_OUTPUTS;
        const double factor = ((c->upper[constraint] != 0) ? 1.0 : -1.0) / ctl_output_scale[output];
        for (size_t p = 0U; p < CTL_PLANNED; p++) {
            row[p] = factor * c->at.slopes[step][output][p];
        }
        for (size_t s = CTL_PLANNED; s < c->variables; s++) {
            if (c->owner[s] == c->owner[constraint]) {
                row[s] = -1.0;
            }
        }
    } else {
        /* there are no others */
    }
}

/* Whether planned inputs within their bounds can put an output beyond its upper or lower bound. */
static int ctl_near(const ctl_controller *c, size_t step, size_t output, int upper)
{
    double reach = c->at.outputs[step][output];
    for (size_t p = 0U; p < CTL_PLANNED; p++) {
        const double up = c->at.slopes[step][output][p] * (1.0 - c->at.v[p]);
        const double down = -c->at.slopes[step][output][p] * c->at.v[p];
        const double more = (up > down) ? up : down;
        const double less = (up > down) ? down : up;
        reach += (upper != 0) ? more : less;
    }
    if (upper != 0) {
        return (reach > ctl_output_high[output]) ? 1 : 0;
    }
    return (reach < ctl_output_low[output]) ? 1 : 0;
}

static void ctl_output_rows(ctl_controller *c, int upper)
{
    for (size_t o = 0U; o < (CTL_HORIZON * CTL_OUTPUTS); o++) {
        const size_t step = o / CTL_OUTPUTS;
        const size_t output = o % CTL_OUTPUTS;
        if (ctl_near(c, step, output, upper) != 0) {
            const double y = c->at.outputs[step][output];
            const double room = (upper != 0) ? (ctl_output_high[output] - y) : (y - ctl_output_low[output]);
            c->owner[c->constraints] = o;
            c->upper[c->constraints] = upper;
            c->low[c->constraints] = -(double)INFINITY;
            c->high[c->constraints] = room / ctl_output_scale[output];
            c->constraints++;
        }
    }
}

/* The quadratic program around c->at; 0 if it has parts that are not numbers. */
static int ctl_condense(ctl_controller *c)
{
    double sum = 0.0;
    for (size_t p = 0U; p < CTL_PLANNED; p++) {
        for (size_t q = 0U; q <= p; q++) {
            double h = 0.0;
            for (size_t j = 0U; j < CTL_HORIZON; j++) {
                for (size_t i = 0U; i < CTL_OUTPUTS; i++) {
                    h += ctl_output_weight[i] * c->at.slopes[j][i][p] * c->at.slopes[j][i][q];
                }
            }
            c->hessian[p][q] = 2.0 * h;
        }
    }
    for (size_t p = 0U; p < CTL_PLANNED; p++) {
        const double weight = ctl_move_weight[p % CTL_MOVED];
        double g = weight * ctl_move(c, c->at.v, p);
        c->hessian[p][p] += (2.0 * weight) + CTL_CURVED;
        if ((p + CTL_MOVED) < CTL_PLANNED) {
            g -= weight * ctl_move(c, c->at.v, p + CTL_MOVED);
            c->hessian[p][p] += 2.0 * weight;
            c->hessian[p + CTL_MOVED][p] -= 2.0 * weight;
        }
        g = (2.0 * g) + ctl_input_price[p];
        for (size_t j = 0U; j < CTL_HORIZON; j++) {
            for (size_t i = 0U; i < CTL_OUTPUTS; i++) {
                const double error = c->at.outputs[j][i] - c->wanted[j][i];
                g += ((2.0 * ctl_output_weight[i] * error) + ctl_output_price[i]) * c->at.slopes[j][i][p];
            }
        }
        c->gradient[p] = g;
        c->low[p] = -c->at.v[p];
        c->high[p] = 1.0 - c->at.v[p];
    }
    for (size_t p = 0U; p < CTL_PLANNED; p++) {
        for (size_t q = p; q < CTL_PLANNED; q++) {
            c->hessian[p][q] = c->hessian[q][p];
            sum += fabs(c->hessian[p][q]);
        }
        sum += fabs(c->gradient[p]);
    }
    if (isfinite(sum) == 0) {
        return 0;
    }
    c->variables = CTL_PLANNED;
    for (size_t o = 0U; (CTL_BOUNDED != 0) && (o < (CTL_HORIZON * CTL_OUTPUTS)); o++) {
        const size_t step = o / CTL_OUTPUTS;
        if ((ctl_near(c, step, o % CTL_OUTPUTS, 1) != 0) || (ctl_near(c, step, o % CTL_OUTPUTS, 0) != 0)) {
            c->owner[c->variables] = o;
            c->gradient[c->variables] = CTL_SLACK_LINEAR;
            c->low[c->variables] = 0.0;
            c->high[c->variables] = (double)INFINITY;
            c->variables++;
        }
    }
    c->constraints = c->variables;
    for (size_t r = 0U; r < ctl_rates; r++) {
        const size_t p = ctl_rated[r];
        const double rate = ctl_rate[p % CTL_MOVED];
        const double moved = ctl_move(c, c->at.v, p);
        c->low[c->constraints] = -rate - moved;
        c->high[c->constraints] = rate - moved;
        c->constraints++;
    }
    if (CTL_BOUNDED != 0) {
        ctl_output_rows(c, 1);
        ctl_output_rows(c, 0);
    }
    return 1;
}

/* z with L z = a, in place: L is the Cholesky factor of the hessian, which is diagonal for slacks. */
static void ctl_forward(const ctl_controller *c, double a[CTL_VARIABLES])
{
    for (size_t p = 0U; p < CTL_PLANNED; p++) {
        double sum = a[p];
        for (size_t q = 0U; q < p; q++) {
            sum -= c->factor[p][q] * a[q];
        }
        a[p] = sum / c->factor[p][p];
    }
    for (size_t s = CTL_PLANNED; s < c->variables; s++) {
        a[s] /= CTL_SLACK_FACTOR;
    }
}

static void ctl_backward(const ctl_controller *c, double a[CTL_VARIABLES])
{
    for (size_t turn = 0U; turn < CTL_PLANNED; turn++) {
        const size_t p = CTL_PLANNED - 1U - turn;
        double sum = a[p];
        for (size_t q = p + 1U; q < CTL_PLANNED; q++) {
            sum -= c->factor[q][p] * a[q];
        }
        a[p] = sum / c->factor[p][p];
    }
    for (size_t s = CTL_PLANNED; s < c->variables; s++) {
        a[s] /= CTL_SLACK_FACTOR;
    }
}

static int ctl_cholesky(ctl_controller *c)
{
    for (size_t p = 0U; p < CTL_PLANNED; p++) {
        for (size_t q = 0U; q <= p; q++) {
            double sum = c->hessian[p][q];
            for (size_t k = 0U; k < q; k++) {
                sum -= c->factor[p][k] * c->factor[q][k];
            }
            if (q < p) {
                c->factor[p][q] = sum / c->factor[q][q];
            } else if (sum > 0.0) {
                c->factor[p][p] = sqrt(sum);
            } else {
                return 0;
            }
        }
    }
    return 1;
}

static double ctl_product(const double a[], const double b[], size_t count)
{
    double sum = 0.0;
    for (size_t i = 0U; i < count; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

/* L D L' of the Gram matrix of the active constraints; the last pivot, zero if the last depends on the others. */
static double ctl_pivot(ctl_controller *c, size_t count)
{
    double pivot = 1.0;
    for (size_t i = 0U; i < count; i++) {
        for (size_t j = 0U; j <= i; j++) {
            double sum = c->gram[i][j];
            for (size_t k = 0U; k < j; k++) {
                sum -= c->ldl[i][k] * c->ldl[j][k] * c->ldl[k][k];
            }
            c->ldl[i][j] = (j < i) ? (sum / c->ldl[j][j]) : sum;
        }
        pivot = c->ldl[i][i] / c->gram[i][i];
    }
    return pivot;
}

/* The solution of the first `count` equations of the Gram matrix, in place. */
static void ctl_solve(const ctl_controller *c, size_t count, double b[])
{
    for (size_t i = 0U; i < count; i++) {
        for (size_t k = 0U; k < i; k++) {
            b[i] -= c->ldl[i][k] * b[k];
        }
    }
    for (size_t turn = 0U; turn < count; turn++) {
        const size_t i = count - 1U - turn;
        b[i] /= c->ldl[i][i];
        for (size_t k = i + 1U; k < count; k++) {
            b[i] -= c->ldl[k][i] * b[k];
        }
    }
}

/* Move the multipliers by `size` of a direction, and take the constraint out of the active ones that stops them. */
static size_t ctl_drop(ctl_controller *c, size_t count, const double direction[], double size, size_t out)
{
    for (size_t i = 0U; i < count; i++) {
        const double moved = c->lambda[i] + (size * direction[i]);
        c->lambda[i] = (moved > 0.0) ? moved : 0.0;
    }
    for (size_t i = out; (i + 1U) < count; i++) {
        c->active[i] = c->active[i + 1U];
        c->sign[i] = c->sign[i + 1U];
        c->lambda[i] = c->lambda[i + 1U];
    }
    for (size_t i = out; (i + 1U) < count; i++) {
        for (size_t j = 0U; j < count; j++) {
            c->gram[i][j] = c->gram[i + 1U][j];
        }
    }
    for (size_t j = out; (j + 1U) < count; j++) {
        for (size_t i = 0U; (i + 1U) < count; i++) {
            c->gram[i][j] = c->gram[i][j + 1U];
        }
    }
    return count - 1U;
}

/* Add a constraint to the active ones. */
static size_t ctl_add(ctl_controller *c, size_t count, size_t constraint, double sign)
{
    c->active[count] = constraint;
    c->sign[count] = sign;
    c->lambda[count] = 0.0;
    for (size_t i = 0U; i <= count; i++) {
        const double entry =
            sign * c->sign[i] * ctl_product(c->rows[constraint], c->rows[c->active[i]], c->variables);
        c->gram[i][count] = entry;
        c->gram[count][i] = entry;
    }
    return count + 1U;
}

/* The constraint that z violates most, relative to its length; the number of constraints if there is none. */
static size_t ctl_most_violated(const ctl_controller *c, double *sign)
{
    double most = CTL_FEASIBLE;
    size_t found = c->constraints;
    for (size_t i = 0U; i < c->constraints; i++) {
        double point = 0.0;
        double length = 0.0;
        for (size_t p = 0U; p < c->variables; p++) {
            point += c->rows[i][p] * (c->reached[p] - c->shifted[p]);
            length += c->rows[i][p] * c->rows[i][p];
        }
        const double above = point - c->high[i];
        const double below = c->low[i] - point;
        const double beyond = (above > below) ? above : below;
        if ((beyond > CTL_FEASIBLE) && (length > 0.0) && ((beyond / sqrt(length)) > most)) {
            most = beyond / sqrt(length);
            found = i;
            *sign = (above > below) ? 1.0 : -1.0;
        }
    }
    return found;
}

/* Solve the quadratic program by a dual active-set method: with z = L'x + q and L q = gradient, the nearest z to zero
 * within the constraints. 0 if it was given up. */
static int ctl_minimise(ctl_controller *c)
{
    size_t count = 0U;
    if (ctl_cholesky(c) == 0) {
        return 0;
    }
    for (size_t i = 0U; i < c->constraints; i++) {
        ctl_row(c, i, c->rows[i]);
        ctl_forward(c, c->rows[i]);
        c->multipliers[i] = 0.0;
    }
    (void)memcpy(c->shifted, c->gradient, sizeof(c->shifted));
    ctl_forward(c, c->shifted);
    for (size_t turn = 0U; turn < CTL_TURNS; turn++) {
        const double pivot = ctl_pivot(c, count);
        int dependent = 0;
        double size = 1.0;
        size_t out = count;
        double sign = 1.0;
        size_t worst;
        if (pivot <= CTL_SINGULAR) {
            dependent = 1;
            size = (double)INFINITY;
        }
        if (dependent != 0) {
            for (size_t i = 0U; (i + 1U) < count; i++) {
                c->target[i] = -c->gram[i][count - 1U];
            }
            ctl_solve(c, count - 1U, c->target);
            c->target[count - 1U] = 1.0;
        } else {
            for (size_t i = 0U; i < count; i++) {
                const size_t k = c->active[i];
                const double bound = (c->sign[i] > 0.0) ? c->high[k] : -c->low[k];
                c->target[i] = -(bound + (c->sign[i] * ctl_product(c->rows[k], c->shifted, c->variables)));
            }
            ctl_solve(c, count, c->target);
            for (size_t i = 0U; i < count; i++) {
                c->target[i] -= c->lambda[i];
            }
        }
        for (size_t i = 0U; i < count; i++) {
            const double after = c->lambda[i] + c->target[i];
            if ((c->target[i] < 0.0) && ((dependent != 0) || (after < -CTL_DUAL))) {
                const double reach = -c->lambda[i] / c->target[i];
                if (reach < size) {
                    size = reach;
                    out = i;
                }
            }
        }
        if (out < count) {
            count = ctl_drop(c, count, c->target, size, out);
            continue;
        }
        if (dependent != 0) {
            return 0; /* no point satisfies all constraints; slacks leave room, so that this is rounding */
        }
        for (size_t p = 0U; p < c->variables; p++) {
            c->reached[p] = 0.0;
        }
        for (size_t i = 0U; i < count; i++) {
            c->lambda[i] += c->target[i];
            for (size_t p = 0U; p < c->variables; p++) {
                c->reached[p] -= c->lambda[i] * c->sign[i] * c->rows[c->active[i]][p];
            }
        }
        worst = ctl_most_violated(c, &sign);
        if (worst == c->constraints) {
            for (size_t p = 0U; p < c->variables; p++) {
                c->x[p] = c->reached[p] - c->shifted[p];
            }
            ctl_backward(c, c->x);
            for (size_t i = 0U; i < count; i++) {
                c->multipliers[c->active[i]] = c->sign[i] * c->lambda[i];
            }
            return 1;
        }
        if (count > c->variables) {
            return 0;
        }
        count = ctl_add(c, count, worst, sign);
    }
    return 0;
}

/* ---- Planning ---- */

static double ctl_slack_at(const ctl_controller *c, size_t variable)
{
    const size_t owner = (CTL_BOUNDED != 0) ? c->owner[variable] : 0U;
    return c->at.slack[owner / CTL_OUTPUTS][owner % CTL_OUTPUTS];
}

/* How far c->at is from the conditions of Karush, Kuhn and Tucker, with the multipliers of its quadratic program. */
static double ctl_residual(const ctl_controller *c)
{
    double dx[CTL_VARIABLES];
    double row[CTL_VARIABLES];
    double most = 0.0;
    for (size_t p = 0U; p < c->variables; p++) {
        dx[p] = c->x[p] - ((p < CTL_PLANNED) ? 0.0 : ctl_slack_at(c, p));
    }
    for (size_t p = 0U; p < c->variables; p++) {
        const double pull = (p < CTL_PLANNED) ? ctl_product(c->hessian[p], dx, CTL_PLANNED)
                                              : (2.0 * CTL_SLACK_SQUARE * dx[p]);
        most = (fabs(pull) > most) ? fabs(pull) : most;
    }
    for (size_t i = 0U; i < c->constraints; i++) {
        if (fabs(c->multipliers[i]) > 0.0) {
            ctl_row(c, i, row);
            const double gap = fabs(c->multipliers[i] * ctl_product(row, dx, c->variables));
            most = (gap > most) ? gap : most;
        }
    }
    return most;
}

/* By how much the quadratic program lowers the cost. */
static double ctl_predicted(const ctl_controller *c)
{
    double lowered = 0.0;
    for (size_t p = 0U; p < CTL_PLANNED; p++) {
        const double pull = ctl_product(c->hessian[p], c->x, CTL_PLANNED);
        lowered -= c->x[p] * (c->gradient[p] + (0.5 * pull));
    }
    for (size_t s = CTL_PLANNED; s < c->variables; s++) {
        const double now = ctl_slack_at(c, s);
        lowered += now * (CTL_SLACK_LINEAR + (CTL_SLACK_SQUARE * now));
        lowered -= c->x[s] * (CTL_SLACK_LINEAR + (CTL_SLACK_SQUARE * c->x[s]));
    }
    return lowered;
}

/* The first of a step, half of it, a quarter .. that lowers the cost becomes c->at; 0 if none does. */
static int ctl_search(ctl_controller *c)
{
    const double predicted = ctl_predicted(c);
    const double enough = CTL_DECREASE * ((predicted > 0.0) ? predicted : 0.0);
    double size = 1.0;
    for (size_t turn = 0U; turn < CTL_HALVINGS; turn++) {
        for (size_t p = 0U; p < CTL_PLANNED; p++) {
            c->trial.v[p] = ctl_between(c->at.v[p] + (size * c->x[p]), 0.0, 1.0);
        }
        ctl_evaluate(c, &c->trial, (turn == 0U) ? 1 : 0);
        if ((c->trial.cost <= (c->at.cost - (size * enough))) && (c->trial.cost < c->at.cost)) {
            if (turn > 0U) {
                ctl_evaluate(c, &c->trial, 1);
            }
            c->at = c->trial;
            return 1;
        }
        size *= 0.5;
    }
    return 0;
}

/* Improve the plan c->at; its residual. */
static double ctl_improve(ctl_controller *c, ctl_result *result)
{
    double residual = (double)INFINITY;
    int found = 0;
    ctl_evaluate(c, &c->at, 1);
    for (uint32_t turn = 0U; turn < CTL_ITERATIONS; turn++) {
        found = ctl_condense(c);
        if (found == 0) {
            result->failures++;
            break;
        }
        found = ctl_minimise(c);
        result->iterations++;
        if (found == 0) {
            result->failures++;
            break;
        }
        residual = ctl_residual(c);
        if ((residual <= CTL_TOLERANCE) || (ctl_search(c) == 0)) {
            break;
        }
        residual = (double)INFINITY;
    }
    if ((found != 0) && (isfinite(residual) == 0)) {
        /* The last step was taken and not looked at again: one more quadratic program says how good it is. */
        if ((ctl_condense(c) != 0) && (ctl_minimise(c) != 0)) {
            residual = ctl_residual(c);
        }
    }
    return residual;
}

/* The nearest input within its bounds, that differs from the one before by its rate at most: exactly so. */
static double ctl_within(size_t moved, double u, double before)
{
    const double rate = ctl_input_rate[moved];
    double result = ctl_between(u, before - rate, before + rate);
    result = ctl_between(result, ctl_input_low[moved], ctl_input_high[moved]);
    while (fabs(result - before) > rate) {
        result = nextafter(result, before);
    }
    return result;
}

/* A start: the last planned inputs, a sample later, or the present one held. */
static void ctl_begin(ctl_controller *c, int shifted)
{
    for (size_t i = 0U; i < CTL_MOVED; i++) {
        double before = c->applied[i];
        for (size_t block = 0U; block < CTL_BLOCKS; block++) {
            const size_t step = (block + 1U < CTL_HORIZON) ? (block + 1U) : (CTL_HORIZON - 1U);
            const double u = (shifted != 0) ? ctl_within(i, c->planned[step][i], before) : c->applied[i];
            c->at.v[(block * CTL_MOVED) + i] = ctl_between((u - ctl_input_low[i]) / ctl_span(i), 0.0, 1.0);
            before = u;
        }
    }
}

/* The reference for the next samples; 1 if something else than what was known before. */
static int ctl_take_reference(ctl_controller *c, const double reference[], size_t rows, ctl_result *result)
{
    int news = 0;
    if ((c->has_wanted == 0) || (c->finished == 0)) {
        news = 1;
    }
    result->reference_held = 0;
    for (size_t i = 0U; i < CTL_OUTPUTS; i++) {
        double held = c->held[i];
        for (size_t j = 0U; j < CTL_HORIZON; j++) {
            const size_t row = (j < rows) ? j : (rows - 1U);
            const double given = (rows > 0U) ? reference[(row * CTL_OUTPUTS) + i] : (double)NAN;
            const double expected = c->wanted[(j + 1U < CTL_HORIZON) ? (j + 1U) : j][i];
            if (isfinite(given) != 0) {
                held = given;
            } else {
                result->reference_held = 1;
            }
            if ((held < expected) || (held > expected)) {
                news = 1;
            }
            c->wanted[j][i] = held;
        }
        c->held[i] = c->wanted[0][i];
    }
    c->has_wanted = 1;
    return news;
}

/* Known disturbances for this and the next samples; 1 if what was known before stands in for any. */
static int ctl_take_disturbance(ctl_controller *c, const double disturbance[], size_t rows)
{
    int stands_in = 0;
    for (size_t i = 0U; i < ctl_known; i++) {
        double held = c->known[0][i];
        for (size_t j = 0U; j <= CTL_HORIZON; j++) {
            const size_t row = (j < rows) ? j : (rows - 1U);
            const double given = (rows > 0U) ? disturbance[(row * ctl_known) + i] : (double)NAN;
            if (isfinite(given) != 0) {
                held = given;
            } else {
                stands_in = 1;
            }
            c->known[j][i] = held;
        }
    }
    return stands_in;
}

static void ctl_apply(ctl_controller *c, const double u[CTL_MOVED])
{
    for (size_t i = 0U; i < CTL_INPUTS; i++) {
        const size_t source = ctl_source[i];
        c->input[i] = (source < CTL_MOVED) ? u[source] : c->known[0][source - CTL_MOVED];
    }
}

void ctl_start(ctl_controller *controller, const double u[CTL_MOVED], const double disturbance[],
    const double y[CTL_OUTPUTS])
{
    ctl_controller *const c = controller;
    double w[CTL_WIDTH];
    double own[CTL_OUTPUTS];
    double rest[CTL_INPUTS + CTL_OUTPUTS];
    double measured[CTL_OUTPUTS];
    (void)memset(c, 0, sizeof(*c));
    for (size_t i = 0U; i < CTL_MOVED; i++) {
        const double given = (isfinite(u[i]) != 0) ? u[i] : ctl_middle[i];
        c->applied[i] = ctl_between(given, ctl_input_low[i], ctl_input_high[i]);
    }
    for (size_t i = 0U; i < ctl_known; i++) {
        c->known[0][i] = ctl_middle[CTL_MOVED + i];
    }
    (void)ctl_take_disturbance(c, disturbance, 1U);
    ctl_apply(c, c->applied);
    ctl_load(w, c->state, c->input);
    for (size_t i = 0U; i < CTL_INPUTS; i++) {
        rest[i] = w[FIRST_INPUT + i];
    }
    for (size_t i = 0U; i < CTL_OUTPUTS; i++) {
        measured[i] = (ctl_mean[i] * ctl_output_span[i]) + ctl_output_offset[i];
        if (fabs(y[i] - ctl_output_offset[i]) <= ctl_believable[i]) {
            measured[i] = y[i];
        }
        rest[CTL_INPUTS + i] = (CTL_FROM_MEAN != 0) ? ctl_mean[i] : ctl_scaled(measured[i], i);
        w[FIRST_OUTPUT + i] = rest[CTL_INPUTS + i];
    }
    for (size_t i = 0U; i < CTL_STATES; i++) {
        for (size_t k = ctl_rest_ends[i]; k < ctl_rest_ends[i + 1U]; k++) {
            c->state[i] += ctl_rest_values[k] * rest[ctl_rest_columns[k]];
        }
        w[i] = c->state[i];
    }
    ctl_units(w);
    for (size_t i = 0U; i < CTL_STATES; i++) {
        for (size_t k = ctl_settled_ends[i]; k < ctl_settled_ends[i + 1U]; k++) {
            c->state[i] += ctl_settled_values[k] * w[FIRST_UNIT + ctl_settled_columns[k]];
        }
    }
    for (size_t i = 0U; i < CTL_OUTPUTS; i++) {
        own[i] = (rest[CTL_INPUTS + i] * ctl_output_span[i]) + ctl_output_offset[i];
    }
    for (size_t k = 0U; k < ctl_padding; k++) {
        ctl_advance(c, own);
    }
    ctl_present(c, own);
    for (size_t i = 0U; i < CTL_OUTPUTS; i++) {
        c->offset[i] = measured[i] - own[i];
        c->fed[i] = measured[i];
        c->held[i] = measured[i];
    }
}

void ctl_step(ctl_controller *controller, const double reference[], size_t rows, const double disturbance[],
    size_t disturbance_rows, const double y[CTL_OUTPUTS], ctl_result *result)
{
    ctl_controller *const c = controller;
    double best[CTL_PLANNED];
    int news;
    size_t starts = 1U;
    (void)memset(result, 0, sizeof(*result));
    ctl_measure(c, y, result);
    news = ctl_take_reference(c, reference, rows, result);
    result->disturbance_held = ctl_take_disturbance(c, disturbance, disturbance_rows);
    if ((c->has_plan != 0) && (news != 0)) {
        starts = CTL_STARTS;
    }
    result->cost = (double)INFINITY;
    result->residual = (double)INFINITY;
    for (size_t start = 0U; start < starts; start++) {
        double residual;
        ctl_begin(c, (start == 0U) && (c->has_plan != 0));
        residual = ctl_improve(c, result);
        /* A second start must be cheaper by more than rounding: otherwise the controller would jump between equals. */
        if ((start == 0U) || (c->at.cost < ((result->cost * (1.0 - 1e-9)) - 1e-12))) {
            (void)memcpy(best, c->at.v, sizeof(best));
            (void)memcpy(c->expected, c->at.outputs, sizeof(c->expected));
            result->cost = c->at.cost;
            result->residual = residual;
        }
    }
    if (result->residual <= CTL_TOLERANCE) {
        result->converged = 1;
    }
    for (size_t i = 0U; i < CTL_MOVED; i++) {
        for (size_t j = 0U; j < CTL_HORIZON; j++) {
            c->planned[j][i] = (isfinite(result->cost) != 0) ? ctl_input_of(best, j, i) : c->applied[i];
        }
        c->planned[0][i] = ctl_within(i, c->planned[0][i], c->applied[i]);
        result->u[i] = c->planned[0][i];
        c->applied[i] = result->u[i];
    }
    ctl_apply(c, c->applied);
    ctl_advance(c, c->fed);
    ctl_present(c, c->fed);
    for (size_t i = 0U; i < CTL_OUTPUTS; i++) {
        c->fed[i] += c->offset[i];
    }
    c->has_plan = 1;
    c->finished = result->converged;
}

size_t ctl_size(void)
{
    return sizeof(ctl_controller);
}
