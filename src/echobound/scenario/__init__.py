"""The theory: bounds, the law of the violation probability, certificates, verification. Numbers in, statements out."""

from echobound.scenario.bounds import (
    beta_exact,
    beta_explicit,
    epsilon_exact,
    epsilon_explicit,
    log_beta_exact,
    networks_exact,
    networks_explicit,
)
from echobound.scenario.certificate import Certificate, WorstCase, certify, ranking, schema, select
from echobound.scenario.episodes import FEWEST_EPISODES, Episodes, judge_episodes
from echobound.scenario.verification import Divergence, Verification, count_violations, verify_counts, verify_divergence
from echobound.scenario.violation import ViolationLaw

__all__ = [
    "FEWEST_EPISODES",
    "Certificate",
    "Divergence",
    "Episodes",
    "Verification",
    "ViolationLaw",
    "WorstCase",
    "beta_exact",
    "beta_explicit",
    "certify",
    "count_violations",
    "epsilon_exact",
    "epsilon_explicit",
    "judge_episodes",
    "log_beta_exact",
    "networks_exact",
    "networks_explicit",
    "ranking",
    "schema",
    "select",
    "verify_counts",
    "verify_divergence",
]
