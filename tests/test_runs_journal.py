"""The journal of searches: same data, another seed or more networks, until content."""

import json
import os

import numpy as np
import pytest
from scipy import stats
from test_cli import echobound

from echobound import identify, ph_experiment
from echobound.runs.folder import RunFolder
from echobound.runs.journal import FILE, Journal, data_key, look_of, share_of
from echobound.scenario import epsilon_exact

SMALL = {"law": "paper", "order": 6, "networks": 12, "beta": 0.05, "washout": 40, "committee": 0}


@pytest.fixture(scope="module")
def records():
    return ph_experiment(samples=(300, 250), period=30)


@pytest.fixture(autouse=True)
def no_pages(monkeypatch):
    import sys

    monkeypatch.setattr(sys.modules["echobound.identify"], "write_page", lambda folder: None)


def looks(result):
    return result.certificate.provenance.get("search", {"number": 1})["number"]


def test_searches_on_the_same_data_are_counted(records, tmp_path):
    first = identify(*records, **SMALL, run=tmp_path / "a")
    again = identify(*records, **SMALL, run=tmp_path / "b")  # the same plan: the same networks, no other look
    seed = identify(*records, **SMALL, seed=1, run=tmp_path / "c")
    more = identify(*records, **SMALL | {"networks": 20}, run=tmp_path / "d")
    swapped = identify(*records[::-1], **SMALL, run=tmp_path / "e")
    other = identify(*ph_experiment(seed=3, samples=(300, 250), period=30), **SMALL, run=tmp_path / "f")
    assert [looks(one) for one in (first, again, seed, more, swapped, other)] == [1, 1, 2, 3, 4, 1]
    assert first.certificate == again.certificate
    said = more.certificate.provenance["search"]
    assert "search number 3 on these data" in said["words"]
    assert said["epsilon"] == epsilon_exact(20, 0.05 * share_of(3)) > more.certificate.epsilon
    assert RunFolder(tmp_path / "d").certificate.provenance["search"] == said
    assert identify(*records, **SMALL, seed=1, run=tmp_path / "c").certificate.provenance["search"]["number"] == 2
    assert identify(*records, **SMALL, seed=9).certificate.provenance.get("search") is None, "nothing without a folder"
    assert "search number 3 on these data" in echobound("show", "d", cwd=tmp_path).stdout


def test_other_parents_do_not_interfere(records, tmp_path):
    identify(*records, **SMALL, run=tmp_path / "one" / "run")
    assert looks(identify(*records, **SMALL, seed=1, run=tmp_path / "two" / "run")) == 1


def test_the_chain_shows_what_was_taken_out(records, tmp_path):
    for seed in range(3):
        identify(*records, **SMALL, seed=seed, run=tmp_path / str(seed))
    journal = Journal(tmp_path)
    assert journal.intact
    assert [entry["seed"] for entry in journal.entries()] == [0, 1, 2]
    lines = (tmp_path / FILE).read_text().splitlines()
    for forged in (
        [lines[0], lines[2]],
        [lines[0], lines[1].replace('"seed": 1', '"seed": 5'), lines[2]],
        ["x", *lines],
    ):
        (tmp_path / FILE).write_text("\n".join(forged) + "\n")
        assert not journal.intact
    for odd in ("", "[]\n", '{"digest": 3}\n', "\x00\n", '{"data": 1, "plan": 2, "previous": "", "digest": ""}\n'):
        (tmp_path / FILE).write_text(odd)
        assert journal.entries() == []


def test_a_link_is_not_followed(records, tmp_path):
    (tmp_path / "mine").write_text("precious")
    (tmp_path / FILE).symlink_to(tmp_path / "mine")
    with pytest.warns(UserWarning, match="not counted.*a link, which is not followed"):
        identify(*records, **SMALL, run=tmp_path / "run")
    assert (tmp_path / "mine").read_text() == "precious"
    assert not Journal(tmp_path).intact


def test_a_pipe_is_not_waited_for(records, tmp_path):
    os.mkfifo(tmp_path / FILE)
    with pytest.warns(UserWarning, match="not counted"):
        assert looks(identify(*records, **SMALL, run=tmp_path / "run")) == 1
    assert Journal(tmp_path).entries() == []
    assert not Journal(tmp_path).intact


@pytest.mark.parametrize("kept", [1, 9, 40, -2, -1])
def test_a_search_that_was_killed_while_it_was_entered_stops_no_other(records, tmp_path, kept):
    """A kill, or a full disk, leaves the beginning of a line; what follows it must still be read."""
    for seed in range(2):
        identify(*records, **SMALL, seed=seed, run=tmp_path / str(seed))
    first, second = (tmp_path / FILE).read_bytes().splitlines(keepends=True)
    (tmp_path / FILE).write_bytes(first + second[:kept])
    counted = [looks(identify(*records, **SMALL, seed=seed, run=tmp_path / f"more{seed}")) for seed in (2, 3)]
    assert counted == ([3, 4] if kept == -1 else [2, 3]), "a whole entry counts, also without the end of its line"
    assert Journal(tmp_path).intact


@pytest.mark.parametrize("other", ["precious", "precious\n", "{}\n", "x" * 50 + "\nprecious"])
def test_what_is_no_journal_is_left_alone(records, tmp_path, other):
    (tmp_path / FILE).write_text(other)
    with pytest.warns(UserWarning, match="not counted"):
        identify(*records, **SMALL, run=tmp_path / "run")
    assert (tmp_path / FILE).read_text() == other


def test_shares_add_up_to_one():
    assert sum(map(share_of, range(1, 10_000))) < 1
    assert sum(map(share_of, range(1, 10_000))) > 0.9999


def test_what_all_searches_certify_together(records, tmp_path):
    """Searched again with more networks until the certificate is wrong, which somebody may know: 0.19 and not 0.05."""
    rng, campaigns, sizes = np.random.default_rng(0), 20_000, (50, 60, 80, 120, 200, 400)
    naive = spent = np.zeros(campaigns, dtype=bool)
    for number, size in enumerate(sizes, start=1):
        violation = rng.beta(1, size, size=campaigns)  # of the best of that many: another seed, the same law
        naive = naive | (violation > epsilon_exact(size, 0.05))
        spent = spent | (violation > epsilon_exact(size, 0.05 * share_of(number)))
    assert naive.mean() > 0.2
    assert stats.binomtest(int(spent.sum()), campaigns, 0.05, "greater").pvalue > 1e-3
    result = identify(*records, **SMALL, run=tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    assert look_of(result.certificate, folder.plan, 2).epsilon == epsilon_exact(12, 0.05 * share_of(2))
    [entry] = [json.loads(line) for line in (tmp_path / FILE).read_text().splitlines()]
    assert entry["data"] == data_key(folder.experiments)
