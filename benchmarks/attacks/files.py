"""Data files of all formats, mutated: each is read, or refused in one sentence."""

from __future__ import annotations

import random
import warnings
from pathlib import Path

import numpy as np

from attacks.mutations import mutated, said_in_one_line
from echobound.data import read_records
from echobound.errors import DataError, MissingExtra

ROWS = 40
SHARES = {"new.mat": 0.02}  # of what is tried: a process is started for each


def prepare(folder: Path) -> None:
    """Write the files that are mutated."""
    import h5py
    import pandas
    import scipy.io

    t = np.arange(ROWS) * 0.5
    frame = pandas.DataFrame({"t": t, "valve": np.sin(t), "load": np.cos(3 * t) / 3, "level": np.exp(-t)})
    frame.to_csv(folder / "plain.csv", index=False)
    frame.to_csv(folder / "german.csv", index=False, sep=";", decimal=",")
    stamps = pandas.date_range("2024-03-01", periods=ROWS, freq="250ms")
    frame.assign(t=stamps).to_csv(folder / "stamps.csv", index=False)
    frame.to_parquet(folder / "plain.parquet")
    frame.to_parquet(folder / "groups.parquet", row_group_size=7, compression="gzip")
    frame.to_excel(folder / "plain.xlsx", index=False)
    content = {name: column.to_numpy() for name, column in frame.items()}
    scipy.io.savemat(folder / "five.mat", {**content, "s": {"x": t, "y": {"z": t}}, "c": np.array(["a"], dtype=object)})
    scipy.io.savemat(folder / "packed.mat", content, do_compression=True)
    scipy.io.savemat(folder / "four.mat", {name: column[:, None] for name, column in content.items()}, format="4")
    np.savez(folder / "plain.npz", **content)
    np.savez_compressed(folder / "packed.npz", **content)
    np.save(folder / "plain.npy", frame.to_numpy())
    with h5py.File(folder / "new.mat", "w", userblock_size=512) as file:
        for name, column in content.items():
            file.create_dataset(name, data=column[None]).attrs["MATLAB_class"] = np.bytes_("double")
    with (folder / "new.mat").open("r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")


def attempt(folder: Path, number: int) -> str:
    """Mutate a file and read it."""
    chance = random.Random(number)
    names = sorted(path.name for path in folder.iterdir() if not path.name.startswith("tried"))
    name = chance.choice([one for one in names if one not in SHARES])
    name = next((rare for rare, share in SHARES.items() if chance.random() < share), name)
    path = folder / f"tried{Path(name).suffix}"
    path.write_bytes(mutated((folder / name).read_bytes(), chance))
    columns = (2, 4, 1) if name.endswith("npy") else ("valve", "level", "t")
    options = chance.choice(({}, {"resample": 0.7}, {"missing": "split"}, {"decimate": 2}))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read_records(path, columns[0], columns[1], time=columns[2], **options)
    except (DataError, MissingExtra) as refusal:
        return said_in_one_line(refusal)
    return "read"
