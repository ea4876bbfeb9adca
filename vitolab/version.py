"""What results depend on beside what was asked: the code that computes, as a short hash."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

from vitolab.files import digest, source_version

#: Modules that only store, show or start what the others compute.
_BYSTANDERS = (
    *("__init__", "__main__", "_dashboards", "_notebooks", "catalogue", "cli", "dashboard"),
    *("doctor", "explain", "parallel", "patients", "plots", "store", "studies", "version"),
)


def code_version() -> str:
    """Short hash of what results depend on: sources and tables of this package, libraries."""
    root = Path(__file__).parent
    paths = [
        path
        for path in sorted(root.rglob("*"))
        if path.suffix in (".py", ".csv", ".json")
        and path.relative_to(root).parts[0].removesuffix(".py") not in _BYSTANDERS
    ]
    names = ("numpy", "scipy", "numba", "scikit-learn", "nlopt", "emcee")
    libraries = [metadata.version(name) for name in names]
    return digest(source_version(*paths), libraries)[:12]
