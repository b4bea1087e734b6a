"""Wording: the sentences of a certificate, and the one number that stands in them alone."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from echobound.scenario.bounds import as_probability, epsilon_exact
from echobound.scenario.words import (
    ROBUST,
    ahead_words,
    confidence,
    data_seed,
    data_words,
    noun,
    outcome_words,
    predictions_only,
    upward,
)

if TYPE_CHECKING:
    from echobound.scenario.certificate import Certificate, WorstCase

FEW = 5  # families that are named in a sentence
NOT_STATED = (
    "It is about new {many} drawn and trained in the same way and scored on these data, not about new data:"
    " how well the model does on other data must be tested on other data.",
    "It does not say that a {one} as good as the best is rare: a new {one} may tie with it.",
    "{promises}",
    "It covers the law, the score and the {settled} that were settled beforehand; changing one of them after a"
    " look at the scores voids it.",
    "{Many} that diverged are among those it counts: none was dropped or drawn again.",
)
NOT_STATED_OF_BLOCKS = (
    "The {score} of a {draw} is its mean over {blocks} blocks of the training data, each {run} after training on"
    " the others. The model is the picked {draw} trained again on all of them: this refitted model itself was never"
    " scored on held-out data.",
)
NOT_STATED_OF_ROBUST = (
    "The robust FIT of a {draw} is the lesser of two: its FIT on the data that are held out, and that of the model's"
    " own run over the data it was trained on; less what noise of 2 % on the inputs changes in that run, in per cent of"
    " the output's standard deviation. It is not a FIT that test data could be compared with.",
)
NOT_STATED_OF_STOPPING_AT_WILL = (
    "The rule lets the number of {many} depend on the scores. It covers {ends}. It does not cover what is expected"
    " when the number is settled beforehand: how many fresh {many} violate the certificate, and how likely more"
    " {many} are to find a better one.",
)
NOT_STATED_OF_FAMILIES = (
    "It covers the best of all families. The statement on families covers each family's own best.",
    "{Many} are numbered family after family; the list of families was settled beforehand.",
)
NOT_STATED_OF_COMMITTEES = (
    "It covers single networks: the committee of the best is another model, and nothing is certified about it.",
)
OF_DATA_SEED = (
    "Its seed follows from the samples of the training and validation data, however they are cut, ordered or named:"
    " nobody chose it among several for them.",
)
NOT_STATED_OF_MEMBERS = (
    "It covers whole committees: each is made of {members} draws of its own, the better half of which ({kept}) it"
    " keeps, and its output is the median of theirs. Nothing is certified about a single member.",
)


def statement_of(draft: Certificate) -> str:
    """What is promised about the best."""
    drawn = noun(draft.members)
    start = f"With confidence 1 - {confidence(draft.beta)}, {drawn.drawn(_any_family(draft))}"
    if draft.winner is None:
        return (
            f"All {draft.networks} {drawn.many} diverged. {start} gives a finite score {data_words(draft)} with"
            f" probability at most {upward(draft.epsilon)}."
        )
    return (
        f"{start} {outcome_words(draft, draft.threshold)} {data_words(draft)} with"
        f" probability at most {upward(draft.epsilon)}."
    )


def _any_family(draft: Certificate) -> str:
    """As in "from any of the 3 families"; empty for one family."""
    if len(draft.families) == 1:
        return ""
    names = [str(family.get("name")) for family in draft.families]
    listed = f" ({', '.join(names)})" if len(names) <= FEW else ""
    return f"from any of the {len(names)} families{listed}"


def not_stated_of(draft: Certificate) -> tuple[str, ...]:
    """What is not promised."""
    of_blocks = () if draft.blocks is None else NOT_STATED_OF_BLOCKS
    of_committees = NOT_STATED_OF_COMMITTEES if draft.digests.get("committee") else ()
    of_members = NOT_STATED_OF_MEMBERS if draft.members > 1 else ()
    rule = draft.stopping_rule
    of_stopping = NOT_STATED_OF_STOPPING_AT_WILL if rule is not None and not rule.by_ranks else ()
    of_families = NOT_STATED_OF_FAMILIES if len(draft.families) > 1 else ()
    of_robust = NOT_STATED_OF_ROBUST if draft.score == ROBUST else ()
    of_predictions = () if draft.horizon is None else (predictions_only(draft.horizon),)
    samples = draft.digests.get("samples", "")
    of_seed = OF_DATA_SEED if re.fullmatch("[0-9a-f]{64}", samples) and draft.seed == data_seed(samples) else ()
    sentences = (
        *of_predictions,
        *of_robust,
        *of_blocks,
        *of_committees,
        *of_members,
        *NOT_STATED,
        *of_families,
        *of_stopping,
        *of_seed,
    )
    drawn = noun(draft.members)
    settled = f"number of {drawn.many}" if rule is None else "stopping rule"
    ends = "the best score alone" if draft.worst.diverged else "the best and the worst score"
    # Best and worst, and what statements promise besides: by the union bound, which needs no independence.
    count = 2 - (draft.worst.diverged and rule is not None and not rule.by_ranks)
    count += sum(statement.promises for statement in draft.statements)
    together = min(Decimal(1), count * as_probability("beta", draft.beta))
    hold = f"hold together with confidence 1 - {confidence(together)}" if together < 1 else "need not hold together"
    each = f"each hold with confidence 1 - {confidence(draft.beta)}"
    promises = f"Best and worst case, and what is stated besides, {each}; all {count} promises {hold}."
    words = {"one": drawn.one, "many": drawn.many, "Many": drawn.many.capitalize(), "settled": settled, "ends": ends}
    words["promises"] = promises
    words["run"] = "simulated" if draft.horizon is None else ahead_words(draft.horizon)
    words["score"] = "FIT" if of_robust else "score"
    words |= {"draw": "draw" if draft.members == 1 else drawn.one, "blocks": str(draft.blocks)}
    words |= {"members": str(draft.members), "kept": str(-(-draft.members // 2))}
    return tuple(sentence.format(**words) for sentence in sentences)


def worst_of(draft: Certificate) -> WorstCase:
    """What is promised about the worst, filled in."""
    drawn = noun(draft.members)
    start = f"With confidence 1 - {confidence(draft.beta)}, {drawn.new} {_any_family(draft)}".rstrip()
    rule, bound = draft.stopping_rule, None
    if draft.worst.diverged and rule is not None and not rule.by_ranks:
        # No limit for a count of failures is known that holds at all n together, so none is claimed.
        said = (
            f"{draft.failures} of {draft.networks} {drawn.many} diverged, and nothing is worse than that: the rule"
            f" {rule.kind!r} promises nothing at this end."
        )
    elif draft.worst.diverged:
        bound = _divergence_bound(draft)
        said = f"{start} diverges with probability at most {upward(bound)} ({draft.failures} of {draft.networks} did)."
    else:
        below = outcome_words(draft, draft.worst.threshold, best=False)
        said = f"{start} {below}, the worst seen, or diverges, with probability at most {upward(draft.epsilon)}."
    return replace(draft.worst, divergence_bound=bound, statement=said)


def _divergence_bound(draft: Certificate) -> float:
    """Clopper-Pearson; for several families, the largest of their limits.

    Beta need not be shared: if the limit is exceeded, it is exceeded by the one family that diverges most, and then
    that family's own limit is exceeded too.
    """
    if len(draft.families) == 1:
        return epsilon_exact(draft.networks, draft.beta, d=draft.failures + 1)
    return max(epsilon_exact(family["networks"], draft.beta, d=family["failures"] + 1) for family in draft.families)
