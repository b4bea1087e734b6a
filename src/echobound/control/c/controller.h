/*
 * @card
 *
 * Self-test:  cc -std=c99 -O3 ctl.c ctl_test.c -lm -o ctl_test && ./ctl_test
 *
 * At rest, once:          ctl_start(&controller, u, disturbance, y);
 * At every sample:        ctl_step(&controller, reference, rows, disturbance, rows, y, &result);
 *                         then apply result.u until the next sample.
 *
 * Inputs are planned by Gauss-Newton with a line search; each quadratic program is solved by a dual active-set method.
 * At most CTL_ITERATIONS programs are solved from each of CTL_STARTS starts, and one more to say how good the plan is;
 * the best plan found is used then, and result.converged is 0. Whatever is measured, inputs and their changes are within
 * their bounds. What is not a number when it starts stands for the middle of the bounds or of the training data.
 *
 * Memory: @memory.
 * Nothing is allocated, and there is no global state; all work is done in the controller's own memory.
 */
#ifndef CTL_H
#define CTL_H

#include <stddef.h>
#include <stdint.h>

/* @sizes */

/* What was decided at a sample. */
typedef struct {
    double u[CTL_MOVED];         /* apply this until the next sample */
    double cost;                 /* of the plan; infinite if no plan leads to numbers: the input is then held */
    double residual;             /* of the Karush-Kuhn-Tucker conditions */
    uint32_t iterations;         /* quadratic programs */
    uint32_t failures;           /* those that were given up */
    int converged;               /* whether the residual is within CTL_TOLERANCE */
    int reference_held;          /* whether the last reference stands in for what is not a number */
    int disturbance_held;        /* whether the last known disturbance does */
    int lost[CTL_OUTPUTS];       /* whether a measurement was not a number, or beyond belief: the own output stands in */
    int refused[CTL_OUTPUTS];    /* whether it was taken for an outlier */
} ctl_result;

/* Planned inputs from 0 at their lower to 1 at their upper bound, what they lead to, and what that costs. */
typedef struct {
    double v[CTL_PLANNED];
    double outputs[CTL_HORIZON][CTL_OUTPUTS];
    double slopes[CTL_HORIZON][CTL_OUTPUTS][CTL_PLANNED];
    double slack[CTL_HORIZON][CTL_OUTPUTS];
    double cost;
} ctl_plan;

/* One controller. Its planned inputs and what it expects may be read; everything else is its own. */
typedef struct {
    double planned[CTL_HORIZON][CTL_MOVED];    /* from the last sample on */
    double expected[CTL_HORIZON][CTL_OUTPUTS]; /* at the samples after it */
    double offset[CTL_OUTPUTS];                /* what the model does not explain, added to its outputs */
    double state[CTL_STATES];
    double fed[CTL_OUTPUTS];
    double input[CTL_INPUTS];
    double innovations[CTL_OUTPUTS][CTL_WINDOW];
    size_t seen[CTL_OUTPUTS];
    size_t far[CTL_OUTPUTS];
    double applied[CTL_MOVED];
    double held[CTL_OUTPUTS];
    double wanted[CTL_HORIZON][CTL_OUTPUTS];
    double known[CTL_HORIZON + 1U][CTL_KNOWN_ROOM];
    int has_plan;
    int has_wanted;
    int finished;
    /* Work space of a step. */
    ctl_plan at;
    ctl_plan trial;
    double changes[CTL_WIDTH][CTL_PLANNED];
    double next_changes[CTL_STATES][CTL_PLANNED];
    double hessian[CTL_PLANNED][CTL_PLANNED];
    double factor[CTL_PLANNED][CTL_PLANNED];
    double gradient[CTL_VARIABLES];
    double rows[CTL_CONSTRAINTS][CTL_VARIABLES];
    double low[CTL_CONSTRAINTS];
    double high[CTL_CONSTRAINTS];
    size_t owner[CTL_CONSTRAINTS]; /* which step and output a constraint or a slack is about */
    int upper[CTL_CONSTRAINTS];
    size_t variables;
    size_t constraints;
    double x[CTL_VARIABLES];
    double multipliers[CTL_CONSTRAINTS];
    double shifted[CTL_VARIABLES];
    double reached[CTL_VARIABLES];
    double gram[CTL_VARIABLES + 1U][CTL_VARIABLES + 1U];
    double ldl[CTL_VARIABLES + 1U][CTL_VARIABLES + 1U];
    size_t active[CTL_VARIABLES + 1U];
    double sign[CTL_VARIABLES + 1U];
    double lambda[CTL_VARIABLES + 1U];
    double target[CTL_VARIABLES + 1U];
} ctl_controller;

/* Start at rest: this input was applied, and this output measured, for a long time. Without known disturbances the
 * second vector may be NULL. */
void ctl_start(ctl_controller *controller, const double u[CTL_MOVED], const double disturbance[],
    const double y[CTL_OUTPUTS]);

/* Take in the measurement of this sample, NAN where it was lost, and decide what to apply until the next one.
 * reference[rows][CTL_OUTPUTS] is wanted at the next samples, disturbance[disturbance_rows][CTL_KNOWN] is known from this
 * sample on, as far as they are known ahead; the last row is held and, without rows, what was known before. */
void ctl_step(ctl_controller *controller, const double reference[], size_t rows, const double disturbance[],
    size_t disturbance_rows, const double y[CTL_OUTPUTS], ctl_result *result);

/* Bytes of a controller, for languages that cannot ask. */
size_t ctl_size(void);

#endif
