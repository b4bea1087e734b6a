"""The verdict: what a model is worth, in a word, with its reasons and what to do next.

The rule, written before it was applied to any test row of `benchmarks/ACCURACY.md`, and developed on training rows:

1. **The FIT decides.** It is that of the delivered model: on test data where there are any, otherwise on held-out data
   (the mean over the blocks). 75 % or more is *good*, 50 % *usable*, 15 % *poor*, and less is *unusable*. A model that
   ran off is unusable, and so is a run without one.
2. **A good one becomes usable** for each of these: a linear model is better by more than 5 points, beyond doubt; an
   output sits at a limit of the model for too long; the FIT of an output, of a block or of a test record is below 50 %;
   a test input leaves its training range in more than 5 % of the samples; on held-out data it would have been poor or
   unusable; in predictions, holding the last measured value does better.
3. **Without test data, good or usable becomes poor** if the model does worse on a block than the mean of that block
   (FIT below 0), since nothing says that new data will be kinder.

Everything else that diagnostics find (missing dynamics, feedback, drift, errors that add up) gives reasons and advice,
and does not move the word: they say why a FIT is low, and the FIT has counted already.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from echobound.diagnostics.finding import Finding, listed

Grade = Literal["good", "usable", "poor", "unusable"]
GRADES: tuple[Grade, ...] = get_args(Grade)
WORDS = {"good": "good", "usable": "usable", "poor": "poor", "unusable": "do not use"}
SYMBOLS = {"good": "✔", "usable": "●", "poor": "▲", "unusable": "✖"}
GOOD, USABLE, POOR = 75.0, 50.0, 15.0  # per cent of FIT
CLEARLY = 5.0  # points of FIT by which a linear model must be better to count
OFTEN = 0.05  # share of samples beyond the training range


@dataclass(frozen=True)
class Evidence:
    """The numbers that a verdict rests on; what is not known is None or empty.

    Parameters
    ----------
    model
        Whether there is one.
    fit, test
        FIT of the delivered model on held-out and on test data; None where it ran off.
    tested
        How many test records there are.
    blocks, outputs, records
        FIT of each block, of each output (on test data where there are any) and of each test record.
    linear, linear_test
        FIT of the linear model.
    lead
        By how many points the delivered model is better than the linear one, and the interval: (value, low, high).
    held, beyond
        Sentences: outputs that sit at a limit; test inputs that leave their range in more than 5 % of the samples.
    naive
        Of predictions: FIT of holding the last measured value.
    single_step
        FIT of a linear prediction one sample ahead, which tells errors that add up from those that do not.
    findings
        What the diagnostics found.
    """

    fit: float | None = None
    model: bool = True
    test: float | None = None
    tested: int = 0
    blocks: tuple[float | None, ...] = ()
    outputs: Mapping[str, float | None] = field(default_factory=dict)
    records: tuple[float | None, ...] = ()
    linear: float | None = None
    linear_test: float | None = None
    lead: tuple[float, float | None, float | None] | None = None
    held: tuple[str, ...] = ()
    beyond: tuple[str, ...] = ()
    naive: float | None = None
    single_step: float | None = None
    horizon: int | None = None
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """What a model is worth.

    Parameters
    ----------
    grade
        ``"good"``, ``"usable"``, ``"poor"`` or ``"unusable"``.
    reasons
        Why, a sentence each.
    next
        What to do, a sentence each.

    Examples
    --------
    >>> verdict = verdict_of(Evidence(fit=89.0, linear=71.0, lead=(18.0, 15.0, 21.0)))
    >>> verdict.grade, verdict.reasons[0]
    ('good', 'The FIT on held-out data is 89.0 %.')
    """

    grade: Grade
    reasons: tuple[str, ...]
    next: tuple[str, ...]

    @property
    def words(self) -> str:
        """The grade as a person reads it."""
        return WORDS[self.grade]

    @property
    def lines(self) -> tuple[str, ...]:
        """The verdict as text: the word, its reasons, and what to do."""
        return (
            f"Verdict: {self.words}",
            *(f"  because: {one}" for one in self.reasons),
            *(f"  next: {one}" for one in self.next),
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {"grade": self.grade, "reasons": list(self.reasons), "next": list(self.next)}


NO_MODEL = Verdict(
    "unusable",
    ("All networks diverged: there is no model.",),
    ("Check units and scaling of the data; give more data; or take the default law, whose networks cannot run off.",),
)


def level(fit: float) -> Grade:
    """What a FIT alone is worth.

    Examples
    --------
    >>> [level(fit) for fit in (97.0, 60.0, 20.0, 8.8, float("-inf"))]
    ['good', 'usable', 'poor', 'unusable', 'unusable']
    """
    return "good" if fit >= GOOD else "usable" if fit >= USABLE else "poor" if fit >= POOR else "unusable"


def verdict_of(seen: Evidence) -> Verdict:
    """The verdict by the rule above."""
    if not seen.model:
        return NO_MODEL
    tested = seen.tested > 0
    fit = number(seen.test if tested else seen.fit)
    grade, data = level(fit), "test data" if tested else "held-out data"
    reasons = [f"The FIT on {data} is {per_cent(fit, 1)}." if math.isfinite(fit) else f"The model ran off on {data}."]
    lower = _to_usable(seen, tested)
    if grade == "good" and lower:
        grade = "usable"
    reasons += lower
    failed = [i for i, one in enumerate(seen.blocks, start=1) if number(one) < 0]
    if not tested and failed:
        which = f"block{'s' * (len(failed) > 1)} {listed([str(one) for one in failed])} of {len(seen.blocks)}"
        reasons.append(f"In {which} the model does worse than the mean of the block.")
        if grade in ("good", "usable"):
            grade = "poor"
    return Verdict(grade, (*reasons, *_explained(seen, grade)), tuple(_advice(seen, grade, tested)))


def _to_usable(seen: Evidence, tested: bool) -> list[str]:
    """Why a good FIT is not enough."""
    said = []
    if seen.lead is not None:
        value, _, high = seen.lead
        if value < -CLEARLY and high is not None and high < 0:
            said.append(f"A linear model is better by {-value:.1f} points of FIT.")
    said += [f"{one}." for one in seen.held]
    low = [f"{name} ({number(one):.0f} %)" for name, one in seen.outputs.items() if number(one) < USABLE]
    if low and len(seen.outputs) > 1:
        said.append(f"The FIT is below 50 % for {listed(low)}.")
    parts = [number(one) for one in (seen.records if tested else seen.blocks)]
    if len(parts) > 1 and min(parts) < USABLE and (tested or min(parts) >= 0):
        said.append(f"The FIT is only {min(parts):.0f} % in the worst {'test record' if tested else 'block'}.")
    said += [f"Test data: {one}." for one in seen.beyond]
    if tested and level(number(seen.fit)) in ("poor", "unusable"):
        said.append(f"On held-out data the FIT is only {number(seen.fit):.1f} %.")
    if seen.naive is not None and seen.naive > number(seen.fit):
        said.append(f"Holding the last measured value does better (FIT {seen.naive:.1f} %).")
    return said


def _explained(seen: Evidence, grade: Grade) -> list[str]:
    """What may be behind a low FIT."""
    if grade == "good":
        return []
    said = [one.words for one in seen.findings if one.alarm and one.advice and one.name in EXPLAINING]
    if accumulates(seen):
        said.append(
            f"Errors add up: a linear prediction one sample ahead has a FIT of {seen.single_step:.0f} %, the free run"
            f" {number(seen.fit):.0f} %. It looks like an integrating plant, or one that disturbances drive."
        )
    return said


EXPLAINING = ("missing dynamics", "dead time", "feedback", "drift", "input range", "excitation", "saturation")


def accumulates(seen: Evidence) -> bool:
    """Whether a free run loses what a prediction one sample ahead knows: an integrator, or disturbances."""
    return (
        seen.horizon is None and seen.single_step is not None and seen.single_step >= 90.0 and number(seen.fit) < USABLE
    )


def _advice(seen: Evidence, grade: Grade, tested: bool) -> list[str]:
    said = []
    if seen.linear is not None and seen.lead is not None:
        value, low, high = seen.lead
        if value < -1.0:
            sure = high is not None and high < 0
            said.append(f"{'Use' if sure else 'Try'} a linear model: it is better by {-value:.1f} points here.")
        elif value <= 1.0:
            data = "test" if tested else "held-out"
            said.append(f"A linear model does about as well: nothing in the {data} data asks for a nonlinear one.")
        elif low is not None and low <= 0.0:
            said.append("Whether it is better than a linear model is not certain: more data would tell.")
    if grade != "good":
        said += [one.advice for one in seen.findings if one.alarm and one.advice and one.name in EXPLAINING]
    if accumulates(seen) and grade != "good":
        said.append(
            "Model the increments of the output, or predict a few samples ahead (--horizon) instead of a free run."
        )
    if seen.beyond:
        said.append("Give training data over the range that the model will see.")
    if grade in ("poor", "unusable") and not said:
        said.append("Look at the picture: is an input missing, is the delay long, are units or columns mixed up?")
    if not tested:
        said.append("Test it on data that nothing was chosen by: --test FILE, or echobound generalise RUN FILE.")
    elif grade == "good":
        said.append("It can be used for data like these; beyond the ranges of the training data nothing is known.")
    elif not said:
        said.append("Use it where errors of this size do no harm: the picture shows where they are.")
    return list(dict.fromkeys(said))


def per_cent(fit: float, digits: int = 0) -> str:
    """A FIT for a sentence, rounded down: it must not look better than it is.

    Examples
    --------
    >>> per_cent(89.99), per_cent(-3.2), per_cent(99.96, 1)
    ('89 %', '-4 %', '99.9 %')
    """
    scale = 10**digits
    return f"{math.floor(fit * scale + 1e-9) / scale:.{digits}f} %"


def number(fit: float | None) -> float:
    """A FIT to compare with: minus infinity where the model ran off."""
    return -math.inf if fit is None else fit
