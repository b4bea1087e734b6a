"""The page in a real browser: it opens alone and quietly, can be hovered over, zoomed, read and printed by anybody."""

import json
import os
import re
import shutil

import numpy as np
import pytest

from echobound.data import Record
from echobound.generalise import generalise
from echobound.identify import identify
from echobound.plants import ph_experiment
from echobound.runs.folder import RunFolder
from echobound.verify import verify

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
NETWORKS, FRESH = 645, 60


def missing(what):
    """Where all checks must run, a missing browser is a failure; at somebody's desk it is a reason to skip."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what} is missing, and CI must see the page in a browser")
    pytest.skip(f"{what} is not installed")


def test_without_a_browser_ci_fails_and_a_desk_skips(monkeypatch):
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception):
        missing("Chromium")
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception):
        missing("Chromium")


@pytest.fixture(scope="module")
def browser():
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright")
    if CHROMIUM is None:
        missing("Chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run as the paper's, with smaller networks."""
    folder = tmp_path_factory.mktemp("browser") / "run"
    training, validation, *test = ph_experiment(samples=(900, 700, *[150] * 5))
    plan = {"law": "paper", "order": 6, "networks": NETWORKS, "epsilon": 0.05, "bound": "explicit"}
    identify(training, validation, **plan, run=folder)
    verify(folder, fresh=FRESH)
    generalise(folder, test, criterion="rmse<0.5")
    return folder


class Visit:
    """An open page with all that it complained about or asked for."""

    def __init__(self, browser, path, width=1280, height=900, **context):
        self.context = browser.new_context(viewport={"width": width, "height": height}, **context)
        self.context.set_default_timeout(90_000)
        self.page = self.context.new_page()
        self.complaints, self.requests = [], []
        self.page.on("console", lambda said: said.type in ("error", "warning") and self.complaints.append(said.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.url = (path / "report.html").as_uri()
        self.page.goto(self.url)

    def figure(self, name):
        """Scroll to a figure, and wait until it is drawn."""
        figure = self.page.locator(f"#figure-{name}")
        figure.scroll_into_view_if_needed()
        self.page.wait_for_selector(f"#plot-{name}[data-drawn]")
        self.page.wait_for_timeout(300)
        return figure

    def draw_all(self):
        names = self.page.eval_on_selector_all("figure.drawing", "all => all.map(f => f.id.slice(7))")
        for name in names:
            self.figure(name)
        return names

    def of(self, name, what):
        """Evaluate an expression of `plots`, the plots of a figure from the top, and `all`, the models in it."""
        code = f"""() => {{
            const root = Bokeh.documents.map(d => d.roots()[0]).find(r => Bokeh.index.roots
                .some(v => v.model === r && document.getElementById("plot-{name}").contains(v.el)));
            const plots = root.children, all = [...root.references()];
            return {what};
        }}"""
        return self.page.evaluate(code)

    def x_range(self, name):
        return self.of(name, "[plots[0].x_range.start, plots[0].x_range.end]")

    def close(self):
        self.context.close()
        assert self.complaints == []
        assert self.requests == [self.url], "the file itself and nothing else"


@pytest.fixture
def visit(browser, run):
    visits = []

    def open_page(**options):
        visits.append(Visit(browser, options.pop("path", run), **options))
        return visits[-1]

    yield open_page
    for one in visits:
        one.close()


@pytest.fixture(scope="module")
def desk(browser, run):
    """One visit that most tests share."""
    one = Visit(browser, run)
    one.names = one.draw_all()
    yield one
    one.close()


def test_the_page_of_645_networks_is_small_and_has_its_figures(run, desk):
    assert (run / "report.html").stat().st_size < 2.5e6
    assert {"validation", "sampling", "testing", "distribution", "episodes", "episode-worst"} <= set(desk.names)


def test_numbers_on_the_page_are_those_of_the_certificate(run, desk):
    stored = json.loads((run / "certificate.json").read_text())
    shown = dict(
        desk.page.eval_on_selector_all("[data-key]", "all => all.map(e => [e.dataset.key, e.innerHTML.trim()])")
    )
    assert int(shown["networks"]) == stored["networks"] == NETWORKS
    assert float(shown["epsilon"]) == stored["epsilon"]
    exponent = re.fullmatch(r"10<sup>−(\d+)</sup>", shown["beta"]).group(1)
    assert 10.0 ** -int(exponent) == stored["beta"]
    assert stored["epsilon_exact"] <= float(shown["epsilon_exact"]) < 1.001 * stored["epsilon_exact"]
    assert float(shown["fit-validation"].split(" ")[0]) == pytest.approx(stored["threshold"], abs=0.005)
    assert desk.page.inner_text("#certificate .statement") == stored["statement"]
    assert stored["digests"]["ledger"] in desk.page.inner_text("#origin")


def test_every_network_is_a_dot_and_violators_are_circled(run, desk):
    folder = RunFolder(run)
    scatters = "all.filter(m => m.type == 'GlyphRenderer' && m.glyph.type == 'Scatter' && !m.name)"
    drawn = desk.of("sampling", f"{scatters}.map(r => [...r.data_source.data.index])")
    assert sorted(index for part in drawn for index in part) == sorted([*range(NETWORKS)] * 2), "in both panels"
    best = folder.certificate.threshold
    fresh = folder.fresh["scores"]
    for case, beyond in (
        ("best", np.flatnonzero(fresh[:, 0] > best)),
        ("worst", np.flatnonzero(fresh[:, 1] > folder.search["scores"][:, 1].max())),
    ):
        circled = desk.of("testing", f"[...all.find(m => m.name == 'violations-{case}').data_source.data.x]")
        assert circled == beyond.tolist()
    line = desk.of("sampling", "all.filter(m => m.type == 'Span').map(m => m.location)")
    assert line[0] == best


def test_hovering_over_a_network_shows_its_index_and_scores(run, desk):
    folder = RunFolder(run)
    winner, best = folder.certificate.winner, folder.certificate.threshold
    desk.figure("sampling")
    x, y = desk.of(
        "sampling",
        f"""(() => {{
            const [view] = Bokeh.index.query(v => v.model === plots[0]);
            const frame = view.frame, box = view.canvas_view.el.getBoundingClientRect();
            return [box.x + frame.x_scale.compute({winner}), box.y + frame.y_scale.compute({best})];
        }})()""",
    )
    desk.page.mouse.move(x - 40, y + 40)
    desk.page.mouse.move(x, y, steps=4)
    desk.page.wait_for_timeout(500)
    tip = re.sub(r"\s+", " ", desk.page.locator(".bk-tooltip-content").first.inner_text())
    assert re.search(rf"network:? {winner}\b", tip), tip
    fit, rmse = folder.search["scores"][winner]
    assert f"{fit:.6g}" in tip
    assert f"{rmse:.6g}" in tip


def test_wheel_drag_buttons_and_keys_move_a_figure_and_reset_brings_it_back(desk):
    figure = desk.figure("validation")
    plot = figure.locator(".plot")
    home = desk.x_range("validation")

    def width():
        start, end = desk.x_range("validation")
        return end - start

    box = plot.bounding_box()
    desk.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 120)
    scrolled = desk.page.evaluate("scrollY")
    desk.page.mouse.wheel(0, -120)
    desk.page.wait_for_timeout(400)
    assert desk.x_range("validation") == home, "the wheel belongs to the page until a figure is clicked"
    assert desk.page.evaluate("scrollY") != scrolled
    figure.scroll_into_view_if_needed()
    desk.page.wait_for_timeout(300)
    box = plot.bounding_box()
    middle = (box["x"] + box["width"] / 2, box["y"] + 120)
    desk.page.mouse.click(*middle)
    scrolled = desk.page.evaluate("scrollY")
    desk.page.mouse.wheel(0, -240)
    desk.page.wait_for_timeout(400)
    assert width() < 0.95 * (home[1] - home[0])
    assert desk.page.evaluate("scrollY") == scrolled
    zoomed = desk.x_range("validation")
    assert desk.of("validation", "plots.every(p => p.x_range === plots[0].x_range)"), "signals and errors together"

    desk.page.mouse.move(*middle)
    desk.page.mouse.down()
    desk.page.mouse.move(middle[0] - 100, middle[1], steps=5)
    desk.page.mouse.up()
    desk.page.wait_for_timeout(300)
    assert desk.x_range("validation")[0] > zoomed[0]

    figure.get_by_role("button", name="Reset").click()
    assert desk.x_range("validation") == home
    figure.get_by_role("button", name="Zoom in").click()
    once = width()
    assert once == pytest.approx(0.6 * (home[1] - home[0]))
    figure.get_by_role("button", name="Move right").click()
    assert desk.x_range("validation")[1] == pytest.approx(min(home[1], home[0] + 0.95 * (home[1] - home[0])))
    plot.focus()
    desk.page.keyboard.press("+")
    assert width() < once
    desk.page.keyboard.press("ArrowLeft")
    desk.page.keyboard.press("-")
    desk.page.keyboard.press("0")
    assert desk.x_range("validation") == home
    for _ in range(3):
        figure.get_by_role("button", name="Zoom out").click()
    assert desk.x_range("validation") == pytest.approx(home), "there is nothing beyond the data"
    desk.page.keyboard.press("Escape")


def test_the_command_can_be_copied(visit):
    one = visit(permissions=["clipboard-read", "clipboard-write"])
    one.page.click("#copy")
    one.page.wait_for_function("document.getElementById('copied').textContent == 'Copied'")
    assert one.page.evaluate("navigator.clipboard.readText()") == one.page.inner_text("#command")


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390)])
def test_axe_finds_nothing_serious(visit, scheme, width):
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        missing("axe")
    one = visit(color_scheme=scheme, width=width, bypass_csp=True)
    one.draw_all()
    found = Axe().run(one.page).response
    serious = [
        f["id"] + ": " + f["nodes"][0]["html"][:200]
        for f in found["violations"]
        if f["impact"] in ("serious", "critical")
    ]
    assert serious == []
    assert len(found["passes"]) > 20, "it did look"


def luminance(colour):
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    return sum(
        w * (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4)
        for w, p in zip((0.2126, 0.7152, 0.0722), parts, strict=True)
    )


def test_dark_and_light_are_followed_by_page_and_figures(visit):
    one = visit(color_scheme="dark")
    one.figure("validation")
    background = "getComputedStyle(document.body).backgroundColor"
    colours = "[plots[0].xaxis?.[0] ?? plots[0].below[0], ...all.filter(m => m.type == 'Line')]"
    colours = f"{colours}.map(m => m.major_label_text_color ?? m.line_color.value ?? m.line_color)"
    dark = one.page.evaluate(background), one.of("validation", colours)
    one.page.emulate_media(color_scheme="light")
    one.page.wait_for_timeout(300)
    light = one.page.evaluate(background), one.of("validation", colours)
    assert luminance(dark[0]) < 0.05 < 0.9 < luminance(light[0])
    assert all(a != b for a, b in zip(dark[1], light[1], strict=True)), (dark, light)


def test_on_a_phone_no_number_of_a_family_is_broken(browser, tmp_path):
    law = {"law": "paper", "order": (5, 6, 7), "networks": 20, "beta": 1e-2, "washout": 60, "committee": 0}
    identify(*ph_experiment(samples=(400, 300)), **law, run=tmp_path / "run")
    one = Visit(browser, tmp_path / "run", width=390, height=844)
    lines = "all => all.map(e => { const r = document.createRange(); r.selectNodeContents(e);"
    lines += " return r.getClientRects().length })"
    assert set(one.page.eval_on_selector_all("#families td.n", lines)) == {1}
    assert one.page.evaluate("document.documentElement.scrollWidth") <= 390
    one.close()


def test_a_phone_can_show_it_all(visit):
    one = visit(width=390, height=844, has_touch=True, is_mobile=True)
    for name in one.draw_all():
        box = one.page.locator(f"#plot-{name}").bounding_box()
        assert box["x"] >= 0, name
        assert box["x"] + box["width"] <= 390, name
    assert one.page.evaluate("document.documentElement.scrollWidth") <= 390
    small = one.page.eval_on_selector_all(
        "p, td, th, dt, li", "all => all.filter(e => parseFloat(getComputedStyle(e).fontSize) < 13).length"
    )
    assert small == 0, "no text that needs a magnifying glass"


def test_a_finger_scrolls_the_page_until_it_taps_a_figure(visit):
    one = visit(width=390, height=844, has_touch=True, is_mobile=True)
    one.figure("sampling")
    active = "all.filter(m => m.type == 'PanTool').map(m => m.active)"
    assert not any(one.of("sampling", active))
    one.page.locator("#plot-sampling").tap()
    one.page.wait_for_timeout(300)
    assert all(one.of("sampling", active))


def test_on_paper_the_figures_are_vector_graphics(visit):
    one = visit()
    one.page.emulate_media(media="print")
    assert one.page.locator(".plot").first.is_hidden()
    assert one.page.locator("nav").is_hidden()
    for image in one.page.locator("img.printed").all():
        assert image.is_visible()
        assert image.evaluate("i => i.complete && i.naturalWidth > 100")
    assert len(one.page.pdf(format="A4")) > 50_000


def test_without_scripts_everything_but_the_motion_is_there(visit):
    one = visit(java_script_enabled=False)
    assert one.page.locator("img.printed").first.is_visible()
    assert one.page.locator(".tools").first.is_hidden()
    assert one.page.locator("#verdict .statement").is_visible()
    assert one.page.locator("#certificate .statement").is_visible()


def test_a_page_with_hostile_names_asks_for_nothing(visit, ph_records, tmp_path):
    nasty = '</script><script>document.title="taken"</script><img src="http://127.0.0.1:9/x"> $$\\frac12$$'
    names = {"input_names": (nasty,), "output_names": (nasty + "y",), "output_units": (nasty,), "name": nasty}
    training, validation = (Record(u=r.u, y=r.y, **names) for r in ph_records)
    identify(training, validation, law="paper", order=5, networks=20, beta=0.1, run=tmp_path / "run")
    one = visit(path=tmp_path / "run")
    one.draw_all()
    assert one.page.title() == "Certified identification: run"
    assert one.page.locator("main img:not(.printed)").count() == 0


def test_a_page_of_extremes_draws_without_complaint(visit, tmp_path):
    """One finite network of a score far beyond all bounds, a model that leaves the test data, many that diverged."""
    k = np.arange(300)
    growing = Record(u=np.sin(0.1 * k), y=np.exp(0.2 * k))
    with pytest.warns(UserWarning, match="fewer than"):
        identify(growing, growing, order=250, networks=25, beta=0.1, run=tmp_path / "run")
    one = visit(path=tmp_path / "run")
    one.draw_all()
