"""The cache of built hearts: arrays that follow from the code and a patient's data."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from vitolab.files import ArrayCache, digest, source_version

#: Modules without a part in building a heart.
APART = (
    *("__init__", "model", "ratios", "geometry"),
    *("solvability", "frozen", "truth", "generate", "draws"),
)


def cache_folder() -> Path:
    """Folder in which built hearts are kept: ``VITOLAB_CACHE``, or the user's cache."""
    configured = os.environ.get("VITOLAB_CACHE")
    if configured:
        return Path(configured)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "vitolab"


@lru_cache(maxsize=1)
def version() -> str:
    """Hash that changes whenever a heart may be built differently."""
    libraries = [np.__version__, scipy.__version__]
    for name in ("meshio", "h5py"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            libraries.append(f"{name} {metadata.version(name)}")
    return digest(source_version(*sources()), libraries)[:12]


def sources() -> list[Path]:
    """Modules that have a part in building a heart."""
    return sorted(p for p in Path(__file__).parent.glob("*.py") if p.stem not in APART)


def cached(
    name: str, compute: Callable[[], dict[str, NDArray[Any]]], folder: Path | None = None
) -> dict[str, NDArray[Any]]:
    """Arrays from the cache, or computed and kept there if it can be written.

    Parameters
    ----------
    name : str
        What they depend on beside `version`, as a digest.
    compute : callable
    folder : Path, optional
        By default `cache_folder`.

    Returns
    -------
    dict of str to ndarray
        Read-only.
    """
    store = _store(cache_folder() if folder is None else folder)
    found = store.load(version(), name)
    if found is None:
        found = compute()
        with contextlib.suppress(OSError):  # a cache that cannot be written costs time only
            store.store(version(), name, found)
    for array in found.values():
        array.flags.writeable = False
    return found


def is_kept(name: str, folder: Path) -> bool:
    """Whether the cache in a folder has a file of this name, whole or damaged."""
    return _store(folder).path(version(), name).is_file()


def _store(folder: Path) -> ArrayCache:
    """Cache of hearts in a folder."""
    return ArrayCache(folder / "hearts")
