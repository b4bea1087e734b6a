"""Hyperparameters: the numbers of one draw, and the regions of random words from which a draw is made."""

from __future__ import annotations

from dataclasses import dataclass

# Regions of a draw's words (see echobound.draws), one for each thing that is drawn. They are part of contract 1:
# another numbering would give other networks.
HYPER, COLUMNS, VALUES, INPUT, FEEDBACK, BIAS, LEAK, NOISE = range(8)


@dataclass(frozen=True, slots=True)
class Hyperparameters:
    """The numbers of one draw: those that `ReservoirLaw` leaves to chance, and those that it fixes."""

    order: int
    norm: float
    input_scale: float
    feedback_scale: float
    bias_scale: float
    leak: float
    leak_spread: float
    input_delays: int
    present_input: bool
    output_delays: int
    constant: bool
    training_noise: float
    scaling: str

    def columns(self, inputs: int, outputs: int) -> int:
        """Number of columns of the least-squares problem."""
        return readout_columns(
            self.order, self.input_delays, self.present_input, self.output_delays, self.constant, inputs, outputs
        )


def readout_columns(
    order: int, input_delays: int, present_input: int, output_delays: int, constant: int, inputs: int, outputs: int
) -> int:
    """Columns that the readout is applied to: x(k), u(k-1) .. u(k-d), u(k), y(k-1) .. y(k-m), 1, in this order."""
    return order + (input_delays + present_input) * inputs + output_delays * outputs + constant
