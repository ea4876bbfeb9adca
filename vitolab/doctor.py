"""What is installed here, and whether it can work: versions, processors, notebooks, caches."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from vitolab.models.electrophysiology.cache import cache_folder
from vitolab.parallel.workers import processors
from vitolab.store.folder import LIBRARIES
from vitolab.studies import STUDIES
from vitolab.studies.notebooks import find_notebook

OPTIONAL = ("meshio", "roadrunner", "myokit", "fmpy", "sbi", "distributed", "dask_jobqueue")


def findings() -> Iterator[str]:
    """State of the installation, a line at a time."""
    yield f"python {platform.python_version()} ({sys.executable})"
    for name in (*LIBRARIES, "holoviews", "panel", "papermill", "ipykernel"):
        try:
            yield f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            yield f"{name} not installed"
    yield f"processors: {processors()} usable of {os.cpu_count()}"
    for name in OPTIONAL:
        found = importlib.util.find_spec(name) is not None
        yield f"optional {name}: {'found' if found else 'not found'}"
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    yield f"optional chromium: {browser or 'not found'}"
    for study in STUDIES:
        try:
            yield f"notebook {study.name}: {find_notebook(study.notebook)}"
        except ValueError as error:
            yield f"notebook {study.name}: {error}"
    folder, why = kernel_cache()
    hearts = cache_folder()
    built = "writable" if _is_writable(hearts) else "NOT writable: hearts are built at every start"
    yield f"cache of built hearts: {hearts}, {built}"
    state = "writable" if _is_writable(folder) else "NOT writable: kernels compile at every start"
    yield f"kernel cache ({why}): {folder}, {state}"
    yield "  an old or damaged cache is cured by deleting the folder's .nbi and .nbc files"


def kernel_cache() -> tuple[Path, str]:
    """Folder in which compiled kernels are kept, and why there."""
    configured = os.environ.get("NUMBA_CACHE_DIR")
    if configured:
        return Path(configured), "NUMBA_CACHE_DIR"
    beside = Path(__file__).parent / "kernels" / "__pycache__"
    if _is_writable(beside):
        return beside, "beside the kernels"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "numba", "package is read-only"


def _is_writable(folder: Path) -> bool:
    """Whether a file can be written into a folder that is there or can be made."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=existing):
            return True
    except OSError:
        return False
