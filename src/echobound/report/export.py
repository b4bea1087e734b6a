"""Figures of a run as files for papers."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from echobound.errors import InputError, RunError
from echobound.files import write_whole
from echobound.report.contents import RunContents
from echobound.report.figures import STYLE
from echobound.report.sections import SECTIONS
from echobound.runs.folder import RunFolder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["run_figures", "write_figures"]

KINDS = ("pdf", "svg", "png")


def run_figures(run: RunFolder | str | Path) -> dict[str, Figure]:
    """The figures of a run by name, as Matplotlib figures: take their ``axes`` to change them.

    Parameters
    ----------
    run
        The run folder.

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

    Parameters
    ----------
    run
        The run folder.
    target
        Folder for the files; made if it is not there.
    kinds
        ``"pdf"`` and ``"svg"`` are vector graphics, ``"png"`` is an image.
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
            write_whole(path, _bytes(figure, kind))
            written.append(path)
    return written


def _bytes(figure: Figure, kind: str) -> bytes:
    """The figure as a file; the same figure gives the same bytes."""
    import matplotlib

    dates = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}
    settings = {**STYLE, "svg.hashsalt": "echobound", "svg.fonttype": "path"}  # a printer may lack the font
    buffer = io.BytesIO()
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # a name in a script that the font lacks
        figure.savefig(buffer, format=kind, metadata=dates[kind])
    return buffer.getvalue()
