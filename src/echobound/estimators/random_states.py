"""Random states: which parameters of an estimator are drawn, from which words, and what cannot be drawn honestly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import BitGenerator, Generator, Philox, RandomState, SeedSequence
from numpy.typing import NDArray
from sklearn.base import clone

from echobound.draws import SEARCH, draw_key
from echobound.errors import InputError

REGION = 16  # of the first parameter; the regions below are arrays of networks, see draws.py


def draw_estimator(estimator: Any, seed: int, index: int, stream: int = SEARCH) -> Any:
    """Draw `index` of an estimator, not fitted yet: the same on every machine, whatever else is drawn.

    Every parameter called ``random_state``, at any depth, must be None and gets a ``RandomState`` of its own. The k-th
    of them (from 0, by name) takes the words of region 16 + k of the draw's key, see `echobound.draws`. Stream 0 has
    the draws of a search; other streams are independent of it, to test what it found.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> X = np.linspace(0, 1, 30)[:, None]
    >>> forests = [draw_estimator(RandomForestRegressor(5), seed=0, index=7).fit(X, X[:, 0]) for _ in range(2)]
    >>> bool((forests[0].predict(X) == forests[1].predict(X)).all())
    True
    """
    return with_states(estimator, drawn_parameters(estimator), draw_key(seed, stream, 0, index))


def with_states(estimator: Any, names: list[str], key: NDArray[np.uint64]) -> Any:
    """A clone whose parameters of these names are random states made from a key."""
    counters = [np.array([0, REGION + k, 0, 0], dtype=np.uint64) for k in range(len(names))]
    # NumPy promises that the numbers a RandomState makes of given words never change; a Generator's may.
    states = [RandomState(Philox(key=key, counter=counter)) for counter in counters]
    return clone(estimator).set_params(**dict(zip(names, states, strict=True)))


def drawn_parameters(estimator: Any) -> list[str]:
    """Names of the parameters that are drawn, after refusing what would make draws depend on each other.

    Draws are clones: only what a clone takes over can pass from one draw to the next, and that is refused here as far
    as parameters show it.

    Examples
    --------
    >>> from sklearn.neural_network import MLPRegressor
    >>> drawn_parameters(MLPRegressor())
    ['random_state']
    >>> drawn_parameters(MLPRegressor(random_state=3))
    Traceback (most recent call last):
        ...
    echobound.errors.InputError: MLPRegressor has random_state=3, so that all draws would share it: set it to None, it
    is drawn
    """
    if isinstance(estimator, type) or not all(hasattr(estimator, name) for name in ("get_params", "fit")):
        raise InputError(f"an estimator with get_params and fit is needed, got {estimator!r}"[:200])
    what, parameters = type(estimator).__name__, estimator.get_params(deep=True)
    # scikit-learn keeps a parameter that it has removed for a while, with the text "deprecated" as its value.
    names = sorted(n for n, value in parameters.items() if _last(n) == "random_state" and not isinstance(value, str))
    if not names:
        raise InputError(f"{what} has no parameter random_state at any depth: there is nothing to draw")
    for name, value in sorted(parameters.items()):
        if why := _refusal(_last(name), value):
            raise InputError(f"{what} has {name}={value!r:.80}, {why}")
    for name, part in [(what, estimator), *sorted(parameters.items())]:
        if hasattr(part, "get_params") and not isinstance(part, type) and _keeps_state(part):
            raise InputError(
                f"{name} keeps what was fitted when it is cloned, as a frozen estimator does, so that draws would share"
                " it: give the estimator itself, unfitted"
            )
    return names


def _last(name: str) -> str:
    return name.rpartition("__")[2]


def _refusal(name: str, value: Any) -> str | None:
    """Why a parameter cannot be part of a draw; None if it can."""
    if name == "random_state":
        unset = value is None or isinstance(value, str)
        return None if unset else "so that all draws would share it: set it to None, it is drawn"
    if name == "warm_start" and value:
        return "so that a fit may start where another ended: draws must not depend on each other, set it to False"
    if name == "memory" and (isinstance(value, str | Path) or hasattr(value, "cache")):
        return "a cache, which passes results from one draw to the next: leave it None"
    if isinstance(value, RandomState | Generator | BitGenerator | SeedSequence):
        return "randomness that all draws would share: leave it out, only parameters named random_state are drawn"
    if isinstance(value, Iterator):
        return "which is used up by the first draw: give a list"
    return None


def _keeps_state(part: Any) -> bool:
    """Whether a clone is more than a new object with the same parameters."""
    twin = clone(part)
    if twin is part:
        return True
    new = type(part)(**part.get_params(deep=False))
    return any(name.endswith("_") for name in set(vars(twin)) - set(vars(new)))
