"""Temporary folders that go with their process, or, where it was killed, with the next one."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from vitolab.files import digest
from vitolab.parallel.processes import machine, process_started


def own_folder(parent: Path | str | None = None) -> TemporaryDirectory[str]:
    """Make a folder that goes with this process.

    Its name says who owns it. Where that process was killed, the next one of the same user that
    makes such a folder beside it removes it.

    Parameters
    ----------
    parent : Path or str, optional
        By default the system's folder for temporary files.

    Returns
    -------
    TemporaryDirectory
    """
    parent = Path(tempfile.gettempdir() if parent is None else parent)
    _sweep(parent, os.getpid())
    folder = TemporaryDirectory(prefix=_prefix(), dir=parent)
    atexit.register(folder.cleanup)
    return folder


def longest_name() -> str:
    """Give a name as long as that of a folder which this process makes."""
    return f"{_prefix()}12345678"


def _of_machine() -> str:
    return f"vitolab-{digest(*machine())[:8]}-"


def _prefix() -> str:
    us = os.getpid()
    return f"{_of_machine()}{us}-{process_started(us)}-"


@cache
def _sweep(parent: Path, process: int) -> None:
    """Remove what processes left that were killed, once in this process."""
    us = getattr(os, "getuid", int)()  # on Windows all have the user 0
    for left in parent.glob(f"{_of_machine()}*"):
        number, _, rest = left.name.removeprefix(_of_machine()).partition("-")
        try:
            ours = left.lstat().st_uid == us and left.is_dir() and not left.is_symlink()
        except OSError:  # gone meanwhile
            continue
        if ours and number.isdecimal() and process_started(int(number)) != rest.partition("-")[0]:
            shutil.rmtree(left, ignore_errors=True)
