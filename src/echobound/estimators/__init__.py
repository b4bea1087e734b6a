"""The scikit-learn way: one network as a regressor, and certified searches as meta-estimators.

Rows of ``X`` are samples in time order, not independent ones: a free run is simulated through them. Several
experiments are given as `groups`, one label for each row; each experiment is a run of equal labels.
"""

from echobound.errors import MissingExtra

try:
    import sklearn  # noqa: F401 (to name the remedy before a module below fails)
except ImportError:
    raise MissingExtra("echobound.estimators", extra="sklearn") from None

from echobound.estimators.certified import CertifiedSearch
from echobound.estimators.network_search import EchoStateSearch
from echobound.estimators.random_states import draw_estimator
from echobound.estimators.regressor import EchoStateCommittee, EchoStateRegressor

__all__ = ["CertifiedSearch", "EchoStateCommittee", "EchoStateRegressor", "EchoStateSearch", "draw_estimator"]
