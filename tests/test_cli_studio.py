"""`echobound studio`: the first line is the address, refusals are one sentence, Ctrl-C ends it."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

COMMAND = [sys.executable, "-m", "echobound", "studio"]


def refused(*arguments):
    found = subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=60)
    assert found.returncode == 2
    assert found.stdout == ""
    assert found.stderr.count("\n") == 1, found.stderr
    return found.stderr


def test_what_cannot_be_served_is_one_sentence(tmp_path):
    assert "there is no folder" in refused(tmp_path / "nowhere", "--no-open")
    assert "--token" in refused(tmp_path, "--no-open", "--host", "0.0.0.0")
    assert "at least 16" in refused(tmp_path, "--no-open", "--token", "short")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "--port" in refused(tmp_path, "--no-open", "--port", taken.getsockname()[1])
    (tmp_path / "closed").mkdir(mode=0o500)
    if os.getuid():
        assert "cannot write" in refused(tmp_path / "closed", "--no-open")


@pytest.mark.parametrize("as_json", [False, True])
def test_the_first_line_is_the_address_and_ctrl_c_ends_it(tmp_path, as_json):
    more = ["--json"] if as_json else []
    command = [*COMMAND, tmp_path, "--port", "0", "--no-open", *more]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            if as_json:
                text = ""
                while not text.rstrip().endswith("}"):
                    text += server.stdout.readline()
                address = json.loads(text)["address"]
            else:
                address = server.stdout.readline().strip()
            assert address.startswith("http://127.0.0.1:")
            opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            with opener.open(address, timeout=30) as page:
                assert "From a file to a certified model" in page.read().decode()
                assert "token" not in page.url
            port = int(address.split(":")[2].split("/")[0])
            # Nobody but this machine: other addresses of it do not answer.
            with pytest.raises(OSError), socket.create_connection(("127.0.0.2", port), timeout=2):
                pass
        finally:
            server.send_signal(signal.SIGINT)
        out, err = server.communicate(timeout=30)
    assert server.returncode == 0
    assert "Traceback" not in out + err
