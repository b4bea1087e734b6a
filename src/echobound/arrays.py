"""Array types: the shapes that pass between rooms, named once.

Axes are named in parentheses, the slowest first. All numbers are double precision.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Columns", "Integers", "Mask", "Matrix", "Rows", "Scores", "Signal", "Vector", "Words"]

Array: TypeAlias = NDArray[np.float64]
"""Numbers of any shape."""
Vector: TypeAlias = NDArray[np.float64]
"""``(element,)``; a channel is ``(time,)``, a bias ``(unit,)``."""
Matrix: TypeAlias = NDArray[np.float64]
"""``(row, column)``; a readout is ``(output, column)``, states are ``(time, unit)``."""
Signal: TypeAlias = NDArray[np.float64]
"""``(time, channel)``, in the data's own units unless a name says scaled."""
Scores: TypeAlias = NDArray[np.float64]
"""``(draw,)`` for one score, ``(draw, score)`` for several; draws family after family, in the order of their index."""
Mask: TypeAlias = NDArray[np.bool_]
"""True or false for each element."""
Columns: TypeAlias = NDArray[np.int64]
"""``(slot, unit)``: the column of each non-zero of a sparse matrix."""
Integers: TypeAlias = NDArray[np.int64]
"""Whole numbers of any shape."""
Words: TypeAlias = NDArray[np.uint64]
"""Raw random words."""
Rows: TypeAlias = NDArray[Any]
"""Rows of the ledger, structured as `kernels.row_dtype` says; in the same order as `Scores`."""
