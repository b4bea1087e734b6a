"""Every rule misses as often as it says, and mutants are caught: the reduced version of `make validity`."""

import re
from pathlib import Path

import pytest
from validity_harness import BATCH, BETA, LEVEL, MUTANTS, RULES, Rule


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_rule(rule):
    outcome = rule.judge(BATCH)
    assert outcome.p_value > LEVEL, f"{outcome.misses} of {outcome.campaigns} missed, {rule.probability:.4g} expected"


@pytest.mark.parametrize("rule", MUTANTS, ids=lambda rule: rule.name)
def test_mutant_is_rejected(rule):
    assert rule.judge(BATCH).p_value < LEVEL


def test_naive_peeking_misses_as_often_as_documented():
    [naive] = [rule for rule in MUTANTS if rule.name.startswith("naive")]
    outcome = naive.judge(BATCH)
    assert Rule(naive.name, naive.play, 0.447153, exact=True).judge(BATCH).p_value > LEVEL
    assert outcome.misses / outcome.campaigns > 8 * BETA


def test_the_judge_is_sharp():
    """With so many campaigns an exact rule that misses 15 % more or less often is rejected."""
    for factor in (0.85, 1.15):
        wrong = Rule("wrong", lambda n, rng, f=factor: int(rng.binomial(n, BETA * f)), BETA, exact=True)
        assert wrong.judge(BATCH).p_value < LEVEL
    assert Rule("right", lambda n, rng: int(rng.binomial(n, BETA)), BETA, exact=True).judge(BATCH).p_value > LEVEL


def test_there_are_five_mutants_and_peeking():
    assert len(MUTANTS) >= 6
    assert len({rule.name for rule in RULES + MUTANTS}) == len(RULES) + len(MUTANTS)


def test_every_sentence_is_linked_to_a_rule():
    """docs/STATEMENTS.md lists which rule covers which sentence; no statement is missing, and no rule made up."""
    from echobound.scenario import Statement

    text = (Path(__file__).parents[1] / "docs" / "STATEMENTS.md").read_text()
    listed = text.split("Which sentence is covered")[1]
    table = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", listed, re.MULTILINE)
    named = {rule for _, _, rules in table[1:] for rule in rules.split("; ") if not rule.startswith(("none", "---"))}
    assert named <= {rule.name for rule in RULES}
    covered = {kind for sentence, _, _ in table for kind in re.findall(r"`([^`]+)`", sentence)}
    assert set(Statement.kinds) <= covered
    unused = {rule.name for rule in RULES} - named
    assert len(unused) < 10, unused
