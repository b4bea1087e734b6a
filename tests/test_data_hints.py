"""Hints against simulated plants whose dead time, feedback and integration are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from echobound.data import Record
from echobound.data.hints import delays, feedback, integration

CASES, SAMPLES = 30, 500


def inputs(kind: str, rng: np.random.Generator) -> np.ndarray:
    if kind == "white":
        return rng.normal(size=SAMPLES)
    if kind == "held":
        return np.repeat(rng.choice([-1.0, 1.0], SAMPLES // 10), 10)
    return lfilter([1.0], [1.0, -0.9], rng.normal(size=SAMPLES))


def open_loop(u: np.ndarray, rng: np.random.Generator, pole: float, delay: int) -> np.ndarray:
    driven = np.concatenate([np.zeros(delay), u[:-delay]]) + 0.1 * rng.normal(size=SAMPLES)
    y = lfilter([1.0], [1.0, -pole], driven)
    return y + 0.02 * y.std() * rng.normal(size=SAMPLES)


@pytest.mark.parametrize("kind", ["white", "held", "coloured"])
def test_rates_in_open_loop(kind: str) -> None:
    wrong = false_feedback = false_integration = missed = 0
    for seed in range(CASES):
        rng = np.random.default_rng(seed)
        u, delay = inputs(kind, rng), int(rng.integers(1, 9))
        record = Record(u, open_loop(u, rng, rng.uniform(0.5, 0.95), delay))
        wrong += delays(record)[0].samples != delay
        false_feedback += feedback(record)[0].suspected
        false_integration += integration(record)[0].suspected
        missed += not integration(Record(u, open_loop(u, rng, 1.0, delay)))[0].suspected
    assert wrong <= 2
    assert false_feedback <= 1
    assert false_integration <= 2
    assert missed <= 2


def test_feedback_is_found() -> None:
    found = 0
    for seed in range(CASES):
        noise = np.random.default_rng(seed).normal(size=(2, SAMPLES))
        u, y = np.zeros(SAMPLES), np.zeros(SAMPLES)
        for k in range(1, SAMPLES):
            y[k] = 0.9 * y[k - 1] + 0.5 * u[k - 1] + noise[0, k]
            u[k] = -0.5 * y[k] + noise[1, k]
        found += feedback(Record(u, y))[0].suspected
    assert found >= 0.9 * CASES


def test_several_inputs_records_and_no_answer() -> None:
    rng = np.random.default_rng(3)
    u = rng.normal(size=(900, 3))
    y = lfilter([1.0], [1.0, -0.7], np.roll(u[:, 0], 2) - 0.5 * np.roll(u[:, 1], 5)) + 0.05 * rng.normal(size=900)
    parts = [Record(u[10:400], y[10:400]), Record(u[400:], y[400:]), Record(u[:20], y[:20])]
    assert [one.samples for one in delays(parts)] == [2, 5, None]
    assert "no linear answer to u3" in delays(parts)[2].words
    assert delays(parts[2]) == feedback(parts[2]) == integration(parts[2]) == (), "too short to say anything"


def test_words_name_what_is_suspected() -> None:
    u = np.random.default_rng(0).normal(size=300)
    assert "looks integrated" in integration(Record(u, np.cumsum(u)))[0].words
    assert integration(Record(u, np.roll(u, 1)))[0].words == "y1 settles"
    assert "does not seem to depend" in feedback(Record(u, np.cumsum(u)))[0].words
