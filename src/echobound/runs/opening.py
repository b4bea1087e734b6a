"""Opening: the models of a run on test data that nothing was chosen by, and what may be asked of such data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from echobound.arrays import Signal
from echobound.data.copies import require_independent_records
from echobound.data.experiments import records_digest
from echobound.data.overlap import require_distinct
from echobound.data.record import Record
from echobound.errors import DataError, InputError
from echobound.network.committee import Committee
from echobound.network.plant_model import PlantModel
from echobound.network.response import respond
from echobound.runs.folder import RunFolder
from echobound.scenario import EpisodeErrors, Generalisation, Optimism, Questions
from echobound.scenario.statements.episodes import cut_blocks, finite
from echobound.scores import Score, get_score, rmse
from echobound.typed import to_json

Model = PlantModel | Committee
Pairs = Sequence[tuple[Signal, Signal]]  # measured and simulated outputs of each record


def generalisation_of(
    models: Mapping[str, Model],
    training: Sequence[Record],
    test: Sequence[Record],
    settled: Questions,
    *,
    score: str | Score,
    picked: float | None,
    horizon: int | None = None,
    members: int = 1,
    blocks: int | None = None,
    run: Callable[[Sequence[Record]], Mapping[str, Pairs]] | None = None,
) -> Generalisation:
    """Run the models over the test data, which are opened here, and make the second certificate.

    Tested are the picked network as ``model`` and perhaps the ``committee``. How much each output moves in the training
    data is the unit of the band. `picked` is what the former scored on validation data, `members` and `blocks` are
    those of the first certificate. `run` runs the models over records, as `RunFolder.respond`, which runs none twice;
    they run here if it is not given.

    Examples
    --------
    >>> from echobound import identify, ph_experiment
    >>> training, validation, *test = ph_experiment(samples=(400, 300, 150, 150, 150))
    >>> network = identify(training, validation, law="paper", order=10, networks=20, washout=60).network
    >>> second = generalisation_of({"model": network}, [training], test, Questions(), score="fit", picked=80.0)
    >>> second.episodes, round(second.limit().epsilon, 3)
    (3, 0.632)
    """
    model, score = models["model"], get_score(score)
    episodes = episodes_of(test, settled, model.washout)
    if run is None:
        pairs: Mapping[str, Pairs] = {name: respond(one, episodes, horizon) for name, one in models.items()}
    else:
        pairs = run(episodes)
    measured, simulated = (np.concatenate(side) for side in zip(*pairs["model"], strict=True))
    scoring: dict[str, Any] = {"score": score.name, "direction": score.direction, "unit": score.unit}
    scoring |= {"members": members, "horizon": horizon, "blocks": blocks}
    return Generalisation(
        settled=settled,
        horizon=horizon,
        members=members,
        samples=tuple(len(measured) for measured, _ in pairs["model"]),
        outputs=model.output_names,
        scales=_scales(training),
        digests={"committee": "", **{name: one.digest for name, one in models.items()}, "test": records_digest(test)},
        seen={name: _errors_of(each, settled) for name, each in pairs.items()},
        optimism=Optimism.of(np.nan if picked is None else picked, score(measured, simulated), **scoring),
    )


def open_test_data(folder: RunFolder, settled: Questions, records: Sequence[Record] | None = None) -> Generalisation:
    """Run the models of a run over test data, its own if none are given, and make the second certificate."""
    certificate, data = folder.certificate, folder.experiments
    require_independent_records(data.test if records is None else records)
    test, score = data.test if records is None else records, folder.plan.measures[folder.plan.plain]
    how: dict[str, Any] = {name: getattr(certificate, name) for name in ("horizon", "members", "blocks")}
    how |= {"picked": folder.picked_score, "run": folder.respond}
    return generalisation_of(models_of(folder), data.training, test, settled, score=score, **how)


def _errors_of(pairs: Pairs, settled: Questions) -> EpisodeErrors:
    """Errors of a model in each episode, and its scores where a criterion asks for them."""
    criterion, window = settled.criterion, settled.window
    with np.errstate(invalid="ignore"):
        errors = [np.abs(measured - simulated) for measured, simulated in pairs]
    score = None if criterion is None else get_score(criterion.score)
    return EpisodeErrors(
        rmse=tuple(finite(float(rmse(*pair))) for pair in pairs),
        peaks=tuple(_peak(each) for each in errors),
        windows=None if window is None else tuple(_peak(each[-window:]) for each in errors),
        scores=None if score is None else tuple(finite(score(*pair)) for pair in pairs),
    )


def _peak(errors: Signal) -> tuple[float, ...] | None:
    """The largest error of each output; None where the model diverged."""
    peak = errors.max(axis=0)
    return tuple(map(float, peak)) if np.isfinite(peak).all() else None


def _scales(training: Sequence[Record]) -> tuple[float, ...]:
    """Relative width of the band for each output: the standard deviation in the training data."""
    deviation = np.concatenate([record.y for record in training]).std(axis=0)
    if len(deviation) == 1:
        return (1.0,)
    return tuple(float(one) if one > 0 else 1.0 for one in deviation)


def episodes_of(test: Sequence[Record], settled: Questions, washout: int) -> list[Record]:
    """The episodes: the records, or blocks of the one record.

    Examples
    --------
    >>> record = Record(*np.random.default_rng(0).normal(size=(2, 1000)))
    >>> [len(block) for block in episodes_of([record], Questions(blocks=3, gap=50, mixing=1e-3), washout=20)]
    [300, 300, 300]
    """
    require_distinct(test)
    if settled.blocks is None or settled.gap is None:
        episodes = list(test)
    else:
        if len(test) > 1:
            raise InputError(
                f"blocks are cut from one long record, but {len(test)} test records were given: without --blocks, each"
                " of them is an episode"
            )
        [record] = test
        length = (len(record) - (settled.blocks - 1) * settled.gap) // settled.blocks
        if length <= washout:
            raise InputError(
                f"{settled.blocks} blocks with gaps of {settled.gap} samples leave {max(length, 0)} samples for each of"
                f" {len(record)}, but the washout alone takes {washout}: take fewer blocks or shorter gaps"
            )
        parts = cut_blocks(len(record), length, settled.gap, washout)[: settled.blocks]
        episodes = [record.part(*part, f"{record.name}, block {i}") for i, part in enumerate(parts, start=1)]
        require_independent_records(episodes)  # a gap does not help where a record repeats itself
    for record in episodes:
        if len(record) <= washout:
            short = f"{record.name} has {len(record)} samples, but the washout of the model takes {washout}"
            raise DataError(f"{short}: give longer test records")
    return episodes


def models_of(folder: RunFolder) -> dict[str, Model]:
    """What is tested: the picked network and, where there is one, the committee."""
    if folder.certificate.winner is None:
        raise InputError(f"all networks of {folder.path} diverged: there is no model to test")
    return folder.models


def permit_opening(known: Generalisation | None, test: str, asked: Questions, own: str) -> tuple[bool, bool]:
    """Whether test data must be opened for these questions (they were not, so far), and whether a question comes late.

    Test data can be opened once. The same questions can be asked again and have the same answer; others are refused.
    A criterion that was settled beforehand may be named later, once, and the certificate says so. New data may be given
    once, after those of the run. `known` is the second certificate of the run, if there is one; `test` and `own` are
    the digests of the data to be opened and of the run's own test data.
    """
    if known is None:
        return True, False
    if test != known.digests["test"]:
        if known.digests["test"] != own:
            raise InputError(
                "this run has a second certificate on test data that were given for it: others are refused, since one"
                " could continue until the outcome is pleasing; identify again in another folder to start afresh"
            )
        return True, False
    if asked in (known.settled, replace(known.settled, criterion=None)):
        return False, known.late
    if replace(asked, criterion=None) != known.settled:
        raise InputError(
            f"these test data were opened for another list of statements ({_listed(known.settled)}), so they are spent:"
            f" what is asked after a look at the errors ({_listed(asked)}) has no confidence without other test data"
        )
    return True, True


def record_once(folder: RunFolder, second: Generalisation, given: Sequence[Record] = ()) -> Generalisation:
    """Record a second certificate and return it, unless there is one for the same questions: then that one."""
    own, known = records_digest(folder.experiments.test), folder.generalisation
    if known is not None and not given and known.digests["test"] not in (own, second.digests["test"]):
        return second  # the recorded one is about data given later, and stays
    opened, late = permit_opening(known, second.digests["test"], second.settled, own)
    if not opened and known is not None:
        return known
    second = replace(second, late=late or second.late, earlier=len(folder.experiments.test) if given else 0)
    folder.record_generalisation(second, given)
    return second


def _listed(settled: Questions) -> str:
    parts = {name: value for name, value in to_json(settled).items() if value not in (None, 0)}
    return ", ".join(f"{name} {value}" for name, value in parts.items())
