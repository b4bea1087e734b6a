"""One echo state network as a regressor, and several of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, validate_data

from echobound.data import Record, split
from echobound.errors import InputError
from echobound.estimators.experiments import FreeRunRegressor, records_of, runs_of, seed_of, washout_of
from echobound.estimators.parameters import REQUIRED, with_parameters
from echobound.kernels import get_kernel, hold_out
from echobound.kernels.training import train_network
from echobound.network import Committee, EchoStateNetwork, LeastSquares, PlantModel, ReservoirLaw
from echobound.network.committee import median_of
from echobound.scores import get_score

# The law's own fields, with defaults that suit one network rather than the paper's model: units from fast to slow, and
# fifty past inputs beside the states, so that what a linear regression on lagged inputs can do is among what it can do.
LAW = {one.name: one.default for one in fields(ReservoirLaw) if one.name not in ("training", "name")} | {
    **{"order": 100, "norm": 0.9, "feedback_scale": 0.0, "bias_scale": 0.5, "leak": 0.3, "leak_spread": 0.7},
    **{"input_delays": 50, "present_input": True, "constant": True, "padding": 100},
}
RIDGES = tuple(10.0**exponent for exponent in range(-7, 0))
"""Ridges to choose from, if none is given."""
SHORT = 40
"""Samples of the last experiment below which none is chosen, and the middle one is taken."""


@with_parameters({**LAW, "ridge": None, "washout": None, "random_state": 0, "draw": 0, "kernel": "cpu"})
class EchoStateRegressor(FreeRunRegressor):
    """One echo state network, drawn and trained; `predict` is a free run that starts at the mean training output.

    Parameters
    ----------
    order, norm, input_scale, feedback_scale, bias_scale, leak, leak_spread
        The reservoir, as in `ReservoirLaw`, but each a constant.
    input_delays, present_input, output_delays, constant, training_noise, scaling, nonzeros, pattern, padding
        The readout, scaling and sparsity, likewise.
    ridge
        Relative ridge of the least squares. None chooses: the one of seven with which the first three quarters of the
        last experiment predict its last quarter best, in free run.
    washout
        Samples at the start of each experiment that are not trained on; by default a fifth of the shortest experiment,
        at most 100.
    random_state, draw
        Seed and index, which identify the network.
    kernel
        How to compute: ``"cpu"`` or ``"reference"``.

    Attributes
    ----------
    model_
        The `EchoStateNetwork`, which can also start from measured outputs and predict k steps ahead.

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

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> EchoStateRegressor:
        """Draw the network and train its readout on ``X`` (inputs) and ``y`` (outputs), in time order."""
        records, flat = records_of(self, X, y, groups)
        settings = {name: getattr(self, name) for name in LAW}
        washout, seed = washout_of(self.washout, records), seed_of(self.random_state)

        def trained(ridge: float, on: Sequence[Record], skipped: int) -> EchoStateNetwork:
            law = ReservoirLaw(**settings, training=LeastSquares((ridge,)), name="regressor")
            problem = hold_out(on, on, law=law, scores=[get_score("rmse")], washout=skipped, seed=seed)
            # Its law draws reservoirs alone.
            return cast(EchoStateNetwork, train_network(get_kernel(self.kernel), problem, self.draw)[0])

        ridge = self.ridge
        if ridge is None:
            ridge = RIDGES[len(RIDGES) // 2]
            start, end = split(records[-1], validation=0.25) if len(records[-1]) >= SHORT else (records[-1], None)
            if end is not None and (np.ptp(start.y, axis=0) > 0).all():
                # Scored as `predict` runs, from the mean on: what is badly conditioned fails in its first samples.
                skipped = min(washout, len(start) // 5)
                errors = {
                    each: np.linalg.norm(trained(each, [*records[:-1], start], skipped).simulate(end.u).y - end.y)
                    for each in RIDGES
                }
                ridge = min(errors, key=lambda each: (not np.isfinite(errors[each]), errors[each]))
        return self._take(trained(ridge, records, washout), flat)

    def predict(self, X: ArrayLike, groups: ArrayLike | None = None) -> NDArray[np.float64]:
        """Free run over the inputs; each experiment starts again at the mean training output."""
        check_is_fitted(self, "model_")
        u = np.asarray(validate_data(self, X, dtype=np.float64, reset=False))
        y = np.concatenate([self.model_.simulate(u[start:stop]).y for start, stop in runs_of(groups, len(u))])
        return y[:, 0] if self.flat_ else y

    def save(self, path: str | Path) -> None:
        """Save as NPZ, without pickle: loading the file cannot run code."""
        check_is_fitted(self, "model_")
        self.model_.save(path)

    @classmethod
    def load(cls, path: str | Path) -> EchoStateRegressor:
        """Load a saved network as a fitted estimator with its original parameters.

        Examples
        --------
        >>> import tempfile
        >>> X = np.sin(0.3 * np.arange(100.0))[:, None]
        >>> network = EchoStateRegressor(order=20).fit(X, X[:, 0] ** 2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     network.save(f"{folder}/network.npz")
        ...     loaded = EchoStateRegressor.load(f"{folder}/network.npz")
        >>> bool((loaded.predict(X) == network.predict(X)).all()), loaded.order
        (True, 20)
        """
        return cls.of(EchoStateNetwork.load(path))

    @classmethod
    def of(cls, model: PlantModel, flat: bool | None = None, **options: Any) -> EchoStateRegressor:
        """Wrap a network as a fitted estimator, with the parameters that make `fit` draw the same network."""
        if not isinstance(model, EchoStateNetwork):
            raise InputError(f"a network was expected, got a {type(model).__name__}: use it as it is, by its simulate")
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


@with_parameters({"members": REQUIRED})
class EchoStateCommittee(FreeRunRegressor):
    """Several networks as one regressor: its prediction is the pointwise median of theirs.

    Parameters
    ----------
    members
        Networks, each an `EchoStateRegressor`.

    Attributes
    ----------
    members_
        The networks, fitted.

    Examples
    --------
    >>> u = np.sin(0.1 * np.arange(400.0)) + np.sin(0.37 * np.arange(400.0))
    >>> y = np.convolve(u, [0.0, 0.5, 0.3])[:400]
    >>> committee = EchoStateCommittee([EchoStateRegressor(order=20, draw=i) for i in range(3)])
    >>> committee.fit(u[:300, None], y[:300]).predict(u[300:, None]).shape
    (100,)
    """

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> EchoStateCommittee:
        """Draw and train each network."""
        validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True, ensure_min_samples=2)
        self.members_ = [clone(member).fit(np.asarray(X), y, groups) for member in self.members]
        return self

    def predict(self, X: ArrayLike, groups: ArrayLike | None = None) -> NDArray[np.float64]:
        """Median of the free runs of all networks."""
        check_is_fitted(self, "members_")
        u = np.asarray(validate_data(self, X, dtype=np.float64, reset=False))
        return median_of([member.predict(u, groups) for member in self.members_])

    @classmethod
    def of(cls, model: Committee, flat: bool | None = None, **options: Any) -> EchoStateCommittee:
        """Wrap a committee as a fitted estimator; each member as `EchoStateRegressor.of` does."""
        members = [EchoStateRegressor.of(member, flat, **options) for member in model.members]
        made = cls([clone(member) for member in members])
        made.members_, made.n_features_in_ = members, members[0].n_features_in_
        return made
