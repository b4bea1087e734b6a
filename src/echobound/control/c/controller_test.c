/* @title
 * Self-test: what the controller decides, against the Python controller that it was made from.
 */
#include "ctl.h"

#include <math.h>
#include <stdio.h>

#define SAMPLES (sizeof(golden_y) / sizeof(golden_y[0]))
#define TOLERANCE 1e-6 /* of the range of an input */

/* @golden */

static ctl_controller controller;

int main(void)
{
    ctl_result result;
    double largest = 0.0;
    ctl_start(&controller, golden_inputs[0], golden_disturbance[0], golden_rest);
    for (size_t k = 0U; k < SAMPLES; k++) {
        ctl_step(&controller, golden_reference[k], 1U, golden_disturbance[k], 1U, golden_y[k], &result);
        for (size_t i = 0U; i < CTL_MOVED; i++) {
            const double off = fabs(result.u[i] - golden_inputs[k + 1U][i]) / golden_span[i];
            largest = (off <= largest) ? largest : off; /* what is not a number is largest, too */
        }
    }
    (void)printf("largest difference from the Python controller: %.3g of the range of an input, %u samples\n", largest,
        (unsigned)SAMPLES);
    return (largest <= TOLERANCE) ? 0 : 1;
}
