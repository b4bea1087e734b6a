"""The theory: bounds, the law of the violation probability, certificates, verification, and further statements.

Numbers in, statements out.
"""

from echobound.scenario.band import (
    DistributionBand,
    RankBand,
    SecondSet,
    crossing_probability,
    dkw_width,
    kolmogorov_width,
    local_level,
)
from echobound.scenario.bounds import (
    beta_exact,
    beta_explicit,
    epsilon_exact,
    epsilon_explicit,
    log_beta_exact,
    networks_exact,
    networks_explicit,
)
from echobound.scenario.certificate import Certificate, WorstCase, certify, schema
from echobound.scenario.criterion import Criterion
from echobound.scenario.ends import BothEnds, QuantileInterval, epsilon_both, miss_both, networks_both
from echobound.scenario.episodes import ConformalBand, ErrorLimit, FailureRate, MeanLoss, blocks
from echobound.scenario.fresh import Divergence, Verification, verify_counts, verify_divergence
from echobound.scenario.gain import (
    Gain,
    beaten_probability,
    beaten_probability_limit,
    extrapolated_gain,
    learning_curve,
    tail_gain,
)
from echobound.scenario.generalisation import Generalisation, Seen, Settled
from echobound.scenario.optimism import Optimism, expected_optimism, mean_of_best
from echobound.scenario.ordering import count_violations, ranking, select
from echobound.scenario.removal import Removal, most_discarded
from echobound.scenario.renewal import Renewal
from echobound.scenario.several import (
    Families,
    JointScores,
    networks_families,
    networks_joint,
    networks_separate,
    spent_beta,
)
from echobound.scenario.statement import ScoreStatement, Statement
from echobound.scenario.stopping import (
    Anytime,
    Horizon,
    Looks,
    Mixture,
    Patience,
    Stopped,
    StoppingRule,
    peeking_probability,
    stopping_rule,
)
from echobound.scenario.violation import ViolationLaw

__all__ = [
    "Anytime",
    "BothEnds",
    "Certificate",
    "ConformalBand",
    "Criterion",
    "DistributionBand",
    "Divergence",
    "ErrorLimit",
    "FailureRate",
    "Families",
    "Gain",
    "Generalisation",
    "Horizon",
    "JointScores",
    "Looks",
    "MeanLoss",
    "Mixture",
    "Optimism",
    "Patience",
    "QuantileInterval",
    "RankBand",
    "Removal",
    "Renewal",
    "ScoreStatement",
    "SecondSet",
    "Seen",
    "Settled",
    "Statement",
    "Stopped",
    "StoppingRule",
    "Verification",
    "ViolationLaw",
    "WorstCase",
    "beaten_probability",
    "beaten_probability_limit",
    "beta_exact",
    "beta_explicit",
    "blocks",
    "certify",
    "count_violations",
    "crossing_probability",
    "dkw_width",
    "epsilon_both",
    "epsilon_exact",
    "epsilon_explicit",
    "expected_optimism",
    "extrapolated_gain",
    "kolmogorov_width",
    "learning_curve",
    "local_level",
    "log_beta_exact",
    "mean_of_best",
    "miss_both",
    "most_discarded",
    "networks_both",
    "networks_exact",
    "networks_explicit",
    "networks_families",
    "networks_joint",
    "networks_separate",
    "peeking_probability",
    "ranking",
    "schema",
    "select",
    "spent_beta",
    "stopping_rule",
    "tail_gain",
    "verify_counts",
    "verify_divergence",
]
