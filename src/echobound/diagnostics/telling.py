"""Telling: what of a second certificate is worth saying. With few test records, little follows, and that is said."""

from __future__ import annotations

from echobound.scenario import ErrorLimit, Generalisation
from echobound.scenario.bounds import networks_exact
from echobound.scenario.generalisation import USEFUL, called
from echobound.scenario.statements.conformal_band import ConformalBand
from echobound.scenario.statements.episodes import EpisodeStatement

VACUOUS = 0.5  # a promise that fails as often as it holds is none


def vacuous(statement: EpisodeStatement) -> bool:
    """Whether a statement promises nothing: what it excludes may happen every other time."""
    if isinstance(statement, ConformalBand):
        return statement.beta >= VACUOUS or any(width is None for width in statement.widths)
    # A failure rate and a band for sure were asked for, and say what was seen; an error limit was not.
    return isinstance(statement, ErrorLimit) and statement.epsilon >= VACUOUS


def told(second: Generalisation) -> tuple[tuple[str, str], ...]:
    """The second certificate in plain words, without what is vacuous; instead, what more test records would buy.

    Examples
    --------
    >>> from echobound.scenario import EpisodeErrors, Optimism, Questions
    >>> seen = EpisodeErrors(rmse=(0.1,), peaks=((0.2,),))
    >>> one = Generalisation(settled=Questions(), outputs=("pH",), scales=(1.0,), digests={}, seen={"model": seen},
    ...                      optimism=Optimism.of(90.0, 88.0, score="fit", unit="%"))
    >>> [about for about, _ in told(one)]
    ['on test data', 'more test records']
    """
    empty = {
        (called(name, second.members), one.claim)
        for name, statements in second.statements.items()
        for one in statements
        if vacuous(one)
    }
    if not empty:
        return second.words
    left = [one for one in second.words if one not in empty and one[0] != "more episodes"]
    stated = sum(len(statements) for statements in second.statements.values()) - len(empty)
    if not stated:
        # Blocks rest on an assumption that whoever reads on should know, even if little follows from it.
        dropped = ("together",) if second.settled.mixing else ("together", "assumption")
        left = [one for one in left if one[0] not in dropped]
    enough = networks_exact(USEFUL, second.settled.beta, discarded=second.settled.discarded)
    half = networks_exact(VACUOUS, second.settled.beta, discarded=second.settled.discarded)
    what = "block" if second.settled.blocks else "record"
    tested = f"{second.episodes} test {what}{'s' * (second.episodes != 1)}"
    more = (
        f"{tested.capitalize()} show{'s' * (second.episodes == 1)} how well the model did there, and"
        f" {'nothing' if not stated else 'little'} about the next one. {half} independent ones would limit the"
        f" probability of a larger error than any seen to {VACUOUS:g}, {enough} to {USEFUL:g}."
    )
    return (*left, ("more test records", more))
