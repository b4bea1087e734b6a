"""The CPU kernel: compiled by Numba, one network a call, as many networks at once as there are workers.

The arithmetic is that of the reference kernel. Compiled code holds no lock, so that workers are threads.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from echobound.arrays import Rows
from echobound.kernels.base import Run, Trial, TrialKernel
from echobound.kernels.blas import one_blas_thread
from echobound.kernels.cpu.cache import cached_beside_sources
from echobound.kernels.problem import Problem
from echobound.network.cascade_law import CascadeDraw
from echobound.network.reservoir import ReservoirDraw
from echobound.network.training import Tools

with cached_beside_sources():  # Numba looks where to keep its code when a function is defined
    from echobound.kernels.cpu.cascade import CompiledCascadeTools
    from echobound.kernels.cpu.tools import CompiledTools

__all__ = ["CPUKernel"]


class CPUKernel(TrialKernel):
    """Evaluate draws by compiled code."""

    name = "cpu"

    def evaluate(self, problem: Problem, indices: Iterable[int]) -> Rows:
        """Draw, train and score the given draws of a problem."""
        with one_blas_thread():
            return super().evaluate(problem, indices)

    def trial(self, problem: Problem, index: int) -> Trial:
        """Draw one network, train it on every fold, and simulate what came out."""
        with one_blas_thread():
            return super().trial(problem, index)

    def runs(self, problem: Problem, indices: Iterable[int]) -> list[Run]:
        """What the given draws are scored by."""
        with one_blas_thread():
            return super().runs(problem, indices)

    def tools(self, draw: Any) -> Tools:
        """Those in compiled code; a draw of another kind brings what it needs itself."""
        if isinstance(draw, ReservoirDraw):
            return CompiledTools(draw)
        make: Any = CompiledCascadeTools if isinstance(draw, CascadeDraw) else draw.tools
        tools: Tools = make()
        return tools
