"""The page of a run: what it says, what it escapes, what it weighs; how it behaves is seen in test_page_browser."""

import ast
import base64
import dataclasses
import gzip
import json
import re
import shlex
import shutil
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

from echobound.data import Record
from echobound.diagnostics.telling import told
from echobound.identify import identify
from echobound.kernels import Status
from echobound.network import ReservoirLaw, bound_words, respond
from echobound.plants import ph_experiment
from echobound.report import write_page
from echobound.report.contents import Response, RunContents
from echobound.report.sections import SECTIONS, generalisation, rerun_command
from echobound.runs.folder import RunFolder
from echobound.verify import verify

SMALL = {"law": "paper", "order": 12, "epsilon": 0.2, "beta": 1e-3, "washout": 60}
UNCLIPPED = ReservoirLaw(order=3, output_delays=1, norm=0.1, feedback_scale=0.0, input_scale=0.01)


class Outline(HTMLParser):
    """Elements, addresses and the text that a reader sees."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.addresses, self.facts, self.seen, self.stack = [], [], {}, [], []
        self.feed(text)
        self.text = re.sub(r"\s+", " ", "".join(self.seen))

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append((tag, attributes))
        self.addresses += [attributes[name] for name in ("src", "href") if name in attributes]
        if tag not in ("meta", "link", "img", "br"):
            self.stack.append((tag, attributes))

    def handle_endtag(self, tag):
        assert self.stack.pop()[0] == tag, f"{tag} closes nothing"

    def handle_data(self, data):
        if not any(tag in ("script", "style") for tag, _ in self.stack):
            self.seen.append(data)
            for _, attributes in self.stack:
                if "data-key" in attributes:
                    self.facts[attributes["data-key"]] = self.facts.get(attributes["data-key"], "") + data


@pytest.fixture(scope="module")
def run(ph_records, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "page"
    result = identify(*ph_records, test=ph_experiment(samples=(300,), seed=9), **SMALL, run=folder)
    verify(folder, fresh=20)
    return folder, result


@pytest.fixture(scope="module")
def page(run):
    return Outline((run[0] / "report.html").read_text(encoding="utf-8"))


def test_the_page_says_what_the_certificate_says(run, page):
    folder, result = run
    stored = json.loads((folder / "certificate.json").read_text())
    for sentence in (stored["statement"], stored["worst"]["statement"], *stored["not_stated"]):
        assert sentence in page.text
    for digest in stored["digests"].values():
        assert not digest or digest in page.text
    facts = page.facts
    assert int(facts["networks"]) == stored["networks"]
    assert int(facts["failures"]) == stored["failures"]
    assert float(facts["epsilon"]) == stored["epsilon"]
    assert stored["epsilon_exact"] <= float(facts["epsilon_exact"]) < 1.001 * stored["epsilon_exact"], "rounded up"
    assert float(facts["beta"]) == stored["beta"]
    for role in ("validation", "test"):
        shown = float(facts[f"fit-{role}"].removesuffix("%"))
        assert shown == pytest.approx(result.network_scores[role]["fit"], abs=0.005), "what the certificate is about"
        shown = float(facts[f"delivered-fit-{role}"].removesuffix("%"))
        assert shown == pytest.approx(result.scores[role]["fit"], abs=0.005)
    assert int(facts["held"]) == (result.table["status"] == Status.HELD).sum()


def test_the_page_says_which_model_is_delivered_and_where_it_stays(run, page, ph_records, tmp_path):
    _, result = run
    assert f"It is the committee, in model.npz. {result.reason}" in page.text
    assert "it does not cover the committee" in page.text
    assert bound_words(result.model) in page.text, "it has none, and that is said"
    clipped = identify(*ph_records, **(SMALL | {"law": "broad", "committee": 0}), run=tmp_path / "run")
    text = Outline((tmp_path / "run" / "report.html").read_text(encoding="utf-8")).text
    [(low, high)] = clipped.model.bound
    found = re.search(r"Every free run stays within (\S+) and (\S+) pH, whatever the inputs are\.", text)
    assert low - 1e-4 < float(found[1]) <= low < high <= float(found[2]) < high + 1e-4, "rounded outwards"
    assert "It is the picked network, in model.npz." in text
    assert "about a free run, in which the model's own outputs are fed back" in text


def test_an_output_at_its_limit_is_named_on_the_page(ph_records, tmp_path):
    """Inputs far beyond those of the training data drive the outputs to a limit."""
    training, validation = ph_records
    beyond = dataclasses.replace(validation, u=20 * validation.u)
    result = identify(training, beyond, **(SMALL | {"law": "broad"}), run=tmp_path / "run")
    [held] = result.held["committee"]["validation"]
    assert held.too_long
    contents = RunContents(RunFolder(tmp_path / "run"))
    words = [f"On {role} data, {one.words}." for role, _, one in contents.held]
    text = Outline((tmp_path / "run" / "report.html").read_text(encoding="utf-8")).text
    assert words
    assert all(one in text for one in words)
    simulated, [(low, high)] = result.model.simulate(beyond).y, result.model.bound
    assert held.share == pytest.approx(((simulated <= low + 1e-6) | (simulated >= high - 1e-6)).mean(), abs=0.01)
    assert held.limit in (low, high)


def test_the_second_certificate_is_on_the_page(run, page):
    folder, result = run
    second = RunFolder(folder).generalisation
    assert second == result.generalisation
    for sentence in (*(says for _, says in told(second)), *second.not_stated):
        assert sentence in page.text
    assert "1 test record shows how well the model did there, and nothing about the next one" in page.text.lower()
    for statements in second.statements.values():
        assert not any(one.claim in page.text for one in statements), "with one record they would promise nothing"
    ids = {attributes["id"] for _, attributes in page.tags if "id" in attributes}
    assert {"generalisation", "plot-test"} <= ids
    assert not {"plot-episodes", "plot-episode-typical", "plot-episode-worst"} & ids, "one record is drawn once"


def test_the_band_is_drawn_around_a_typical_and_the_worst_episode(ph_records, tmp_path):
    training, validation = ph_records
    test = ph_experiment(samples=[90] * 5, seed=9)
    result = identify(training, validation, test=test, **SMALL, run=tmp_path / "run")
    contents = RunContents(RunFolder(tmp_path / "run"))
    second = contents.second
    drawn = contents.episodes(second)
    errors = np.array(second.seen["committee"].rmse)
    for which, number in (("typical", np.argsort(errors)[2]), ("worst", errors.argmax())):
        assert drawn[which].scores["committee"]["rmse"] == pytest.approx(errors[number], rel=1e-9)
        assert drawn[which].band == second.band("committee").widths
        assert list(drawn[which].simulated) == ["committee", "picked network"], "the band is drawn around the first"
    apart = np.abs(drawn["worst"].measured - drawn["worst"].simulated["committee"])
    assert (apart <= second.band("committee").widths[0]).all()
    section = generalisation(contents)
    assert [drawing.name for drawing in section.drawings] == ["episodes", "episode-typical", "episode-worst"]
    assert f"from {errors.min():.4g} to {errors.max():.4g}" in section.drawings[0].summary
    figure = section.drawings[0].figure()
    assert figure.axes[0].get_ylim()[1] > errors.max()
    assert "FIT" not in figure.axes[0].get_ylabel()
    assert result.generalisation == second


def test_a_small_beta_is_written_as_a_power(ph_records, tmp_path):
    identify(*ph_records, law="paper", order=5, networks=40, beta=1e-7, washout=60, run=tmp_path / "run")
    text = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert '<dd data-key="beta">10<sup>−7</sup></dd>' in text


def test_every_section_is_there_with_its_figures(run, page):
    folder, result = run
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids)), "each once"
    sections = {"delivered", "outputs", "search", "testing", "distribution", "model", "effort", "origin"}
    assert {"certificate", *sections} <= set(ids)
    assert {"plot-validation", "plot-test", "plot-sampling", "plot-testing", "plot-distribution"} <= set(ids)
    fresh = verify(folder, fresh=0)
    for sentence in (fresh["statement"], fresh["worst"]["statement"], result.network.stability.statement):
        assert sentence in page.text
    for word in ("12 states", "law paper, seed 0", "minmax", "60 samples", "numpy", "Computing time"):
        assert word in page.text


def test_sections_are_left_out_where_there_is_nothing_to_show(ph_records, tmp_path):
    identify(*ph_records, **SMALL, run=tmp_path / "run")
    contents = RunContents(RunFolder(tmp_path / "run"))
    shown = {build.__name__ for build in SECTIONS if build(contents) is not None}
    assert not {"testing", "generalisation"} & shown
    assert {"outputs", "search", "distribution", "model", "effort", "origin"} <= shown


def test_the_command_on_the_page_makes_the_same_run_again(run, page):
    folder, result = run
    [command] = re.findall(r"python -c '.*?print\(.*?\)'", page.text)
    command = command.replace("python", sys.executable, 1)
    done = subprocess.run(["bash", "-c", command], cwd=folder.parent, capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[0] == f"{result.certificate.statement} True"
    assert RunFolder(folder.parent / "page-again").certificate == result.certificate


def test_the_page_needs_nothing_from_outside(page):
    assert page.addresses, "links within the page, and images in it"
    for address in page.addresses:
        assert address.startswith(("#", "data:image/svg+xml,", "data:,")), address
    [policy] = [a["content"] for tag, a in page.tags if tag == "meta" and "http-equiv" in a]
    assert "default-src 'none'" in policy
    assert "http" not in policy
    assert {attributes.get("type") for tag, attributes in page.tags if tag == "script"} == {
        None,
        "application/json",
        "text/plain",
    }


def test_of_bokehs_scripts_the_core_alone_is_in_the_page_and_once(run):
    from bokeh.resources import Resources

    [script] = Resources(mode="inline", components=["bokeh"]).js_raw[:1]
    text = (run[0] / "report.html").read_text(encoding="utf-8")
    [packed] = re.findall(r'<script type="text/plain" id="bokeh">(.*?)</script>', text, re.DOTALL)
    assert gzip.decompress(base64.b64decode(packed)).decode() == script
    assert len(packed) < 0.4 * len(script)
    assert len(text) - len(packed) < 1e6, "the rest is ours"


@pytest.mark.parametrize("name", ["it's", 'a "run"', "naïve 水 😀", "$HOME `id`"])
def test_the_command_survives_the_name_of_the_folder(name):
    python, dash, code = shlex.split(rerun_command(name))
    assert (python, dash) == ("python", "-c")
    [constants] = [
        [n.value for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    ]
    assert {name, f"{name}-again"} == set(constants)


def test_a_folder_given_as_a_dot_has_a_name(run, monkeypatch):
    monkeypatch.chdir(run[0])
    assert RunContents(RunFolder(".")).name == "page"


def test_names_from_data_are_escaped(ph_records, tmp_path):
    nasty = '</script><script>alert("1")</script><img src=x><!-- $$\\frac$$'
    training, validation = (
        Record(u=r.u, y=r.y, input_names=(nasty,), output_names=(f"{nasty} y",), output_units=(nasty,), name=nasty)
        for r in ph_records
    )
    identify(training, validation, **SMALL, run=tmp_path / "run")
    text = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    outline = Outline(text)
    assert nasty in outline.text, "shown as it is"
    figures = sum(tag == "figure" for tag, _ in outline.tags)
    assert sum(tag == "script" for tag, _ in outline.tags) == 2 + figures, "Bokeh's, ours, and data of each figure"
    assert sum(tag == "img" for tag, _ in outline.tags) == figures
    for block in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL):
        assert "<" not in block
        json.loads(block)


def test_all_text_of_a_figure_is_plain(ph_records, tmp_path):
    """Bokeh would ask the network for a formula renderer."""
    names = {"output_names": ("$$x^2$$",), "output_units": (r"\(m\)",)}
    training, validation = (Record(u=r.u, y=r.y, **names) for r in ph_records)
    identify(training, validation, **SMALL, run=tmp_path / "run")
    text = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    found = 0
    for block in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL):
        for label in labels(json.loads(block)):
            assert label["name"] == "PlainText"
            found += "$$x^2$$" in label["attributes"]["text"]
    assert found >= 1


def labels(value):
    """Every axis label in Bokeh's JSON; there are no other texts."""
    if isinstance(value, dict):
        if value.get("name") == "Title":
            assert "attributes" not in value or "text" not in value["attributes"]
        for key, item in value.items():
            if key == "axis_label" and item is not None:
                yield item
            yield from labels(item)
    elif isinstance(value, list):
        for item in value:
            yield from labels(item)


def test_several_records_and_outputs(mimo_records, tmp_path):
    identify(*mimo_records, law="paper", order=8, networks=20, washout=20, beta=0.1, run=tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    [response] = RunContents(folder).responses
    assert len(response.time) == len(response.measured) == 220 + 1 + 180
    assert np.flatnonzero(np.isnan(response.measured[:, 0])).tolist() == [220]
    assert (np.diff(response.time) >= 0).all()
    assert response.time[0] == 20 * 0.5
    assert response.time[-1] == (240 + 199) * 0.5
    measured, simulated = (
        np.concatenate(side) for side in zip(*respond(folder.model, folder.experiments.validation), strict=True)
    )
    assert np.array_equal(response.measured[~np.isnan(response.measured[:, 0])], measured)
    assert np.allclose(np.delete(response.simulated["committee"], 220, axis=0), simulated, rtol=1e-9)
    assert write_page(folder).stat().st_size > 0


def test_of_many_outputs_those_that_fit_worst_are_drawn_and_all_are_in_the_table(tmp_path):
    """80 of them took a minute to draw, and 300 over ten."""
    names, tones = [f"y{i}" for i in range(40)], 0.02 * np.arange(1, 41)
    parts = [
        Record(u=np.sin(0.05 * k), y=np.sin(k[:, None] * tones), output_names=names)
        for k in (np.arange(250.0), np.arange(250.0, 400.0))
    ]
    run = tmp_path / "run"
    few = {"law": "paper", "order": 4, "networks": 3, "epsilon": None, "beta": 0.5, "washout": 20, "committee": 0}
    identify(*parts, **few, run=run)
    page = Outline((run / "report.html").read_text(encoding="utf-8"))
    assert "for the 6 of 40 outputs with the lowest FIT" in page.text
    assert all(re.search(rf"\by{i}\b", page.text) for i in range(40)), "all are in the table"
    [response] = RunContents(RunFolder(run)).responses
    fits = {name: each["fit"] for name, each in response.scores["picked network"]["per_output"].items()}
    assert set(response.drawn.names) == set(sorted(fits, key=fits.get)[:6])
    assert len(response.names) == 40
    # Two axes for each output, and one for the input.
    assert (run / "report.html").read_text(encoding="utf-8").count('"name":"Figure"') < 40


def growing(samples):
    k = np.arange(samples)
    return Record(u=np.sin(0.1 * k), y=np.exp(0.2 * (k % 300)))


@pytest.mark.filterwarnings("ignore:200 training samples")
def test_a_run_in_which_all_diverged_has_a_page(tmp_path):
    result = identify(growing(300), growing(8000), law=UNCLIPPED, networks=1, beta=0.5, seed=3, run=tmp_path / "run")
    assert result.model is None
    page = Outline((tmp_path / "run" / "report.html").read_text(encoding="utf-8"))
    assert "All networks diverged" in page.text
    assert "1 of 1; a diverged network scores worst" in page.text


@pytest.mark.filterwarnings("ignore:200 training samples")
def test_a_model_that_diverges_on_test_data_has_a_page(tmp_path):
    run = tmp_path / "run"
    k = np.arange(8000)
    test = Record(u=np.cos(0.013 * k), y=np.exp(0.17 * (k % 310)))
    result = identify(growing(300), growing(300), test=test, law=UNCLIPPED, networks=1, beta=0.5, seed=3, run=run)
    assert not np.isfinite(result.scores["test"]["fit"])
    assert "Test data" in Outline((run / "report.html").read_text(encoding="utf-8")).text


def test_ten_thousand_networks_and_samples_fit_into_five_megabytes(run, monkeypatch):
    folder = RunFolder(run[0])
    contents = RunContents(folder)
    rng = np.random.default_rng(0)
    search = np.zeros(10_000, dtype=folder.search.dtype)
    search["index"], search["order"] = np.arange(10_000), rng.integers(10, 500, 10_000)
    search["scores"] = np.stack([rng.normal(90, 1, 10_000), rng.gamma(3, 0.01, 10_000)], axis=1)
    search["seconds"] = rng.gamma(2, 0.01, 10_000)
    record = Record(u=rng.normal(size=10_000), y=rng.normal(size=10_000), name="long")
    [response, *_] = contents.responses
    long = np.cumsum(rng.normal(size=(10_000, 1)), axis=0)
    contents.responses = [
        type(response)(
            role="validation",
            time=record.time,
            measured=long,
            simulated={"committee": long + record.y},
            names=response.names,
            units=("m",),
            scores=response.scores,
        )
    ]
    contents.search = contents.fresh = search  # nobody trained these
    monkeypatch.setattr("echobound.report.page.RunContents", lambda folder: contents)
    target = run[0].parent / "large"
    shutil.copytree(run[0], target)
    large = RunFolder(target)
    page = write_page(large)
    assert "The 10000 networks of the search" in page.read_text(encoding="utf-8")
    assert "10000 samples after the washout" in page.read_text(encoding="utf-8")
    assert page.stat().st_size < 5e6


@pytest.mark.parametrize(("outputs", "roles", "most"), [(6, 2, 2.5e6), (2, 4, 2.5e6), (1, 2, 1.7e6)])
def test_long_records_of_many_outputs_stay_below_what_a_mail_takes(run, monkeypatch, outputs, roles, most):
    """Six outputs with test data made 2.8 MB once, and four long ones more."""
    rng = np.random.default_rng(0)
    contents = RunContents(RunFolder(run[0]))
    names = tuple(f"y{i + 1}" for i in range(outputs))
    measured = np.cumsum(rng.normal(size=(20_000, outputs)), axis=0)
    models = {whose: measured + rng.normal(size=measured.shape) for whose in ("committee", "picked network")}
    scores = {whose: {"fit": 90.0, "per_output": {n: {"fit": 90.0, "rmse": 1.0} for n in names}} for whose in models}
    response = Response(
        "validation", 0.1 * np.arange(20_000), measured, models, names, ("m",) * outputs, scores,
        inputs={f"u{i}": rng.normal(size=20_000) for i in range(3)},
    )  # fmt: skip
    contents.responses = [dataclasses.replace(response, role=f"part {i}") for i in range(roles)]
    monkeypatch.setattr("echobound.report.page.RunContents", lambda folder: contents)
    monkeypatch.setattr("echobound.report.page.SECTIONS", [each for each in SECTIONS if each is not generalisation])
    target = run[0].parent / f"wide-{outputs}"
    shutil.copytree(run[0], target)
    page = write_page(RunFolder(target))
    assert page.stat().st_size < most
    table = Outline(page.read_text(encoding="utf-8")).text
    assert all(f"{name} (m)90.00 %1" in table for name in names)


# ---------------------------------------------------------------- what more of the theory adds, where it is there


def test_the_band_is_shown_with_the_confidence_of_the_certificate(run):
    theory = pytest.importorskip("echobound.scenario")
    contents = RunContents(RunFolder(run[0]))
    scores = contents.search["scores"][:, 0]
    band = theory.DistributionBand.of(scores, beta=contents.certificate.beta, direction="max")
    assert np.array_equal(contents.band, [band.lower, band.upper])
    assert "band is for all networks" in Outline((run[0] / "report.html").read_text(encoding="utf-8")).text


def test_the_learning_curve_ends_at_the_best_and_says_what_more_would_gain(run):
    theory = pytest.importorskip("echobound.scenario")
    contents = RunContents(RunFolder(run[0]))
    sizes, curve = contents.learning
    assert (sizes[0], sizes[-1]) == (1, contents.certificate.networks)
    assert curve[0] == pytest.approx(contents.search["scores"][:, 0].mean())
    assert curve[-1] == contents.certificate.threshold
    words = theory.Gain.of(contents.search["scores"][:, 0], score="fit", direction="max", unit="%").words
    text = Outline((run[0] / "report.html").read_text(encoding="utf-8")).text
    assert words in text
    assert "no part of the certificate" in text
