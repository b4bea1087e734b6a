"""Every sentence and number of a page that speaks of the certificate is the certificate's own."""

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from test_campaign_families import growing
from test_report import Outline

import echobound.report
from echobound import Record, identify, ph_experiment, verify
from echobound.diagnostics.telling import told
from echobound.runs import RunFolder
from echobound.runs.scoring import NOT_COVERED
from echobound.runs.verification import verification_of

SMALL = {"law": "paper", "order": 8, "networks": 24, "beta": 1e-2, "washout": 40, "committee": 3}
PROMISES = re.compile(r"With confidence|probability|luck on|gain about|certif|promise")


def one_order(data, run):
    return identify(data[0], data[1], **SMALL, run=run)


def families(data, run):
    """Of two families the second diverges, so that its networks have numbers beyond those of the first."""
    k = np.arange(8000)
    training, validation = (Record(u=np.sin(0.1 * k[:n]), y=np.exp(0.2 * (k[:n] % 300))) for n in (300, 8000))
    return identify(training, validation, law=[growing(0), growing(1)], networks=12, beta=0.05, washout=100, run=run)


def blocks(data, run):
    return identify(data[0], **{**SMALL, "blocks": 3}, run=run)


def patience(data, run):
    settings = {**SMALL, "networks": None, "epsilon": 0.3, "stop": "patience:5", "discarded": 2}
    return identify(data[0], data[1], **settings, run=run)


def joint(data, run):
    return identify(data[0], data[1], **SMALL, scores=("fit", "rmse"), joint=True, run=run)


def at_will(data, run):
    settings = {**SMALL, "networks": None, "epsilon": 0.3, "stop": "anytime:10"}
    return identify(data[0], data[1], **settings, run=run)


def prediction(data, run):
    return identify(data[0], data[1], **SMALL, horizon=2, run=run)


def opened(data, run):
    return identify(data[0], data[1], test=data[2:], criterion="fit>10", **SMALL, run=run)


KINDS = (one_order, families, blocks, patience, joint, at_will, prediction, opened)


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind.__name__)
def made(request, tmp_path_factory):
    run = tmp_path_factory.mktemp("words") / "run"
    request.param(ph_experiment(samples=(260, 220, 150, 160)), run)
    verify(run, fresh=6)
    return RunFolder(run), Outline((run / "report.html").read_text(encoding="utf-8"))


class Texts(HTMLParser):
    """The text of each paragraph, list item and cell."""

    def __init__(self, text):
        super().__init__()
        self.found, self.open = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag in ("p", "li", "td"):
            self.open.append((tag, []))

    def handle_endtag(self, tag):
        if self.open and self.open[-1][0] == tag:
            self.found.append(plain("".join(self.open.pop()[1])))

    def handle_data(self, data):
        for _, parts in self.open:
            parts.append(data)


def plain(text):
    return re.sub(r"\s+", " ", text).strip()


def stated(folder):
    """Everything the run itself says in words."""
    certificate, second = folder.certificate, folder.generalisation
    found = verification_of(folder)
    texts = [certificate.statement, certificate.worst.statement, *certificate.not_stated]
    texts += [statement.words for statement in certificate.statements]
    texts += [found["statement"], found["worst"]["statement"], NOT_COVERED]
    if second is not None:
        texts += [says for _, says in (*second.words, *told(second))] + list(second.not_stated)
    assessment = folder.assessment
    texts += [assessment.summary, *assessment.verdict.reasons, *assessment.verdict.next]
    texts += [text for one in folder.diagnostics.findings for text in (one.words, one.advice)]
    return [plain(text) for text in texts]


def written():
    """What the templates say around the words of a run, as patterns."""
    folder = Path(echobound.report.__file__).parent / "templates"
    for path in folder.glob("*.html"):
        for text in Texts(re.sub(r"{%.*?%}", "", path.read_text())).found:
            fixed = [re.escape(plain(part)) for part in re.split(r"{{.*?}}", text)]
            if sum(map(len, fixed)) > 20:
                yield re.compile(r"\s*.*?\s*".join(fixed))


def test_every_promise_on_the_page_is_one_of_the_run(made):
    folder, _ = made
    said, patterns = stated(folder), list(written())
    texts = Texts((folder.path / "report.html").read_text(encoding="utf-8")).found
    promises = [text for text in texts if PROMISES.search(text) and text.endswith(".")]
    assert len(promises) > 5
    for text in promises:
        assert text in said or any(pattern.fullmatch(text) for pattern in patterns), text


def test_every_sentence_of_the_certificate_is_on_the_page(made):
    folder, page = made
    certificate = folder.certificate
    for text in (certificate.statement, certificate.worst.statement, *certificate.not_stated):
        assert text in page.text
    for statement in certificate.statements:
        assert re.sub(r"\s+", " ", statement.words) in page.text


def test_data_are_called_what_the_certificate_calls_them(made):
    folder, page = made
    for phrase in ("on these validation data", "these blocks", "blocks of these training data"):
        assert (phrase in page.text) == (phrase in " ".join(stated(folder))), phrase
    assert ("scored on the validation data" in page.text) == (folder.plan.blocks is None)
    assert ("free run of the" in page.text) == (folder.plan.horizon is None)


def test_numbers_of_networks_are_those_of_the_certificate(made):
    folder, page = made
    certificate, rows = folder.certificate, folder.search
    assert f"network {certificate.winner}" in page.text
    diverged = np.flatnonzero(~np.isfinite(rows["scores"][:, 0]))
    if len(diverged):
        listed = page.text[page.text.index("These are") : page.text.index("Computing time")]
        found = [int(number) for number in re.findall(r"network (\d+) \(", listed)]
        assert found == diverged[: len(found)].tolist()
        assert max(found) >= len(rows) // 2, "of the second family"
    [slowest] = re.findall(r"the slowest, network (\d+)", page.text)
    assert rows["seconds"][int(slowest)] == rows["seconds"].max()
    members = re.search(r"Its members: networks ([^.]*)\.", page.text)
    if members:
        best = folder.ranked(folder.plan.committee)
        assert int(re.match(r"\d+", members.group(1)).group()) == best[0]


def test_facts_are_the_numbers_of_the_certificate(made):
    folder, page = made
    certificate, facts = folder.certificate, page.facts
    assert int(facts["networks"]) == certificate.networks
    assert int(facts["failures"]) == certificate.failures
    assert float(facts["epsilon"]) == pytest.approx(certificate.epsilon, rel=1e-3)
    assert float(facts["epsilon"]) >= certificate.epsilon
    assert float(facts["epsilon_exact"]) >= certificate.epsilon_exact
    if certificate.score == "fit":
        assert float(facts["fit-validation"].split()[0]) == pytest.approx(certificate.threshold, abs=0.006)
