"""Notebooks: find one, read which parameters it declares, execute it.

An executed notebook is no witness: after its kernel was killed it claims that every cell was
completed. Whether it ended well is known from `execute` alone.
"""

from __future__ import annotations

import ast
import json
import logging
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitolab.parallel.folders import longest_name, own_folder

if TYPE_CHECKING:
    from nbformat import NotebookNode

_ATTEMPTS = 3
_TYPES: Mapping[str, Any] = {t.__name__: t for t in (bool, int, float, str, list, dict)}


def find_notebook(name: str) -> Path:
    """Path of a notebook, in the installed package or in the clone.

    Parameters
    ----------
    name : str
        File name, or an absolute path.

    Raises
    ------
    ValueError
        If it is in neither.
    """
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "_notebooks", package.parent / "notebooks"):
        if (folder / name).is_file():
            return folder / name
    raise ValueError(f"the notebook {name} is not installed")


def declared_parameters(notebook: Path) -> dict[str, tuple[str, Any]]:
    """Type and default of each parameter that a notebook declares.

    They are read from the source of the cell that is tagged ``parameters``: papermill's own
    reader misses types such as ``int | None``.

    Raises
    ------
    ValueError
        If the file is no notebook, or a default is not a literal.
    """
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    except (OSError, ValueError, KeyError, TypeError):
        raise ValueError(f"{notebook}: damaged, expected a notebook") from None
    sources = [
        "".join(cell["source"])
        for cell in cells
        if "parameters" in cell.get("metadata", {}).get("tags", [])
    ]
    declared: dict[str, tuple[str, Any]] = {}
    for statement in ast.parse("\n".join(sources)).body:
        annotation: ast.expr | None = None
        target: ast.expr
        if isinstance(statement, ast.AnnAssign):
            target, annotation, value = statement.target, statement.annotation, statement.value
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, value = statement.targets[0], statement.value
        else:
            continue
        if not isinstance(target, ast.Name) or value is None:
            continue
        try:
            default = ast.literal_eval(value)
        except ValueError:
            raise ValueError(f"{notebook}: {target.id} is not a literal, expected one") from None
        declared[target.id] = (ast.unparse(annotation) if annotation else _kind(default), default)
    return declared


def checked_value(what: str, value: Any, kind: str) -> Any:
    """Check that a value has the type that a notebook declares.

    Parameters
    ----------
    what : str
        Name of the value, for the message.
    value : JSON value
    kind : str
        Annotation, such as ``dict[str, list[int]]``.

    Returns
    -------
    JSON value
        Whole numbers become floats where floats are declared; nothing else is converted.

    Raises
    ------
    ValueError
        If it has another type.
    """
    from pydantic import ConfigDict, TypeAdapter, ValidationError

    try:
        declared = eval(kind, {"__builtins__": {}}, dict(_TYPES))
        adapter = TypeAdapter(declared, config=ConfigDict(allow_inf_nan=False))
    except (NameError, TypeError):
        raise ValueError(f"{what}: its declared type {kind} is not one of JSON values") from None
    try:
        checked = adapter.validate_python(value, strict=True)
    except (ValidationError, RecursionError):
        raise ValueError(f"{what} is {_shown(value)}, expected {in_words(kind)}") from None
    if _too_large(checked):
        raise ValueError(f"{what} is {_shown(value)}, expected whole numbers below 2**63")
    return checked


_WORDS = {
    "bool": ("true or false", "values true or false"),
    "int": ("a whole number", "whole numbers"),
    "float": ("a finite number", "finite numbers"),
    "str": ("text", "texts"),
    "None": ("null", "nulls"),
    "list": ("a list", "lists"),
    "dict": ("values by name", "values by name"),
}


def in_words(kind: str, *, several: bool = False) -> str:
    """Type that a notebook declares in words, such as a list of whole numbers for each name.

    Parameters
    ----------
    kind : str
        Annotation, such as ``dict[str, list[int]]``.
    several : bool
        Whether more than one is spoken of.
    """

    def said(node: ast.expr, several: bool) -> str:
        if isinstance(node, ast.BinOp):
            return f"{said(node.left, several)} or {said(node.right, several)}"
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "list":
            return f"{'lists' if several else 'a list'} of {said(node.slice, True)}"
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
            return f"{said(node.slice.elts[-1], several)} for each name"
        name = ast.unparse(node)
        return _WORDS[name][several] if name in _WORDS else name

    return said(ast.parse(kind, mode="eval").body, several)


def _shown(value: Any) -> str:
    """Value in a message, cut where it is long."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        return "beyond all measure"
    return text if len(text) <= 200 else f"{text[:197]}..."


def _too_large(value: Any) -> bool:
    """Whether a whole number in a value is none of 64 bits."""
    if isinstance(value, dict):
        return any(_too_large(item) for item in value.values())
    if isinstance(value, list):
        return any(_too_large(item) for item in value)
    return isinstance(value, int) and not -(2**63) <= value < 2**63


def _kind(value: Any) -> str:
    """Type of a parameter that has no annotation, from its default."""
    if isinstance(value, list) and value:
        return f"list[{_kind(value[0])}]"
    if isinstance(value, dict) and value:
        return f"dict[str, {_kind(next(iter(value.values())))}]"
    return type(value).__name__


def execute(
    notebook: Path,
    folder: Path,
    parameters: Mapping[str, Any],
    environment: Mapping[str, str] | None = None,
) -> str:
    """Execute a notebook, in the folder of a run, into ``notebook.ipynb`` there.

    Parameters
    ----------
    notebook : Path
    folder : Path
        Working directory of the kernel.
    parameters : mapping of str to JSON value
    environment : mapping of str to str, optional
        Variables that the kernel has beside this process's.

    Returns
    -------
    str
        Why it failed, in one line; empty if every cell was executed.
    """
    from nbclient.exceptions import DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    output = folder / "executing.ipynb"
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            with _private_folder() as sockets:
                manager = _kernel_manager(sockets, environment or {})
                executed = _execute_once(notebook, output, parameters, manager)
            reason = _left_out(executed)
        except PapermillExecutionError as error:
            reason = _one_line(error.ename, error.evalue)
        except DeadKernelError:
            reason = "the notebook kernel died"
        except Exception as error:  # a full disk, a kernel that does not start, ...
            if attempt < _ATTEMPTS and _never_started(error):
                continue
            reason = _one_line(type(error).__name__, str(error))
        finally:
            if output.exists():
                output.replace(folder / "notebook.ipynb")
        break
    return reason


@contextmanager
def _private_folder() -> Iterator[Path]:
    """Give a temporary folder for a kernel's sockets, whose paths must be short, if one is there.

    A batch system may name a folder for temporary files that is too deep for any socket.
    """
    folder = tempfile.gettempdir()
    for other in (os.environ.get("XDG_RUNTIME_DIR", ""), "/tmp", "/dev/shm"):
        if not _holds_sockets(Path(folder, longest_name())) and os.access(other, os.W_OK):
            folder = other
    with own_folder(folder) as name:
        yield Path(name)


def _holds_sockets(folder: Path) -> bool:
    """Whether the paths of the sockets of a kernel are short enough within a folder."""
    import zmq

    longest = os.fsencode(folder / "k-5")
    return os.name == "posix" and len(longest) <= getattr(zmq, "IPC_PATH_MAX_LEN", 0)


def _execute_once(
    notebook: Path, output: Path, parameters: Mapping[str, Any], manager: type
) -> NotebookNode:
    """Execute a notebook by the running interpreter."""
    import papermill

    # What it logs is in the run itself. Handlers that the host program has on the root logger may
    # have lost their stream meanwhile, and would complain of every line.
    logging.getLogger("papermill").propagate = False
    # papermill takes braces in a path for parameters
    source, target = (str(p).replace("{", "{{").replace("}", "}}") for p in (notebook, output))
    executed: NotebookNode = papermill.execute_notebook(
        source,
        target,
        parameters=dict(parameters),
        kernel_name="python3",
        language="python",
        kernel_manager_class=manager,
        resources={"metadata": {"path": str(output.parent)}},
        progress_bar=False,
    )
    return executed


def _left_out(executed: NotebookNode) -> str:
    """Complaint if a cell was not reached: `sys.exit` ends a notebook without an error."""
    for cell in executed.cells:
        if cell.cell_type == "code" and cell.source.strip() and not cell.execution_count:
            return "the notebook ended before its last cell"
    return ""


def _one_line(name: str, message: str) -> str:
    """Name of an exception and the first line of its message."""
    lines = message.strip().splitlines()
    return f"{name}: {lines[0]}" if lines else name


def _never_started(error: Exception) -> bool:
    """Whether a kernel failed before it took up work."""
    text = str(error)
    return (
        "Kernel died before replying" in text
        or "Kernel didn't respond" in text
        or "Address already in use" in text
    )


def _kernel_manager(sockets: Path, environment: Mapping[str, str]) -> type:
    """Kernel manager that starts the running interpreter, with the modules that it sees.

    A kernel specification named python3 that the user has may be another Python altogether.
    Where the system has sockets that are files, and their paths are short enough, nothing listens
    on the network, and kernels that start at once cannot choose the same port.
    """
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager
    from traitlets import default

    paths = [os.path.abspath(path) for path in sys.path]
    program = (
        f"import sys; sys.path[:] = {paths!r}; "
        "from ipykernel import kernelapp; kernelapp.launch_new_instance()"
    )

    class RunningInterpreter(AsyncKernelManager):
        @property
        def kernel_spec(self) -> KernelSpec:
            return KernelSpec(
                # it is interrupted when it is shut down, and would report that as an error
                argv=[sys.executable, "-c", program, "-f", "{connection_file}", "--log-level=50"],
                display_name="Python",
                language="python",
                env=dict(environment),
            )

        @default("connection_file")
        def _default_connection_file(self) -> str:
            return str(sockets / "kernel.json")

        @default("transport")
        def _default_transport(self) -> str:
            return "ipc" if _holds_sockets(sockets) else "tcp"

        @default("ip")
        def _default_ip(self) -> str:
            return str(sockets / "k") if self.transport == "ipc" else "127.0.0.1"

    return RunningInterpreter
