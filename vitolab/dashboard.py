"""The dashboard: find it, load it, serve it. Panel is imported by the dashboard alone."""

from __future__ import annotations

import importlib
import importlib.util
import ipaddress
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from vitolab.failures import abridged

__all__ = ["PORT", "find_dashboards", "is_loopback", "load_dashboards", "read_users", "serve"]

#: Name under which the folder of the dashboard is imported, wherever it lies.
PACKAGE = "vitolab_dashboards"
PORT = 5006
_HOST = re.compile(r"[\w.-]+(:\d{1,5})?")
_CONTROL = re.compile("[\\x00-\\x1f\\x7f]")
_PREFIX = re.compile(r"/?([\w~@-][\w.~@-]*(/[\w~@-][\w.~@-]*)*)?/?")


def find_dashboards() -> Path:
    """Folder of the dashboard, in the installed package or in the clone.

    Raises
    ------
    ValueError
        If it is in neither.
    """
    package = Path(__file__).resolve().parent
    for folder in (package / "_dashboards", package.parent / "dashboards"):
        if (folder / "app.py").is_file():
            return folder
    raise ValueError("the dashboard is not installed, expected it beside the package")


def load_dashboards(module: str = "") -> ModuleType:
    """Import the dashboard, or one of its modules.

    Parameters
    ----------
    module : str
        Such as ``kit.selection`` or ``pages.runs.page``; by default the package itself.

    Raises
    ------
    ValueError
        If the dashboard is not installed.
    """
    if PACKAGE not in sys.modules:
        folder = find_dashboards()
        spec = importlib.util.spec_from_file_location(
            PACKAGE, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        assert spec is not None
        assert spec.loader is not None
        package = importlib.util.module_from_spec(spec)
        sys.modules[PACKAGE] = package
        spec.loader.exec_module(package)
    return importlib.import_module(f"{PACKAGE}.{module}" if module else PACKAGE)


def serve(
    results: Path | str = Path("results"),
    *,
    port: int = PORT,
    address: str = "127.0.0.1",
    prefix: str = "",
    basic_auth: Path | None = None,
    origins: Sequence[str] = (),
    published: bool = True,
) -> None:
    """Serve the dashboard until it is interrupted.

    Parameters
    ----------
    results : Path or str
        Folder of all results; it may be empty, or not exist yet.
    port : int
        0 takes a free one.
    address : str
        Address to listen on; by default this machine alone can connect.
    prefix : str
        Path under which a proxy or JupyterHub shows the dashboard.
    basic_auth : Path, optional
        JSON file of passwords by user name, in plain text; it is read once.
    origins : sequence of str
        Further hosts ``name[:port]`` whose pages may connect, such as that of a proxy.
    published : bool
        Whether the runs that come with the package are shown, too.

    Raises
    ------
    ValueError
        If the port is taken, or an argument is not what it should be.
    """
    users = None if basic_auth is None else read_users(basic_auth)
    if Path(results).exists() and not Path(results).is_dir():
        raise ValueError(f"{results} is a file, expected a folder of results")
    if not _PREFIX.fullmatch(prefix):
        raise ValueError(f"prefix is {prefix!r}, expected a path such as /lab/ann")
    for origin in origins:
        if not _HOST.fullmatch(origin):
            words = "a host such as lab.example or lab.example:8080"
            raise ValueError(f"origins hold {origin!r}, expected {words}")
    if ":" in address:
        raise ValueError(f"address is {address}, expected a name or an IPv4 address")
    if not Path(results).exists():
        print(
            f"vitolab: warning: {results} does not exist yet; its runs are shown once it does",
            file=sys.stderr,
        )
    if not is_loopback(address) and users is None:
        print(
            f"vitolab: warning: {address} can be reached from other machines and nobody is asked "
            "for a password, expected a file of passwords, or a proxy that asks",
            file=sys.stderr,
        )
    load_dashboards("kit.server").serve(
        Path(results),
        port=port,
        address=address,
        prefix=prefix,
        users=users,
        origins=tuple(origins),
        published=published,
    )


def is_loopback(address: str) -> bool:
    """Whether an address can be reached from this machine alone."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def read_users(path: Path) -> dict[str, str]:
    """Passwords by user name.

    Raises
    ------
    ValueError
        If the file holds anything else, nobody, or somebody twice.
    """
    twice: list[str] = []

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        twice.extend(name for name in names if names.count(name) > 1)
        return dict(pairs)

    try:
        users = json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=once)
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        users = None
    named = isinstance(users, dict) and users
    if not named or not all(n and isinstance(v, str) and v for n, v in users.items()):
        raise ValueError(f'{path}: expected JSON such as {{"user": "password"}}, none empty')
    if twice:
        raise ValueError(f"{path}: user {abridged(twice[0])!r} occurs twice, expected once")
    for name, password in users.items():
        if _CONTROL.search(name + password):
            raise ValueError(
                f"{path}: user {abridged(name)!r}: name or password holds a control character, "
                "expected what can be typed"
            )
    return dict(users)
