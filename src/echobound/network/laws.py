"""Laws by name: what is drawn where the user does not say it in detail."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from echobound.errors import InputError
from echobound.network.distribution import Choice, Distribution, LogUniform, Uniform, Value
from echobound.network.law import NetworkLaw, ReservoirLaw
from echobound.network.mixed import MixedLaw
from echobound.network.training import FreeRun, LeastSquares, Trainer, get_trainer

LONG = 20_000
"""Records of so many samples are long: they can spare a part for validation, and support larger networks."""


class Shape(NamedTuple):
    """What laws by name may depend on, known before the first draw: how much data there are."""

    samples: int = 0  # to train on
    inputs: int = 1
    outputs: int = 1


def paper(order: int = 200) -> ReservoirLaw:
    """The paper's law: the order is given, everything else is fixed.

    Examples
    --------
    >>> paper(order=50).norm
    0.99
    """
    return ReservoirLaw(order=order, name="paper")


def broad(order: Value | None = None, samples: int = 0) -> ReservoirLaw:
    """A law for plants about which nothing is known: every hyper-parameter is drawn from a wide range.

    Long records support larger networks and smaller ridges: from `LONG` training samples on, the order is drawn between
    200 and 400 instead of 100 and 300, and two more ridges are tried.

    Examples
    --------
    >>> broad().order, broad().training
    (LogUniform(low=100, high=300), LeastSquares(ridges=(1e-10, 1e-08, 1e-06, 0.0001)))
    >>> broad(samples=65_000).order, broad(samples=65_000).training.ridges
    (LogUniform(low=200, high=400), (1e-12, 1e-11, 1e-10, 1e-08, 1e-06, 0.0001))
    """
    long = samples >= LONG
    return ReservoirLaw(
        order=order if order is not None else LogUniform(200, 400) if long else LogUniform(100, 300),
        norm=Uniform(0.3, 0.99),
        input_scale=LogUniform(0.05, 3.0),
        feedback_scale=Choice((0.0, LogUniform(0.03, 2.0)), weights=(0.1, 0.9)),
        bias_scale=LogUniform(0.05, 2.0),
        leak=LogUniform(0.03, 1.0),
        leak_spread=Choice((0.0, 0.5)),
        input_delays=Choice((1, 2, 5, 10, 20)),
        present_input=True,
        output_delays=Choice((0, 1, 2, 2)),
        constant=True,
        training_noise=Choice((0.0, LogUniform(1e-4, 0.1))),
        scaling=Choice(("standard", "minmax")),
        padding=100,
        clip=True,
        training=LeastSquares((*((1e-12, 1e-11) if long else ()), 1e-10, 1e-8, 1e-6, 1e-4)),
        name="broad",
    )


def get_law(law: str | ReservoirLaw, order: int | None = None, samples: int = 0) -> ReservoirLaw:
    """Look up a law by name, for so many samples; a `ReservoirLaw` is returned as it is, or with the given order.

    Examples
    --------
    >>> get_law("paper", order=100).order
    100
    """
    if isinstance(law, ReservoirLaw):
        return law if order is None else dataclasses.replace(law, order=order)
    if law == "paper":
        return paper() if order is None else paper(order)
    if law == "broad":
        return broad(order, samples)
    raise InputError(f"unknown law {law!r}: known are broad, paper; or give a ReservoirLaw")


Laws = str | ReservoirLaw | Sequence[str | ReservoirLaw]
Orders = int | Sequence[int] | None


def get_laws(law: Laws, order: Orders = None, samples: int = 0) -> tuple[ReservoirLaw, ...]:
    """The laws of a campaign, one for each family: every law with every order.

    Examples
    --------
    >>> [law.order for law in get_laws("paper", [50, 100])]
    [50, 100]
    >>> [law.name for law in get_laws(["paper", "broad"])]
    ['paper', 'broad']
    """
    laws = [law] if isinstance(law, str | ReservoirLaw) else list(law)
    orders = list(order) if isinstance(order, Sequence) else [order]
    found = tuple(get_law(one, n, samples) for one in laws for n in orders)
    if not found:
        raise InputError("at least one law and one order are needed, got an empty list")
    if len(found) > len({repr(one) for one in found}):
        raise InputError("the same law or order was given twice: give each once, and draw more networks instead")
    return found


def family_names(laws: Sequence[ReservoirLaw]) -> tuple[str, ...]:
    """Names that tell the families of a campaign apart: the order, the law's name, both, or else a number.

    Examples
    --------
    >>> family_names([paper(50), paper(100)]), family_names([paper(), broad()])
    (('order 50', 'order 100'), ('paper', 'broad'))
    """
    orders = [None if isinstance(law.order, Distribution) else int(law.order) for law in laws]
    by_order = [f"order {n}" for n in orders] if None not in orders else []
    by_both = [law.name if n is None else f"{law.name} of order {n}" for law, n in zip(laws, orders, strict=True)]
    numbered = [f"law {number}" for number in range(1, len(laws) + 1)]
    for names in (by_order if len({law.name for law in laws}) == 1 else [law.name for law in laws], by_both, numbered):
        if names and len(set(names)) == len(laws):
            break
    return tuple(names)
