"""Experiments: the records of a run by their role."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from echobound.data.record import Record
from echobound.errors import DamagedFile
from echobound.files import digest, read_npz, write_npz
from echobound.typed import fields_from_json, shortened

DESCRIPTION = ("sampling_time", "input_names", "output_names", "input_units", "output_units", "name")


@dataclass(frozen=True, eq=False)
class Experiments:
    """The records of a run by their role: training, validation, test.

    Examples
    --------
    >>> one = Record(u=[0.0, 1.0], y=[0.0, 1.0], name="monday")
    >>> [(role, record.name) for role, record in Experiments((one,), (), (one,)).roles]
    [('training', 'monday'), ('test', 'monday')]
    """

    training: tuple[Record, ...]
    validation: tuple[Record, ...]
    test: tuple[Record, ...] = ()

    @property
    def roles(self) -> list[tuple[str, Record]]:
        """Every record with its role, training first."""
        return [(role, record) for role in ("training", "validation", "test") for record in getattr(self, role)]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the records and their roles."""
        return digest([[role, record.identity()] for role, record in self.roles])

    @cached_property
    def samples(self) -> str:
        """SHA-256 of the samples of training and validation data alone, whatever they are called.

        It is the same however they are cut into records, ordered, named, timed, or given their roles, and whatever test
        data there are.

        Examples
        --------
        >>> one, two = Record(u=[0.0, 1.0], y=[2.0, 1.0]), Record(u=[3.0, 4.0], y=[5.0, 4.0])
        >>> whole = Record(u=[3.0, 4.0, 0.0, 1.0], y=[5.0, 4.0, 2.0, 1.0], output_names=["pH"])
        >>> Experiments((one,), (two,)).samples == Experiments((whole,), ()).samples
        True
        """
        searched = [record for role, record in self.roles if role != "test"]
        whole = np.concatenate([np.concatenate([one.u, one.y], axis=1) for one in searched])
        whole = np.sort(whole, axis=1) + 0.0  # channels in any order; no zero has a sign
        return digest(whole[np.lexsort(whole.T)])

    def save(self, path: Path) -> None:
        """Write an NPZ file."""
        described = [
            # A note is written only where there is one: other files stay as they were before there were any.
            {
                "role": role,
                **{n: getattr(record, n) for n in DESCRIPTION},
                **({"note": record.note} if record.note else {}),
            }
            for role, record in self.roles
        ]
        arrays = {f"{letter}{i}": getattr(r, letter) for i, (_, r) in enumerate(self.roles) for letter in "uy"}
        write_npz(path, {"kind": "data", "format": 1, "records": described}, arrays)

    @classmethod
    def load(cls, path: Path) -> Experiments:
        """Read what `save` wrote."""
        header, arrays = read_npz(path, kind="data")
        found: dict[str, list[Record]] = {"training": [], "validation": [], "test": []}
        try:
            for i, entry in enumerate(header["records"]):
                noted = ["note"] if isinstance(entry, dict) and "note" in entry else []
                about = fields_from_json(Record, entry, (*DESCRIPTION, *noted))
                found[entry["role"]].append(Record(u=arrays[f"u{i}"], y=arrays[f"y{i}"], **about))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DamagedFile(path, "header", f"it does not describe records, {shortened(str(error))}") from None
        return cls(**{role: tuple(records) for role, records in found.items()})


def records_digest(records: Sequence[Record]) -> str:
    """Return the SHA-256 of records, in their order."""
    return digest([record.identity() for record in records])
