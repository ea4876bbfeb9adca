"""Python code that is kept in memory: read once with what it imports, run as modules of its own.

Import statements are followed when a file is read: to files beside it, and to further files that
are listed. Whatever else the code imports while it runs must be a library. A file beside it, or in
a folder that the code itself puts on ``sys.path``, is refused by name: its content was not read
with the rest, and ``sys.modules``, which all threads share, would keep it for all models.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import importlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from threading import RLock
from types import CodeType, ModuleType

from vitolab.files import digest

_KEPT = 64  # packages that a process keeps loaded; with one more the oldest goes


@dataclass(frozen=True)
class Code:
    """Content of a Python file and of those that its import statements lead to.

    Attributes
    ----------
    files : tuple of (Path, bytes)
        The file itself comes first.
    folders : tuple of Path
        Where import statements find these files; the folder of the file itself comes first.
    """

    files: tuple[tuple[Path, bytes], ...]
    folders: tuple[Path, ...]

    @property
    def hashes(self) -> dict[Path, str]:
        """SHA-256 of each content."""
        return {path: hashlib.sha256(code).hexdigest() for path, code in self.files}


class NotFollowed(ModuleNotFoundError):
    """An import that no statement announced; for libraries the module is simply not there."""


def read(path: Path, listed: Iterable[Path] = ()) -> Code:
    """Read a Python file, those that it imports by statements, and what those import.

    Parameters
    ----------
    path : Path
        Absolute.
    listed : iterable of Path
        Absolute paths of Python files elsewhere that may be imported, by their name or as members
        of their folder.

    Returns
    -------
    Code

    Raises
    ------
    OSError
        If a file cannot be read.
    """
    found, folders = {path: path.read_bytes()}, [path.parent]
    elsewhere = [p for file in listed for p in (file.with_suffix(""), file.parent)]
    waiting = [path]
    while waiting:
        for name in sorted(_imported(found[waiting.pop()])):
            for folder in (*folders, *(p.parent for p in elsewhere if p.name == name)):
                beside = [folder / f"{name}.py", *sorted((folder / name).rglob("*.py"))]
                files = [file for file in beside if file.is_file()]
                if not files:
                    continue
                folders += [] if folder in folders else [folder]
                new = [file for file in files if file not in found]
                found |= {file: file.read_bytes() for file in new}
                waiting += new
                break
    return Code(tuple(found.items()), tuple(folders))


def _imported(code: bytes) -> set[str]:
    """First names of what import statements name."""
    names: set[str] = set()
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError):
        return names  # the error appears when the code is loaded
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
        elif isinstance(node, ast.ImportFrom):  # from . import ...
            names |= {alias.name for alias in node.names}
    return names


# --- loading -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Module:
    file: Path
    code: bytes
    is_package: bool


class Package(Loader):
    """Modules of one code, below a name of their own among all that are loaded.

    Attributes
    ----------
    loaded : module or None
        The executed file.
    """

    def __init__(self, name: str, code: Code) -> None:
        main, content = code.files[0]
        self.name = name
        self.main = f"{name}.{main.stem.replace('.', '_')}"
        self.loaded: ModuleType | None = None
        self._modules: dict[str, _Module] = {}
        for folder in reversed(code.folders):  # the first has the last word
            self._modules |= self._below(folder, code.files)
        self._modules[self.main] = _Module(main, content, is_package=False)
        own = {full.split(".")[1] for full in self._modules if full != name}
        self._own = own - set(sys.builtin_module_names) - {"__future__"}
        self._builtins = {**vars(builtins), "__import__": self._import}
        self._folders = [os.path.realpath(folder) for folder in code.folders]
        self._path = tuple(sys.path)
        self._added: list[str] = []  # what the code puts on sys.path
        self._libraries: set[str] = set()

    def _below(self, folder: Path, files: Sequence[tuple[Path, bytes]]) -> dict[str, _Module]:
        """Modules of those files that are in a folder, by full name."""
        found = {self.name: _Module(folder, b"", is_package=True)}
        inner = [(file, content) for file, content in files if file.is_relative_to(folder)]
        for file, content in inner:
            parts = file.relative_to(folder).with_suffix("").parts
            is_package = len(parts) > 1 and parts[-1] == "__init__"
            full = ".".join((self.name, *(parts[:-1] if is_package else parts)))
            if is_package or full not in found:  # a package comes before a module
                found[full] = _Module(file, content, is_package)
        for file, _ in inner:  # folders without __init__.py
            for parent in file.relative_to(folder).parents:
                if parent.parts:
                    full = ".".join((self.name, *parent.parts))
                    found.setdefault(full, _Module(folder / parent, b"", is_package=True))
        return found

    def spec(self, full: str) -> ModuleSpec | None:
        """Where a module comes from; None where it is none of these."""
        module = self._modules.get(full)
        if module is None:
            return None
        spec = ModuleSpec(full, self, origin=str(module.file), is_package=module.is_package)
        spec.has_location = True
        if module.is_package:
            folder = module.file if module.file.suffix != ".py" else module.file.parent
            spec.submodule_search_locations = [str(folder)]
        return spec

    def exec_module(self, module: ModuleType) -> None:
        """Run the code of a module, whose import statements find those of this code first."""
        known = self._modules[module.__name__]
        vars(module)["__builtins__"] = self._builtins
        code: CodeType = compile(known.code, str(known.file), "exec", dont_inherit=True)
        exec(code, vars(module))

    def _import(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """Import as ``__import__`` does, modules of this code under the name they have here."""
        _finder.packages.setdefault(self.name, self)  # it still runs, though it had to go
        top = name.partition(".")[0]
        if level or top not in self._own:
            if not level and top not in self._libraries:
                self.refuse(top, [*self._added, *sys.path, *self._folders])
                self._libraries.add(top)
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        full = f"{self.name}.{name}"
        if fromlist:
            return builtins.__import__(full, globals, locals, fromlist, 0)
        importlib.import_module(full)
        return sys.modules[f"{self.name}.{top}"]

    def look(self, name: str) -> None:
        """Refuse a module that something looks for while this code runs, as `refuse` does."""
        self.refuse(name, [*sys.path, *self._added, *self._folders])

    def refuse(self, name: str, path: Sequence[str]) -> None:
        """Refuse a module that is found beside this code, or where it extended ``sys.path``.

        Raises
        ------
        NotFollowed
        """
        spec = None if name in sys.builtin_module_names else PathFinder.find_spec(name, path)
        if spec is None:
            return
        added = [entry for entry in sys.path if entry not in self._path] + self._added
        for file, folder in _places(spec):
            if folder in self._folders:
                why = f"by its name while {self.main.rpartition('.')[2]} runs"
                way = f"the statement `import {name}`"
            elif folder in map(os.path.realpath, added):
                why = "from a folder that the model puts on sys.path"
                way = f"the statement `import {name}` and the file in `sources`"
            else:
                continue
            raise NotFollowed(f"{file} is imported {why}, expected {way}", name=name)

    @contextmanager
    def path_kept(self) -> Iterator[None]:
        """Take off ``sys.path`` in the end what the code has put there."""
        before = list(sys.path)
        try:
            yield
        finally:
            added = [entry for entry in sys.path if entry not in before]
            self._added += [entry for entry in added if entry not in self._added]
            for entry in added:
                sys.path.remove(entry)

    def load(self) -> None:
        """Execute the file, unless that is done."""
        if self.loaded is not None:
            return
        before = set(sys.modules)
        with self.path_kept():
            loaded = importlib.import_module(self.main)
        own = {*self._folders, *map(os.path.realpath, self._added)}
        for name in set(sys.modules) - before:  # what the code itself has registered there
            spec = getattr(sys.modules.get(name), "__spec__", None)
            if spec is None or name.partition(".")[0] == self.name or spec.parent != "":
                continue
            if any(folder in own for _, folder in _places(spec)):
                sys.modules.pop(name, None)
        self.loaded = loaded


def _places(spec: ModuleSpec) -> Iterator[tuple[str, str]]:
    """File or folder of a top-level module, and the folder where it was found."""
    found = spec.submodule_search_locations
    if found is None:
        found = [spec.origin] if spec.has_location and spec.origin else []
    for place in found:
        yield place, os.path.realpath(os.path.dirname(place))


class _Finder(MetaPathFinder):
    """Finds the modules of all packages that are loaded, and refuses what these must not find."""

    def __init__(self) -> None:
        self.packages: dict[str, Package] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module of a package."""
        package = self.packages.get(fullname.partition(".")[0])
        if package is not None:
            return package.spec(fullname)
        frame = sys._getframe() if path is None and self.packages else None
        while frame is not None:  # in the thread of the code that wants the module
            name = str(frame.f_globals.get("__name__"))
            if (package := self.packages.get(name.partition(".")[0])) is not None:
                package.look(fullname)
                break
            frame = frame.f_back
        return None


_finder = _Finder()
#: Held while code is loaded, and while a call works in a folder: one lock for both, so that no two
#: threads wait for each other. Code may load other code.
turn = RLock()


def package_of(path: Path, code: Code) -> Package:
    """Modules of a code, loaded: once per process and content, unless many others came since."""
    name = _package_name(path, code)
    package = _finder.packages.get(name)
    if package is not None and package.loaded is not None:
        return package
    with turn:
        package = _finder.packages.setdefault(name, Package(name, code))
        if _finder not in sys.meta_path:
            sys.meta_path.insert(0, _finder)
        package.load()
        for old in list(_finder.packages)[:-_KEPT]:
            del _finder.packages[old]
            for module in [m for m in list(sys.modules) if m.partition(".")[0] == old]:
                sys.modules.pop(module, None)
    return package


@lru_cache(maxsize=256)
def _package_name(path: Path, code: Code) -> str:
    contents = {str(file): found for file, found in code.hashes.items()}
    return f"_vitolab_{digest(str(path), contents, [str(f) for f in code.folders])[:16]}"
