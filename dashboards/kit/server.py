"""The server of the dashboard, for `vitolab.dashboard.serve`."""

from __future__ import annotations

import errno
import importlib
import logging
import secrets
import socket
from asyncio import AbstractEventLoop
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import panel as pn
import psutil
from bokeh.server.util import check_allowlist
from tornado.httputil import HTTPServerRequest
from tornado.iostream import StreamClosedError
from tornado.routing import Matcher, PathMatches, Rule
from tornado.web import ErrorHandler, RequestHandler
from tornado.websocket import WebSocketClosedError

from .frame import create_app
from .selection import PAGES
from .source import shared

_LOGIN = Path(__file__).with_name("login.html")
_ANY = ("0.0.0.0", "")


def serve(
    results: Path,
    *,
    port: int,
    address: str,
    prefix: str,
    users: dict[str, str] | None,
    origins: tuple[str, ...],
    published: bool,
) -> None:
    """Serve until interrupted; see `vitolab.dashboard.serve`."""
    results = results.absolute()
    shared(results, published).refresh()
    # what takes seconds to import is there before anybody looks
    ours = [f"..pages.{page}.page" for page in PAGES]
    for module in (
        *ours,
        "..pages.results.compare",
        "vitolab.studies.words",
        "vitolab.uncertainty",
    ):
        importlib.import_module(module, __package__)
    options: dict[str, Any] = {}
    if users is not None:
        # logins end with the process: the key that signs them is nowhere kept
        options = {
            "basic_auth": users,
            "cookie_secret": secrets.token_hex(32),
            "login_template": str(_LOGIN),  # Panel's own pages load a picture from a public host
            "logout_template": str(_LOGIN),
        }
    path = f"/{prefix.strip('/')}/" if prefix.strip("/") else "/"
    try:
        port = port or _free_port(address)
        hosts = allowed_origins(address, port, origins)
        server = pn.io.server.get_server(
            {"/": lambda: create_app(results, published)},
            port=port,
            address=address,
            prefix=prefix.strip("/"),
            root_path=path,
            websocket_origin=hosts,
            title={"/": "vitolab"},
            **options,
        )
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ValueError(f"port {port} is in use, choose another with --port") from None
        raise ValueError(f"--address {address}: {error.strerror}, expected an own one") from None
    # first of all rules: no page, file or socket is behind them
    server._tornado.default_router.rules[:0] = [
        Rule(_ForeignHost(hosts), _Refuse),
        # by which pages of others embed this one
        Rule(PathMatches(r".*/autoload\.js"), ErrorHandler, {"status_code": 404}),
    ]
    host = socket.gethostname() if address in _ANY else address
    print(f"dashboard of {results}: http://{host}:{port}{path} (Ctrl-C ends it)", flush=True)
    server.start()
    loop: Any = server.io_loop
    loop.asyncio_loop.set_exception_handler(_told_unless_closed)
    logging.getLogger("bokeh.server.views.ws").setLevel(logging.ERROR)
    loop.start()


def allowed_origins(address: str, port: int, further: tuple[str, ...]) -> list[str]:
    """Hosts under which this server is reached, no wildcard: others are refused.

    Parameters
    ----------
    address : str
    port : int
    further : tuple of str
        Hosts ``name[:port]`` of proxies.
    """
    hosts = {"localhost", "127.0.0.1"}
    if address in _ANY:
        hosts |= {socket.gethostname(), socket.getfqdn()}
        found = (one for several in psutil.net_if_addrs().values() for one in several)
        hosts |= {one.address for one in found if one.family == socket.AF_INET}
    else:
        hosts.add(address)
    return [*(f"{host.lower()}:{port}" for host in sorted(hosts)), *(o.lower() for o in further)]


def _told_unless_closed(loop: AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what nobody caught, but not that a tab was closed while something was sent to it."""
    if not isinstance(context.get("exception"), WebSocketClosedError | StreamClosedError):
        loop.default_exception_handler(context)


class _ForeignHost(Matcher):
    """Matches what asks for a host that is not this server's.

    Tornado takes a page for one's own where its host is the one that is asked for: a foreign name
    that somebody has let point at this machine would be (DNS rebinding).
    """

    def __init__(self, hosts: Sequence[str]) -> None:
        self._hosts = hosts

    def match(self, request: HTTPServerRequest) -> dict[str, Any] | None:
        """Answer as Tornado wants it: None does not match."""
        return None if check_allowlist(request.host.lower(), self._hosts) else {}


class _Refuse(RequestHandler):
    """Answers what asks for a foreign host."""

    def prepare(self) -> None:
        """Say what to do."""
        self.set_status(403)
        self.finish("vitolab: this is not a name of this server; --origin HOST[:PORT] allows it\n")


def _free_port(address: str) -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])
