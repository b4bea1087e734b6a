"""The data of the experiment. The paper does not give its data; ours are chosen by a rule that sees no network."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from echobound.data import Record
from echobound.plants import PHPlant, noise_limit, ph_experiment

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


def paper_data(seed: int) -> PaperData:
    """5000 training and 3000 validation samples of the pH plant with noise of 0.05 pH."""
    training, validation = ph_experiment(noise=NOISE, seed=seed)
    clean = PHPlant().response(validation.u[:, 0])
    return PaperData(seed, training, validation, noise_limit(validation, clean))


def default_data_seed() -> int:
    """The seed that `RULE` chooses by the data alone: no network is drawn for it."""
    return next(seed for seed in count() if _suits(paper_data(seed)))


def _suits(data: PaperData) -> bool:
    used, allowed = data.validation.u, data.training.u
    return LIMITS[0] <= data.limit <= LIMITS[1] and bool(allowed.min() <= used.min() and used.max() <= allowed.max())
