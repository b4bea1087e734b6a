"""The reference kernel: plain NumPy, one network after the other. It defines what is right."""

from __future__ import annotations

from typing import Any

from echobound.kernels.base import TrialKernel
from echobound.network.reservoir import ReservoirDraw
from echobound.network.training import PlainTools, Tools


class ReferenceKernel(TrialKernel):
    """Evaluate draws in plain NumPy."""

    name = "reference"

    def tools(self, draw: Any) -> Tools:
        """Those in plain NumPy; a draw that is no reservoir brings its own."""
        return plain_tools(draw)


def plain_tools(draw: Any) -> Tools:
    """What trains and simulates a draw of any kind, in plain NumPy."""
    tools: Tools = PlainTools() if isinstance(draw, ReservoirDraw) else draw.tools()
    return tools
