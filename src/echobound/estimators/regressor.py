"""One echo state network as a regressor."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted, validate_data

from echobound.errors import InputError
from echobound.estimators.experiments import in_time_order, records_of, runs_of, seed_of, washout_of
from echobound.kernels import get_kernel, hold_out
from echobound.kernels.training import train_network
from echobound.network import EchoStateNetwork, LeastSquares, ReservoirLaw
from echobound.scores import get_score

__all__ = ["EchoStateRegressor"]

LAW = (
    *("order", "norm", "input_scale", "feedback_scale", "bias_scale", "leak", "leak_spread", "input_delays"),
    *("present_input", "output_delays", "constant", "training_noise", "scaling", "nonzeros", "pattern", "padding"),
)


class EchoStateRegressor(RegressorMixin, MultiOutputMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """One echo state network, drawn and trained; `predict` is its free run from the training mean of the outputs.

    Parameters
    ----------
    order, norm, input_scale, feedback_scale, bias_scale, leak, leak_spread
        The reservoir, as in `ReservoirLaw`, each a constant.
    input_delays, present_input, output_delays, constant, training_noise, scaling, nonzeros, pattern, padding
        The readout and the rest, likewise.
    ridge
        Relative ridge of the least squares.
    washout
        Samples at the start of each experiment that are not trained on; a fifth of the shortest one, at most 100, if
        not given.
    random_state, draw
        They name the network: draw number `draw` of this seed.
    kernel
        How to compute: ``"cpu"`` or ``"reference"``.

    Attributes
    ----------
    model_
        The `EchoStateNetwork`, which can do more: simulate from measured outputs, predict, save.

    Examples
    --------
    >>> u = np.sin(0.1 * np.arange(400.0)) + np.sin(0.37 * np.arange(400.0))
    >>> y = np.convolve(u, [0.0, 0.5, 0.3])[:400]
    >>> network = EchoStateRegressor(order=30).fit(u[:300, None], y[:300])
    >>> network.predict(u[300:, None]).shape
    (100,)
    >>> network.score(u[300:, None], y[300:]) > 0.9
    True
    """

    def __init__(
        self,
        order: int = 100,
        *,
        norm: float = 0.9,
        input_scale: float = 1.0,
        feedback_scale: float = 0.0,
        bias_scale: float = 0.5,
        leak: float = 1.0,
        leak_spread: float = 0.0,
        input_delays: int = 1,
        present_input: bool = True,
        output_delays: int = 0,
        constant: bool = True,
        training_noise: float = 0.0,
        scaling: str = "minmax",
        nonzeros: int = 10,
        pattern: str = "diagonals",
        padding: int = 100,
        ridge: float = 1e-8,
        washout: int | None = None,
        random_state: Any = 0,
        draw: int = 0,
        kernel: str = "cpu",
    ) -> None:
        self.order = order
        self.norm = norm
        self.input_scale = input_scale
        self.feedback_scale = feedback_scale
        self.bias_scale = bias_scale
        self.leak = leak
        self.leak_spread = leak_spread
        self.input_delays = input_delays
        self.present_input = present_input
        self.output_delays = output_delays
        self.constant = constant
        self.training_noise = training_noise
        self.scaling = scaling
        self.nonzeros = nonzeros
        self.pattern = pattern
        self.padding = padding
        self.ridge = ridge
        self.washout = washout
        self.random_state = random_state
        self.draw = draw
        self.kernel = kernel

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> EchoStateRegressor:
        """Draw the network and train its readout on ``X`` (inputs) and ``y`` (outputs), in time order."""
        records, flat = records_of(self, X, y, groups)
        law = ReservoirLaw(
            **{name: getattr(self, name) for name in LAW}, training=LeastSquares((self.ridge,)), name="regressor"
        )
        problem = hold_out(
            records,
            records,
            law=law,
            scores=[get_score("rmse")],
            washout=washout_of(self.washout, records),
            seed=seed_of(self.random_state),
        )
        model, _ = train_network(get_kernel(self.kernel), problem, self.draw)
        return self._take(model, flat)

    def predict(self, X: ArrayLike, groups: ArrayLike | None = None) -> NDArray[np.float64]:
        """Simulate over inputs: a free run from the training mean of the outputs, anew for each experiment."""
        check_is_fitted(self, "model_")
        u = np.asarray(validate_data(self, X, dtype=np.float64, reset=False))
        y = np.concatenate([self.model_.simulate(u[start:stop]).y for start, stop in runs_of(groups, len(u))])
        return y[:, 0] if self.flat_ else y

    def score(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> float:
        """R² of the free run, minus infinity if it diverges; FIT is 100 (1 - sqrt(1 - R²)) for one output."""
        simulated = self.predict(X, groups)
        return float(r2_score(y, simulated, sample_weight=sample_weight)) if np.isfinite(simulated).all() else -np.inf

    def save(self, path: str | Path) -> None:
        """Save without pickle: an NPZ file in which nothing can be run, see `load`."""
        check_is_fitted(self, "model_")
        self.model_.save(path)

    @classmethod
    def load(cls, path: str | Path) -> EchoStateRegressor:
        """Load a saved network as a fitted estimator with the parameters that it was made with.

        Examples
        --------
        >>> import tempfile
        >>> X = np.sin(0.3 * np.arange(100.0))[:, None]
        >>> network = EchoStateRegressor(order=20).fit(X, X[:, 0] ** 2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     network.save(f"{folder}/network.npz")
        ...     again = EchoStateRegressor.load(f"{folder}/network.npz")
        >>> bool((again.predict(X) == network.predict(X)).all()), again.order
        (True, 20)
        """
        return cls.of(EchoStateNetwork.load(path))

    @classmethod
    def of(cls, model: EchoStateNetwork, flat: bool | None = None, **options: Any) -> EchoStateRegressor:
        """Return a fitted estimator around a network, with the parameters by which `fit` would draw the same."""
        origin = model.origin
        try:
            options = {
                **asdict(model.reservoir.hyper),
                **{name: origin["law"][name] for name in ("nonzeros", "pattern")},
                **{"ridge": origin["ridge"], "random_state": origin["seed"], "draw": origin["index"]},
                **{"padding": model.padding, "washout": model.washout},
                **options,
            }
        except (KeyError, TypeError):
            raise InputError("this network does not say how it was drawn: use EchoStateNetwork.load for it") from None
        flat = bool(origin.get("flat", len(model.output_names) == 1)) if flat is None else flat
        return cls(**options)._take(model, flat)

    def _take(self, model: EchoStateNetwork, flat: bool) -> EchoStateRegressor:
        self.model_ = replace(model, origin={**model.origin, "flat": flat})
        self.flat_ = flat
        self.n_features_in_ = len(model.input_names)
        return self

    def __sklearn_tags__(self) -> Any:
        return in_time_order(super().__sklearn_tags__())
