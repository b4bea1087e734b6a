"""Who may speak to the studio: every way in that is not the opening address is closed, in one sentence."""

import errno
import json
import os
import resource
import shutil
import socket
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from studio_at_work import TOKEN, studio_of

from echobound.errors import InputError
from echobound.studio.security import Gate, settle_token
from echobound.studio.workspace import Workspace, safe_name

READ = ["/", "/new", "/run?name=x", "/compare", "/api/folder", "/api/form", "/events?run=x", "/static/dom.js", "/none"]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studio")
    (folder / "plant.csv").write_text("u,y\n1,2\n2,3\n3,5\n")
    (folder.parent / "secret.csv").write_text("u,y\n1,2\n")
    with studio_of(folder) as client:
        yield client


@pytest.mark.parametrize("path", READ)
def test_without_the_cookie_nothing_is_answered(client, path):
    for cookie in (False, "wrong", ""):
        answer, content = client.ask("GET", path, cookie=cookie)
        assert answer.status == 401
        assert b"token" in content
        assert b"Traceback" not in content


def test_the_opening_address_gives_a_strict_cookie_and_forgets_the_token(client):
    answer, _ = client.ask("GET", "/?token=" + TOKEN.replace(" ", "%20"), cookie=False, origin=None, header=False)
    assert answer.status == 303
    assert answer.headers["Location"] == "/"
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert TOKEN not in cookie
    answer, _ = client.ask("GET", "/?token=guess", cookie=False)
    assert answer.status == 403
    assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:80", "localhost.evil.example:{port}", ""]
)
def test_a_foreign_name_is_refused_even_with_the_cookie(client, host):
    answer, _ = client.ask("GET", "/api/folder", host=host.format(port=client.port))
    assert answer.status in (400, 403)


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1:{port}"])
def test_a_foreign_origin_is_refused_for_reading_and_writing(client, origin):
    named = origin.format(port=client.port)
    for method, path in (("GET", "/api/folder"), ("POST", "/api/runs"), ("PUT", "/api/files?name=x.csv")):
        answer, _ = client.ask(method, path, {} if method == "POST" else None, origin=named)
        assert answer.status == 403


def test_what_changes_something_needs_our_header_and_an_origin(client):
    for path in ("/api/runs", "/api/act", "/api/job", "/api/numbers", "/api/compare"):
        assert client.ask("POST", path, {}, header=False)[0].status == 403
        assert client.ask("POST", path, {}, origin=None)[0].status == 403
    # As a form of another page could send it: no header, and the browser names its origin.
    form = {"Content_Type": "text/plain", "Sec_Fetch_Site": "cross-site"}
    assert client.ask("POST", "/api/runs", b"{}", header=False, origin="http://evil.example", **form)[0].status == 403


def test_another_page_cannot_embed_or_fetch_even_from_the_same_machine(client):
    for site in ("cross-site", "same-site"):
        sent = {"Sec_Fetch_Site": site, "Sec_Fetch_Mode": "no-cors"}
        assert client.ask("GET", "/api/folder", origin=None, **sent)[0].status == 403


@pytest.mark.parametrize("path", ["/", "/api/folder", "/static/dom.js", "/none", "/report?run=x"])
def test_every_answer_has_the_rules(client, path):
    answer, _ = client.ask("GET", path)
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    if "sandbox" not in policy:
        assert "script-src 'self';" in policy
        assert "unsafe-eval" not in policy
        assert "frame-ancestors 'none'" in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert "Server" not in answer.headers
    assert "Access-Control-Allow-Origin" not in answer.headers


def test_our_pages_have_no_inline_scripts():
    pages = (Path(__file__).parents[1] / "src/echobound/studio/templates").glob("*.html")
    for page in pages:
        text = page.read_text()
        assert text.count("<script") == text.count("<script src=") + text.count('<script type="module" src=')
        assert " onclick=" not in text
        assert "innerHTML" not in text
    for script in (Path(__file__).parents[1] / "src/echobound/studio/static").glob("*.js"):
        assert not {"innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "document.write"} & set(
            script.read_text().replace(".", " .").split()
        )
        assert "innerHTML" not in script.read_text()


TRICKS = [
    "../secret.csv", "..%2Fsecret.csv", "/etc/passwd", "....//secret.csv", "plant.csv/../../secret.csv",
    ".studio/token", "plant.csv%00.png", "C:\\x.csv", "", ".", "..", "\u202egpj.csv", "a" * 400 + ".csv",
]  # fmt: skip


@pytest.mark.parametrize("name", TRICKS)
def test_names_do_not_become_paths(client, name):
    from urllib.parse import quote

    raw = name if "%" in name else quote(name, safe="")
    places = (
        "/api/file?name={}",
        "/api/curves?name={}",
        "/report?run={}",
        "/api/run?name={}",
        "/download?run={}&file={}",
    )
    for place in (*places, "/events?run={}", "/static/{}", "/static/../{}", "/bokeh/{}"):
        path = place.format(raw, raw)
        answer, content = client.ask("GET", path)
        assert answer.status in (400, 403, 404), (path, answer.status)
        assert b"Traceback" not in content
        assert b"root:" not in content
    answer, _ = client.ask("PUT", f"/api/files?name={raw}", b"u,y\n1,2\n")
    assert answer.status == 400
    folder = client.studio.space.path
    assert sorted(one.name for one in folder.iterdir()) == [".studio", "plant.csv"]


def test_links_out_of_the_folder_are_not_followed(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "plan.json").write_text("{}")
    (tmp_path / "secret.csv").write_text("u,y\n")
    (tmp_path / "space").mkdir()
    (tmp_path / "space" / "run").symlink_to(tmp_path / "outside")
    (tmp_path / "space" / "data.csv").symlink_to(tmp_path / "secret.csv")
    space = Workspace(tmp_path / "space")
    assert space.files() == []
    assert space.runs() == {}
    with pytest.raises(InputError, match="not a place"):
        space.new_run("run/inner")


def test_links_and_pipes_inside_a_run_are_not_followed(client):
    """A run folder from somebody else: its page is a link to what is ours, its plan a pipe that nobody writes to."""
    folder = client.studio.space.path
    (folder / "bad" / "run").mkdir(parents=True)
    try:
        (folder / "bad" / "run" / "plan.json").write_text("{}")
        (folder / "bad" / "run" / "report.html").symlink_to(folder.parent / "secret.csv")
        os.mkfifo(folder / "bad" / "run" / "certificate.json")
        (folder / "bad" / "piped").mkdir()
        os.mkfifo(folder / "bad" / "piped" / "plan.json")
        assert [one["name"] for one in client.json("GET", "/api/folder")["runs"]] == ["bad/run"]
        answer, content = client.ask("GET", "/report?run=bad/run")
        assert answer.status == 400
        assert b"not followed" in content
        assert b"u,y" not in content
    finally:
        shutil.rmtree(folder / "bad")


def test_a_desk_that_is_a_link_is_refused(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "space").mkdir()
    (tmp_path / "space" / ".studio").symlink_to(tmp_path / "outside")
    with pytest.raises(InputError, match="is a link"):
        _ = Workspace(tmp_path / "space").desk
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_full_disk_is_one_sentence_and_nothing_is_left(client, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("echobound.studio.workspace.Upload.write", full)
    found = client.json("PUT", "/api/files?name=more.csv", b"u,y\n" * 100, status=400)
    assert "No space left" in found["error"]
    assert not (client.studio.space.path / "more.csv").exists()
    assert not list(client.studio.space.desk.glob("upload-*"))


def test_a_file_too_large_for_the_server_is_not_read_into_it(client):
    """Reading it would take many times its size; the command line reads it in pieces."""
    path = client.studio.space.path / "huge.csv"
    try:
        with path.open("wb") as file:
            file.truncate(2 << 30)  # takes no room on the disk
        draft = {"files": {"training": ["huge.csv"]}, "inputs": ["u"], "outputs": ["y"]}
        found = [client.json("GET", f"/api/{what}?name=huge.csv", status=400) for what in ("file", "curves")]
        found += [client.json("POST", "/api/numbers", draft), client.json("POST", "/api/runs", draft, status=400)]
        assert all("use echobound identify" in one["error"] for one in found)
    finally:
        path.unlink()


@given(st.text(max_size=60))
def test_a_safe_name_stays_in_its_folder(name):
    try:
        safe = safe_name(name)
    except InputError:
        return
    assert Path("/folder", safe).parent == Path("/folder")
    assert Path(os.path.normpath(f"/folder/{safe}")).parent == Path("/folder")
    assert not safe.startswith(".")


def test_an_upload_beyond_the_limit_is_refused_before_it_is_read(client):
    with socket.create_connection(("127.0.0.1", client.port), timeout=20) as raw:
        head = (
            f"PUT /api/files?name=big.csv HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nX-Echobound: 1\r\n"
            f"Origin: http://127.0.0.1:{client.port}\r\nCookie: {client.gate.cookie}={client.gate.pass_value}\r\n"
            f"Content-Length: {2 << 30}\r\n\r\n"
        )
        raw.sendall(head.encode())
        answer = raw.recv(4096).decode()
    assert answer.startswith("HTTP/1.1 413")
    assert "larger than 1 MiB" in answer


def test_an_upload_in_chunks_ends_at_the_limit_and_leaves_nothing(client):
    space = client.studio.space
    with socket.create_connection(("127.0.0.1", client.port), timeout=20) as raw:
        head = (
            f"PUT /api/files?name=big.csv HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nX-Echobound: 1\r\n"
            f"Origin: http://127.0.0.1:{client.port}\r\nCookie: {client.gate.cookie}={client.gate.pass_value}\r\n"
            "Transfer-Encoding: chunked\r\n\r\n"
        )
        raw.sendall(head.encode())
        piece = b"10000\r\n" + b"1" * 65536 + b"\r\n"
        try:
            for _ in range(64):
                raw.sendall(piece)
            answer = raw.recv(4096).decode()
        except ConnectionError:
            answer = ""
    # The server hangs up; whether its 400 (of the protocol) arrives before that depends on what is in flight.
    assert not answer or answer.startswith(("HTTP/1.1 400", "HTTP/1.1 413"))
    assert client.json("GET", "/api/folder")["files"][0]["name"] == "plant.csv"
    assert not (space.path / "big.csv").exists()
    for _ in range(50):
        if not list(space.desk.glob("upload-*")):
            break
        threading.Event().wait(0.1)
    assert not list(space.desk.glob("upload-*"))


def test_a_broken_upload_leaves_nothing_and_a_whole_one_is_as_it_was(client):
    space = client.studio.space
    content = b"u,y\n" + b"1,2\n" * 5000
    assert client.json("PUT", "/api/files?name=day%201.csv", content)["name"] == "day 1.csv"
    assert (space.path / "day 1.csv").read_bytes() == content
    again = client.json("PUT", "/api/files?name=day%201.csv", b"other", status=400)
    assert "already" in again["error"]
    assert (space.path / "day 1.csv").read_bytes() == content
    (space.path / "day 1.csv").unlink()


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"nonsense", b'{"a": NaN', b"[" * 100_000, b'{"plan": 7}', b'{"files": [1]}']
)
def test_nonsense_gets_one_sentence(client, body):
    for path in ("/api/numbers", "/api/runs", "/api/act", "/api/job", "/api/compare", "/api/estimate"):
        answer, content = client.ask("POST", path, body)
        assert answer.status in (200, 400), (path, content[:200])
        found = json.loads(content)
        if answer.status == 400:
            assert 10 < len(found["error"]) < 500
            assert "Traceback" not in found["error"]


def test_a_thousand_parallel_requests_are_served_or_refused_and_memory_stays_bounded(client):
    # Connections that wait, all at once; the handles of the test's own process must allow for both ends.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    head = (
        f"GET /api/folder HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nConnection: close\r\n"
        f"Cookie: {client.gate.cookie}={client.gate.pass_value}\r\n\r\n"
    ).encode()
    sockets = []
    try:
        for _ in range(1000):
            one = socket.create_connection(("127.0.0.1", client.port), timeout=60)
            one.sendall(head)
            sockets.append(one)
        found = [one.recv(12).decode() for one in sockets]
    finally:
        for one in sockets:
            one.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert set(found) <= {"HTTP/1.1 200", "HTTP/1.1 503"}
    assert "HTTP/1.1 200" in found
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < 200, f"{grown:.0f} MiB"
    assert client.ask("GET", "/api/folder")[0].status == 200


def test_other_methods_and_addresses_are_refused(client):
    for method in ("DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert client.ask(method, "/api/folder")[0].status in (403, 405)
    assert client.ask("GET", "/etc/passwd")[0].status == 404


def test_others_are_let_in_only_with_a_token_of_ones_own(tmp_path):
    with pytest.raises(InputError, match="--token"):
        settle_token(None, loopback=False, path=tmp_path / "token")
    with pytest.raises(InputError, match="at least 16"):
        settle_token("short", loopback=True, path=tmp_path / "token")
    assert not (tmp_path / "token").exists()


def test_the_token_is_kept_for_its_owner_alone(tmp_path):
    path = tmp_path / "token"
    first = settle_token(None, loopback=True, path=path)
    assert len(first) >= 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert settle_token(None, loopback=True, path=path) == first, "open pages find the studio again"
    path.chmod(0o644)
    assert settle_token(None, loopback=True, path=path) != first, "others may have read it"


def test_names_of_a_server_that_others_can_reach():
    gate = Gate(TOKEN, "0.0.0.0", 9000)
    assert gate.is_ours("192.168.1.7:9000")
    assert gate.is_ours("[fe80::1]:9000")
    assert not gate.is_ours("evil.example:9000")
    assert not gate.on_loopback
    assert Gate(TOKEN, "::1", 9000).on_loopback
    assert Gate(TOKEN, "::1", 9000).address.startswith("http://[::1]:9000/?token=")
