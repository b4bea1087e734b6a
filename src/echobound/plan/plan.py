"""Plan: everything that is settled before the first draw.

`Plan` is what a user asks for; what is left open is None. `SettledPlan` (in `settled`) leaves nothing open. Keywords of
`identify`, options of the command line, parameters of the estimators and the JSON are all made from the fields here: a
new setting is a field of `Plan`, an entry of `PlanSettings`, and the line that uses it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, TypedDict

from echobound.errors import InputError
from echobound.network.laws import Orders
from echobound.network.mixed_law import MixedLaw
from echobound.network.training import Trainer
from echobound.plan.laws import Law, LawChoice, measures_of, settle_laws
from echobound.plan.numbers import Bound, settle_networks, settle_stop
from echobound.plan.questions import settle_questions
from echobound.plan.renewal import RenewalStep
from echobound.scenario import Patience, StoppingRule
from echobound.scenario.bounds import as_count
from echobound.scenario.words import data_seed
from echobound.scores import Score, get_score
from echobound.typed import setting

if TYPE_CHECKING:
    from echobound.plan.settled import SettledPlan
    from echobound.plan.validation import Scheme

SCORES = ("fit", "rmse")  # of draws of one kind; where there are several, more is asked of them
BEST = 10  # networks that are kept as a committee beside the pick, if nothing else is asked for


class PlanSettings(TypedDict, total=False):
    """The fields of `Plan` as keywords of `identify`."""

    law: LawChoice | None
    order: Orders
    trainer: str | Trainer | None
    quick: bool
    epsilon: float | None
    beta: float
    networks: int | None
    bound: Bound
    stop: str | StoppingRule | None
    target: float | None
    discarded: int
    scores: Sequence[str | Score] | None
    joint: bool
    blocks: int | None
    washout: int | None
    horizon: int | None
    committee: int | None
    members: int
    confirm: float
    seed: int
    seed_of_data: bool
    criterion: str | None
    renewal: RenewalStep | None
    numbering: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is to be drawn, scored and certified, as far as the user says.

    Parameters
    ----------
    law, order, trainer
        What is drawn: ``"mixed"`` (several kinds of networks, the default), ``"quick"``, ``"broad"``, ``"paper"``, or a
        law of your own; order and trainer may be given separately (the law is ``"broad"`` then, if none is given).
        Each of several laws or orders is a family of networks, and the best of all families is picked and certified.
    quick
        Draw only what is trained by least squares, in seconds: the law ``"quick"``.
    epsilon, beta, networks, bound
        Give epsilon or the number of networks (of each family); the other follows (default: 0.05, so 315 networks).
    stop
        A rule for stopping the search, recorded before the first draw: ``"patience:200"`` stops once epsilon is
        certified and the last 200 networks brought no improvement; ``"anytime"``, ``"between:100,10000"``,
        ``"looks:100,200"`` and ``"mixture"`` hold at all numbers of networks together and stop once epsilon is
        certified. Under these an interruption (Ctrl-C) is a reason to stop as well: what was drawn is certified.
    target
        Continue until the best score reaches this; needs a rule that holds at all numbers (default: ``"anytime"``).
    discarded
        Set this many of the best networks aside in a further statement, which then certifies epsilon too.
    scores, joint
        By name or as `Score`; the first one selects. `joint` adds a statement about all of them together.
    blocks
        Without validation data: score this many blocks of the training data in turn, each by networks trained on the
        others, and train the best again on all data; 0 holds out the end of the last training record instead. None
        chooses: 4 blocks for short data.
    washout
        Samples at the start of each record or block that are neither trained on nor scored; None chooses, at most 100.
    horizon
        None scores the free run; k scores the prediction k samples ahead.
    committee
        How many of the best networks are also kept as one model, the median of their outputs; 0 for none. None chooses:
        10, and none where committees are what is drawn.
    members
        Draw committees instead of single networks, each of this many draws of its own: the better half of them, by the
        first score, is kept, and the output is the median of theirs. The best committee is picked and certified, and
        `networks` counts committees. 1 draws single networks.
    confirm
        Refuse the best network if its score changes by more than this share when its readout is changed in the twelfth
        digit, as it does where a free run is chaotic: nobody could confirm such a score. 0 refuses none.
    seed
        Together with its index, it names each network.
    seed_of_data
        Take the seed from the digest of the data instead, so that nobody can choose among seeds; the certificate says
        so.
    criterion
        What each test record must satisfy, such as ``"fit>80"``: the second certificate limits how often one does not.
    renewal
        Set by `renew`: these networks were drawn before, for other data.
    numbering
        Numbers of the families; 0, 1, 2, ... if not given. A family's networks depend on its number.

    Examples
    --------
    >>> plan = Plan(law="paper", order=50, epsilon=0.1)
    >>> plan.order, plan.beta
    (50, 1e-07)
    """

    law: LawChoice | None = setting(
        None,
        "What is drawn: mixed (several kinds of networks, the default), quick, broad, paper, small, cascade; several,"
        " separated by commas, are a family each.",
        text="words",
    )
    order: Orders = setting(
        None, "Number of states, instead of the law's; several, as in 50,100,200, are a family each.", text="numbers"
    )
    trainer: str | Trainer | None = setting(None, "How each network is trained: least squares, or free run.")
    quick: bool = setting(False, "Draw only what trains in milliseconds: large networks, by least squares.")
    epsilon: float | None = setting(None, "Violation probability; 0.05 if nothing else is given.")
    beta: float = setting(1e-7, "1 - confidence.")
    networks: int | None = setting(None, "Number of networks (of each family); epsilon follows from it.")
    bound: Bound = setting("exact", "exact, or explicit as in the paper.")
    stop: str | StoppingRule | None = setting(
        None,
        "Stop by a rule once epsilon is certified: patience:200 (and the last 200 brought no improvement), anytime,"
        " between:100,10000, looks:100,200,400, mixture. Under all but patience, Ctrl-C ends the search with a"
        " certificate.",
    )
    target: float | None = setting(
        None, "Continue until the best score reaches this; by the rule anytime if none is given."
    )
    discarded: int = setting(0, "Best networks to set aside in a further statement, settled now.")
    scores: Sequence[str | Score] | None = setting(
        None,
        "Scores, separated by commas: fit, rmse, peak, robust. The first one selects; robust,fit,rmse where several"
        " kinds of networks are drawn, else fit,rmse.",
        text="words",
    )
    joint: bool = setting(False, "Also state something about all scores together.")
    blocks: int | None = setting(
        None, "Without --validation: blocks of the data to score in turn; 0 holds out the end of the data."
    )
    washout: int | None = setting(
        None, "Samples at the start of each record or block that do not count; at most 100 if not given."
    )
    horizon: int | None = setting(None, "Score the prediction this many samples ahead; the free run if not given.")
    committee: int | None = setting(
        None, "Best networks to keep as one model as well; 0 for none, 10 if not given (none with --members)."
    )
    members: int = setting(
        1, "Draw committees of this many networks, the better half of which is kept; --networks counts committees."
    )
    confirm: float = setting(
        0.1,
        "Refuse a best network whose score changes by more than this share when its readout changes in the twelfth"
        " digit: nobody could confirm it. 0 refuses none.",
    )
    seed: int = setting(0, "Together with its index, it names each network.")
    seed_of_data: bool = setting(False, "Take the seed from the data, so that nobody can choose among seeds.")
    criterion: str | None = setting(None, "What each test file must satisfy, settled beforehand: fit>80, rmse<0.1.")
    renewal: RenewalStep | None = None
    numbering: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        as_count("members", self.members)
        if isinstance(self.confirm, str | bool) or not 0 <= self.confirm < math.inf:
            raise InputError(f"confirm is a share of the best score from 0 on, such as 0.1, got {self.confirm!r}")
        if self.committee is not None and as_count("committee", self.committee, least=0) and self.members > 1:
            raise InputError(
                f"committee={self.committee} keeps the best of single networks, but members={self.members} draws"
                " committees: leave out one of the two"
            )
        if self.quick and (self.law, self.order, self.trainer) != (None, None, None):
            raise InputError("quick is a law of its own: leave it out, or law, order and trainer")
        if not 0 <= self.discarded < (self.networks or math.inf):
            expected = "the number of networks to set aside must be less than those drawn and not negative"
            raise InputError(f"{expected}, got {self.discarded}")
        given_scores = SCORES if self.scores is None else self.scores
        names = [get_score(score).name if isinstance(score, Score) else score for score in given_scores]
        if not names or len(set(names)) < len(names):
            given = ", ".join(names) or "none"
            raise InputError(f"each score must be named once, and at least one is needed, got {given}")
        if self.joint and len(names) == 1:
            raise InputError(f"a joint statement is about several scores, but {names[0]} is the only one")
        if self.target is not None and (isinstance(self.target, str | bool) or not math.isfinite(self.target)):
            raise InputError(f"a target is a finite number, got {self.target!r}")
        settle_questions(self.criterion)  # refuses a criterion that makes no sense

    def settle(self, validation: Scheme) -> SettledPlan:
        """Settle everything that was left open, for the data at hand (see `settle_validation`)."""
        from echobound.plan.settled import SettledPlan  # a settled plan is a plan

        if self.criterion is not None and not validation.tested:
            raise InputError(f"the criterion {self.criterion} is for test data: give test data, or leave it out")
        laws = settle_laws("quick" if self.quick else self.law, self.order, self.trainer, validation.shape)
        measures = self._measures(laws[0])
        together, numbers = len(measures) if self.joint else 1, (self.epsilon, self.beta, self.networks, self.bound)
        samples = validation.samples if self.seed_of_data else ""
        rule, seed = None, data_seed(samples) if samples else int(self.seed)
        if self.stop is None and self.target is None:
            count, epsilon = settle_networks(*numbers, self.discarded, together)
        else:
            rule, count, epsilon = settle_stop(self.stop or "anytime", *numbers, self.discarded, together)
            rule = replace(rule, members=self.members)  # its words are about what is drawn here
            if isinstance(rule, Patience) and not rule.seed:
                # The coins that break ties belong to the search: the same ones for everybody would not be independent.
                rule = replace(rule, seed=seed % 2**63)
        asked = {f.name: getattr(self, f.name) for f in fields(Plan)}
        asked |= {"law": laws, "order": None, "trainer": None, "quick": False, "networks": count, "epsilon": epsilon}
        asked |= {"beta": float(self.beta)}
        asked |= {"stop": rule, "scores": tuple(measure.name for measure in measures), "seed": seed}
        asked |= {"blocks": validation.blocks, "washout": validation.washout}
        if self.committee is None:
            asked["committee"] = 0 if self.members > 1 else BEST
        return SettledPlan(**asked, folds=validation.folds, data=validation.data, samples=samples, measures=measures)

    def _measures(self, law: Law) -> tuple[Score, ...]:
        """The scores; one of them must ask for nothing but outputs, so that test data can be scored like the others."""
        scores = self.scores
        if scores is None:
            scores = ("robust", *SCORES) if isinstance(law, MixedLaw) else SCORES
        measures = measures_of(law, scores)
        for one in measures:
            if one.demand is not None and one is not get_score("robust"):
                raise InputError(
                    f"the score {one.name} asks for more than the scored outputs, and a certificate could not say what"
                    " it is about: take robust, or a score without `demand`"
                )
        return measures if any(one.demand is None for one in measures) else (*measures, get_score(SCORES[0]))

    def asked(self) -> Plan:
        """The plan as it would be asked for."""
        return self
