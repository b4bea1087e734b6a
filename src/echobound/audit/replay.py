"""Replay: the second certificate compared with what the models do, every test episode run again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from echobound.arrays import Array
from echobound.data import Record
from echobound.data.copies import require_independent_records
from echobound.data.experiments import Experiments, records_digest
from echobound.data.overlap import require_untouched
from echobound.errors import InputError
from echobound.files import jsonable
from echobound.kernels.sensitivity import READOUT, TOLERANCE, Agreement, relative, spread_of
from echobound.network import Committee
from echobound.runs.faults import Faults
from echobound.runs.folder import RunFolder
from echobound.runs.opening import Model, generalisation_of
from echobound.runs.reader import stated_of
from echobound.scenario import EpisodeErrors, Generalisation, Questions
from echobound.typed import from_json

FILE = "generalisation.json"
NAMED = 3  # numbers that are named one by one
Numbers = dict[tuple[Any, ...], Any]
Distances = dict[tuple[Any, ...], float]


def replay_test_data(folder: RunFolder) -> tuple[Record, ...]:
    """Derive ``generalisation.json`` again; return the test records that were given for it.

    What was settled beforehand is taken as it stands, but for a criterion: that is in the plan, or was named late.
    """
    faults, later = folder.faults, tuple[Record, ...]()
    if folder.has("test.npz"):
        loaded = faults.attempt("test.npz", lambda: Experiments.load(folder.path / "test.npz"))
        later = () if loaded is None else loaded.test
        if loaded is not None and not folder.has(FILE):
            faults.notes.append("there are test data in test.npz, but no second certificate speaks of them")
    stated = faults.attempt(FILE, lambda: folder.json(FILE)) if folder.has(FILE) else None
    experiments = faults.attempt("data.npz", lambda: folder.experiments)
    plan = faults.attempt("plan.json", lambda: folder.plan)
    if stated is None or experiments is None or plan is None:
        return later
    files = folder.model_files
    model = faults.attempt(files["model"], lambda: folder.picked) if "model" in files else None
    if model is None:
        faults.report(FILE, "", "a model in the folder that it speaks of", "none that can be read")
        return later
    committee = faults.attempt(files["committee"], lambda: folder.best) if "committee" in files else None
    models: dict[str, Model] = {"model": model} | ({} if committee is None else {"committee": committee})
    own, training = experiments.test, experiments.training
    test = later if later and stated_of(stated, "digests", "test") != records_digest(own) else own
    if not test:
        found = stated_of(stated, "digests", "test")
        faults.report(FILE, "digests, test", "that of the test data of this run", found)
        return later
    used = [(role, record) for role, record in experiments.roles if test is not own or role != "test"]
    faults.attempt("test data", lambda: require_untouched(test, used))
    faults.attempt("test data", lambda: require_independent_records(test))
    # The best score by the ledger; none if all networks diverged.
    picked = faults.attempt("ledger.sqlite", lambda: folder.picked_score)

    def derived(tested: dict[str, Model]) -> Generalisation:
        settled = _settled(stated)
        known: dict[str, Any] = {"score": plan.measures[plan.plain], "picked": picked, "horizon": plan.horizon}
        known |= {"members": plan.members, "blocks": plan.blocks}
        second = generalisation_of(tested, training, test, settled, **known)
        digests = {**second.digests, **{name: one.digest for name, one in models.items()}}
        # When a criterion for data given later was named, nothing in the folder can show.
        named_later = stated.get("late") is True and settled.criterion is not None
        late = folder.comes_late(settled) if test is own else named_later
        return replace(second, digests=digests, late=late, earlier=0 if test is own else len(own))

    ours = faults.attempt(FILE, lambda: derived(models))
    if ours is None:
        return later
    ours = _reconciled(ours, stated, faults, lambda number: derived({n: _moved(m, number) for n, m in models.items()}))
    faults.compare(FILE, jsonable(ours.to_dict()), stated)
    return later


def _settled(stated: dict[str, Any]) -> Questions:
    try:
        return from_json(Questions, stated["settled"])
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"what was settled cannot be read: {error}") from None


def _moved(model: Any, number: int) -> Any:
    """The model with its readout changed by as much as rounding may."""
    if isinstance(model, Committee):
        return Committee(tuple(_moved(member, number) for member in model.members))
    signs = np.random.default_rng(number).choice([-1.0, 1.0], model.readout.shape)
    return replace(model, readout=model.readout * (1 + READOUT * signs))


def _reconciled(
    ours: Generalisation, stated: dict[str, Any], faults: Faults, moved: Callable[[int], Generalisation]
) -> Generalisation:
    """The same with the numbers that are stated, so that all else must follow from these exactly.

    Where one is further from ours than rounding takes it (contract 2), that is found here.
    """
    numbers, theirs = _numbers(ours.to_dict()), _numbers(stated)
    if set(numbers) != set(theirs):
        return ours  # what is missing or too much is seen when the whole is compared
    distances = {key: _distance(numbers[key], theirs[key]) for key in numbers}
    beyond = {key: distance for key, distance in distances.items() if distance > TOLERANCE}
    if beyond:
        judged = _judged(numbers, theirs, beyond, moved)
        for key in [key for key, agreement in judged.items() if agreement == "different"][:NAMED]:
            faults.report(FILE, ", ".join(map(str, key)), numbers[key], theirs[key])
        for key in [key for key, agreement in judged.items() if agreement == "unconfirmed"][:NAMED]:
            said = f"{FILE}, {', '.join(map(str, key))}: {numbers[key]!r} here, {theirs[key]!r} there"
            faults.unconfirmed.append(f"{said}; rounding moves it visibly, but not there")
        explained = [key for key, agreement in judged.items() if agreement == "sensitive"]
        if explained:
            most = max(beyond[key] for key in explained)
            said = f"{len(explained)} errors in test episodes differ by {most:.1e} or less"
            faults.sensitive.append(f"{said}, which is what rounding does to these free runs")
    try:
        return replace(
            ours,
            seen={model: from_json(EpisodeErrors, stated["seen"][model]) for model in ours.seen},
            optimism=replace(ours.optimism, test=stated["optimism"]["test"]),
        )
    except (InputError, TypeError, ValueError):
        return ours


def _judged(
    numbers: Numbers, theirs: Numbers, beyond: Distances, moved: Callable[[int], Generalisation]
) -> dict[tuple[Any, ...], Agreement]:
    """What to say of each number that differs, by where it goes when rounding is imitated, as of rows."""
    runs: dict[int, Numbers] = {}

    def again(number: int, key: tuple[Any, ...]) -> Array:
        if number not in runs:
            runs[number] = _numbers(moved(number).to_dict())
        return _value(runs[number][key])

    judged: dict[tuple[Any, ...], Agreement] = {}
    for key, distance in beyond.items():
        stored = _value(theirs[key])
        if np.isnan(stored).any():
            judged[key] = "different"
            continue
        found = spread_of(_value(numbers[key]), lambda number, key=key: again(number, key), stored)  # type: ignore[misc]
        judged[key] = found.agreement(stored, distance)
    return judged


def _value(number: Any) -> Array:
    """A number as an array; None is an episode in which the model diverged, what is no number is NaN."""
    if number is None:
        return np.array([np.inf])
    return np.array([number if isinstance(number, float | int) and not isinstance(number, bool) else np.nan], float)


def _numbers(content: dict[str, Any]) -> Numbers:
    """Every number that was seen, by model, what it is, episode (from 1) and, of peaks, output."""
    found: Numbers = {}
    try:
        found["optimism", "test"] = content["optimism"]["test"]
        outputs = content["outputs"]
        for model, seen in content["seen"].items():
            for name in ("rmse", "scores"):
                found |= {(model, name, i): value for i, value in enumerate(seen[name] or (), start=1)}
            for part in ("peaks", "windows"):
                for i, peak in enumerate(seen.get(part) or (), start=1):
                    values = [None] * len(outputs) if peak is None else peak
                    found |= {(model, part, i, name): value for name, value in zip(outputs, values, strict=True)}
    except (KeyError, TypeError, ValueError, AttributeError):
        return {}
    return found


def _distance(ours: Any, theirs: Any) -> float:
    """Relative distance of two numbers; None is an episode in which the model diverged."""
    sides = [np.inf if one is None else one for one in (ours, theirs)]
    if not all(isinstance(one, float | int) and not isinstance(one, bool) for one in sides):
        return np.inf
    return relative(np.array([sides[0]], dtype=float), np.array([sides[1]], dtype=float))
