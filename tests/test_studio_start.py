"""The start of the studio: its first line, what the first view waits for, and how it ends."""

import http.cookiejar
import json
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from echobound import identify
from echobound.plants import ph_experiment

SERVER = [sys.executable, "-m", "echobound", "studio", ".", "--port", "0", "--no-open"]
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/\?token=\S{32}\n")
VIEW = ("/static/studio.css", "/static/home.js", "/static/dom.js", "/static/icon.svg", "/api/folder")

# The first view as the command serves it, and then what was imported for it.
FIRST_VIEW = """
import json, sys
from studio_at_work import studio_of
from pathlib import Path
from echobound.cli import main, studio
from echobound.studio.server import Studio

Studio.warm = lambda self: loaded.extend(sys.modules)
main.commands(["studio"])
loaded = []
with studio_of(Path(sys.argv[1])) as client:
    for path in ("/", *sys.argv[2:]):
        answer, content = client.ask("GET", path)
        assert answer.status == 200, (path, content)
print(json.dumps({"loaded": loaded, "folder": json.loads(content)}))
"""


@pytest.fixture
def space(tmp_path):
    training, validation = ph_experiment(samples=(400, 300))
    identify(training, validation, law="paper", order=6, networks=20, beta=0.1, committee=0, run=tmp_path / "runs/one")
    (tmp_path / "day.csv").write_text("u,y\n1,2\n2,3\n")
    return tmp_path


def test_the_first_view_waits_for_nothing_heavy(space):
    command = [sys.executable, "-c", FIRST_VIEW, str(space), *VIEW]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent)
    found = json.loads(done.stdout)
    assert [run["state"] for run in found["folder"]["runs"]] == ["finished"]
    assert found["folder"]["runs"][0]["title"] == "FIT", "it is the whole view"
    loaded = set(found["loaded"])
    assert {"tornado", "jinja2"} <= loaded
    assert not loaded & {"numba", "scipy", "bokeh", "matplotlib", "pandas", "openpyxl", "h5py", "rich", "sklearn"}
    rooms = {name.split(".")[1] for name in loaded if name.startswith("echobound.")}
    assert not rooms & {"data", "network", "kernels", "plan", "campaign", "report", "export", "identify", "control"}
    assert len(loaded) < 600, "of which most are those of Python, NumPy and Tornado"


def serving(folder):
    """The command, and its first line as a pipe shows it."""
    server = subprocess.Popen(SERVER, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return server, server.stdout.readline()


@pytest.mark.parametrize(("number", "code", "said"), [("SIGINT", 0, ""), ("SIGTERM", 143, "echobound: stopped\n")])
def test_the_first_line_is_the_address_and_a_signal_ends_it_in_good_order(tmp_path, number, code, said):
    server, line = serving(tmp_path)
    try:
        assert ADDRESS.fullmatch(line)
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
        assert b"studio" in opener.open(line.strip()).read()
        opener.open(line.partition("/?")[0] + "/api/folder").read()
        server.send_signal(getattr(signal, number))
        out, err = server.communicate(timeout=60)
        assert (server.returncode, out, err) == (code, "", said)
    finally:
        server.kill()
        server.wait()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere"], "there is no folder nowhere"),
        ([".", "--host", "0.0.0.0"], "choose a secret and give it as --token"),
        ([".", "--token", "short"], "at least 16"),
        ([".", "--host", "192.0.2.1", "--token", "a token of many letters"], "cannot serve at 192.0.2.1"),
    ],
)
def test_what_cannot_be_served_is_one_sentence(tmp_path, arguments, sentence):
    command = [*SERVER[:4], *arguments, "--port", "0", "--no-open"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("echobound: ")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_port_that_is_taken_is_one_sentence(tmp_path):
    server, line = serving(tmp_path)
    try:
        port = re.search(r":(\d+)/", line)[1]
        command = [*SERVER[:5], "--port", port, "--no-open"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 2
        assert "choose another --port" in done.stderr
    finally:
        server.kill()
        server.wait()
