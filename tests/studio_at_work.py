"""A studio for tests: served by a thread of this process, and spoken to by plain HTTP."""

import asyncio
import http.client
import json
import threading
from contextlib import contextmanager

from echobound.studio.server import open_studio

TOKEN = "a token for the tests only"


class Client:
    """Speaks to a studio as its own page does, unless told otherwise."""

    def __init__(self, studio):
        self.studio, self.gate = studio, studio.gate
        self.port = studio.gate.port

    def ask(self, method, path, body=None, *, cookie=True, header=True, host=None, origin="own", **headers):
        own = f"127.0.0.1:{self.port}"
        sent = {"Host": own if host is None else host}
        if cookie:
            sent["Cookie"] = f"{self.gate.cookie}={self.gate.pass_value if cookie is True else cookie}"
        if header:
            sent["X-Echobound"] = "1"
        if origin is not None:
            sent["Origin"] = f"http://{own}" if origin == "own" else origin
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            payload = json.dumps(body).encode() if isinstance(body, dict) else body
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            if payload is not None and "Content-Length" not in sent:
                sent["Content-Length"] = str(len(payload))
            for name, value in sent.items():
                connection.putheader(name, value)
            connection.endheaders(payload)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        return answer, content

    def json(self, method, path, body=None, status=200, **more):
        answer, content = self.ask(method, path, body, **more)
        assert answer.status == status, content[:400]
        return json.loads(content)


@contextmanager
def studio_of(folder, *, host="127.0.0.1", token=TOKEN, upload_limit=1 << 20, work=False):
    """A studio of a folder, at a free port."""
    ready, made, loops = threading.Event(), [], []

    def run():
        async def serve():
            studio, server = open_studio(folder, host, 0, token, upload_limit)
            made.append(studio)
            loops.append((asyncio.get_running_loop(), asyncio.Event()))
            working = asyncio.get_running_loop().create_task(studio.work()) if work else None
            ready.set()
            await loops[0][1].wait()
            if working is not None:
                working.cancel()
            server.stop()
            await server.close_all_connections()

        asyncio.run(serve())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(20)
    try:
        yield Client(made[0])
    finally:
        loop, end = loops[0]
        loop.call_soon_threadsafe(end.set)
        thread.join(20)
