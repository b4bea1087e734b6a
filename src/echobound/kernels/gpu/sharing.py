"""Sharing: which draws of a call the card computes, and which the host does meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from echobound.draws import draw_keys
from echobound.kernels.blas import one_blas_thread
from echobound.kernels.gpu.descents import descends, fits
from echobound.kernels.problem import Problem
from echobound.network.law import NetworkLaw, ReservoirLaw
from echobound.network.training import LeastSquares

Result = TypeVar("Result")
At = NDArray[np.intp]  # positions among the indices of a call


class Share(NamedTuple):
    """The draws of a call that are of one kind."""

    problem: Problem  # of this kind alone
    at: At
    on_card: bool


def for_card(law: NetworkLaw, problem: Problem) -> bool:
    """Whether the CUDA sources know networks of this law, for data of this shape.

    These are reservoirs that are trained by plain least squares, and small ones that are trained on the free-run error.
    """
    if isinstance(law, ReservoirLaw) and type(law.training) is LeastSquares:
        return True
    return descends(law) and fits(problem.of_law(law))


def shares_of(problem: Problem, indices: NDArray[np.int64]) -> list[Share]:
    """The draws of a call by their kind; a law that draws one kind only has one share."""
    keys = draw_keys(problem.seed, problem.stream, problem.family, indices.tolist())
    kinds = [problem.law.component(key) for key in keys]
    if problem.demanding:
        _ = problem.whole  # made here once, so that the problems of all kinds share its data
    found = []
    for law in {id(kind): kind for kind in kinds}.values():
        at = np.flatnonzero([kind is law for kind in kinds])
        found.append(Share(problem if law is problem.law else problem.of_law(law), at, for_card(law, problem)))
    return found


def computed(
    shares: Sequence[Share],
    indices: NDArray[np.int64],
    card: Callable[[Problem, NDArray[np.int64]], Result],
    host: Callable[[Problem, list[int]], Result],
) -> Iterator[tuple[At, Result]]:
    """What card and host return for the shares, with the positions that it belongs to.

    The host computes one draw a call, in as many threads as there are cores, while this thread waits for the card. What
    is computed does not depend on who computes what else: so neither does it on the batches.
    """
    ours = [(share.problem, position) for share in shares if not share.on_card for position in share.at]
    if not ours:
        yield from ((share.at, card(share.problem, indices[share.at])) for share in shares)
        return
    # BLAS has one thread from before the first thread starts until after the last one ends.
    with one_blas_thread(), ThreadPoolExecutor(cores()) as pool:
        try:
            futures = [pool.submit(host, problem, [int(indices[position])]) for problem, position in ours]
            yield from ((share.at, card(share.problem, indices[share.at])) for share in shares if share.on_card)
            for (_, position), future in zip(ours, futures, strict=True):
                yield np.array([position]), future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # an interrupt does not wait for what has not begun
            raise


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
