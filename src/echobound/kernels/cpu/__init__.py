"""The CPU kernel: compiled by Numba, a batch or a network a call, as many calls at once as there are workers.

The arithmetic is that of the reference kernel. Compiled code holds no lock, so that workers are threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from echobound.arrays import Rows
from echobound.kernels.base import Run, Trial, TrialKernel, row_dtype
from echobound.kernels.blas import one_blas_thread
from echobound.kernels.cpu import (
    batch,
    bidiagonal,
    cascade,
    derivatives,
    descent,
    fortran,
    philox,
    projection,
    rollout,
    stages,
    step,
)
from echobound.kernels.cpu.cache import compiled_in, keep_compiled
from echobound.kernels.cpu.cascade_tools import CompiledCascadeTools
from echobound.kernels.cpu.preparing import prepare
from echobound.kernels.cpu.tools import CompiledTools
from echobound.kernels.problem import Problem
from echobound.network.cascade_law import CascadeDraw
from echobound.network.reservoir import ReservoirDraw
from echobound.network.training import Tools

__all__ = ["CPUKernel"]

COMPILED = compiled_in(
    batch, bidiagonal, cascade, derivatives, descent, fortran, philox, projection, rollout, stages, step
)
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
        rows = np.zeros(len(indices), row_dtype(len(problem.scores)))
        with one_blas_thread():
            kinds, others = batch.kinds(problem, indices)
            for own, positions in kinds:
                for piece in batch.pieces(own, positions):
                    rows[piece], left = batch.evaluate(own, [indices[position] for position in piece])
                    others += [piece[at] for at in left]
            if others:
                rows[others] = super().evaluate(problem, [indices[position] for position in others])
        return rows

    def trial(self, problem: Problem, index: int) -> Trial:
        """Draw one network, train it on every fold, and simulate what came out."""
        with one_blas_thread():
            return super().trial(problem, index)

    def runs(self, problem: Problem, indices: Iterable[int]) -> list[Run]:
        """What the given draws are scored by."""
        indices = [*indices]
        found: dict[int, Run] = {}
        with one_blas_thread():
            kinds, others = batch.kinds(problem, indices)
            for own, positions in kinds:
                for piece in batch.pieces(own, positions):
                    for many in batch.trained(own, [indices[position] for position in piece]):
                        found |= zip([piece[at] for at in many.positions], many.runs(), strict=True)
                        others += [piece[at] for at in many.left]
            found |= zip(others, super().runs(problem, [indices[position] for position in others]), strict=True)
        return [found[position] for position in range(len(indices))]

    def tools(self, draw: Any) -> Tools:
        """Those in compiled code; a draw of another kind brings what it needs itself."""
        if isinstance(draw, ReservoirDraw):
            return CompiledTools(draw)
        make: Any = CompiledCascadeTools if isinstance(draw, CascadeDraw) else draw.tools
        tools: Tools = make()
        return tools
