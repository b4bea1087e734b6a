"""`plan` beyond the best of N: networks to be set aside, and stopping rules."""

import json

import pytest
from test_cli import echobound, refused

from echobound.scenario import Anytime, Patience, epsilon_exact, networks_exact, networks_explicit


def planned(*arguments, cwd):
    return json.loads(echobound("plan", *arguments, "--json", cwd=cwd).stdout)


def test_networks_to_be_set_aside(tmp_path):
    result = planned("--discarded", "5", cwd=tmp_path)
    assert (result["exact"], result["given"]["discarded"]) == (553, 5)
    assert result["explicit"] == networks_explicit(0.05, 1e-7, discarded=5)
    assert result["exact_epsilon"] == epsilon_exact(553, 1e-7, discarded=5)
    assert planned("--discarded", "5", "--networks", "645", cwd=tmp_path)["exact"] == epsilon_exact(645, 1e-7, 1, 5)
    text = echobound("plan", "--discarded", "5", cwd=tmp_path).stdout
    assert "553" in text
    assert "discarded = 5" in text
    assert "discarded" not in echobound("plan", cwd=tmp_path).stdout


@pytest.mark.parametrize("discarded", [0, 1, 5, 20])
@pytest.mark.parametrize("d", [1, 3])
def test_the_explicit_bound_covers_discarding(d, discarded):
    for epsilon, beta in [(0.05, 1e-7), (0.3, 0.5), (0.01, 1e-3)]:
        enough = networks_explicit(epsilon, beta, d, discarded)
        assert networks_exact(epsilon, beta, d, discarded) <= enough


def test_a_stopping_rule(tmp_path):
    stop = planned("--stop", "patience:200", "--beta", "1e-3", cwd=tmp_path)["stop"]
    assert stop["rule"] == "patience"
    assert stop["networks"] == 201, "it cannot stop before, though 135 would be enough"
    assert planned("--stop", "patience:20", "--beta", "1e-3", cwd=tmp_path)["stop"]["networks"] == 135
    assert stop["words"] == Patience(beta=1e-3, draws=200).words
    result = planned("--stop", "anytime", "--networks", "645", cwd=tmp_path)
    assert result["stop"]["epsilon"] == Anytime(beta=1e-7).epsilon(645)
    assert result["stop"]["networks"] == 645
    assert result["exact"] == epsilon_exact(645, 1e-7), "beside what a number settled beforehand certifies"
    text = echobound("plan", "--stop", "anytime", "--networks", "645", cwd=tmp_path).stdout
    assert "0.0324622793" in text
    assert "whatever makes you stop" in text


def test_the_help_is_free_of_pictures(tmp_path):
    """A terminal library made a picture of ":100:" once."""
    page = echobound("plan", "--help", cwd=tmp_path, env={"COLUMNS": "200"}).stdout
    assert "between:100,10000" in page


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--stop", "naive"], "unknown stopping rule 'naive': give patience:200"),
        (["--stop", "patience:0"], "at least 1"),
        (["--stop", "mixture", "--discarded", "1"], "leave out --d and --discarded"),
        (["--scores", "100000000"], "at most 1000 scores"),
        (["--stop", "mixture", "--networks", "645", "--epsilon", "0.05"], "needs beta"),
        (["--stop", "between:100,200"], "give a larger epsilon"),
        (["--stop", "mixture", "--beta", "1e-400"], "beta"),
        (["--discarded", "-1"], "discarded"),
        (["--discarded", "some"], "discarded"),
    ],
)
def test_refused(arguments, said, tmp_path):
    assert said in refused("plan", *arguments, cwd=tmp_path)
