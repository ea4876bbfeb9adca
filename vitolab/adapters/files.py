"""A function in a Python file, and files on which answers depend: what was read is what runs.

Python code is kept in memory from the moment it was read, with the modules beside it that it
imports, so that a file saved again changes nothing until it is read again. Each file has its own
modules, whatever their names: two models in one process, each with a ``gains.py``, do not meet.
Other files cannot be kept so; a model that depends on one is refused once the file changes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from vitolab.adapters import modules
from vitolab.failures import CannotRun
from vitolab.files import checksum


@dataclass(frozen=True)
class FileFunction:
    """A function in a Python file, as the file is when this is made.

    With it are read the files and packages beside it that import statements name, anywhere in the
    code, what those import in turn, and of the listed files those that are imported. Libraries
    are not read. A file of the model that is imported in another way (by
    `importlib.import_module`, or from a folder that the code puts on ``sys.path`` without being
    listed) is refused. A file that the code opens, or executes by `runpy`, is read at that moment
    and belongs into the `KnownFiles` of the model.

    Attributes
    ----------
    path : Path
    name : str
    folder : Path, optional
        Working folder while the file is loaded and the function is called; by default the one
        that is there. Calls within one process take turns where it is given.
    listed : tuple of Path
        Python files in other folders that the file may import, by their name or as members of
        their folder: ``lib/tools.py`` as ``tools`` or ``lib.tools``. Files that are no Python
        code do not matter.
    code : Code
        Content of the file and of those that it imports.

    Raises
    ------
    OSError
        If a file cannot be read.
    """

    path: Path
    name: str
    folder: Path | None = None
    listed: tuple[Path, ...] = ()
    code: modules.Code = field(init=False, repr=False)

    def __post_init__(self) -> None:
        path = Path(self.path).absolute()
        listed = [Path(os.path.abspath(f)) for f in self.listed if Path(f).suffix == ".py"]
        object.__setattr__(self, "path", path)
        object.__setattr__(self, "listed", tuple(listed))
        object.__setattr__(self, "code", modules.read(path, listed))

    def __call__(self, *given: Any) -> Any:
        """Call the function.

        Raises
        ------
        CannotRun
            If it imports a file of the model that was not read with it.
        """
        with self._ready() as package, package.path_kept():
            return getattr(package.loaded, self.name)(*given)

    def prepare(self) -> None:
        """Load the file, which may take longer than a call.

        Raises
        ------
        CannotRun
            If it imports a file of the model that was not read with it.
        """
        with self._ready() as package:
            getattr(package.loaded, self.name)

    @contextmanager
    def _ready(self) -> Iterator[modules.Package]:
        """Work in the folder, with the file loaded."""
        try:
            with _within(self.folder):
                yield modules.package_of(self.path, self.code)
        except modules.NotFollowed as error:
            raise CannotRun(str(error)) from None

    @property
    def sources(self) -> dict[Path, str]:
        """Files on which the answers depend, with short hashes of what was read."""
        return {path: found[:12] for path, found in self.code.hashes.items()}


@contextmanager
def _within(folder: Path | None) -> Iterator[None]:
    """Work in a folder, then in the one before, wherever the work went meanwhile."""
    if folder is None:
        yield
        return
    with modules.turn:
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
