"""Guessing: which column is the time, which ones are inputs and which outputs; by names, then by signals."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

import numpy as np

from echobound.arrays import Matrix, Vector
from echobound.data.hints import lagged
from echobound.data.table import Table
from echobound.data.units import SECONDS

TIME = re.compile(
    r"(t|time|zeit|temps|tempo|tiempo|date|datum|datetime|timestamp|time ?stamp|clock|uhrzeit|seconds?|sec)"
    r"([ _.-].*)?|(time|zeit|date).*",
    re.IGNORECASE,
)
COUNTER = re.compile(r"(|index|idx|no\.?|nr\.?|#|k|n|step|sample|row|id|unnamed: 0)", re.IGNORECASE)
INPUT = re.compile(
    r"u(\d.*|[_\[( .-].*|[A-Z].*)?|in(puts?)?([_\d\[( .-].*)?|(.*[_ .])?inputs?\d*|x(\d.*)?", re.IGNORECASE
)
OUTPUT = re.compile(r"y(\d.*|[_\[( .-].*|[A-Z].*)?|out(puts?)?([_\d\[( .-].*)?|(.*[_ .])?outputs?\d*", re.IGNORECASE)
LIKELY_INPUT = re.compile(
    r".*(valve|pump|volt|heater|command|cmd|set ?point|torque|force|control|actuator|reference|throttle|fuel|power|duty"
    r"|flow.?in|inflow|stellgr|ventil)",
    re.IGNORECASE,
)
LIKELY_OUTPUT = re.compile(
    r".*(level|temp|position|speed|velocity|pressure|response|sensor|\bph\b|accel|concentration|angle|displacement|oxygen"
    r"|füllstand|drehzahl|druck)",
    re.IGNORECASE,
)
LAGS = 8
SAMPLES = 3000  # of each signal that are compared
CLEAR = 0.01  # logarithm of a prediction error that must be gained
MANY = 16  # signals beyond which names and holds alone decide, since pairs of them are compared


def quoted(text: str) -> str:
    """A word as it is typed in a shell.

    Examples
    --------
    >>> quoted("level"), quoted("flow rate")
    ('level', "'flow rate'")
    """
    return shlex.quote(text)


def time_column(table: Table) -> str | None:
    """The column that holds sample times by its name, or by a unit of time; None if none does.

    Examples
    --------
    >>> from echobound.data.frames import table_of_array
    >>> time_column(table_of_array(np.zeros((3, 2))))
    """
    if not table.header:
        return None
    for name, unit in table.labels:
        if TIME.fullmatch(name) and (not unit or unit in SECONDS):
            return name
    return None


def is_counter(name: str, values: Vector, header: bool) -> bool:
    """Whether a column counts samples: 0, 1, 2, ... or 1, 2, 3, ..., without a name that says otherwise."""
    counts = len(values) > 2 and values[0] in (0.0, 1.0) and bool((np.diff(values) == 1).all())
    return counts and (not header or COUNTER.fullmatch(name) is not None)


def guess_roles(signals: Mapping[str, Vector], header: bool = True) -> tuple[list[str], list[str], str]:
    """Guess inputs and outputs among signals without missing values, and say by what.

    Names such as u, y, input and output decide. Otherwise signals that are held most of the time are inputs; of the
    others, those that the past of the rest helps to predict, more than they help in turn, are outputs.

    Examples
    --------
    >>> u = np.repeat(np.random.default_rng(0).normal(size=40), 10)
    >>> signals = {"a": np.convolve(u, 0.8 ** np.arange(30))[:400], "b": u}
    >>> guess_roles(signals)[:2], guess_roles({"y": u, "u": u})[:2]
    ((['b'], ['a']), (['u'], ['y']))
    """
    names = list(signals)
    if len(names) < 2:
        return [], names, "there is one signal"
    strong = {n: -1 if INPUT.fullmatch(n) else 1 for n in names if INPUT.fullmatch(n) or OUTPUT.fullmatch(n)}
    decided = {n: float(s) for n, s in strong.items()} if header else {}
    moved = {n: float(np.mean(np.diff(v[:SAMPLES]) != 0)) for n, v in signals.items()}
    held = {n for n in names if moved[n] < 0.5}
    likely = {n: -1.0 for n in names if header and LIKELY_INPUT.match(n)}
    likely |= {n: 1.0 for n in names if header and n not in likely and LIKELY_OUTPUT.match(n)}
    caused = _caused(signals) if len(names) <= MANY and len(decided) < len(names) else dict.fromkeys(names, 0.0)
    by_signal = {n: -10.0 if n in held and len(held) < len(names) else caused[n] for n in names}
    score = {n: by_signal[n] + 3 * likely.get(n, 0.0) + 100 * decided.get(n, 0.0) for n in names}
    outputs = [n for n in names if score[n] > CLEAR]
    if not outputs:
        outputs = [max(names, key=score.__getitem__)]
    elif len(outputs) == len(names):
        outputs.remove(min(names, key=score.__getitem__))
    if len(decided) == len(names) and {-1.0, 1.0} <= set(decided.values()):
        how = "by their names"
    else:
        by_name = "their names and by " if likely or decided else ""
        how = f"guessed by {by_name}what predicts what: check them"
    return [n for n in names if n not in outputs], outputs, how


def _caused(signals: Mapping[str, Vector]) -> dict[str, float]:
    """By how much more each signal is predicted by the past of others than it predicts them, in logarithms."""
    cut = {n: (v[:SAMPLES] - v[:SAMPLES].mean()) / (v[:SAMPLES].std() or 1.0) for n, v in signals.items()}
    past = {n: lagged(v[:, None], LAGS, LAGS) for n, v in cut.items()}
    net = dict.fromkeys(signals, 0.0)
    for one, target in cut.items():
        alone = _left(past[one], target[LAGS:])
        for other in signals:
            if other != one:
                gain = np.log(alone / _left(np.hstack([past[one], past[other]]), target[LAGS:]))
                net[one] += float(gain)
                net[other] -= float(gain)
    return net


def _left(table: Matrix, target: Vector) -> float:
    """Mean square that a regression leaves of unit variance; never less than 1e-6, so that no gain is infinite."""
    theta = np.linalg.lstsq(table, target, rcond=1e-8)[0]
    return float(np.mean((target - table @ theta) ** 2)) + 1e-6
