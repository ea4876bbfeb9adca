"""Files that are whole or absent, keys that name content, and random streams made from keys."""

from __future__ import annotations

import ast
import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import socket
import stat
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def writer() -> str:
    """Name of this process among all that may write to the same folder."""
    try:
        space = os.stat("/proc/self/ns/pid").st_ino  # containers may share the name of their host
    except OSError:
        space = 0
    return f"{socket.gethostname()}-{space}-{os.getpid()}"


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path`; on success it is flushed to disk and renamed.

    The folder must be there: one that was lost on the way is not made again, empty. A new file
    follows the umask; one that is replaced keeps its mode, and its group where the system lets it.
    A link is followed. A character device or a FIFO is written to, for it cannot be replaced.

    Raises
    ------
    OSError
        If the system refuses, as on a full disk; it names `path`.
    ValueError
        If it is a socket, a block device or the like.
    """
    if is_stream(path):
        with tempfile.TemporaryDirectory(prefix="vitolab-") as folder:
            yield Path(folder) / "stream"
            try:
                with (Path(folder) / "stream").open("rb") as source, path.open("wb") as stream:
                    shutil.copyfileobj(source, stream)
            except OSError as error:
                raise _named(error, path) from error
        return
    temporary: Path | None = None
    try:
        target = resolved(path) if path.is_symlink() else path
        temporary = target.parent / f".{target.name}.{writer()}.{secrets.token_hex(4)}.tmp"
        old = target.stat() if target.exists() else None
        # of a file that is replaced others never have more permissions, not for a moment
        allowed = 0o666 if old is None else (stat.S_IMODE(old.st_mode) & 0o666) | stat.S_IWUSR
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, allowed))
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        if old is not None:
            mode = stat.S_IMODE(old.st_mode)
            try:
                os.chown(temporary, -1, old.st_gid)
            except OSError:  # a group that the user is not in: its rights are for no other
                mode &= ~stat.S_IRWXG
            temporary.chmod(mode)
        temporary.replace(target)
    except OSError as error:  # most say nothing of the file, or name the temporary one
        raise _named(error, path) from error
    finally:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def _named(error: OSError, path: Path) -> OSError:
    """Error of the system that names the file."""
    why = os.strerror(error.errno) if error.errno else str(error)
    return OSError(error.errno or errno.EIO, why, str(path))


def resolved(path: Path) -> Path:
    """Path without links.

    Raises
    ------
    ValueError
        If it is a loop of symbolic links.
    """
    try:
        return path.resolve()
    except RuntimeError:  # of Python before 3.13; later ones give the path as it is
        raise ValueError(
            f"{path} is a loop of symbolic links, expected a file or a folder"
        ) from None


def is_stream(path: Path) -> bool:
    """Whether a path leads to a character device or a FIFO, which is written to and not replaced.

    Raises
    ------
    ValueError
        If it leads to a socket, a block device or the like.
    """
    resolved(path)
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    if stat.S_ISCHR(mode) or stat.S_ISFIFO(mode):
        return True
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        kind = "socket" if stat.S_ISSOCK(mode) else "block device"
        raise ValueError(f"{path} is a {kind}, expected a file, a character device or a FIFO")
    return False


def temporary_folder(parent: Path, prefix: str) -> Path:
    """Make a folder of an unused name, with the mode that the umask leaves."""
    folder = parent / f"{prefix}{secrets.token_hex(4)}"
    folder.mkdir()
    return folder


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Give a temporary folder beside `folder`, which must not exist; on success it is renamed.

    Raises
    ------
    ValueError
        If it exists, or its parent does not.
    """
    if folder.exists() or folder.is_symlink():
        raise ValueError(f"{folder}: it is there already, expected a folder that is not")
    if not folder.absolute().parent.is_dir():
        raise ValueError(f"{folder.absolute().parent}: expected a folder that exists")
    temporary = temporary_folder(folder.absolute().parent, ".new-")
    try:
        yield temporary
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_json(path: Path, data: Any) -> None:
    """Write JSON, whole or not at all."""
    text = json.dumps(data, indent=1, allow_nan=False, ensure_ascii=False)
    with atomic(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write plain arrays as ``.npz``, whole or not at all."""
    with atomic(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **dict(arrays))


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read arrays written by `write_arrays`.

    Raises
    ------
    ValueError
        If the file is damaged, or another one.
    """
    damaged = ValueError(f"{path.name} is damaged, expected arrays")
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except OSError:
        raise
    except Exception:  # damaged archives, headers and arrays each raise in their own ways
        raise damaged from None
    if not all(isinstance(array, np.ndarray) for array in arrays.values()):
        raise damaged
    return arrays


def _plain(value: Any) -> Any:
    """Turn numpy values, mappings and sequences into what JSON knows."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {str(key): _plain(value[key]) for key in value}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def digest(*parts: Any) -> str:
    """SHA-256 of the canonical JSON of the parts, as 64 hexadecimal digits.

    Raises
    ------
    ValueError, TypeError
        If a part is not a finite number, text, or a list or mapping of these.
    """
    text = json.dumps(_plain(parts), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def stream(*parts: Any) -> np.random.Generator:
    """Random generator that depends on the parts only: not on order, worker or position."""
    entropy = int(digest(*parts), 16)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))


def bits(x: ArrayLike) -> str:
    """Key of a point: hexadecimal digits of its float64, which may be infinite or NaN."""
    return (np.asarray(x, dtype=np.float64) + 0.0).tobytes().hex()  # of 0 and -0 the same


def source_version(*paths: str | Path) -> str:
    """Short hash of source or data files; changes when what they compute may change.

    Comments and docstrings of Python files compute nothing.
    """
    hasher = hashlib.sha256()
    for path in map(Path, paths):
        content = path.read_bytes()
        hasher.update(without_comments(content) if path.suffix == ".py" else content)
    return hasher.hexdigest()[:12]


def without_comments(source: bytes) -> bytes:
    """Source of a Python module without comments, docstrings and layout; as it is if it is none."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return source
    for node in ast.walk(tree):
        if isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        ) and ast.get_docstring(node, clean=False):
            del node.body[0]
    return ast.unparse(tree).encode("utf-8", "surrogatepass")


def checksum(path: Path) -> str:
    """SHA-256 of a file, as 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def checked_name(what: str, name: str) -> str:
    """Return `name` if it can safely be the name of a file or folder.

    Raises
    ------
    ValueError
        If it holds anything but letters, digits, dots, dashes and underscores.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"{what} is {name!r}, expected letters, digits, dots, dashes and underscores, "
            "at most 128, beginning with a letter or digit"
        )
    return name


@dataclass(frozen=True)
class ArrayCache:
    """Arrays that can be computed again, kept under ``<folder>/<problem key>/<patient key>.npz``.

    They follow from their keys, so writers that meet write the same content and need no lock.

    Attributes
    ----------
    folder : Path
    """

    folder: Path

    def path(self, problem_key: str, patient_key: str) -> Path:
        """File of the arrays of one patient."""
        folder = self.folder / checked_name("problem key", problem_key)
        return folder / f"{checked_name('patient key', patient_key)}.npz"

    def load(self, problem_key: str, patient_key: str) -> dict[str, NDArray[Any]] | None:
        """Read the arrays of one patient.

        Returns
        -------
        dict of str to ndarray, or None
            None if there are none, or the file is damaged or holds something else.
        """
        path = self.path(problem_key, patient_key)
        try:
            if not zipfile.is_zipfile(path):
                return None
            arrays = read_arrays(path)
        except (OSError, ValueError):
            return None
        # a file that was copied under another name is not this patient's
        if str(arrays.pop("keys", "")) != f"{problem_key} {patient_key}":
            return None
        return arrays

    def store(self, problem_key: str, patient_key: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Keep the arrays of one patient, unless larger ones are already there.

        Parameters
        ----------
        problem_key, patient_key : str
        arrays : mapping of str to ndarray
            Plain arrays; the name ``keys`` is taken.
        """
        known = self.load(problem_key, patient_key)
        if known is not None and _size(known) >= _size(arrays):
            return
        keys = np.array(f"{problem_key} {patient_key}")
        path = self.path(problem_key, patient_key)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_arrays(path, {**arrays, "keys": keys})


def _size(arrays: Mapping[str, NDArray[Any]]) -> int:
    """Number of values in all arrays."""
    return sum(array.size for array in arrays.values())
