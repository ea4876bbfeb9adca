"""A served dashboard and a browser: Debian's chromium, driven by Playwright."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import dashboard_runs as made
import pytest
from served import Server

#: Sizes of the real studies that pages are tested on, in half a minute.
STUDIES = {
    "wbc-convergence": {
        "setups": ["2p", "3p"],
        "n_patients": 5,
        "n_samples": {"2p": [10, 100], "3p": [10, 100]},
        "n_states": {"2p": 30, "3p": 40},
        "methods": ["nelder-mead"],
        "n_starts": 2,
    },
    "ep-personalization": {"n_patients": 4, "n_samples": 100, "n_starts": 2},
}
_STUDY = """
import json, os, pathlib, sys
from vitolab import studies
os.nice(10)
name, overrides, results = sys.argv[1:]
info = studies.run(
    studies.find_study(name),
    "quick",
    json.loads(overrides),
    results=pathlib.Path(results),
    n_jobs=1,  # they are small, and run beside each other
)
sys.exit(info.reason if info.status != "complete" else 0)
"""


def pytest_collection_modifyitems(items):
    """Tests that need real studies come last: the studies run while the others do.

    Before them come those that measure time, when the load average knows what else is running.
    All tests of this folder run in one process, which is the only one to start the studies.
    """
    items.sort(
        key=lambda item: (
            "quick_store" in getattr(item, "fixturenames", ()),
            item.path.name == "test_large.py",
        )
    )


@pytest.fixture(scope="session")
def browser():
    """Chromium, headless."""
    executable = shutil.which("chromium") or shutil.which("chromium-browser")
    if executable is None:
        pytest.skip("chromium is not installed (Debian: apt-get install chromium)")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(
            executable_path=executable,
            args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
        )
        yield opened
        opened.close()


class Watched:
    """What went wrong on some pages.

    Attributes
    ----------
    wrong : list of str
        Errors of the page, of its console, and requests to other hosts.
    expected : list of str
        Parts of messages that a test expects.
    """

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.expected: list[str] = []

    def watch(self, page) -> None:
        """Keep an eye on a page."""
        page.on("pageerror", lambda error: self.wrong.append(f"page error: {error}"))
        page.on("console", self._said)
        page.on("dialog", lambda dialog: (self.wrong.append("a dialog"), dialog.dismiss()))
        page.on("request", self._asked)

    def _said(self, message) -> None:
        if message.type == "error":
            self.wrong.append(f"console: {message.text} {message.location}")

    def _asked(self, request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("blob", "data", "about") and parts.hostname != "127.0.0.1":
            self.wrong.append(f"request to another host: {request.url}")

    def unexpected(self) -> list[str]:
        """What a test did not expect."""
        return [w for w in self.wrong if not any(part in w for part in self.expected)]


@pytest.fixture
def watched():
    """Watches the pages of a test, and fails it if something went wrong on one."""
    watching = Watched()
    yield watching
    assert watching.unexpected() == []


@pytest.fixture
def new_page(browser, watched):
    """Opens pages: ``new_page(url, width=..., dark=..., wait=..., slower=...)``."""
    contexts = []

    def open_page(
        url: str,
        *,
        width: int = 1280,
        height: int = 900,
        dark: bool = False,
        wait: bool = True,
        slower: float = 1.0,
    ):
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            accept_downloads=True,
            reduced_motion="reduce",
        )
        contexts.append(context)
        context.set_default_timeout(100_000)  # ms: other tests are running
        page = context.new_page()
        watched.watch(page)
        if slower > 1.0:
            protocol = context.new_cdp_session(page)
            protocol.send("Emulation.setCPUThrottlingRate", {"rate": slower})
        page.goto(url, wait_until="commit")
        if wait:
            page.wait_for_selector("main.shown")
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def serve_store():
    """Serves folders of results, one server each: ``serve_store(results).url``."""
    servers: dict[Path, Server] = {}

    def get(results: Path) -> Server:
        if results not in servers:
            servers[results] = Server(results)
        return servers[results]

    yield get
    for server in servers.values():
        server.stop()


@pytest.fixture(scope="session", autouse=True)
def running(request, tmp_path_factory):
    """Studies that run while other tests do, at low priority, if any test asks for them."""
    root, processes = tmp_path_factory.mktemp("results"), {}
    if any("quick_store" in item.fixturenames for item in request.session.items):
        for name, overrides in STUDIES.items():
            said = (root / f"{name}.txt").open("w")
            processes[name] = subprocess.Popen(
                [sys.executable, "-c", _STUDY, name, json.dumps(overrides), str(root)],
                stdout=said,
                stderr=said,
            )
    yield root, processes
    for process in processes.values():
        process.terminate()
        process.wait()


@pytest.fixture(scope="session")
def quick_store(running) -> Path:
    """Results of two real studies, reduced, and of a grid of starts."""
    root, processes = running
    for name, process in processes.items():
        assert process.wait() == 0, (root / f"{name}.txt").read_text()
    made.grid(root)
    return root


@pytest.fixture(scope="session")
def new_server():
    """Serves otherwise: ``new_server(results, code=..., arguments=...)``; to be stopped."""
    return Server
