"""A served dashboard in a process of its own; what takes seconds to import is imported once."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

_CODE = (
    "import sys; from vitolab.dashboard import serve; "
    "serve(sys.argv[1], port=int(sys.argv[2]), published=False)"
)
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["vitolab.plots", "vitolab.models", "holoviews.plotting.bokeh"])


def _run(code: str, arguments: list[str], said: str) -> None:
    """Run code as a script, with what it says in a file."""
    file = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for number in (1, 2):
        os.dup2(file, number)
    sys.argv = ["served", *arguments]
    exec(code, {"__name__": "served"})


class Server:
    """A served dashboard.

    Parameters
    ----------
    results : Path
    code : str
        Script that serves; it gets the folder, the port (0 for a free one) and the arguments.
    arguments : tuple of str

    Attributes
    ----------
    url : str
    """

    def __init__(
        self, results: Path, *, code: str = _CODE, arguments: tuple[str, ...] = ()
    ) -> None:
        self.results, self._code, self._arguments = results, code, arguments
        self._folder = TemporaryDirectory()
        self._said = Path(self._folder.name) / "said"
        self.url = ""
        self.start()

    def start(self, port: int = 0) -> None:
        """Start, and wait until it serves."""
        self._said.touch()
        self._read = len(self._said.read_text())
        arguments = [str(self.results), str(port), *self._arguments]
        self._process = _PROCESSES.Process(
            target=_run, args=(self._code, arguments, str(self._said)), daemon=True
        )
        self._process.start()
        self.url = self._wait_for(r"http://\S+").group()

    @property
    def port(self) -> int:
        """Port that it listens on."""
        return urlsplit(self.url).port or 0

    def told(self, pattern: str) -> re.Match[str]:
        """What it says on the signal USR1."""
        assert self._process.pid is not None
        self._read = len(self._said.read_text())
        os.kill(self._process.pid, signal.SIGUSR1)
        return self._wait_for(pattern)

    def _wait_for(self, pattern: str) -> re.Match[str]:
        """Wait until it says something."""
        end = time.monotonic() + 60
        while time.monotonic() < end and self._process.is_alive():
            found = re.search(pattern, self._said.read_text()[self._read :])
            if found:
                return found
            time.sleep(0.02)
        raise AssertionError(f"the server did not say {pattern}: {self._said.read_text()}")

    def stop(self) -> None:
        """End it; fails if it did not catch everything that went wrong in it."""
        self._process.terminate()
        self._process.join(10)
        self._process.kill()
        said = self._said.read_text()
        assert "Traceback" not in said, said
