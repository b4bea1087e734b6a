"""The readout: least squares, with a relative ridge or of minimum norm."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from echobound.arrays import Matrix

Readouts: TypeAlias = list[tuple[float, Matrix]]
"""For each ridge, the one that was used and the readout ``(output, column)``."""


def ridge_solution(gram: Matrix, moment: Matrix, ridge: float) -> Matrix | None:
    """Solve (G + ridge trace(G)/p I) W' = M by Cholesky; None if the matrix is not positive definite."""
    from scipy.linalg import cho_solve, cholesky

    p = len(gram)
    try:
        # Not checked for infinities: records are, and the check would cost another pass over the matrix.
        factor = cholesky(gram + ridge * (np.trace(gram) / p) * np.eye(p), lower=False, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    return np.asarray(cho_solve((factor, False), moment, check_finite=False).T)


def minimum_norm(triangle: Matrix, outputs: int) -> Matrix:
    """Minimum-norm least squares from the triangle R of a QR factorisation of [Phi, Y].

    Singular values below p eps sigma_max count as zero.

    Examples
    --------
    >>> twice = np.array([[1.0, 1.0, 2.0], [2.0, 2.0, 4.0], [1.0, 1.0, 2.0]])
    >>> minimum_norm(np.linalg.qr(twice, mode="r"), outputs=1).round(12).tolist()
    [[1.0, 1.0]]
    """
    p = triangle.shape[1] - outputs
    left, sizes, right = np.linalg.svd(triangle[:p, :p], full_matrices=False)
    keep = sizes > p * np.finfo(float).eps * sizes[0]
    weights = right[keep].T @ ((left[:, keep].T @ triangle[: len(left), p:]) / sizes[keep, None])
    return np.asarray(weights.T)


def least_squares(phi: Matrix, y: Matrix, ridges: tuple[float, ...]) -> Readouts:
    """Readouts for each ridge, with the ridge that was used: 0 if Cholesky failed and the minimum norm stands in."""
    gram, moment = phi.T @ phi, phi.T @ y
    results = []
    for ridge in ridges:
        weights = ridge_solution(gram, moment, ridge) if ridge > 0 else None
        if weights is None:
            # From Phi itself: the Gram matrix has only half of the digits, too few to tell the rank by.
            triangle = np.linalg.qr(np.concatenate([phi, y], axis=1), mode="r")
            results.append((0.0, minimum_norm(np.asarray(triangle), y.shape[1])))
        else:
            results.append((ridge, weights))
    return results
