"""The theory: bounds, the law of the violation probability, certificates, verification, and further statements.

Numbers in, statements out. `statements` and `stopping` have a file for each variant.
"""

from echobound.scenario.bounds import (
    any_of,
    beta_exact,
    beta_explicit,
    each_of,
    epsilon_exact,
    epsilon_explicit,
    networks_exact,
    networks_explicit,
)
from echobound.scenario.certificate import Certificate, WorstCase
from echobound.scenario.certifying import certify
from echobound.scenario.fresh import (
    Divergence,
    Verification,
    fresh_needed,
    planned_verification,
    verify_counts,
    verify_divergence,
)
from echobound.scenario.generalisation import Generalisation
from echobound.scenario.ordering import count_violations, ranking, select
from echobound.scenario.questions import Criterion, EpisodeErrors, Questions
from echobound.scenario.schema import schema
from echobound.scenario.search import ScoreName, Search
from echobound.scenario.statements.base import Statement
from echobound.scenario.statements.both_ends import BothEnds
from echobound.scenario.statements.conformal_band import ConformalBand
from echobound.scenario.statements.coverage_band import CoverageBand
from echobound.scenario.statements.distribution_band import DistributionBand
from echobound.scenario.statements.error_limit import ErrorLimit
from echobound.scenario.statements.expected_gain import ExpectedGain
from echobound.scenario.statements.failure_rate import FailureRate
from echobound.scenario.statements.families import Families
from echobound.scenario.statements.gain import Gain, learning_curve, tail_gain
from echobound.scenario.statements.joint_scores import JointScores
from echobound.scenario.statements.optimism import Optimism
from echobound.scenario.statements.outer_rank import OuterRank
from echobound.scenario.statements.quantile import QuantileInterval
from echobound.scenario.statements.rank_band import RankBand
from echobound.scenario.statements.registry import claims_of, statements_of, title_of
from echobound.scenario.statements.removal import Removal
from echobound.scenario.statements.renewal import Renewal
from echobound.scenario.statements.stopped import Stopped
from echobound.scenario.stopping import Anytime, Between, Looks, Mixture, Patience, StoppingRule, stopping_rule
from echobound.scenario.violation import ViolationLaw

__all__ = ["Certificate", "Criterion", "Generalisation", "Questions", "ScoreName", "Search", "Statement", "WorstCase"]
__all__ += ["beta_exact", "beta_explicit", "epsilon_exact", "epsilon_explicit", "networks_exact", "networks_explicit"]
__all__ += ["Divergence", "Verification", "ViolationLaw", "any_of", "each_of", "verify_counts", "verify_divergence"]
__all__ += ["fresh_needed", "planned_verification"]
__all__ += ["certify", "claims_of", "count_violations", "ranking", "schema", "select", "statements_of", "title_of"]
__all__ += ["BothEnds", "DistributionBand", "Families", "Gain", "JointScores", "QuantileInterval", "RankBand"]
__all__ += ["Removal", "Renewal", "Stopped", "learning_curve", "tail_gain"]
__all__ += ["ConformalBand", "CoverageBand", "EpisodeErrors", "ErrorLimit", "ExpectedGain", "FailureRate", "Optimism"]
__all__ += ["OuterRank"]
__all__ += ["Anytime", "Between", "Looks", "Mixture", "Patience", "StoppingRule", "stopping_rule"]
