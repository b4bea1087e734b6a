"""docs/STATEMENTS.md: its examples run, its numbers hold, and it knows every statement."""

import doctest
import re
from pathlib import Path

import pytest
from golden import agrees
from scipy.stats import kstwo

from echobound.scenario import (
    DistributionBand,
    RankBand,
    Statement,
    StoppingRule,
    any_of,
    epsilon_exact,
    networks_exact,
    stopping_rule,
)
from echobound.scenario.statements.both_ends import epsilon_both

PAGE = Path(__file__).parent.parent / "docs" / "STATEMENTS.md"
TEXT = PAGE.read_text()


def test_examples_run():
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    failed, tried = doctest.testfile(str(PAGE), module_relative=False, optionflags=flags)
    assert tried >= 9
    assert not failed


def test_every_statement_is_explained():
    for cls in Statement.kinds.values():
        name = f"`{cls.kind}" if issubclass(cls, StoppingRule) else f"`{cls.__name__}"
        assert name in TEXT or cls.__name__ == "Stopped", name


def test_numbers_of_the_overview():
    assert networks_exact(0.05, 1e-7) == 315
    assert (networks_exact(0.05, 1e-7, discarded=5), any_of(3).networks(0.05, 1e-7)) == (553, 424)
    assert epsilon_both(328, 1e-7) <= 0.05 < epsilon_both(327, 1e-7)
    assert agrees(RankBand.of(range(645), beta=1e-7, ranks=50).epsilons[4], "0.0447")
    assert agrees(epsilon_exact(645, 1e-7, discarded=4), "0.0399")
    assert agrees(DistributionBand.of(range(645), beta=0.05).upper[0], "0.0114")
    assert agrees(kstwo.isf(0.05, 645), "0.053")


@pytest.mark.parametrize("line", re.findall(r"^\| `(\w+[:\d,]*)` \|.*\| \**(0\.\d+)", TEXT, re.MULTILINE))
def test_what_rules_certify(line):
    rule, value = line
    assert agrees(stopping_rule(rule, 0.05).epsilon(645), value)


def test_images_and_pages_exist():
    for target in re.findall(r"\]\(([^)]+)\)", TEXT):
        assert (PAGE.parent / target).exists(), target
    for name in re.findall(r"`(benchmarks/\w+\.md)`", TEXT):
        assert (PAGE.parents[1] / name).exists(), name
