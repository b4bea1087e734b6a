"""Originals: the records of a run compared with the files they came from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from echobound.data import Record
from echobound.data.experiments import Experiments
from echobound.data.overlap import places_in, samples_of
from echobound.files import jsonable
from echobound.runs.faults import Faults

NOWHERE = "no such samples in them"
KEPT = ("sampling_time", "input_names", "output_names")  # what a record has from its file besides samples


def check_originals(experiments: Experiments, originals: Sequence[Record], faults: Faults) -> None:
    """Every record of the run must be a part of an original one, and no sample of these may be left out.

    Test records of which nothing is in the originals are asked for instead.
    """
    used = [np.zeros(len(original), dtype=bool) for original in originals]
    found_all = True
    numbers = {"training": 0, "validation": 0, "test": 0}
    for role, record in experiments.roles:
        numbers[role] += 1
        name = f"{role} record {numbers[role]}"
        places = [(i, at) for i, original in enumerate(originals) for at in places_in(record, original)]
        nearest = "" if places else _nearest(record, originals)
        if nearest == NOWHERE and role == "test":
            # Test data come from files of their own, perhaps long after the others: these were not given.
            faults.notes.append(
                f"{name} ({record.name}) was not compared with its original: give its file with --data as well"
            )
            continue
        if not places:
            faults.report("data.npz", name, "a part of the original data", nearest)
            found_all = False
            continue
        unused = [(i, at) for i, at in places if not used[i][at : at + len(record)].any()]
        number, at = (unused or places)[0]
        used[number][at : at + len(record)] = True
        ours, theirs = ({key: jsonable(getattr(one, key)) for key in KEPT} for one in (originals[number], record))
        faults.compare("data.npz", ours, theirs, name)
    for original, seen in zip(originals, used, strict=True):
        if found_all and not seen.all():
            first = int(np.argmin(seen)) + 1
            left = f"{int((~seen).sum())} that are in none of its records, the first is sample {first}"
            faults.report("data.npz", "", f"all {len(original)} samples of {original.name}", left)


def _nearest(record: Record, originals: Sequence[Record]) -> str:
    """Where a record departs from the original that it resembles most."""
    part, best, said = samples_of(record), 0.5, NOWHERE
    for original in originals:
        whole = samples_of(original)
        if part.shape[1] != whole.shape[1]:
            continue
        for at in {0, len(whole) - len(part)} if len(whole) >= len(part) else set():
            equal = part == whole[at : at + len(part)]
            if equal.mean() >= best and not equal.all():
                best = float(equal.mean())
                row, column = (int(i) for i in np.argwhere(~equal)[0])
                name = (*record.input_names, *record.output_names)[column]
                said = (
                    f"{int((~equal).sum())} other values: the first is sample {row + 1} of {name},"
                    f" {part[row, column]:.9g} here and {whole[at + row, column]:.9g} in {original.name}"
                )
    return said
