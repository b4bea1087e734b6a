"""Security: who may speak to the studio.

The server is bound to loopback, but every page in the user's browser can reach loopback too. So a request must show
the cookie that the opening address gave (nobody else knows its token), it must call us by a name of our own (a foreign
name that points here is DNS rebinding), and what changes anything must come from our own pages: by its Origin, and by
a header that no form and no foreign page can send.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
import platform
import secrets
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from echobound.errors import EchoboundError, InputError

HEADER = "X-Echobound"
SAFE = ("GET", "HEAD")
_KEY_OF_PROCESS = secrets.token_hex(32).encode()
LEAST = 16  # letters of a token that a user may choose

PAGES = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self';"
    " frame-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
"""For the studio's own pages. Styles may stand in the page since Bokeh writes some; scripts may not."""

REPORTS = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:;"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
"""For the page of a run, which holds its scripts: in a sandbox, so that one from elsewhere cannot act in our name."""

FILES = "sandbox; default-src 'none'; frame-ancestors 'none'"
"""For what is downloaded."""


class Refused(EchoboundError):
    """A request that is not answered, with the status of HTTP."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


@dataclass(frozen=True)
class Gate:
    """What lets a request in.

    Parameters
    ----------
    token
        The secret of the opening address.
    host, port
        What the server is bound to.

    Examples
    --------
    >>> gate = Gate("a token of many letters", "127.0.0.1", 8710)
    >>> gate.address
    'http://127.0.0.1:8710/?token=a%20token%20of%20many%20letters'
    >>> gate.is_ours("localhost:8710"), gate.is_ours("evil.example:8710"), gate.is_ours("localhost:80")
    (True, False, False)
    """

    token: str
    host: str
    port: int

    @property
    def address(self) -> str:
        """What to open in the browser."""
        from urllib.parse import quote

        name = platform.node() if self._everywhere else f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{name}:{self.port}/?token={quote(self.token)}"

    @property
    def cookie(self) -> str:
        """Name of the cookie; browsers share cookies between the ports of a host."""
        return f"echobound-studio-{self.port}"

    @property
    def pass_value(self) -> str:
        """Value of the cookie: it follows from the token, and the token does not follow from it."""
        return hashlib.sha256(b"cookie " + self.token.encode()).hexdigest()

    @property
    def _everywhere(self) -> bool:
        with suppress(ValueError):
            return ipaddress.ip_address(self.host).is_unspecified
        return False

    @property
    def on_loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        with suppress(ValueError):
            return ipaddress.ip_address(self.host).is_loopback
        return self.host == "localhost"

    def is_ours(self, host: str) -> bool:
        """Whether a Host header names this server; an address of numbers cannot be rebound, a name can."""
        name, _, port = host.rpartition(":")
        if port != str(self.port) and not (self.port == 80 and host == port):
            return False
        name = (name or host).removeprefix("[").removesuffix("]").lower()
        if name in {"localhost", "127.0.0.1", "::1", self.host.lower()}:
            return True
        if self.on_loopback:
            return False
        with suppress(ValueError):
            ipaddress.ip_address(name)
            return True
        return name == platform.node().lower()

    def require_ours(self, method: str, headers: Mapping[str, str]) -> None:
        """Refuse a request by another name, from another page, or one that changes something without our header."""
        host = headers.get("Host", "")
        if not self.is_ours(host):
            raise Refused(403, "this address is not the studio's own: open the address that the command printed")
        origin, site = headers.get("Origin"), headers.get("Sec-Fetch-Site", "none")
        foreign = origin is not None and origin != f"http://{host}"
        # A link from elsewhere may open a page here, and finds the door closed unless the cookie was given before.
        embedded = site not in ("same-origin", "none") and headers.get("Sec-Fetch-Mode") != "navigate"
        if foreign or embedded:
            raise Refused(403, "the studio answers its own pages only: this request came from another one")
        if method not in SAFE and (origin is None or headers.get(HEADER) != "1"):
            raise Refused(403, "what changes something must come from the studio's own pages: open it in the browser")

    def require_token(self, given: str) -> None:
        """Refuse an opening address with another token."""
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            raise Refused(403, "this token is not that of the running studio: open the address that it printed")

    def require_pass(self, cookie: str | None) -> None:
        """Refuse a request without the cookie of the opening address."""
        if cookie is None or not hmac.compare_digest(cookie.encode(), self.pass_value.encode()):
            raise Refused(401, "open the address that the command printed: it ends with a token, and lets you in")


@cache
def key_of_user() -> bytes:
    """A secret of this user, outside of any folder that could have come from somebody else.

    Where no home can be written to, it lasts as long as the process.
    """
    path = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state", "echobound", "studio.key")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(FileExistsError):
            _write_private(path, secrets.token_hex(32))
        kept = path.read_bytes()
        if len(kept) == 64 and _private(path):
            return kept
    return _KEY_OF_PROCESS


def sealed(content: bytes) -> str:
    """What shows that content was written by this user: an order that came with a folder has no such seal."""
    return hmac.new(key_of_user(), content, hashlib.sha256).hexdigest()


def settle_token(given: str | None, loopback: bool, path: Path) -> str:
    """The token: given, or kept from the last start so that open pages find the studio again, or new.

    It is kept in a file that nobody but its owner can read; where the file system has no such files, it is not kept.
    """
    if given is not None:
        if len(given) < LEAST or not given.isprintable():
            raise InputError(f"a token has at least {LEAST} printable letters, got {len(given)}: give a longer one")
        return given
    if not loopback:
        raise InputError(
            "with --host others on the network can reach the studio, and with it the folder's data and this machine's"
            " processors, over a connection that is not encrypted: choose a secret and give it as --token"
        )
    with suppress(OSError):
        kept = path.read_text()
        if len(kept) >= LEAST and _private(path):
            return kept
    token = secrets.token_urlsafe(24)
    with suppress(OSError):
        path.unlink(missing_ok=True)
        _write_private(path, token)
        if not _private(path):
            path.unlink()
    return token


def _write_private(path: Path, text: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(text)


def _private(path: Path) -> bool:
    found = path.stat()
    return not found.st_mode & (stat.S_IRWXG | stat.S_IRWXO) and found.st_uid == os.getuid()
