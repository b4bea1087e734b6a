"""The CPU kernel: compiled by Numba, a batch or a network a call, as many calls at once as there are workers.

The arithmetic is that of the reference kernel. Compiled code holds no lock, so that workers are threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from echobound.arrays import Rows
from echobound.kernels.base import Run, Trial, TrialKernel
from echobound.kernels.blas import one_blas_thread
from echobound.kernels.cpu import batch, bidiagonal, cascade, derivatives, descent, fortran, philox, rollout
from echobound.kernels.cpu import stages, step
from echobound.kernels.cpu.cache import compiled_in, keep_compiled
from echobound.kernels.cpu.cascade import CompiledCascadeTools
from echobound.kernels.cpu.preparing import prepare
from echobound.kernels.cpu.tools import CompiledTools
from echobound.kernels.problem import Problem
from echobound.network.cascade_law import CascadeDraw
from echobound.network.reservoir import ReservoirDraw
from echobound.network.training import Tools

__all__ = ["CPUKernel"]

COMPILED = compiled_in(batch, bidiagonal, cascade, derivatives, descent, fortran, philox, rollout, stages, step)
NOT_KEPT = keep_compiled(COMPILED)
"""Why compiled code is not kept between processes; empty if it is."""


class CPUKernel(TrialKernel):
    """Evaluate draws by compiled code."""

    name = "cpu"

    def prepare(self, problem: Problem, compiling: Callable[[str], None]) -> None:
        """Load the compiled code; if some must be compiled, `compiling` is called once, with a few words about it."""
        words = f"compiling (again next time: {NOT_KEPT})" if NOT_KEPT else "compiling, once for this machine"
        prepare(problem, lambda: compiling(words))

    def evaluate(self, problem: Problem, indices: Iterable[int]) -> Rows:
        """Draw, train and score the given draws of a problem: many in one call where that is possible."""
        indices = [*indices]
        with one_blas_thread():
            if not indices or not batch.suits(problem):
                return super().evaluate(problem, indices)
            found = []
            for piece in batch.pieces(problem, indices):
                rows, left = batch.evaluate(problem, piece)
                if left:
                    rows[left] = super().evaluate(problem, [piece[position] for position in left])
                found.append(rows)
            return np.concatenate(found)

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
