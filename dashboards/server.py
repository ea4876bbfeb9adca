"""The server of the dashboard, for `vitolab.dashboard.serve`."""

from __future__ import annotations

import errno
import importlib
import secrets
import socket
from pathlib import Path
from typing import Any

import panel as pn

from .frame import create_app
from .selection import PAGES
from .source import shared

_LOGIN = Path(__file__).with_name("login.html")
_ANY = ("0.0.0.0", "::", "")


def serve(
    results: Path,
    *,
    port: int,
    address: str,
    prefix: str,
    basic_auth: Path | None,
    origins: tuple[str, ...],
) -> None:
    """Serve until interrupted; see `vitolab.dashboard.serve`."""
    results = results.absolute()
    shared(results).refresh()
    for page in PAGES:  # what takes seconds to import is there before anybody looks
        importlib.import_module(f".views.{page}", __package__)
    options: dict[str, Any] = {}
    if basic_auth is not None:
        # logins end with the process: the key that signs them is nowhere kept
        options = {
            "basic_auth": str(basic_auth.absolute()),
            "cookie_secret": secrets.token_hex(32),
            "login_template": str(_LOGIN),  # Panel's own pages load a picture from a public host
            "logout_template": str(_LOGIN),
        }
    path = f"/{prefix.strip('/')}/" if prefix.strip("/") else "/"
    if port == 0:
        port = _free_port(address)
    try:
        server = pn.io.server.get_server(
            {"/": lambda: create_app(results)},
            port=port,
            address=address,
            prefix=prefix.strip("/"),
            root_path=path,
            websocket_origin=allowed_origins(address, port, origins),
            title={"/": "vitolab"},
            **options,
        )
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ValueError(f"port {port} is in use, choose another with --port") from None
        raise ValueError(f"{address}:{port}: {error.strerror}, expected an own address") from None
    host = "127.0.0.1" if address in _ANY else address
    host = f"[{host}]" if ":" in host else host
    print(f"dashboard of {results}: http://{host}:{port}{path} (Ctrl-C ends it)", flush=True)
    server.start()
    server.io_loop.start()


def allowed_origins(address: str, port: int, further: tuple[str, ...]) -> list[str]:
    """Hosts whose pages may connect: those under which this server is reached, no wildcard.

    Parameters
    ----------
    address : str
    port : int
    further : tuple of str
        Hosts ``name[:port]`` of proxies.
    """
    hosts = {"localhost", "127.0.0.1"}
    hosts |= {socket.gethostname(), socket.getfqdn()} if address in _ANY else {address}
    wrapped = [f"[{host}]" if ":" in host else host for host in sorted(hosts)]
    return [*(f"{host}:{port}" for host in wrapped), *further]


def _free_port(address: str) -> int:
    """A port that nobody listens on."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])
