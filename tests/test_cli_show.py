"""`show`, `report` and `figures` as a user meets them: panel and histogram at any width, files that open."""

import io
import json
import re
import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from test_cli import echobound, refused

from echobound.cli import show
from echobound.identify import identify
from echobound.report import run_figures, write_figures
from echobound.runs.folder import RunFolder
from echobound.scenario import epsilon_exact

FIGURES = {"validation", "sampling", "distribution"}


@pytest.fixture(scope="module")
def desk(ph_records, tmp_path_factory):
    desk = tmp_path_factory.mktemp("desk")
    identify(*ph_records, law="paper", order=8, epsilon=0.1, beta=1e-3, washout=60, run=desk / "ph")
    return desk


def printed(monkeypatch, content, scores, width=80, encoding="utf-8", terminal=True):
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    out = Console(file=file, force_terminal=terminal, width=width, highlight=False, color_system=None)
    monkeypatch.setattr(show, "console", lambda: out)
    show.print_result(content, np.asarray(scores, dtype=float))
    file.flush()
    return file.buffer.getvalue().decode(encoding)


def content_of(run):
    return {"run": "ph", "certificate": RunFolder(run).certificate.to_dict(), "order": 8}


@pytest.mark.parametrize("width", [40, 80, 120])
def test_the_panel_fits_the_width_and_says_what_the_certificate_says(desk, monkeypatch, width):
    folder = RunFolder(desk / "ph")
    text = printed(monkeypatch, content_of(desk / "ph"), folder.search["scores"][:, 0], width)
    lines = text.splitlines()
    assert max(map(len, lines)) <= min(width, 100)
    assert max(map(len, lines)) >= min(width, 100) - 1, "and uses it"
    inside = " ".join(line.strip("│ ") for line in lines if line.startswith("│"))
    assert folder.certificate.statement in re.sub(r"\s+", " ", inside)
    assert any(block in text for block in "▃▅█")
    assert f"best {folder.certificate.threshold:.6g} %, network {folder.certificate.winner}" in re.sub(
        r"\s+", " ", inside
    )


def test_the_histogram_is_plain_where_the_terminal_is(desk, monkeypatch):
    scores = RunFolder(desk / "ph").search["scores"][:, 0]
    out = printed(monkeypatch, content_of(desk / "ph"), scores, encoding="ascii")
    assert "###" in out
    assert "█" not in out


def test_piped_it_is_plain_lines(desk):
    done = echobound("show", "ph", cwd=desk)
    folder = RunFolder(desk / "ph")
    certificate, found = folder.certificate, folder.assessment
    first, word, *rest = done.stdout.splitlines()
    assert (first, word) == (found.summary, f"Verdict: {found.verdict.words}")
    assert rest[: len(found.verdict.reasons)] == [f"because: {one}" for one in found.verdict.reasons]
    assert f"certificate: {certificate.statement}" in rest
    assert not set(done.stdout) & set("│█▄─\x1b")
    details = echobound("show", "ph", "--details", cwd=desk).stdout
    assert details.startswith(f"{first}\n{word}\n")
    assert f"\nCertificate: {certificate.statement}\n{certificate.worst.statement}\nnetworks: " in details
    assert all(one.words in details for one in found.findings)


@pytest.mark.parametrize("scores", [[5.0], [5.0, 5.0, 5.0], [*[5.0] * 60, -np.inf, -1e30]])
def test_scores_without_a_spread_can_be_shown(desk, monkeypatch, scores):
    content = content_of(desk / "ph")
    content["certificate"] |= {"threshold": 5.0, "winner": 0}
    text = printed(monkeypatch, content, scores)
    assert f"FIT of {len(scores)} networks" in text
    assert ("2 off the scale, 1 of them diverged" in text) == (len(set(scores)) > 1)


def test_where_all_diverged_there_is_no_histogram(desk, monkeypatch):
    content = content_of(desk / "ph")
    content["certificate"] |= {"threshold": None, "winner": None, "status": "all diverged"}
    text = printed(monkeypatch, content, [-np.inf])
    assert "All networks diverged" in text
    assert "█" not in text


@given(counts=st.lists(st.integers(0, 1000), min_size=1, max_size=80), rows=st.integers(1, 6), unicode=st.booleans())
def test_bars_are_as_high_as_their_counts(counts, rows, unicode):
    lines = show.bars(counts, rows, unicode=unicode)
    assert len(lines) == rows
    assert {len(line) for line in lines} == {len(counts)}
    blocks = show.BLOCKS if unicode else " #"
    heights = [sum(blocks.index(line[i]) for line in lines) for i in range(len(counts))]
    steps = rows * (len(blocks) - 1)
    for count, height in zip(counts, heights, strict=True):
        assert height - 1 < count * steps / max(*counts, 1) <= height, "rounded up, so that one network is seen"


def test_what_is_delivered_where_it_stays_and_what_is_held(desk, ph_records):
    result = identify(*ph_records, law="broad", order=8, networks=20, beta=1e-2, washout=60, run=desk / "clipped")
    found = json.loads(echobound("show", "clipped", "--json", cwd=desk).stdout)
    assert (found["delivered"], found["reason"]) == (result.delivered, result.reason)
    assert found["bound"] == found["committee"]["bound"] == result.model.bound.tolist()
    assert found["network"]["bound"] == result.network.bound.tolist()
    assert found["held"] == {"validation": {"pH": result.held["committee"]["validation"][0].share}}
    assert sum(found["ended"].values()) == 20
    text = echobound("show", "clipped", "--details", cwd=desk).stdout
    assert "delivered: the committee (the certificate is about the picked network, not about the committee)" in text
    assert f"{found['ended']['diverged']} of them diverged, {found['ended']['held']} held at a limit" in text
    assert "every free run stays within" in text


# ---------------------------------------------------------------- report and figures


def test_report_writes_the_same_page_again(desk, tmp_path):
    # Beside the others, the page would say by now that these data were searched again.
    page = shutil.copytree(desk / "ph", tmp_path / "ph") / "report.html"
    before = page.read_bytes()
    page.unlink()
    result = json.loads(echobound("report", "ph", "--json", cwd=tmp_path).stdout)
    assert result == {"run": "ph", "page": "ph/report.html", "bytes": page.stat().st_size}
    # Bokeh numbers what it draws as it goes along; everything else is the same.
    without = lambda text: re.sub(rb'<script type="application/json".*?</script>', b"", text, flags=re.DOTALL)  # noqa: E731
    once, again = (without(text).splitlines() for text in (before, page.read_bytes()))
    assert [pair for pair in zip(once, again, strict=True) if pair[0] != pair[1]] == []
    assert len(without(before)) < len(before)


def test_open_gives_the_page_to_the_browser(desk):
    opened = desk / "opened.txt"
    done = echobound("report", "ph", "--open", cwd=desk, env={"BROWSER": f"sh -c 'echo $0 > {opened}' %s"})
    assert done.stdout.strip() == "ph/report.html"
    assert opened.read_text().strip() == (desk / "ph" / "report.html").as_uri()


def test_figures_are_vector_graphics_with_a_unit_on_every_axis(desk):
    result = json.loads(echobound("figures", "ph", "--json", cwd=desk).stdout)
    assert {re.sub(r".*/|\..*", "", name) for name in result["figures"]} >= FIGURES
    for name in result["figures"]:
        content = (desk / name).read_bytes()
        assert content.startswith(b"%PDF") if name.endswith(".pdf") else b"<svg" in content[:500]
    for figure in run_figures(desk / "ph").values():
        for ax in figure.axes:
            assert ax.get_ylabel() == "pH" or re.search(r"\(.+\)$", ax.get_ylabel())
            shared = ax.get_shared_x_axes().get_siblings(ax)
            assert any(re.search(r"\(.+\)$", sibling.get_xlabel()) for sibling in shared)


def test_the_same_run_gives_the_same_files(desk):
    first, second = (write_figures(desk / "ph", desk / name) for name in ("first", "second"))
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_bad_input_is_one_sentence_and_writes_nothing(desk):
    assert "pdf, svg, png" in refused("figures", "ph", "--format", "jpeg", "--output", "none", cwd=desk)
    assert "is not a run folder" in refused("figures", "nowhere", cwd=desk)
    assert "is not a run folder" in refused("report", "nowhere", cwd=desk)
    assert not (desk / "none").exists()
    assert not (desk / "nowhere").exists()
    (desk / "file").write_text("")
    assert "cannot make the folder" in refused("figures", "ph", "--output", "file/figures", cwd=desk)


def test_a_rank_chosen_after_a_look_and_a_quantile(desk):
    scores = np.sort(RunFolder(desk / "ph").search["scores"][:, 0])
    found = json.loads(echobound("show", "ph", "--rank", "3", "--quantile", "0.5", "--json", cwd=desk).stdout)
    assert found["rank"]["threshold"] == scores[-3]
    exact = epsilon_exact(len(scores), 1e-3, d=3)
    assert exact < found["rank"]["epsilon"] < epsilon_exact(len(scores), 1e-3 / 50, d=3), "dearer than settled, not 50x"
    assert found["quantile"]["lower"] < np.median(scores) < found["quantile"]["upper"]
    plain = echobound("show", "ph", "--rank", "3", cwd=desk).stdout
    assert f"rank: {found['rank']['words']}" in plain
    assert "quantile:" not in plain
    assert "covers the best 50" in refused("show", "ph", "--rank", "51", cwd=desk)
    assert "rank" in refused("show", "ph", "--rank", "0", cwd=desk)


def test_ranks_of_searches_that_may_have_stopped_for_them_are_refused(desk, ph_records):
    small = {"law": "paper", "epsilon": 0.2, "beta": 1e-2, "washout": 60}
    identify(*ph_records, **small, order=5, stop="anytime:10", run=desk / "at will")
    identify(*ph_records, **small, order=(4, 5), run=desk / "families")
    for run in ("at will", "families"):
        assert "one law, their number settled beforehand" in refused("show", run, "--rank", "2", cwd=desk)
