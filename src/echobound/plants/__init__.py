"""Simulated plants and excitation signals; the pH neutralisation process of the paper.

`excitation` makes the signals (stream ``PLANT`` of `echobound.draws`), `ph` is the plant and the paper's experiment on
it. A further plant is a file with a ``simulate`` that returns a `Record`.
"""

from echobound.plants.excitation import gaussian, multilevel
from echobound.plants.ph import PHPlant, PHState, noise_limit, ph_experiment, ph_of

__all__ = ["PHPlant", "PHState", "gaussian", "multilevel", "noise_limit", "ph_experiment", "ph_of"]
