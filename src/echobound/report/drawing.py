"""Drawing: figures that notebooks show by themselves, and the figure of a record."""

from __future__ import annotations

import io
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@cache
def _shown() -> type[Figure]:
    from matplotlib.figure import Figure

    class Shown(Figure):
        """A figure without a window that a notebook shows: pyplot, which would keep it, is not involved."""

        def _repr_png_(self) -> bytes:
            content = io.BytesIO()
            self.savefig(content, format="png", dpi=110)
            return content.getvalue()

    return Shown


def shown_figure(**options: Any) -> Figure:
    """A new figure, which notebooks show when it is the result of a cell."""
    return _shown()(**options)
