"""Data that many tests share: small, but of the real plant."""

import os
import signal

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from echobound.data import Record
from echobound.plants import ph_experiment

# Nothing depends on how fast the machine is, whatever version of hypothesis is there; in CI, examples stay the same.
settings.register_profile(
    "echobound", deadline=None, derandomize="CI" in os.environ, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("echobound")

# Looking for doctests would import it, and it changes the law broad: it is for commands in processes of their own.
collect_ignore = ["unclipped"]

# Whoever starts the tests in the background may have set SIGINT to be ignored, which processes inherit; tests of
# interruptions need it as on a terminal.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def ph_records():
    """Training and validation record of the pH plant, short."""
    return ph_experiment(samples=(700, 500))


@pytest.fixture(scope="session")
def mimo_records():
    """Two inputs, two outputs, two experiments: a nonlinear filter of noise-like signals."""

    def one(length, phase):
        k = np.arange(length)
        u = np.stack([np.sin(0.05 * k + phase) + 0.3 * np.sin(0.31 * k), np.cos(0.083 * k + 2 * phase)], axis=1)
        y = np.zeros((length, 2))
        for t in range(1, length):
            y[t, 0] = 0.8 * y[t - 1, 0] + 0.2 * np.tanh(u[t - 1, 0]) + 0.05 * y[t - 1, 1]
            y[t, 1] = 0.6 * y[t - 1, 1] + 0.3 * u[t - 1, 1] ** 2 - 0.1 * y[t - 1, 0]
        return Record(u=u, y=y, sampling_time=0.5, name=f"phase {phase}")

    return [one(300, 0.0), one(260, 1.0)], [one(240, 2.0), one(200, 3.0)]
