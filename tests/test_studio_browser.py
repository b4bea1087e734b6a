"""The studio in a real browser: from a file to a certificate, a comparison and an export, without a terminal."""

import re
import zipfile

import numpy as np
import pytest
from studio_at_work import studio_of
from test_page_browser import CHROMIUM, missing

from echobound import identify
from echobound.plants import ph_experiment

TITLE = "Logger 7, hall B"
PATHS = {  # every view, and what is there once it is complete
    "/": "#files li",
    "/new": "#file:has(option)",
    "/new?file=day.csv": "#channels[data-drawn]",
    "/run?name=runs/first": "#statement:not(:empty)",
    "/run?name=runs/broken": "#ended:not([hidden])",
    "/compare?run=runs/first&run=runs/second": "#plots[data-drawn]",
}


@pytest.fixture(scope="module")
def browser():
    try:
        from playwright.sync_api import expect, sync_playwright
    except ImportError:
        missing("playwright")
    if CHROMIUM is None:
        missing("Chromium")
    expect.set_options(timeout=30_000)  # a machine may be busy
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def table(samples=700, *, title=False):
    """As a logger writes it, perhaps with a title row above the header."""
    [record] = ph_experiment(samples=(samples,))
    lines = [f"{10 * k},{u:.6g},{y:.6g}" for k, (u, y) in enumerate(zip(record.u[:, 0], record.y[:, 0], strict=True))]
    return "\n".join([*([TITLE] if title else []), "time,q3,pH", *lines, ""])


def rows(samples, part=0):
    """Input and output as text."""
    record = ph_experiment(samples=(600, samples))[part]
    return [f"{u:.6g},{y:.6g}" for u, y in zip(record.u[:samples, 0], record.y[:samples, 0], strict=True)]


DROP = """({name, text}) => {
  const carried = new DataTransfer();
  carried.items.add(new File([text], name));
  const dropped = new DragEvent("drop", {bubbles: true, cancelable: true, dataTransfer: carried});
  document.getElementById("drop").dispatchEvent(dropped);
}"""


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    folder = tmp_path_factory.mktemp("space")
    training, validation, test = ph_experiment(samples=(600, 400, 300))
    law = {"law": "paper", "networks": 30, "beta": 1e-2, "committee": 3}
    identify(training, validation, test=test, order=8, **law, run=folder / "runs/first")
    identify(training, validation, order=16, **law, run=folder / "runs/second")
    nasty = folder / "nasty <img src=x onerror=alert(1)>.csv"
    rows = [f"{np.sin(0.3 * k):.4f},{np.cos(0.3 * k):.4f}" for k in range(80)]
    nasty.write_text("\n".join(['<b>u</b>,"<script>x</script>"', *rows, ""]))
    return folder


@pytest.fixture(scope="module")
def studio(space):
    with studio_of(space, upload_limit=64 << 20, work=True) as client:
        yield client


class Visit:
    """A browser in the studio, with all that it complained about and asked for."""

    def __init__(self, browser, studio, **context):
        self.base = f"http://127.0.0.1:{studio.port}"
        self.context = browser.new_context(**({"viewport": {"width": 1400, "height": 900}} | context))
        self.context.set_default_timeout(40_000)
        self.page = self.context.new_page()
        self.complaints, self.foreign = [], []
        self.page.on("console", lambda said: said.type in ("error", "warning") and self.complaints.append(said.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on(
            "request", lambda asked: asked.url.startswith((self.base, "data:")) or self.foreign.append(asked.url)
        )
        self.page.goto(studio.gate.address)

    def open(self, path):
        self.page.goto(self.base + path)
        return self.page

    def close(self):
        self.context.close()
        assert self.complaints == []
        assert self.foreign == [], "nothing leaves the machine"


@pytest.fixture
def visit(browser, studio):
    visits = []

    def start(**context):
        visits.append(Visit(browser, studio, **context))
        return visits[-1]

    yield start
    for one in visits:
        one.close()


def test_from_a_file_with_a_title_row_to_certificate_verdict_comparison_and_export(visit, studio, tmp_path):
    from playwright.sync_api import expect

    (tmp_path / "logger.csv").write_text(table(title=True))
    page = visit(permissions=["clipboard-read", "clipboard-write"]).page
    assert "token" not in page.url
    page.set_input_files("#picker", tmp_path / "logger.csv")
    page.get_by_role("link", name="Identify logger.csv").click()

    # Columns, plots, roles.
    page.wait_for_selector("#channels[data-drawn]")
    for column, role in (("time", "time"), ("q3", "input"), ("pH", "output")):
        page.get_by_label(f"Role of {column}").select_option(role)
    # Cut by dragging: the line at the end of the training data goes to about two thirds.
    handle = page.get_by_role("slider", name="Row of the end of training")
    layer = page.locator(".cutter").bounding_box()
    handle.scroll_into_view_if_needed()
    layer, box = page.locator(".cutter").bounding_box(), handle.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(layer["x"] + layer["width"] * 0.66, box["y"] + 20, steps=6)
    page.mouse.up()
    assert 440 < int(handle.get_attribute("aria-valuenow")) < 480
    before = int(handle.get_attribute("aria-valuenow"))
    handle.focus()
    page.keyboard.press("ArrowLeft")
    assert int(handle.get_attribute("aria-valuenow")) == before - 7
    expect(page.locator("#cut-words")).to_contain_text("validation: rows")

    # The plan, worked out live.
    page.get_by_text("What is drawn", exact=True).click()
    page.fill("#setting-law", "paper")
    page.fill("#setting-order", "10")
    page.fill("#setting-beta", "1e-2")
    page.fill("#setting-epsilon", "0.1")
    expect(page.locator("#headline")).to_have_text("44 networks")
    page.fill("#setting-epsilon", "2")
    expect(page.locator("#problem")).to_be_visible()
    assert page.locator("#start").is_disabled()
    page.fill("#setting-epsilon", "0.1")
    expect(page.locator("#facts")).to_contain_text("held-out data")
    page.get_by_text("Command line", exact=True).click()
    expect(page.locator("#commands pre").first).to_contain_text("echobound identify logger.csv --rows training=3-")
    page.get_by_role("button", name="Copy: Command line", exact=True).click()
    assert page.evaluate("navigator.clipboard.readText()").startswith("echobound identify logger.csv")
    expect(page.locator("#time")).to_contain_text("about", timeout=300_000)  # it compiles first

    # Run: the plan is shown, networks appear.
    expect(page.locator("#start")).to_be_enabled()
    page.click("#start")
    page.wait_for_url("**/run?name=*")
    expect(page.locator("#plan")).to_contain_text("44")
    expect(page.locator("#dots")).to_have_attribute("data-dots", "44", timeout=90_000)
    expect(page.locator("#statement")).to_contain_text("With confidence 1 - 0.01", timeout=90_000)
    expect(page.locator("#verdict .grade")).to_have_text(re.compile("good|usable|poor"))
    expect(page.locator("#verdict")).to_contain_text("Your model explains")
    expect(page.locator("#diagnostics")).to_contain_text("dead time")
    expect(page.locator("#controls .state")).to_have_text("finished", timeout=60_000)

    # Fresh networks, with what they mean said first.
    page.locator("[data-action=verify] button").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("test the certificate and do not change it")
    dialog.get_by_label("Fresh networks").fill("30")
    dialog.get_by_text("Command line").click()
    expect(dialog.locator("pre").first).to_contain_text("--fresh 30")
    dialog.get_by_role("button", name="Draw fresh networks").click()
    expect(page.locator("[data-action=verify] .outcome")).to_contain_text("30 fresh networks", timeout=90_000)
    expect(page.locator("#looks")).to_contain_text("this one")

    # Take it away as an FMU.
    expect(page.locator("#controls .state")).to_have_text("finished", timeout=60_000)
    page.locator("[data-action=export] button").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("pre").first).to_contain_text("--to fmu")
    dialog.get_by_role("button", name="Export", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("link", name="logger.fmu").click(timeout=90_000)
    assert zipfile.is_zipfile(download.value.path())

    # The page of the run is in its sandbox.
    frame = page.frame_locator("#report")
    page.locator("#report").scroll_into_view_if_needed()
    expect(frame.locator("main, body").first).to_contain_text("With confidence 1 - 0.01")

    # Compare with the others.
    page.get_by_role("link", name="Compare with others").click()
    page.wait_for_selector("#plots[data-drawn]")
    page.get_by_label("runs/first").check()
    expect(page.locator("#table tbody tr")).to_have_count(2)
    fits = page.locator("#table tbody td.n").all_inner_texts()
    assert all(re.search(r"\d", text) for text in fits)


def test_runs_queue_stop_go_on_and_are_audited_and_tested(visit, studio, space, tmp_path):
    """A file that has to be told its dates; two runs in the queue; one stopped and resumed; audit and test data."""
    from playwright.sync_api import expect

    one = visit()
    page, jobs = one.page, studio.studio.jobs
    name = f"day {tmp_path.name}.csv"
    dated = [f"{1 + k // 600:02}/03/2024 {k % 600 // 60:02}:{k % 60:02},{row}" for k, row in enumerate(rows(600))]
    page.evaluate(DROP, {"name": name, "text": "\n".join(["Date,q3,pH", *dated, ""])})
    page.get_by_role("link", name=f"Identify {name}").click()
    page.wait_for_selector("#channels[data-drawn]")
    page.get_by_text("More about how the file is read").click()
    page.fill("#setting-dates", "european")
    expect(page.locator("#inspect-commands pre").first).to_contain_text("--dates european")
    page.get_by_role("button", name="60 / 20 / 20 %").click()
    page.get_by_text("What is drawn", exact=True).click()
    for setting, value in {
        "law": "paper",
        "order": "60",
        "networks": "20000",
        "beta": "1e-2",
        "committee": "0",
    }.items():
        page.fill(f"#setting-{setting}", value)
    expect(page.locator("#headline")).to_have_text("20,000 networks")
    page.fill("#name", "runs/long")
    expect(page.locator("#start")).to_be_enabled()
    page.click("#start")
    page.wait_for_url("**/run?name=*")
    try:
        # The second waits for its turn, and may be taken off the queue or wait.
        page.go_back()
        page.wait_for_selector("#channels[data-drawn]")
        page.get_by_text("What is drawn", exact=True).click()
        for setting, value in {"law": "paper", "order": "6", "networks": "40", "beta": "0.1"}.items():
            page.fill(f"#setting-{setting}", value)
        page.get_by_text("More about how the file is read").click()
        page.fill("#setting-dates", "european")
        page.get_by_role("button", name="60 / 20 / 20 %").click()
        page.fill("#name", "runs/short")
        expect(page.locator("#before")).to_contain_text("runs/long")
        expect(page.locator("#start")).to_be_enabled()
        page.click("#start")
        page.wait_for_url("**/run?name=*")
        expect(page.locator("#controls .state")).to_have_text("queued")
        page.get_by_role("link", name="Runs", exact=True).click()
        expect(page.locator("#queue li")).to_have_count(2)

        # Stop the long one while it runs: the short one is drawn next.
        page.locator("#queue").get_by_role("link", name="runs/long").click()
        expect(page.locator("#dots")).to_have_attribute("data-dots", re.compile("[1-9]"), timeout=90_000)
        expect(page.locator("[data-key=left]")).to_be_visible()
        page.get_by_role("button", name="Stop").click()
        expect(page.locator("#ended")).to_contain_text("kept", timeout=60_000)
        one.page.reload()
        expect(page.locator("#ended")).to_contain_text("kept")  # also after a reload
        page.get_by_role("button", name="Go on").click()
        expect(page.locator("#controls .state")).to_have_text("queued")
        page.get_by_role("button", name="Take off the queue").click()
        expect(page.locator("#controls .state")).to_have_text("unfinished")
    finally:
        for job in jobs.all():
            if job.order.run == "runs/long":
                jobs.stop(job.order.key)

    page.goto(one.base + "/run?name=runs/short")
    expect(page.locator("#controls .state")).to_have_text("finished", timeout=120_000)
    expect(page.locator("#looks")).to_contain_text("runs/long")
    expect(page.locator("[data-key=best] dt")).to_have_text("best FIT")

    page.locator("[data-action=audit] button").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Nothing in the folder is changed")
    dialog.get_by_label("Networks to train again").fill("2")
    dialog.get_by_role("button", name="Audit", exact=True).click()
    expect(page.locator("[data-action=audit] .outcome")).to_contain_text("trained again", timeout=120_000)
    expect(page.locator("#controls .state")).to_have_text("finished", timeout=60_000)

    # Test data of another day, read as the first file was; an error of the command is shown where the button is.
    fresh = [
        f"{7 + k // 600:02}/03/2024 {k % 600 // 60:02}:{k % 60:02},{row}" for k, row in enumerate(rows(300, part=1))
    ]
    (space / "other day.csv").write_text("\n".join(["Date,q3,pH", *fresh, ""]))
    page.locator("[data-action=generalise] button").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Test data can be opened once")
    dialog.get_by_label("Test files").select_option("other day.csv")
    dialog.get_by_text("Command line").click()
    expect(dialog.locator("pre").first).to_contain_text("--dates european")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    page.locator("[data-action=generalise] button").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("What each episode must satisfy").fill("nonsense")
    dialog.get_by_role("button", name="Open test data").click()
    expect(page.locator("[data-action=generalise] .outcome")).to_contain_text("nonsense", timeout=90_000)


def serious(page):
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page, options={"iframes": False}).response
    assert len(found["passes"]) > 8, "it did look"
    return [
        f["id"] + ": " + " | ".join(node["html"][:160] for node in f["nodes"][:3])
        for f in found["violations"]
        if f["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize(
    "device", [{}, {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}]
)
def test_axe_finds_nothing_serious_on_any_view_and_a_phone_shows_it_all(visit, space, device):
    try:
        import axe_playwright_python  # noqa: F401
    except ImportError:
        missing("axe")
    (space / "day.csv").write_text(table(200))
    (space / "runs/broken").mkdir(exist_ok=True)
    (space / "runs/broken/plan.json").write_bytes((space / "runs/first/plan.json").read_bytes())
    one, wrong = visit(bypass_csp=True, **device), dict[str, object]()

    def look(name):
        for scheme in ("light", "dark"):
            one.page.emulate_media(color_scheme=scheme)
            one.page.wait_for_timeout(300)
            if found := serious(one.page):
                wrong[f"{name}, {scheme}"] = found
        if device and (width := one.page.evaluate("document.documentElement.scrollWidth")) > 390:
            wrong[f"{name}, width"] = width

    for path, there in PATHS.items():
        page = one.open(path)
        page.wait_for_selector(there)
        for closed in page.locator("details:not([open]) > summary").all():
            if closed.is_visible():
                closed.click()
        look(path)
        if path == "/run?name=runs/first":
            for action in ("verify", "audit", "generalise", "export"):
                page.locator(f"[data-action={action}] button").click()
                page.wait_for_selector("dialog pre", state="attached")
                look(action)
                page.keyboard.press("Escape")
                page.wait_for_selector("dialog", state="detached")
    answer = one.page.goto(one.base + "/none")
    assert answer.status == 404
    look("an error")
    one.complaints[:] = [text for text in one.complaints if "404" not in text]
    assert wrong == {}


def test_hostile_names_stay_names(visit):
    page = visit().page
    page.get_by_role("link", name="Identify nasty <img src=x onerror=alert(1)>.csv").click()
    page.wait_for_selector("#channels[data-drawn]")
    assert page.locator("main img, main script, main b").count() == 0
    assert page.get_by_label("Role of <b>u</b>").count() == 1


def test_models_are_compared_together_and_zoomed_together(visit):
    from playwright.sync_api import expect

    page = visit().open("/compare?run=runs/first&run=runs/second")
    page.wait_for_selector("#plots[data-drawn]")
    assert page.locator("#table tbody tr").count() == 2, "the delivered model of each"
    for box in page.locator("#models input").all():
        box.check()
    expect(page.locator("#table tbody tr")).to_have_count(4)
    plots = "Bokeh.documents.at(-1).roots()[0].children"
    page.get_by_role("button", name="Zoom in").click()
    spans = page.evaluate(f"() => {plots}.map(p => [p.x_range.start, p.x_range.end])")
    assert len({tuple(span) for span in spans}) == 1
    assert spans[0][1] - spans[0][0] == pytest.approx(0.6 * 10 * 399)
    page.get_by_role("button", name="Whole record").click()
    page.select_option("#record", "run:runs/first:test:0")
    expect(page.locator("#commands pre").first).to_contain_text(".experiments.test[0]")


def test_the_list_is_searched_and_sorted(visit):
    from playwright.sync_api import expect

    page = visit().page
    expect(page.locator("#runs tbody tr").first).to_be_visible()
    page.fill("#search", "second")
    expect(page.locator("#runs tbody tr")).to_have_count(1)
    page.fill("#search", "")
    page.get_by_role("button", name=re.compile("^Run")).click()
    names = page.locator("#runs tbody th").all_inner_texts()
    assert names == sorted(names)
    page.get_by_label("Compare runs/first").check()
    page.get_by_role("button", name="Compare", exact=True).click()
    page.wait_for_url("**/compare?run=runs%2Ffirst")


def test_the_plot_of_a_long_search_is_the_same_size_as_that_of_a_short_one(visit, studio, space):
    """A row after 100,000 others reaches the screen, and the browser holds a bounded number of dots."""
    import json

    from playwright.sync_api import expect

    from echobound.kernels.base import row_dtype
    from echobound.runs.ledger import Ledger

    folder = space / "runs" / "endless"
    folder.mkdir()
    plan = json.loads((space / "runs/first/plan.json").read_text())
    (folder / "plan.json").write_text(json.dumps({**plan, "networks": 100_001}))
    rng = np.random.default_rng(0)
    with Ledger(folder / "ledger.sqlite", plan="p", scores=["fit", "rmse"]) as ledger:
        ledger.begin(range(100_001), "max")
        rows = np.zeros(100_000, dtype=row_dtype(2))
        rows["index"], rows["scores"][:, 0] = np.arange(100_000), 80 + rng.normal(size=100_000)
        ledger.append(rows)
        page = visit().open("/run?name=runs/endless")
        expect(page.locator("[data-key=done] dd")).to_have_text("100,000 / 100,001")
        last = np.zeros(1, dtype=row_dtype(2))
        last["index"], last["scores"][:, 0] = 100_000, 99.0
        ledger.append(last)
        expect(page.locator("#dots")).to_have_attribute("data-newest", "100000", timeout=5000)
        expect(page.locator("[data-key=best] dd")).to_have_text("99")
        held = int(page.locator("#dots").get_attribute("data-dots"))
    assert 1500 < held < 2300
