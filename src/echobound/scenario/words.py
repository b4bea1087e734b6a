"""Words: numbers rounded to the safe side, and what was scored, as sentences say them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING, TypeAlias

from echobound.scenario.bounds import Probability, as_count
from echobound.scenario.ordering import Direction

if TYPE_CHECKING:
    from echobound.scenario.certificate import Certificate
    from echobound.scenario.statements.base import ScoreStatement

    Scored: TypeAlias = Certificate | ScoreStatement  # what says what was scored


@dataclass(frozen=True)
class Noun:
    """What was drawn, as sentences call it: networks, or committees of so many; see `noun`."""

    one: str
    many: str
    new: str

    def drawn(self, of: str = "", how: str = "drawn and trained in the same way") -> str:
        """As in "a new network drawn and trained in the same way"; `of` says from what.

        Examples
        --------
        >>> noun(1).drawn(), noun(10).drawn("of any family")
        ('a new network drawn and trained in the same way',
         'a new committee of 10 networks of any family, drawn and trained in the same way,')
        """
        who = f"{self.new} {of}".rstrip()
        return f"{who} {how}" if self.one == "network" else f"{who}, {how},"


NETWORKS = Noun("network", "networks", "a new network")


def noun(members: int) -> Noun:
    """What is drawn, by the number of members: 1 for single networks.

    Examples
    --------
    >>> noun(1).many, noun(10).new
    ('networks', 'a new committee of 10 networks')
    """
    if as_count("members", members) == 1:
        return NETWORKS
    return Noun("committee", "committees", f"a new committee of {members} networks")


def upward(value: float | Decimal, digits: int = 6) -> str:
    """A number rounded up to some digits: words must not promise more than the number does.

    Examples
    --------
    >>> upward(0.02467964779), upward(0.05), upward(-1.00000001), downward(-1.00000001)
    ('0.0246797', '0.05', '-1', '-1.00001')
    """
    return _rounded(value, digits, ROUND_CEILING)


def downward(value: float, digits: int = 6) -> str:
    """A number rounded down to some digits."""
    return _rounded(value, digits, ROUND_FLOOR)


def _rounded(value: float | Decimal, digits: int, rounding: str) -> str:
    # Its shortest text, so that 0.05 stays 0.05 and is not rounded up.
    number = value if isinstance(value, Decimal) else Decimal(repr(float(value)))
    if number and number.is_finite():
        number = number.quantize(Decimal(1).scaleb(number.adjusted() - digits + 1), rounding=rounding)
    return f"{float(number):.{digits}g}"


def outward(threshold: float, direction: Direction) -> str:
    """A threshold in six digits, rounded to the side on which what is said about beating it stays true."""
    return (upward if direction == "max" else downward)(threshold)


def confidence(beta: Probability) -> str:
    """Beta as it is written after "1 -", rounded up: words must not promise more confidence than there is.

    Examples
    --------
    >>> confidence(1e-7), confidence(0.05 + 19 * 1.00001e-4), confidence("1e-400")
    ('1e-07', '0.0519001', '1e-400')
    """
    return beta if isinstance(beta, str) else upward(beta)


def data_seed(digest: str) -> int:
    """The seed that follows from a digest of data: its first 48 bits, which JSON holds everywhere.

    Examples
    --------
    >>> data_seed("00000000002a" + 52 * "f")
    42
    """
    return int(digest[:12], 16)


ROBUST = "robust"  # the one score that looks at more than the scored samples: words must say at what


def score_title(score: str) -> str:
    """A score as it is called in a sentence: FIT, robust FIT, peak error, or its own name."""
    return {"fit": "FIT", "rmse": "RMSE", "peak": "peak error", "robust": "robust FIT"}.get(score, score)


def ahead_words(horizon: int) -> str:
    """As in "predicted 3 samples ahead": how outputs came about that were not simulated.

    Examples
    --------
    >>> ahead_words(1), ahead_words(3)
    ('predicted 1 sample ahead', 'predicted 3 samples ahead')
    """
    return f"predicted {horizon} sample{'s' * (horizon != 1)} ahead"


def predictions_only(horizon: int) -> str:
    """What a certificate of predictions does not state."""
    again = "each sample" if horizon == 1 else f"{horizon} samples each"
    return (
        f"Outputs were {ahead_words(horizon)}, {again} from measured outputs. Nothing is said about free runs, in which"
        " the model's own outputs are fed back: they may err far more, and may diverge."
    )


def scored_words(draft: Scored) -> str:
    """As in "FIT", "mean FIT, predicted 3 samples ahead": the score as a noun, for sentences that go on elsewhere."""
    mean = "mean " if draft.blocks is not None and draft.score != ROBUST else ""
    ahead = "" if draft.horizon is None else f", {ahead_words(draft.horizon)}"
    return f"{mean}{score_title(draft.score)}{ahead}"


def judged_words(draft: Scored) -> str:
    """As in "the FIT on these validation data": by what draws were compared."""
    comma = "," if draft.horizon is not None else ""
    return f"the {scored_words(draft)}{comma} {data_words(draft).rstrip(',')}"


def score_words(draft: Scored) -> str:
    """As in "a FIT", "a mean FIT": what was scored."""
    name = score_title(draft.score)
    ahead = "" if draft.horizon is None else f", {ahead_words(draft.horizon)},"
    if draft.blocks is not None and draft.score != ROBUST:
        return f"a mean {name}{ahead}"
    return f"a{'n' if name == 'RMSE' else ''} {name}{ahead}"


def threshold_words(draft: Scored, threshold: float | None, *, best: bool) -> str:
    """As in "above 90.6539 %": the threshold is rounded outwards, so that the words hold where the number does."""
    above = (draft.direction == "max") == best
    value = (upward if above else downward)(math.nan if threshold is None else threshold)
    return f"{'above' if above else 'below'} {value}{' ' + draft.unit if draft.unit else ''}"


def outcome_words(draft: Scored, threshold: float | None, *, best: bool = True) -> str:
    """As in "scores a FIT above 90.6539 %"; where the threshold is a diverged network, "gives a finite score"."""
    if threshold is None:
        return "gives a finite score"
    verb = "has" if score_title(draft.score).lower() == "score" else "scores"  # nobody "scores a score"
    return f"{verb} {score_words(draft)} {threshold_words(draft, threshold, best=best)}"


def data_words(draft: Scored, these: str = "these") -> str:
    """As in "on these validation data"; `these` may be "the new"."""
    robust = draft.score == ROBUST
    if draft.blocks is None:
        return f"on {these} validation data" + " and over the training data" * robust
    blocks = f"over {draft.blocks} blocks of {these} training data, each scored after training on the others,"
    return blocks + " and over all of them after training on all," * robust
