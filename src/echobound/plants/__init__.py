"""Simulated plants and excitation signals; the pH neutralisation process of the paper, a Wiener-Hammerstein system.

`excitation` makes the signals (stream ``PLANT`` of `echobound.draws`), `ph` is the plant and the paper's experiment on
it, `wiener_hammerstein` a system that is nonlinear between two filters. A further plant is a file with a ``simulate``
that returns a `Record`.
"""

from echobound.plants.excitation import gaussian, multilevel
from echobound.plants.ph import PHPlant, PHState, noise_limit, ph_experiment, ph_of
from echobound.plants.wiener_hammerstein import WienerHammersteinPlant, wiener_hammerstein_experiment

__all__ = [
    "PHPlant",
    "PHState",
    "WienerHammersteinPlant",
    "gaussian",
    "multilevel",
    "noise_limit",
    "ph_experiment",
    "ph_of",
    "wiener_hammerstein_experiment",
]
