"""Figures of a run as files for papers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from echobound.errors import InputError, RunError
from echobound.files import write_whole
from echobound.report.contents import RunContents
from echobound.report.figures import saved
from echobound.report.sections import SECTIONS
from echobound.runs.folder import RunFolder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("pdf", "svg", "png")


def run_figures(run: RunFolder | str | Path) -> dict[str, Figure]:
    """The figures of a run by name, as Matplotlib figures: take their ``axes`` to change them.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from echobound import identify, ph_experiment
    >>> with TemporaryDirectory() as folder:
    ...     records = ph_experiment(samples=(400, 300))
    ...     result = identify(*records, law="paper", order=10, networks=20, run=f"{folder}/run")
    ...     found = run_figures(result.run)
    >>> found["sampling"].axes[0].get_ylabel()
    'FIT (%)'
    """
    contents = RunContents(run if isinstance(run, RunFolder) else RunFolder(run))
    sections = [section for build in SECTIONS if (section := build(contents)) is not None]
    return {drawing.name: drawing.figure() for section in sections for drawing in section.drawings}


def write_figures(run: RunFolder | str | Path, target: Path, kinds: Sequence[str] = ("pdf", "svg")) -> list[Path]:
    """Write the figures of a run as files, and return which.

    The folder `target` is made if it is not there; ``"pdf"`` and ``"svg"`` are vector graphics, ``"png"`` is an image.
    """
    if not kinds or not set(kinds) <= set(KINDS):
        raise InputError(f"figures can be written as {', '.join(KINDS)}, got {', '.join(kinds) or 'nothing'}")
    found = run_figures(run)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"cannot make the folder {target} ({error.strerror}): choose another") from None
    written = []
    for name, figure in found.items():
        for kind in kinds:
            path = target / f"{name}.{kind}"
            write_whole(path, saved(figure, kind))
            written.append(path)
    return written
