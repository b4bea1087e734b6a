"""The code blocks of the documentation: found, run in order, and compared with what the page shows.

A page is run in a folder of its own, top to bottom. What a fence means:

    python    run, all of a page in one namespace; a ``text`` fence right after it is what it prints
    console   lines that start with ``$ `` are commands, run by bash; the lines below one are what it prints, if any
    pycon     run as a doctest, in the namespace of the page
    sh        how to install: run by the test of a newcomer's path, which needs a network
    cluster   needs several machines (docs/CLUSTER.md): not run here, tested by tests/test_campaign_cluster.py
    text, matlab, or none   not code of ours

What is shown is compared word by word: ``...`` stands for anything, numbers with a point may differ by a thousandth
(machines round differently), and lines may be broken anywhere.

    python tests/docs_blocks.py docs/theory.md             run a page
    python tests/docs_blocks.py --update docs/theory.md    ... and write what it prints into it
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import traceback
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXECUTED, SET_UP, CLUSTER, PLAIN = {"python", "console", "pycon"}, {"sh"}, {"cluster"}, {"text", "matlab", ""}
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<body>.*?)^(?P=indent)```[ ]*$", re.M | re.S)
NUMBER = r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
TOLERANCE = 1e-3
WIDTH = 92


@dataclass(frozen=True)
class Block:
    """A fenced block; `start` and `end` say where its body lies in the page."""

    language: str
    body: str
    indent: str
    start: int
    end: int
    line: int
    follows: bool
    """Nothing stands between this fence and the one before."""


def blocks(text: str) -> list[Block]:
    """All fenced blocks of a page, also those inside tabs and notes."""
    found, last = [], -1
    for match in FENCE.finditer(text):
        start, end = match.span("body")
        indent = match["indent"]
        body = "".join(line.removeprefix(indent) for line in match["body"].splitlines(keepends=True))
        follows = last >= 0 and not text[last : match.start()].strip()
        found.append(Block(match["language"], body, indent, start, end, text[:start].count("\n") + 1, follows))
        last = match.end()
    return found


def matches(shown: str, printed: str) -> bool:
    """Whether a page may show this for what was printed."""
    shown, printed = " ".join(shown.split()), " ".join(printed.split())
    pattern, numbers = "", []
    for part in re.split(rf"(\.\.\.|{NUMBER})", shown):
        if part == "...":
            pattern += ".*?"
        elif re.fullmatch(NUMBER, part):
            pattern += f"({NUMBER})" if "." in part or "e" in part else re.escape(part)
            numbers += [float(part)] if "." in part or "e" in part else []
        else:
            pattern += re.escape(part)
    match = re.fullmatch(pattern, printed)
    return match is not None and all(
        abs(float(found) - number) <= TOLERANCE * abs(number)
        for found, number in zip(match.groups(), numbers, strict=True)
    )


def run_page(path: Path, update: bool = False) -> list[str]:
    """Run a page in a fresh folder; return what is wrong with it, a sentence each."""
    text = path.read_text(encoding="utf-8")
    wrong: list[str] = []
    changes: list[tuple[Block, str]] = []
    page = blocks(text)
    namespace: dict[str, object] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as desk, tempfile.TemporaryDirectory() as apart, contextlib.chdir(desk):
        env = environment(Path(apart) / "bin")
        shutil.copytree(ROOT / "examples", "examples")  # as in a clone
        for block, after in zip(page, [*page[1:], None], strict=True):
            where = f"{path.name}, line {block.line}"
            if block.language == "python":
                try:
                    printed = _run_python(block.body, where, namespace)
                except Exception:
                    wrong.append(f"{where}: {traceback.format_exc(limit=-3)}")
                    continue
                shown = after.body if after is not None and after.language == "text" and after.follows else None
                if after is not None and shown is not None and not matches(shown, printed):
                    wrong.append(f"{where} prints\n{printed}\nbut the page shows\n{shown}")
                    changes.append((after, _wrapped(printed)))
            elif block.language == "pycon":
                wrong += _run_session(block.body, where, namespace)
            elif block.language == "console":
                body, complaints = _run_console(block.body, where, env)
                wrong += complaints
                changes += [(block, body)] if body != block.body else []
    if update and changes:
        for block, body in sorted(changes, key=lambda change: -change[0].start):
            text = text[: block.start] + textwrap.indent(body, block.indent) + text[block.end :]
        path.write_text(text, encoding="utf-8")
    return wrong


def _run_python(code: str, where: str, namespace: dict[str, object]) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        # Compiled as it stands: `from __future__ import annotations` of this file would make text of the page's types.
        exec(compile(code, where, "exec", dont_inherit=True), namespace)
    return out.getvalue()


def _run_session(body: str, where: str, namespace: dict[str, object]) -> list[str]:
    test = doctest.DocTestParser().get_doctest(body, namespace, where, None, None)
    test.globs, out = namespace, io.StringIO()  # names go on from block to block
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    return [out.getvalue()] if runner.run(test, out=out.write, clear_globs=False).failed else []


def commands(body: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with what is shown below it; a backslash goes on with the next line."""
    found: list[tuple[str, str]] = []
    for line in body.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append((line[2:], ""))
        elif found and found[-1][0].endswith("\\\n"):
            found[-1] = (found[-1][0] + line, "")
        elif found:
            found[-1] = (found[-1][0], found[-1][1] + line)
        elif line.strip():
            raise ValueError(f"a console block starts with a command ('$ ...'), not with {line!r}")
    return found


def _run_console(body: str, where: str, env: dict[str, str]) -> tuple[str, list[str]]:
    """Run the commands of a block; return the block with what they print, and what is wrong."""
    parts, wrong = [], []
    for command, shown in commands(body):
        done = subprocess.run(
            ["bash", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=env,
            check=False,
        )
        refusal = "echobound: " in shown  # a page that shows an error means it
        if (done.returncode == 2) != refusal or done.returncode not in (0, 2):
            wrong.append(f"{where}: {command.strip()} ended with {done.returncode}: {done.stdout}")
        if shown.strip() and not matches(shown, done.stdout):
            wrong.append(f"{where}: {command.strip()} prints\n{done.stdout}\nbut the page shows\n{shown}")
            shown = shown if "Traceback" in done.stdout else _wrapped(done.stdout)
        parts.append(f"$ {command}{shown}")
    return "".join(parts), wrong


def environment(shims: Path) -> dict[str, str]:
    """Commands find this Python as `python` and this tree as `echobound`, as after an installation."""
    shims.mkdir()
    for name, call in (("python", ""), ("echobound", " -m echobound")):
        (shims / name).write_text(f'#!/bin/sh\nexec "{sys.executable}"{call} "$@"\n')
        (shims / name).chmod(0o755)
    return {**os.environ, **this_tree(), "PATH": f"{shims}{os.pathsep}{os.environ['PATH']}", "COLUMNS": str(WIDTH)}


def this_tree() -> dict[str, str]:
    """Environment in which a process started anywhere imports the echobound that is tested here."""
    import echobound

    return {"PYTHONPATH": str(Path(echobound.__file__).parents[1])}


def _wrapped(text: str) -> str:
    """Sentences broken at the width of a page; the lines of a table are left alone."""
    lines = [[line.rstrip()] if "|" in line or "-+-" in line else _lines(line) for line in text.splitlines()]
    return "".join(f"{piece}\n" for line in lines for piece in line)


def _lines(sentence: str) -> list[str]:
    broken = textwrap.wrap(sentence, WIDTH, break_on_hyphens=False)
    return broken if len(sentence) > WIDTH else [sentence.rstrip()]


if __name__ == "__main__":
    pages = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    complaints = [one for page in pages for one in run_page(Path(page).resolve(), update="--update" in sys.argv)]
    print("\n\n".join(complaints), file=sys.stderr)
    sys.exit(bool(complaints))
