"""Stored runs: fill one, load one, list what is there.

`OpenRun` is a run that is being computed, `Run` one that is read, `RunInfo` a line of a list.
"""

from vitolab.store.assemble import assemble
from vitolab.store.info import RunInfo, inspect_run, list_runs
from vitolab.store.opened import OpenRun
from vitolab.store.opening import open_run
from vitolab.store.shipped import copy_published, list_published, published
from vitolab.store.stored import Run, latest

__all__ = [
    "OpenRun",
    "Run",
    "RunInfo",
    "assemble",
    "copy_published",
    "inspect_run",
    "latest",
    "list_published",
    "list_runs",
    "open_run",
    "published",
]
