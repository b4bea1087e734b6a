"""The list of statements. A new one is a file in this folder and a line here; everything else finds it by this list."""

from __future__ import annotations

from echobound.scenario.ordering import goodness, ranking
from echobound.scenario.search import Search
from echobound.scenario.statements.base import Statement
from echobound.scenario.statements.both_ends import BothEnds
from echobound.scenario.statements.conformal_band import ConformalBand
from echobound.scenario.statements.coverage_band import CoverageBand
from echobound.scenario.statements.distribution_band import DistributionBand
from echobound.scenario.statements.error_limit import ErrorLimit
from echobound.scenario.statements.expected_gain import ExpectedGain
from echobound.scenario.statements.failure_rate import FailureRate
from echobound.scenario.statements.families import Families
from echobound.scenario.statements.gain import Gain
from echobound.scenario.statements.joint_scores import JointScores
from echobound.scenario.statements.optimism import Optimism
from echobound.scenario.statements.outer_rank import OuterRank
from echobound.scenario.statements.quantile import QuantileInterval
from echobound.scenario.statements.rank_band import RankBand
from echobound.scenario.statements.removal import Removal
from echobound.scenario.statements.renewal import Renewal
from echobound.scenario.statements.stopped import Stopped
from echobound.scenario.words import noun

# What a certificate may hold, in this order.
OF_SEARCH: tuple[type[Statement], ...] = (Renewal, Stopped, Removal, BothEnds, JointScores, Families, Gain)
# What is made of scores on request, and of test data.
OF_SCORES: tuple[type[Statement], ...] = (*(RankBand, DistributionBand, QuantileInterval, ExpectedGain, OuterRank),)
OF_EPISODES: tuple[type[Statement], ...] = (ErrorLimit, FailureRate, ConformalBand, CoverageBand, Optimism)


def statements_of(search: Search) -> tuple[Statement, ...]:
    """What the scores of a finished search say besides the best and the worst, as it was settled.

    Examples
    --------
    >>> import numpy as np
    >>> from echobound.scenario import ScoreName
    >>> families = (("order 5", 40), ("order 8", 40))
    >>> search = Search(table=np.arange(80.0)[:, None], scores=(ScoreName(),), beta=0.05, families=families)
    >>> [statement.kind for statement in statements_of(search)]
    ['families', 'gain']
    """
    made = (kind.of_search(search) for kind in OF_SEARCH)
    return tuple(statement for statement in made if statement is not None)


def claims_of(search: Search) -> list[int]:
    """Positions in the table of all draws that something is claimed by: the best, the worst, and those of statements.

    Examples
    --------
    >>> import numpy as np
    >>> from echobound.scenario import ScoreName
    >>> claims_of(Search(table=np.arange(9.0)[:, None], scores=(ScoreName(),), beta=0.05, discarded=2))
    [0, 6, 7, 8]
    """
    if not len(search.table):
        return []
    best, worst = ranking(search.first, search.direction, 1), int(goodness(search.first, search.direction).argmin())
    return sorted({*best, worst, *(position for kind in OF_SEARCH for position in kind.claims(search))})


def title_of(kind: str, members: int = 1) -> str:
    """The short label of a kind of statement; `members` as in the certificate.

    Examples
    --------
    >>> title_of("removal"), title_of("gain"), title_of("gain", members=10)
    ('set aside', 'more networks', 'more committees')
    """
    return Statement.kinds[kind].title.format(many=noun(members).many)
