"""Small models for the tests of controllers, identified once for each process."""

from functools import cache

import numpy as np

from echobound import Record, identify, ph_experiment


@cache
def ph_run():
    """Twenty networks of 20 states on the pH plant, with a committee of five."""
    return identify(*ph_experiment(samples=(1500, 600)), law="paper", order=20, networks=20, committee=5)


def ph_network():
    return ph_run().network


def two_by_two(state, u, disturbance):
    """A coupled plant of two outputs, with two inputs and a third one that disturbs both; nearly linear."""
    bent = np.tanh(u[:2])
    push = np.array([0.3 * bent[0] + 0.1 * bent[1] + 0.05 * u[2], 0.05 * bent[0] + 0.2 * bent[1] - 0.1 * u[2]])
    after = 0.8 * state + push
    return after, after


@cache
def mimo_network():
    """A network of the coupled plant: inputs a and b, and w, which is known and cannot be moved."""
    generator = np.random.default_rng(0)
    records = []
    for samples in (1500, 600):
        u = np.repeat(generator.uniform(-1, 1, (samples // 10, 3)), 10, axis=0)
        state, y = np.zeros(2), np.zeros((samples, 2))
        for k in range(samples - 1):
            state, y[k + 1] = two_by_two(state, u[k], None)
        names = {"input_names": ("a", "b", "w"), "output_names": ("p", "q"), "sampling_time": 1.0}
        records.append(Record(u=u, y=y + 0.002 * generator.standard_normal(y.shape), **names))
    return identify(*records, law="paper", order=30, networks=10, committee=0).network


@cache
def mixed_members():
    """A network that clips, with delays and leaks, and a cascade: what the default law draws."""
    training, validation = ph_experiment(samples=(1000, 500))
    broad = identify(training, validation, law="broad", order=30, networks=4, committee=0).network
    cascade = identify(training, validation, law="cascade", networks=2, committee=0).network
    return broad, cascade
