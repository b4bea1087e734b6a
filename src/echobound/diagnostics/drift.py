"""Drift: whether the model's error is the same from block to block, or the plant moved between them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from echobound.arrays import Matrix, Vector
from echobound.diagnostics.finding import RATE, Finding, Piece, per_cent, usable
from echobound.diagnostics.whitening import Autoregression

SHORTEST = 40
PARTS = 4  # of one record
SMALL = 0.1  # share of the error: a drift that explains less is real, and no reason to act


def drift_of(pieces: Sequence[Piece], outputs: Sequence[str]) -> Finding:
    """Whether offset or gain of the error differ between pieces, by an F test on the whitened error.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> u = rng.standard_normal((400, 1))
    >>> pieces = [Piece(u, u + 0.1 * rng.standard_normal(u.shape) + shift, u) for shift in (0.0, 0.0, 0.2)]
    >>> drift_of(pieces[:2], ["y1"]).alarm, drift_of(pieces, ["y1"]).alarm
    (False, True)
    """
    pieces = usable(list(pieces), SHORTEST)
    if len(pieces) == 1 and len(pieces[0].y) >= PARTS * SHORTEST:
        pieces = _cut(pieces[0])
    if len(pieces) < 2:
        return Finding("drift", False, "Drift was not tested: there is only one block or record.", "", RATE)
    found = {
        name: _tested([(one.error[:, j], one.simulated[:, j]) for one in pieces])
        for j, name in enumerate(outputs)
        if max(one.error[:, j].std() for one in pieces) > 0
    }
    if not found:
        return Finding("drift", False, "The error is 0 throughout.", "", RATE)
    name = min(found, key=lambda one: found[one][0])
    p_value, share = found[name]
    p_value = min(1.0, p_value * len(found))
    values = {"p": p_value, "share": share}
    if p_value >= RATE:
        return Finding(
            "drift", False, "Offset and gain of the error are the same throughout: no sign of drift.", "", RATE, values
        )
    words = (
        f"Offset or gain of {name} differ between the {len(pieces)} pieces that were scored: {per_cent(share)} of the"
        " error would go away if each had its own."
    )
    advice = (
        "The plant moves, an input is missing, or the model is less good at some operating points: add that input, give"
        " data from all of them, or use adapt."
    )
    return Finding("drift", True, words, advice if share >= SMALL else "", RATE, values)


def _cut(piece: Piece) -> list[Piece]:
    edges = np.linspace(0, len(piece.y), PARTS + 1).round().astype(int)
    return [Piece(piece.u[a:b], piece.y[a:b], piece.simulated[a:b]) for a, b in pairwise(edges)]


def _tested(pieces: Sequence[tuple[Vector, Vector]]) -> tuple[float, float]:
    """p-value of one offset and gain for all, against one for each; and what the latter take off the error."""
    from scipy.stats import f

    errors = [error for error, _ in pieces]
    size = max(float(np.std(np.concatenate(errors))), 1e-300)
    # By what is left over with an offset and a gain for each: a drift must not pass for a slow disturbance.
    apart = [np.stack([np.ones(len(out)), out / size], axis=1) for _, out in pieces]
    by = Autoregression.of([_rest(one, error / size) for one, error in zip(apart, errors, strict=True)])
    new = [by.new(error / size, constant=False) for error in errors]
    # A constant and the model's output, through the same filter.
    columns = [
        np.stack([by.new(np.ones(len(out)), constant=False), by.new(out / size, constant=False)], axis=1)
        for _, out in pieces
    ]
    one = _left([(np.concatenate(columns), np.concatenate(new))])
    each = _left(list(zip(columns, new, strict=True)))
    more = 2 * (len(pieces) - 1)
    free = sum(map(len, new)) - 2 * len(pieces)
    if each <= 0 or free < 1:
        return 1.0, 0.0
    p_value = float(f.sf((one - each) / more / (each / free), more, free))
    scaled = [error / size for error in errors]
    whole = _left([(np.concatenate(apart), np.concatenate(scaled))])
    left = _left(list(zip(apart, scaled, strict=True)))
    return p_value, float(np.clip(1.0 - left / whole, 0.0, 1.0)) if whole > 0 else 0.0


def _left(problems: Sequence[tuple[Matrix, Vector]]) -> float:
    """Sum of squares that least squares leave."""
    return sum(float(np.sum(np.square(_rest(columns, target)))) for columns, target in problems)


def _rest(columns: Matrix, target: Vector) -> Vector:
    return np.asarray(target - columns @ np.linalg.lstsq(columns, target, rcond=1e-12)[0])
