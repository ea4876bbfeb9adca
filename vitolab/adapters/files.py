"""A function in a Python file, and files on which answers depend: what was read is what runs.

Python code is kept in memory from the moment it was read, with the modules beside it that it
imports, so that a file saved again changes nothing until it is read again. Each file has its own
modules, whatever their names: two models in one process, each with a ``gains.py``, do not meet.
Other files cannot be kept so; a model that depends on one is refused once the file changes.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import importlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from threading import RLock
from types import CodeType, ModuleType
from typing import Any

from vitolab.failures import CannotRun
from vitolab.files import checksum, digest

#: Files, or contents of one, that a process keeps loaded: those before are executed again when
#: they are called again.
KEPT = 64


@dataclass(frozen=True)
class FileFunction:
    """A function in a Python file, as the file is when this is made.

    The file may import others beside it by a statement; they are kept with it.

    Attributes
    ----------
    path : Path
    name : str
    folder : Path, optional
        Working folder while the file is loaded and the function is called; by default the one
        that is there. Calls within one process take turns where it is given.
    code : tuple of (Path, bytes)
        Content of the file, then of those that it imports.

    Raises
    ------
    OSError
        If a file cannot be read.
    """

    path: Path
    name: str
    folder: Path | None = None
    code: tuple[tuple[Path, bytes], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        path = Path(self.path).absolute()
        object.__setattr__(self, "path", path)
        object.__setattr__(self, "code", tuple(_read_with_imports(path).items()))

    def __call__(self, *given: Any) -> Any:
        """Call the function."""
        with _within(self.folder):
            return _loaded(self)(*given)

    def prepare(self) -> None:
        """Load the file, which may take longer than a call."""
        with _within(self.folder):
            _loaded(self)

    @property
    def sources(self) -> dict[Path, str]:
        """Files on which the answers depend, with short hashes of what was read."""
        return {path: hashlib.sha256(code).hexdigest()[:12] for path, code in self.code}


def _read_with_imports(path: Path) -> dict[Path, bytes]:
    """Content of a Python file, of those beside it that it imports, and of what those import."""
    found = {path: path.read_bytes()}
    waiting = [path]
    while waiting:
        names: set[str] = set()
        try:
            tree = ast.parse(found[waiting.pop()])
        except (SyntaxError, ValueError, RecursionError):
            continue  # told when it is loaded
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module.partition(".")[0])
            elif isinstance(node, ast.ImportFrom):  # from . import ...
                names |= {alias.name for alias in node.names}
        for name in sorted(names):
            beside = [path.parent / f"{name}.py", *sorted((path.parent / name).rglob("*.py"))]
            new = [file for file in beside if file.is_file() and file not in found]
            found |= {file: file.read_bytes() for file in new}
            waiting += new
    return found


# --- loading -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Module:
    file: Path
    code: bytes
    is_package: bool


class _Package(Loader):
    """Modules of one file function, below a name of their own among all that are loaded."""

    def __init__(self, name: str, code: Sequence[tuple[Path, bytes]]) -> None:
        main = code[0][0]
        folder = main.parent
        self.name = name
        self.main = f"{name}.{main.stem.replace('.', '_')}"
        self.modules = {name: _Module(folder, b"", is_package=True)}
        for file, content in code:
            parts = file.relative_to(folder).with_suffix("").parts
            is_package = len(parts) > 1 and parts[-1] == "__init__"
            full = ".".join((name, *(parts[:-1] if is_package else parts)))
            if file == main:
                full = self.main
            if is_package or full not in self.modules:  # a package comes before a module
                self.modules[full] = _Module(file, content, is_package)
        for file, _ in code:  # folders without __init__.py
            for parent in file.relative_to(folder).parents:
                if parent.parts:
                    full = ".".join((name, *parent.parts))
                    self.modules.setdefault(full, _Module(folder / parent, b"", is_package=True))
        own = {full.split(".")[1] for full in self.modules if full != name}
        self._own = own - set(sys.builtin_module_names) - {"__future__"}
        self._builtins = {**vars(builtins), "__import__": self._import}

    def spec(self, full: str) -> ModuleSpec | None:
        """Where a module comes from; None where it is none of these."""
        module = self.modules.get(full)
        if module is None:
            return None
        spec = ModuleSpec(full, self, origin=str(module.file), is_package=module.is_package)
        spec.has_location = True
        if module.is_package:
            folder = module.file if module.file.suffix != ".py" else module.file.parent
            spec.submodule_search_locations = [str(folder)]
        return spec

    def exec_module(self, module: ModuleType) -> None:
        """Run the code of a module, whose import statements find those beside it first."""
        known = self.modules[module.__name__]
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
        """Import as ``__import__`` does, modules beside the file under the name they have here."""
        top = name.partition(".")[0]
        if level or top not in self._own:
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        full = f"{self.name}.{name}"
        if fromlist:
            return builtins.__import__(full, globals, locals, fromlist, 0)
        importlib.import_module(full)
        return sys.modules[f"{self.name}.{top}"]


class _Finder(MetaPathFinder):
    """Finds the modules of all packages that are known."""

    def __init__(self) -> None:
        self.packages: dict[str, _Package] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module of a package."""
        package = self.packages.get(fullname.partition(".")[0])
        return None if package is None else package.spec(fullname)


_finder = _Finder()
_loaded_files: dict[str, ModuleType] = {}
# A process has one working folder. One lock for that and for loading: a file may load another
# that works in a folder, and a call in a folder may load.
_turn = RLock()


def _loaded(function: FileFunction) -> Any:
    """Function of a file; the file is executed once per process and content, see `KEPT`."""
    name = _package_name(function.path, function.code)
    module = _loaded_files.get(name)
    if module is None:
        with _turn:
            module = _load(name, function)
    return getattr(module, function.name)


def _load(name: str, function: FileFunction) -> ModuleType:
    """Execute a file under a name, and forget the one loaded first if there are many."""
    if name not in _finder.packages:
        _finder.packages[name] = _Package(name, function.code)
        if _finder not in sys.meta_path:
            sys.meta_path.insert(0, _finder)
        folder = str(function.path.parent)
        if folder not in sys.path:  # last: for what no statement imports
            sys.path.append(folder)
    module = importlib.import_module(_finder.packages[name].main)
    _loaded_files[name] = module
    while len(_loaded_files) > KEPT:
        oldest = next(iter(_loaded_files))
        del _loaded_files[oldest], _finder.packages[oldest]
        for full in [full for full in list(sys.modules) if full.partition(".")[0] == oldest]:
            sys.modules.pop(full, None)
    return module


@lru_cache(maxsize=256)
def _package_name(path: Path, code: tuple[tuple[Path, bytes], ...]) -> str:
    contents = {str(file): hashlib.sha256(content).hexdigest() for file, content in code}
    return f"_vitolab_{digest(str(path), contents)[:16]}"


@contextmanager
def _within(folder: Path | None) -> Iterator[None]:
    """Work in a folder, then in the one before, wherever the work went meanwhile."""
    if folder is None:
        yield
        return
    with _turn:
        before = None
        with suppress(OSError):  # a folder that was removed
            before = Path.cwd()
        os.chdir(folder)
        try:
            yield
        finally:
            if before is not None:
                with suppress(OSError):
                    os.chdir(before)


# --- other files ---------------------------------------------------------------------------


@dataclass(frozen=True)
class KnownFiles:
    """Files on which answers depend, as they were read.

    Attributes
    ----------
    contents : mapping of Path to str
        Short hashes, of their bytes.
    """

    contents: Mapping[Path, str] = field(default_factory=dict)

    @classmethod
    def of(cls, paths: Iterable[Path]) -> KnownFiles:
        """Files as they are now.

        Raises
        ------
        OSError
            If one cannot be read.
        """
        return cls({path: _content(path, _stamp(path)) for path in paths})

    def check(self) -> None:
        """Refuse to go on once a file holds something else.

        Raises
        ------
        CannotRun
        """
        for path, known in self.contents.items():
            try:
                found = _content(path, _stamp(path))
            except OSError as error:
                raise CannotRun(
                    f"{path}: {error.strerror}, expected the file as it was when the model was read"
                ) from None
            if found != known:
                raise CannotRun(
                    f"{path} was changed while the model was in use, expected the content that it "
                    "had when the model was read"
                )


def _stamp(path: Path) -> tuple[int, int, int, int]:
    """Numbers that change whenever the content does."""
    status = path.stat()
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


@lru_cache(maxsize=1024)
def _content(path: Path, stamp: tuple[int, int, int, int]) -> str:
    """Short hash of a file, read once for a stamp."""
    return checksum(path)[:12]
