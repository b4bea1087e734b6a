"""The data of the experiment. The paper does not give its data; ours are chosen by a rule that sees no network."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from echobound.data import Record
from echobound.plants import PHPlant, noise_limit, ph_experiment

__all__ = ["PaperData", "default_data_seed", "paper_data"]

RULE = "the smallest seed whose noise limit lies in [90.7, 91.3] and whose validation input stays in the training range"
NOISE = 0.05  # pH; with it the plateau of the paper's table is reached
LIMITS = (90.7, 91.3)


@dataclass(frozen=True, eq=False)
class PaperData:
    """Training and validation record, and the FIT that the noise in the validation data leaves to a perfect model."""

    seed: int
    training: Record
    validation: Record
    limit: float

    @property
    def inside(self) -> bool:
        """Whether the validation input stays inside the range of the training input."""
        low, high = self.training.u.min(), self.training.u.max()
        return bool(low <= self.validation.u.min() and self.validation.u.max() <= high)


def paper_data(seed: int) -> PaperData:
    """5000 training and 3000 validation samples of the pH plant with noise of 0.05 pH."""
    training, validation = ph_experiment(noise=NOISE, seed=seed)
    clean = PHPlant().response(validation.u[:, 0])
    return PaperData(seed, training, validation, noise_limit(validation, clean))


def default_data_seed() -> int:
    """The smallest seed whose noise limit lies in [90.7, 91.3] and whose validation input stays in the training range.

    Chosen on the data alone: no network is drawn for it.
    """
    for seed in count():
        data = paper_data(seed)
        if LIMITS[0] <= data.limit <= LIMITS[1] and data.inside:
            return seed
    raise AssertionError("unreachable")
