"""Laws by name: what is drawn where the user does not say it in detail."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from echobound.errors import InputError
from echobound.network.cascade_law import CascadeLaw
from echobound.network.distribution import Choice, LogUniform, Uniform, Value
from echobound.network.law import NetworkLaw, ReservoirLaw
from echobound.network.mixed_law import MixedLaw
from echobound.network.training import FreeRun, LeastSquares, Trainer, get_trainer

LONG = 20_000
"""Records of so many samples are long: they can spare a part for validation, and support larger networks."""


class Shape(NamedTuple):
    """What laws by name may depend on, known before the first draw: how much data there are."""

    samples: int = 0  # to train on
    inputs: int = 1
    outputs: int = 1


ANY = Shape()


def paper(order: int = 200, training: str | Trainer = "least squares") -> ReservoirLaw:
    """The paper's law: the order is given, everything else is fixed. Its training is by least squares.

    Examples
    --------
    >>> paper(order=50).norm, paper(order=50, training="free run").training.steps
    (0.99, (8,))
    """
    return ReservoirLaw(order=order, training=get_trainer(training), name="paper")


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


def without_feedback(order: Value | None = None, samples: int = 0) -> ReservoirLaw:
    """The law `broad` without output feedback: nothing can run away, and least squares is on the free run itself.

    Examples
    --------
    >>> without_feedback().feedback_scale, without_feedback().training.ridges
    (0.0, (1e-06, 0.0001, 0.001, 0.01))
    """
    return dataclasses.replace(
        broad(order, samples),
        feedback_scale=0.0,
        output_delays=0,
        training_noise=0.0,
        training=LeastSquares((1e-6, 1e-4, 1e-3, 1e-2)),
        name="without feedback",
    )


def small() -> ReservoirLaw:
    """Small networks, all weights of which are trained on the free-run error.

    Examples
    --------
    >>> small().order, small().training.trained
    (Uniform(low=4, high=10), 'network')
    """
    return ReservoirLaw(
        order=Uniform(4, 10),
        norm=Uniform(0.3, 0.99),
        input_scale=LogUniform(0.1, 1.5),
        feedback_scale=Choice((0.0, LogUniform(0.05, 1.0)), weights=(0.25, 0.75)),
        bias_scale=LogUniform(0.1, 1.5),
        leak=LogUniform(0.2, 1.0),
        leak_spread=Choice((0.0, 0.5)),
        input_delays=Choice((1, 2, 5)),
        present_input=True,
        output_delays=Choice((0, 1, 2)),
        constant=True,
        scaling=Choice(("standard", "minmax")),
        nonzeros=10,  # as many as there are states, or more: W_x is dense
        padding=100,
        clip=True,
        training=FreeRun(
            "network", (0, 5, 10, 25), ridge=1e-6, penalty=(1e-4, 1e-3), increments=0.4, samples=1500, until=10
        ),
        name="small",
    )


def quick(shape: Shape = ANY) -> MixedLaw:
    """What trains in milliseconds: large networks with and without feedback, by least squares.

    Examples
    --------
    >>> [law.name for law in quick().laws]
    ['broad', 'without feedback']
    """
    laws = broad(samples=shape.samples), without_feedback(samples=shape.samples)
    return MixedLaw(laws, (0.8, 0.2), name="quick")


def mixed(shape: Shape = ANY) -> MixedLaw:
    """The default: networks of several kinds, each draw choosing its own.

    Large networks with feedback and without, trained by least squares; small ones trained on the free-run error;
    cascades of filters, tanh and filters. How often the last two are drawn depends on what they cost: the more inputs
    and outputs, the fewer.

    Examples
    --------
    >>> law = mixed(Shape(samples=1000, inputs=1, outputs=1))
    >>> [one.name for one in law.laws], law.weights
    (['broad', 'without feedback', 'small', 'cascade'], (0.6, 0.1, 0.2, 0.1))
    """
    laws = broad(samples=shape.samples), without_feedback(samples=shape.samples), small(), CascadeLaw()
    # A step of training costs about as many operations as there are weights squared, for each output; these grow with
    # the channels.
    share = min(1.0, 2.5 / (shape.outputs * (shape.inputs + shape.outputs)))
    trained = (0.2 * share, 0.1 * share)
    return MixedLaw(laws, (0.6, 0.1, *trained), name="mixed")


_BY_NAME: dict[str, Callable[[Shape], NetworkLaw]] = {
    "broad": lambda shape: broad(samples=shape.samples),
    "cascade": lambda shape: CascadeLaw(),
    "mixed": mixed,
    "paper": lambda shape: paper(),
    "quick": quick,
    "small": lambda shape: small(),
    "without feedback": lambda shape: without_feedback(samples=shape.samples),
}


def get_law(
    law: str | NetworkLaw, order: int | None = None, shape: Shape = ANY, training: str | Trainer | None = None
) -> NetworkLaw:
    """Look up a law by name, for data of this shape; a law is returned as it is, or with the given order and training.

    Examples
    --------
    >>> get_law("paper", order=100).order
    100
    >>> get_law("paper", training="free run").training.kind
    'free run'
    """
    if isinstance(law, str):
        if law not in _BY_NAME:
            raise InputError(f"unknown law {law!r}: known are {', '.join(sorted(_BY_NAME))}; or give a ReservoirLaw")
        law = _BY_NAME[law](shape)
    given: dict[str, Any] = {"order": order, "training": None if training is None else get_trainer(training)}
    changes = {name: value for name, value in given.items() if value is not None}
    if not changes:
        return law
    if not isinstance(law, ReservoirLaw):
        raise InputError(
            f"the law {law.name} has no {' and no '.join(changes)} that could be set: leave it out, or take the law"
            " broad or paper"
        )
    return dataclasses.replace(law, **changes)


Laws = str | NetworkLaw | Sequence[str | NetworkLaw]
Orders = int | Sequence[int] | None


def get_laws(
    law: Laws, order: Orders = None, shape: Shape = ANY, training: str | Trainer | None = None
) -> tuple[NetworkLaw, ...]:
    """The laws of a campaign, one for each family: every law with every order.

    Examples
    --------
    >>> [law.order for law in get_laws("paper", [50, 100])]
    [50, 100]
    >>> [law.name for law in get_laws(["paper", "broad"])]
    ['paper', 'broad']
    """
    laws = [law] if isinstance(law, str | NetworkLaw) else list(law)
    orders = list(order) if isinstance(order, Sequence) else [order]
    found = tuple(get_law(one, n, shape, training) for one in laws for n in orders)
    if not found:
        raise InputError("at least one law and one order are needed, got an empty list")
    if len(found) > len({repr(one) for one in found}):
        raise InputError("the same law or order was given twice: give each once, and draw more networks instead")
    return found


def family_names(laws: Sequence[NetworkLaw]) -> tuple[str, ...]:
    """Names that tell the families of a campaign apart: the order, the law's name, both, or else a number.

    Examples
    --------
    >>> family_names([paper(50), paper(100)]), family_names([paper(), broad()])
    (('order 50', 'order 100'), ('paper', 'broad'))
    """
    orders = [int(law.order) if isinstance(law, ReservoirLaw) and isinstance(law.order, int) else None for law in laws]
    by_order = [f"order {n}" for n in orders] if None not in orders else []
    by_both = [law.name if n is None else f"{law.name} of order {n}" for law, n in zip(laws, orders, strict=True)]
    numbered = [f"law {number}" for number in range(1, len(laws) + 1)]
    for names in (by_order if len({law.name for law in laws}) == 1 else [law.name for law in laws], by_both, numbered):
        if names and len(set(names)) == len(laws):
            break
    return tuple(names)
