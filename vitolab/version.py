"""What results depend on beside what was asked: the code that computes, as a short hash.

A study depends on the modules that its notebook reaches through imports, walks on those that
`vitolab.exploration` reaches. Comments, docstrings and line breaks do not count.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib import import_module, metadata
from pathlib import Path

from vitolab.files import digest, source_version, without_comments

PACKAGE = __name__.partition(".")[0]
#: Modules and packages that only store, show or start what the others compute, and what of these
#: computes.
_BYSTANDERS = (
    *(
        "__main__",
        "_dashboards",
        "_notebooks",
        "catalogue",
        "cli",
        "dashboard",
        "display",
        "doctor",
        "explain",
    ),
    *("parallel", "plots", "problemfile.starter", "store", "studies", "version"),
)
_COMPUTING = {"store.tables", "parallel.threads"}
_LIBRARIES = ("numpy", "scipy", "numba", "scikit-learn", "nlopt", "emcee")


def code_version(study: str = "") -> str:
    """Short hash of what results depend on: sources and tables of this package, libraries.

    Parameters
    ----------
    study : str
        One whose notebook comes with the package: what it does not reach does not count. By
        default, and for any other notebook, the whole package.
    """
    root = package_folder()
    notebook = _notebook(root, study)
    roots = None if notebook is None else _imported_by(notebook)
    libraries = [metadata.version(name) for name in _LIBRARIES]
    return digest(reached_version(roots), libraries)[:12]


def reached_version(roots: Iterable[str] | None = None) -> str:
    """Short hash of the modules that some modules reach through imports, and of their tables.

    Parameters
    ----------
    roots : iterable of str, optional
        Such as ``vitolab.exploration``; by default all modules.
    """
    root = package_folder()
    sources = _sources(root)
    names = sources.keys() if roots is None else _reached(sources, roots)
    modules = sorted(name for name in names if not _is_bystander(name))
    folders = {sources[name].parent for name in modules}
    tables = sorted(
        path
        for folder in folders
        for path in folder.rglob("*")
        # of a folder without modules of its own the nearest one above
        if path.suffix in (".csv", ".json")
        and _home(path, root) == folder
        # notebooks, dashboards and published runs, which an installed package holds
        and not path.relative_to(root).parts[0].startswith("_")
    )
    # by their content: a module that is moved computes the same
    contents = sorted(_essence(*_stamp(sources[name])) for name in modules)
    return digest(contents, source_version(*tables))[:12]


def package_folder() -> Path:
    """Folder of this package."""
    return Path(str(import_module(PACKAGE).__file__)).parent


def _home(path: Path, root: Path) -> Path:
    """Nearest folder above a file that holds modules."""
    return next(p for p in path.parents if p == root or any(p.glob("*.py")))


def _is_bystander(name: str) -> bool:
    """Whether a module computes nothing."""
    inner = name.partition(".")[2]
    known = any(f"{inner}.".startswith(f"{bystander}.") for bystander in _BYSTANDERS)
    return not inner or (known and inner not in _COMPUTING)


def _sources(root: Path) -> dict[str, Path]:
    """Files of all modules by their names."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        found[".".join((PACKAGE, *parts))] = path
    return found


def _notebook(root: Path, study: str) -> Path | None:
    """Notebook of a study, in the installed package or in the clone; None for none of them."""
    if not re.fullmatch(r"[a-z0-9-]+", study):
        return None
    name = f"{study.replace('-', '_')}.ipynb"
    places = (root / "_notebooks" / name, root.parent / "notebooks" / name)
    return next((path for path in places if path.is_file()), None)


def _imported_by(notebook: Path) -> list[str]:
    """What the cells of a notebook import, as ``module`` or ``module.name``."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    code = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
    return [name for name, _ in _imports(ast.parse(code), PACKAGE)]


def _reached(sources: dict[str, Path], roots: Iterable[str]) -> set[str]:
    """Names of modules that are imported, directly or by others."""
    reached: set[str] = set()
    seen: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if name not in sources:  # something of a module, which a lazy package has from another
            module, _, member = name.rpartition(".")
            if module in sources:
                waiting.append(module)
                waiting += _lazily(sources[module], module, member)
            continue
        if _is_bystander(name) and name != PACKAGE:
            continue
        reached.add(name)
        parent = name.rpartition(".")[0]
        waiting += [parent] if parent in sources else []
        package = name if sources[name].name == "__init__.py" else parent
        imports = _imports_of(*_stamp(sources[name]), package)
        # a lazy package has all that it declares so, whichever attribute is asked for
        waiting += [n.removesuffix(".*") for n, typing in imports if not typing or n.endswith(".*")]
    return reached


def _lazily(path: Path, package: str, member: str) -> list[str]:
    """Where a lazy package gets a name from, as it declares for type checkers."""
    package = package if path.name == "__init__.py" else package.rpartition(".")[0]
    imports = _imports_of(*_stamp(path), package)
    declared = [name.rpartition(".") for name, typing in imports if typing]
    # of all that a module has, the module
    return [m if own == "*" else f"{m}.{own}" for m, _, own in declared if own in (member, "*")]


def _stamp(path: Path) -> tuple[Path, int, int]:
    """A file as it is now."""
    found = path.stat()
    return path, found.st_mtime_ns, found.st_size


@lru_cache(maxsize=1024)
def _essence(path: Path, changed: int, size: int) -> str:
    """Hash of a module without its comments."""
    return hashlib.sha256(without_comments(path.read_bytes())).hexdigest()


@lru_cache(maxsize=1024)
def _imports_of(path: Path, changed: int, size: int, package: str) -> tuple[tuple[str, bool], ...]:
    """See `_imports`."""
    return tuple(_imports(ast.parse(path.read_bytes()), package))


def _imports(tree: ast.AST, package: str, typing: bool = False) -> Iterator[tuple[str, bool]]:
    """What code imports of this package, as ``module.name``, and whether for type checkers only."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for child in node.body:
                yield from _imports(ast.Module([child], []), package, True)
            for child in node.orelse:
                yield from _imports(ast.Module([child], []), package, typing)
            continue
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level]
            module = ".".join([*(above if node.level else []), *filter(None, [node.module])])
            names = [f"{module}.{alias.name}" for alias in node.names]
        for name in names:
            if f"{name}.".startswith(f"{PACKAGE}."):
                yield name, typing
        yield from _imports(node, package, typing)
