"""The documentation: every code block runs and prints what the page shows, the site builds, a newcomer gets through."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from docs_blocks import CLUSTER, EXECUTED, PLAIN, ROOT, SET_UP, blocks, commands, matches, run_page

DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md"))
WITH_CODE = [page for page in PAGES if any(block.language in EXECUTED for block in blocks(page.read_text()))]
FIRST = DOCS / "first-ten-minutes.md"


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.name)
def test_every_block_runs_and_prints_what_the_page_shows(page):
    # A process for each page: a score registered on one must not be known on the next.
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", Path(__file__).with_name("docs_blocks.py"), page],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_fence_is_known(page):
    text = page.read_text()
    found = blocks(text)
    allowed = SET_UP if page == FIRST else CLUSTER if page.name == "CLUSTER.md" else set()
    assert {block.language for block in found} <= EXECUTED | PLAIN | allowed
    assert 2 * len(found) == len(re.findall(r"^ *```", text, re.MULTILINE)), "every fence is opened and closed"
    # A command or Python code in a fence that is not executed would escape the test.
    for block in found:
        if block.language in PLAIN:
            assert not re.search(r"^(\$ |>>> |import |from \w+ import )", block.body, re.MULTILINE), block.line


def test_the_pages_people_start_with_have_code():
    assert {page.name for page in WITH_CODE} >= {
        "first-ten-minutes.md",
        "tutorial-ph.md",
        "choosing.md",
        "reading-a-certificate.md",
        "theory.md",
        "coming-from.md",
        "extending.md",
        "faq.md",
        "gpu.md",
    }


@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        ("```python\nx = 1\n```\n\n```python\nprint(x + 1)\n```\n\n```text\n2\n```\n", None),
        ("```python\nprint(1)\n```\n\n```text\n2\n```\n", "but the page shows"),
        ("```python\n1 / 0\n```\n", "ZeroDivisionError"),
        ("```console\n$ echo a > f\n$ cat f\na\n```\n", None),
        ("```console\n$ echo a\nb\n```\n", "but the page shows"),
        ("```console\n$ false\n```\n", "ended with 1"),
        ("```console\n$ echobound show nothing\n```\n", "ended with 2"),
        ("```console\n$ echobound show nothing\nechobound: nothing is not a run folder ...\n```\n", None),
        ('=== "tab"\n\n    ```python\n    1 / 0\n    ```\n', "ZeroDivisionError"),
    ],
)
def test_a_page_that_does_not_hold_is_noticed(tmp_path, page, complaint):
    path = tmp_path / "page.md"
    path.write_text(page)
    wrong = run_page(path)
    assert (wrong == []) if complaint is None else complaint in "".join(wrong)
    assert path.read_text() == page


def test_update_writes_what_is_printed(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("```console\n$ echo a\nb\n$ echo c\n```\n\n```python\nprint(3)\n```\n```text\n2\n```\n")
    assert run_page(path, update=True)
    assert path.read_text() == "```console\n$ echo a\na\n$ echo c\n```\n\n```python\nprint(3)\n```\n```text\n3\n```\n"
    assert run_page(path) == []


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("FIT 90.6539 %", "FIT 90.6541 %", True),
        ("FIT 90.6539 %", "FIT 91.6539 %", False),
        ("network 176", "network 177", False),
        ("1e-07", "1e-06", False),
        ("a ... d", "a b\nc d", True),
        ("a b\nc", "a\nb c\n", True),
        ("a ... d", "a b c", False),
    ],
)
def test_what_counts_as_the_same(shown, printed, same):
    assert matches(shown, printed) is same


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs", reason="needs the extra docs")
    pytest.importorskip("mkdocstrings", reason="needs the extra docs")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_site_builds_and_asks_no_other_host(site):
    pages = list(site.rglob("*.html"))
    assert {page.name for page in pages} >= {"index.html", "command-line.html", "python.html", "JSON.html"}
    for path in [*pages, *site.rglob("*.css")]:
        text = path.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|iframe|source|video)[^>]*\ssrc=\"?([^\"\s>]+)", text)
        loaded += re.findall(r"<link[^>]*\shref=\"?([^\"\s>]+)", text)
        loaded += re.findall(r"(?:url\(|@import )[\"']?([^\"')]+)", text)
        assert not [where for where in loaded if re.match(r"(https?:)?//", where)], path


def test_the_reference_covers_every_command_and_every_public_name(site):
    import typer

    import echobound
    from echobound.cli.main import app

    page = (site / "reference" / "command-line.html").read_text()
    for name, command in typer.main.get_command(app).commands.items():
        assert f'id="{name}"' in page
        for parameter in command.params:
            if parameter.param_type_name == "option":
                assert all(f"<code>{option}</code>" in page for option in parameter.opts), (name, parameter.opts)
    python = (site / "reference" / "python.html").read_text()
    for name in echobound.__all__:
        thing = getattr(echobound, name)
        assert f'id="{thing.__module__}.{thing.__qualname__}"' in python


def test_parameters_on_one_line_have_their_own_types(site):
    apart = runpy.run_path(str(DOCS / "parameters.py"))["apart"]
    listed = "Parameters\n----------\nlow, high\n    Ends.\n\n    More.\nname\n    Its name.\n\n"
    assert apart(f"Words.\n\n{listed}Examples\n--------\n>>> 1\n") == (
        "Words.\n\nParameters\n----------\nlow\n    Ends.\n\n    More.\nhigh\n    Ends.\n\n    More.\nname\n"
        "    Its name.\n\nExamples\n--------\n>>> 1\n"
    )
    python = re.sub(r"<[^>]+>|\s+", " ", (site / "reference" / "python.html").read_text())
    assert re.search(r" beta +float +Give epsilon or", python), "and not the type of `epsilon`"


@pytest.mark.slow
@pytest.mark.skipif(
    "ECHOBOUND_NEWCOMER" not in os.environ, reason="installs from the network; set ECHOBOUND_NEWCOMER=1"
)
def test_a_newcomers_path(tmp_path):
    """What "first ten minutes" says, typed in order in a fresh clone: installation, commands, Python."""
    clone = tmp_path / "echobound"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    script = ["set -e", "cd " + str(clone)]
    for number, block in enumerate(blocks(FIRST.read_text())):
        if block.language == "sh":
            script.append(block.body)
        elif block.language == "console":
            script += [command for command, _ in commands(block.body)]
        elif block.language == "python":
            (tmp_path / f"{number}.py").write_text(block.body)
            script.append(f"python {tmp_path / f'{number}.py'}")
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(["bash", "-c", "\n".join(script)], capture_output=True, text=True, env=clean, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Certificate: With confidence" in done.stdout
