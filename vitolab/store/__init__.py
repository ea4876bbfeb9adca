"""Stored runs: fill one, load one, list what is there. See `vitolab.store.stored`."""

from vitolab.store.folder import RunInfo, inspect_run
from vitolab.store.stored import (
    OpenRun,
    Run,
    assemble,
    latest,
    list_runs,
    newest_progress,
    open_run,
)
from vitolab.version import code_version

__all__ = [
    "OpenRun",
    "Run",
    "RunInfo",
    "assemble",
    "code_version",
    "inspect_run",
    "latest",
    "list_runs",
    "newest_progress",
    "open_run",
]
