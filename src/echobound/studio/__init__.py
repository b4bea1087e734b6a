"""The studio: identification in the browser, served from this machine to this machine.

State lives in run folders, and in small files of orders beside them, never in the server: whatever runs goes on when
the server dies, and a new server finds everything again. `workspace` knows the folder, `security` who may speak to it,
`drafts` what a form asks for, `jobs` starts commands and finds them again, `live` follows a ledger, `server` has the
addresses. What a browser shows is in `templates/` and `static/`, without a build step. `views` are the pages, and need
none of the rooms of identification; `answers` are behind them, and are imported after the first view.
"""

from echobound.studio.server import serve

__all__ = ["serve"]
