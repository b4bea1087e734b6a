"""Residuals: what the model leaves over, put to tests as in MATLAB's `resid`.

Each test is made at 1 %: where all is well, one in a hundred sets off an alarm. With several channels the level is
shared among them (Bonferroni), so that the rate holds for all of them together, or is less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from echobound.arrays import Vector
from echobound.diagnostics.finding import RATE, Finding, Piece, listed, per_cent, usable
from echobound.diagnostics.whitening import Autoregression, Correlation, aligned, correlation, whitened

LAGS = 20  # samples, at most
SHORTEST = 60  # samples of a piece that is tested
SLIGHT = 0.02  # share: with many samples, an error that depends on the input in any way shows at all lags
TOO_SHORT = "too few held-out samples, or a model that ran off"


@dataclass(frozen=True, eq=False)
class Residuals:
    """Correlations of what a model leaves over with its own past and with the inputs.

    Parameters
    ----------
    own
        Autocorrelation of the error, by output; the error as it is.
    inputs
        Correlation of the inputs with the error, both whitened, by input and output. At positive lags the error follows
        the input: dynamics that the model lacks. At negative lags the input follows the error: feedback.
    findings
        What the tests say.
    """

    own: dict[str, Correlation] = field(default_factory=dict)
    inputs: dict[tuple[str, str], Correlation] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


def residuals_of(
    pieces: Sequence[Piece], inputs: Sequence[str], outputs: Sequence[str], horizon: int | None = None
) -> Residuals:
    """Test what a model leaves over on data that it was not trained on: the free run, or predictions so far ahead.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> u, noise = rng.standard_normal((2, 1000, 1))
    >>> found = residuals_of([Piece(u, u + 0.1 * noise, u)], ["u1"], ["y1"])
    >>> [(one.name, one.alarm) for one in found.findings]
    [('white errors', False), ('missing dynamics', False), ('dead time', False), ('feedback', False)]
    """
    pieces = usable(list(pieces), SHORTEST)
    samples = sum(len(one.y) for one in pieces)
    names = ("white errors", "missing dynamics", "dead time", "feedback")
    if samples < 2 * SHORTEST:
        return Residuals(findings=tuple(Finding(name, False, f"Not tested: {TOO_SHORT}.") for name in names))
    lags = max(3, min(LAGS, samples // 20, min(len(one.y) for one in pieces) // 4))
    moving = [j for j in range(len(outputs)) if max(one.error[:, j].std() for one in pieces) > 0]
    driven = [i for i in range(len(inputs)) if max(one.u[:, i].std() for one in pieces) > 0]
    own, white = _own(pieces, moving, outputs, lags, horizon)
    crossed, findings = _inputs(pieces, driven, moving, inputs, outputs, lags)
    return Residuals(own, crossed, (white, *findings))


def _own(
    pieces: Sequence[Piece], moving: Sequence[int], outputs: Sequence[str], lags: int, horizon: int | None
) -> tuple[dict[str, Correlation], Finding]:
    found, share = {}, {}
    for j in moving:
        errors = [one.error[:, j] for one in pieces]
        mean = np.concatenate(errors).mean()
        centred = [error - mean for error in errors]
        found[outputs[j]] = correlation(centred, centred, 1, lags)
        new = np.concatenate(whitened(errors))
        share[outputs[j]] = float(np.clip(1.0 - new.var(), 0.0, 1.0))
    # Ljung and Box: N (N + 2) / (N - k) instead of N^2 / (N - k).
    least = min((one.p_value for one in found.values()), default=1.0) * max(len(found), 1)
    alarm = least < RATE
    told = max(share.values(), default=0.0)
    ahead = "sample" if horizon == 1 else "samples"
    error = "The simulation error" if horizon is None else f"The error of predictions {horizon} {ahead} ahead"
    words = (
        f"{error} resembles its own past: {per_cent(told)} of it could be told from the samples before."
        if alarm
        else f"{error} is white: nothing of it can be told from the samples before."
    )
    advice = "Disturbances act on the output, or dynamics are missing."
    if horizon is None:
        advice += " A prediction from measured outputs (--horizon) would be more accurate than the free run."
    finding = Finding("white errors", alarm, words, advice * alarm, RATE, {"p": min(1.0, least), "share": told})
    return found, finding


def _inputs(
    pieces: Sequence[Piece],
    driven: Sequence[int],
    moving: Sequence[int],
    inputs: Sequence[str],
    outputs: Sequence[str],
    lags: int,
) -> tuple[dict[tuple[str, str], Correlation], list[Finding]]:
    new_inputs = {i: whitened([one.u[:, i] for one in pieces]) for i in driven}
    new_errors = {j: whitened([one.error[:, j] for one in pieces]) for j in moving}
    found = {
        (inputs[i], outputs[j]): correlation(*aligned(new_inputs[i], new_errors[j]), -lags, lags)
        for i in driven
        for j in moving
    }
    tests = max(len(found), 1)
    after = {pair: one.part(0, lags) for pair, one in found.items()}
    before = {pair: one.part(-lags, -1) for pair, one in found.items()}
    lacking = {pair: one for pair, one in after.items() if one.p_value * tests < RATE}
    fed_back = {pair: one for pair, one in before.items() if one.p_value * tests < RATE}
    missing = _missing(lacking, after, tests)
    return found, [missing, _dead_time(pieces, driven, moving, inputs, outputs, lags, lacking), _fed(fed_back, before)]


def _excess(one: Correlation) -> float:
    """Share of the new part of the error that a filter of the input explains, beyond what chance does."""
    return float(np.clip(np.sum(np.square(one.values)) - len(one.lags) / one.samples, 0.0, 1.0))


def _missing(
    lacking: dict[tuple[str, str], Correlation], after: dict[tuple[str, str], Correlation], tests: int
) -> Finding:
    least = min([1.0, *(tests * one.p_value for one in after.values())])
    if not lacking:
        words = "The error does not follow the inputs: no linear dynamics are missing that these data could show."
        return Finding("missing dynamics", False, words, "", RATE, {"p": least, "share": 0.0})
    pair = max(lacking, key=lambda one: _excess(lacking[one]))
    share = _excess(lacking[pair])
    lag = int(lacking[pair].lags[np.argmax(np.abs(lacking[pair].values))])
    words = (
        f"The error of {pair[1]} follows {pair[0]}, most of all {_samples(lag)} later: a linear filter could still"
        f" explain about {per_cent(share)} of what is new in it."
    )
    advice = "" if share < 0.05 else "Draw more networks, or larger ones, or give more data: the model lacks dynamics."
    return Finding("missing dynamics", True, words, advice, RATE, {"p": least, "share": share})


def _fed(fed_back: dict[tuple[str, str], Correlation], before: dict[tuple[str, str], Correlation]) -> Finding:
    least = min([1.0, *(len(before) * one.p_value for one in before.values())])
    if not fed_back:
        words = "The inputs do not follow the error: no sign of feedback."
        return Finding("feedback", False, words, "", RATE, {"p": least, "share": 0.0})
    pair = max(fed_back, key=lambda one: _excess(fed_back[one]))
    share = _excess(fed_back[pair])
    if share < SLIGHT:
        words = f"{pair[0]} follows the error of {pair[1]} a little ({per_cent(share)}): no clear sign of feedback."
        return Finding("feedback", False, words, "", RATE, {"p": least, "share": share})
    words = f"{pair[0]} follows the error of {pair[1]}: the data look as if they came from a closed loop."
    advice = (
        "If a controller acted on the output, a model of these data mixes plant and controller: excite the loop from"
        " outside (a reference that moves), and judge the model on data with the loop open."
    )
    return Finding("feedback", True, words, advice, RATE, {"p": least, "share": share})


def _dead_time(
    pieces: Sequence[Piece],
    driven: Sequence[int],
    moving: Sequence[int],
    inputs: Sequence[str],
    outputs: Sequence[str],
    lags: int,
    lacking: dict[tuple[str, str], Correlation],
) -> Finding:
    """Where the response to an input begins, in the data and in the model.

    Both are filtered alike, by what whitens the input and then the measured output: monic filters keep the lag at which
    a response begins. A difference is an alarm only if the error follows that input, too.
    """
    found: dict[tuple[str, str], tuple[int | None, int | None]] = {}
    for i in driven:
        u = [one.u[:, i] for one in pieces]
        by_input = Autoregression.of([one / max(float(np.std(np.concatenate(u))), 1e-300) for one in u])
        for j in moving:
            measured, model = ([getattr(one, side)[:, j] for one in pieces] for side in ("y", "simulated"))
            found[inputs[i], outputs[j]] = _delays(u, measured, model, by_input, lags)
    known = {pair: delays for pair, delays in found.items() if delays[0] is not None}
    values = {f"{pair[0]} to {pair[1]}": float(delays[0] or 0) for pair, delays in known.items()}
    wrong = [pair for pair, (data, model) in known.items() if pair in lacking and model is not None and model != data]
    if wrong:
        pair = wrong[0]
        data, simulated = known[pair]
        words = f"{pair[1]} responds to {pair[0]} after {_samples(data)}, the model after {_samples(simulated)}."
        advice = f"Check that inputs and outputs were recorded at the same times; or shift {pair[0]} by the difference."
        return Finding("dead time", True, words, advice, RATE, values)
    if not known:
        return Finding(
            "dead time", False, "No dead time could be estimated: at no lag does an input stand out.", "", RATE
        )
    said = [f"{pair[1]} responds to {pair[0]} after {_samples(data)}" for pair, (data, _) in known.items()]
    alike = all(data == model for data, model in known.values())
    return Finding("dead time", False, f"{listed(said)}{', as in the model' * alike}.", "", RATE, values)


def _delays(
    u: list[Vector], measured: list[Vector], model: list[Vector], by_input: Autoregression, lags: int
) -> tuple[int | None, int | None]:
    new_u = whitened(u, by_input)
    through = [by_input.new(one, constant=False) for one in measured]
    size = max(float(np.std(np.concatenate(through))), 1e-300)
    by_output = Autoregression.of([one / size for one in through])

    def begin(signal: list[Vector]) -> int | None:
        new = [by_output.new(one / size, constant=False) for one in signal]
        mean = np.concatenate(new).mean()
        crossed = correlation(*aligned(new_u, [one - mean for one in new]), 0, lags)
        clear = np.flatnonzero(np.abs(crossed.values) > crossed.bound(RATE / 10 / (lags + 1)))
        return int(clear[0]) if len(clear) else None

    return begin(through), begin([by_input.new(one, constant=False) for one in model])


def _samples(count: int | None) -> str:
    return f"{count} sample{'s' * (count != 1)}"
