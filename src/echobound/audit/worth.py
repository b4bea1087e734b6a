"""What the model is said to be worth, held against an assessment that is made again from its data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from echobound.files import jsonable
from echobound.runs.assessed import FILE, content_of, read_assessment
from echobound.runs.assessment import assess
from echobound.runs.folder import RunFolder

CLOSE = 1e-6  # relative distance that rounding may make between two machines, of FITs and of correlations
COEFFICIENTS = 1e-4  # the same of a linear model's coefficients, which such data determine less well than its outputs
NAMED = 3  # differences that are named one by one


def check_assessment(folder: RunFolder) -> None:
    """Assess the delivered model again, and report each number or finding of ``assessment.json`` that does not follow.

    Verdict and first line follow from these exactly, which reading the file checks. Where something else in the folder
    is wrong, nothing could be told from a difference.
    """
    faults = folder.faults
    if not folder.has(FILE):
        return
    if faults.findings or faults.unconfirmed:
        faults.notes.append(f"{FILE} was not looked at, since other parts do not follow")
        return
    path = folder.path / FILE
    before = len(faults.findings)
    stated = faults.attempt(FILE, lambda: read_assessment(folder, path))
    if stated is None:
        if len(faults.findings) == before:
            faults.notes.append(f"{FILE} is about other models or test data: it is not used, and made again")
        return
    ours = faults.attempt(FILE, lambda: content_of(folder, assess(folder)))
    if ours is None:
        return
    theirs = dict(jsonable(content_of(folder, stated)))
    parts = ("scores", "evidence", "linear")
    apart = [one for part in parts for one in _differences(ours[part], theirs[part], part)]
    for where, expected, found in apart[:NAMED]:
        if faults.sensitive and isinstance(found, float):  # rounding moves these models, and so what is said of them
            faults.unconfirmed.append(f"{FILE}, {where}: {expected!r} here, {found!r} there")
        else:
            faults.report(FILE, where, expected, found)


def _differences(ours: Any, theirs: Any, where: str, within: float = CLOSE) -> Iterator[tuple[str, Any, Any]]:
    """Each place at which two contents are not the same, numbers to within a relative distance.

    Examples
    --------
    >>> list(_differences({"fit": 80.0, "words": ["a"]}, {"fit": 80.0 + 1e-9, "words": ["b"]}, "scores"))
    [('scores, words, 0', 'a', 'b')]
    """
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping) and set(ours) == set(theirs):
        for key, value in ours.items():
            near = COEFFICIENTS if key == "coefficients" else within
            yield from _differences(value, theirs[key], f"{where}, {key}", near)
    elif _listed(ours) and _listed(theirs) and len(ours) == len(theirs):
        for i, value in enumerate(ours):
            yield from _differences(value, theirs[i], f"{where}, {i}", within)
    elif _number(ours) and _number(theirs):
        if abs(ours - theirs) > within * max(1.0, abs(ours), abs(theirs)):
            yield where, ours, theirs
    elif ours != theirs or isinstance(ours, bool) != isinstance(theirs, bool):
        yield where, ours, theirs


def _listed(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
