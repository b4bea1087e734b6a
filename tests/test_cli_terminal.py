"""What reaches a terminal: no control characters from files, and one sentence where output cannot be written."""

import io
import os
import subprocess
import sys
from contextlib import redirect_stdout

import pytest

from echobound.cli.main import app
from echobound.cli.terminal import console, print_json, print_lines, say
from echobound.errors import printable

STEERING = "level\x1b]0;mine\x07\x9b2J\u202eabc\r"


def test_control_characters_are_written_out():
    said = io.StringIO()
    with redirect_stdout(said):
        say(STEERING)
        print_lines([STEERING])
        print_json({STEERING: STEERING})
        console().print(STEERING, markup=False)
    assert not set(said.getvalue()) & set("\x1b\x07\x9b\u202e\r")
    assert said.getvalue().count("level") == 5
    assert printable("Temp\xa0(°C) – μ\tx\n") == "Temp\xa0(°C) – μ\tx\n"


def test_names_in_a_folder_cannot_steer_a_terminal(tmp_path):
    from echobound import Record, identify, ph_experiment

    records = [
        Record(one.u, one.y, input_names=("\x1b[31mq3",), output_names=("\x9b2JpH",))
        for one in ph_experiment((150, 120))
    ]
    small = {"law": "paper", "order": 4, "networks": 12, "epsilon": None, "beta": 0.05, "washout": 20}
    run = identify(*records, **small, run=tmp_path / "run").run
    for options in ([], ["--json"]):
        said = io.StringIO()
        with redirect_stdout(said):
            app(["show", str(run), *options], standalone_mode=False)
        assert "pH" in said.getvalue()
        assert not set(said.getvalue()) & set("\x1b\x9b")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such device")  # noqa: PTH110 (no folder is meant)
def test_output_on_a_full_device_is_said_and_is_not_an_answer():
    command = [sys.executable, "-m", "echobound", "plan", "--epsilon", "0.1"]
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "No space left on device" in done.stderr


def test_names_that_no_system_takes_are_refused(tmp_path):
    long = "x" * 300
    for words in (["show", long], ["simulate-plant", "--samples", "10", "--output", long], ["identify", long]):
        done = subprocess.run(
            [sys.executable, "-m", "echobound", *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 2, done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr


def test_more_samples_than_memory_are_refused(tmp_path):
    words = ["simulate-plant", "--samples", "999999999999", "--output", "p.csv"]
    done = subprocess.run(
        [sys.executable, "-m", "echobound", *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "memory are at hand" in done.stderr
