import re
from html.parser import HTMLParser

import numpy as np
import pytest

from echobound.data import Record
from echobound.identify import identify
from echobound.report import compare_figure, networks_figure
from echobound.verify import verify

SMALL = {"law": "paper", "order": 12, "epsilon": 0.2, "beta": 1e-3, "washout": 60}


@pytest.fixture(scope="module")
def page(ph_records, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "page"
    result = identify(*ph_records, **SMALL, run=folder)
    verify(folder, fresh=20)
    return (folder / "report.html").read_text(), result


def test_the_page_says_what_the_certificate_says(page):
    text, result = page
    plain = re.sub(r"\s+", " ", text)
    for sentence in (result.certificate.statement, result.certificate.worst.statement):
        assert sentence.replace("<", "&lt;").replace(">", "&gt;") in plain
    assert str(result.certificate.networks) in plain
    assert result.certificate.digests["data"] in plain
    assert "What the certificate does not say" in plain
    assert "Put to the test" in plain
    assert "The committee, not covered by the certificate" in plain
    members = ", ".join(str(member.origin["index"]) for member in result.committee.members)
    assert f"networks {members}" in plain
    fit = result.committee_outcome.scores["validation"]["fit"]
    assert f"FIT {fit:.3f} %" in plain


def test_the_page_needs_nothing_from_outside(page):
    text, _ = page
    assert text.count("<svg") == 4
    for address in re.findall(r"""(?:src|href)\s*=\s*["']([^"']*)["']""", text):
        assert address.startswith("#"), address
    assert "<script" not in text
    assert not re.findall(r"url\((?!#|['\"]?#)", text)


class Checker(HTMLParser):
    """Finds elements that data smuggled in."""

    def __init__(self):
        super().__init__()
        self.tags = []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)


def test_names_from_data_are_escaped(ph_records, tmp_path):
    nasty = '</script><script>alert("1")</script><img src=x>'
    training, validation = (
        Record(u=r.u, y=r.y, input_names=(nasty,), output_names=("<b>y</b>",), name=nasty) for r in ph_records
    )
    identify(training, validation, **SMALL, run=tmp_path / "run")
    checker = Checker()
    checker.feed((tmp_path / "run" / "report.html").read_text())
    assert "script" not in checker.tags
    assert "img" not in checker.tags


def test_figures_show_violations_and_outliers():
    scores = np.array([80.0, 90.0, 95.0, -np.inf, -1e9, 85.0] * 20)
    panel = {"scores": scores, "threshold": 90.0, "direction": "max", "case": "best", "label": "FIT (%)"}
    figure = networks_figure([panel | {"circle_violations": True}])
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert "20 violations" in labels
    assert "diverged" in figure.axes[0].texts[0].get_text()
    low, high = figure.axes[0].get_ylim()
    assert low < 90 < high


def test_a_diverging_model_can_be_drawn():
    k = np.arange(100.0)
    y = np.sin(k / 7)[:, None]
    figure = compare_figure(k, y, y * np.exp(k / 3)[:, None], ["y"], ["m"], fits=[-1e9])
    low, high = figure.axes[0].get_ylim()
    assert high - low < 100
    assert figure.axes[0].get_ylabel() == "y (m)"
