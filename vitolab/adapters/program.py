"""An external program: parameters in a file, outputs in a file, a folder of its own per call."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Semaphore
from typing import Any, ClassVar

from vitolab.adapters.files import KnownFiles
from vitolab.adapters.rows import (
    Answer,
    NoAnswer,
    Running,
    answers,
    ask_again,
    check_limits,
    selected,
    unprepared,
    untouched,
)
from vitolab.failures import CannotRun, Kind, described, first_line
from vitolab.parallel.processes import killed_with_this
from vitolab.parallel.workers import processors
from vitolab.problem import FloatArray, Patient
from vitolab.running import Answers

#: Writes the input: ``write(folder, parameters by name, patient)``.
Write = Callable[[Path, Mapping[str, float], Patient], None]
#: Reads the outputs by name from the folder.
Read = Callable[[Path], Mapping[str, float]]

_PLACES = ("input", "output", "folder")  # in the command, beside the parameters
_KEPT = 20  # folders of failed calls; more would fill a disk
_MARK = "failed.txt"  # in a folder that is kept
_TAIL = 4096  # bytes at the end of what a program said that are looked at


@dataclass(frozen=True)
class ProgramModel:
    """A batched model from a program that is started once per forward run.

    Each call has a folder of its own: the working directory of the program. It is removed when
    the call was answered. There is no shell in between. The program ends with this process, also
    where that is killed, which leaves the folder, without ``failed.txt``.

    Attributes
    ----------
    command : tuple of str
        Program and arguments. ``{input}``, ``{output}``, ``{folder}`` and the name of a parameter
        in braces stand for files, the folder and the value.
    parameters : tuple of str
        Names of the parameters, in their order.
    outputs : tuple of str
        Names of the outputs, in the order of the problem's objectives.
    input, output : str
        Names of the files; those that end in ``.csv`` have a header and one row, others are JSON:
        ``{"parameters": {...}, "patient": {...}}``, and an object of the outputs.
    write, read : callable, optional
        Functions that write the input and read the outputs instead.
    time_limit : float, optional
        Of one call, s of wall clock; then the program and what it started are killed.
    memory_limit : float, optional
        Address space of the program, MB; on Linux only.
    n_workers : int, optional
        Programs at the same time, of all who call the model; by default one per processor.
    retries : int
        Further attempts for a call that fails.
    folder : Path, optional
        Where the folders of calls are made, and the first twenty of failed calls are kept, with
        what the program said in ``stdout.txt`` and ``stderr.txt`` and the cause in ``failed.txt``.
        By default among temporary files, where none is kept.
    files : KnownFiles
        Files that must stay as they are, for the answers depend on them.

    Raises
    ------
    ValueError
        If the command is empty, its program is not found, a limit is not above 0, or a parameter
        has the name of a file.
    """

    command: tuple[str, ...]
    parameters: tuple[str, ...]
    outputs: tuple[str, ...]
    input: str = "input.json"
    output: str = "output.json"
    write: Write | None = None
    read: Read | None = None
    time_limit: float | None = None
    memory_limit: float | None = None
    n_workers: int | None = None
    retries: int = 0
    folder: Path | None = None
    files: KnownFiles = field(default_factory=KnownFiles)
    own_processes: ClassVar[bool] = True
    _turns: Semaphore = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_limits(self.outputs, self.time_limit, self.retries, self.n_workers)
        if not self.command or not all(isinstance(part, str) for part in self.command):
            raise ValueError(f"command is {self.command!r}, expected a program and its arguments")
        if shutil.which(self.command[0]) is None:
            raise ValueError(f"command: there is no program {self.command[0]!r} that can be run")
        if self.memory_limit is not None:
            if not 0 < self.memory_limit < math.inf:
                raise ValueError(f"memory_limit is {self.memory_limit:g} MB, expected above 0")
            if sys.platform != "linux":
                raise ValueError("memory_limit is given, which only Linux holds a program to")
        for name in self.parameters:
            if name in _PLACES:
                raise ValueError(
                    f"parameter {name!r}: the command names a file or folder so, expected another "
                    "name"
                )
        for name in (self.input, self.output):
            if not name or Path(name).name != name:
                raise ValueError(f"file {name!r}: expected a name without a folder")
        if self.folder is not None:  # wherever this process goes later
            object.__setattr__(self, "folder", Path(self.folder).absolute())
        self._limit_turns()

    def _limit_turns(self) -> None:
        """Let so many programs run at the same time."""
        most = processors() if self.n_workers is None else self.n_workers
        object.__setattr__(self, "_turns", Semaphore(max(most, 1)))

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the turns, which other processes take among themselves."""
        return {name: value for name, value in vars(self).items() if name != "_turns"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take turns anew."""
        vars(self).update(state)
        self._limit_turns()

    def __call__(self, x: FloatArray, patient: Patient) -> FloatArray:
        """Run the model, shape (n, n_outputs); NaN where a run failed. See `answers`."""
        return self.answers(x, patient).y

    def answers(self, x: FloatArray, patient: Patient) -> Answers:
        """Run the model, and say why rows have no answer.

        Parameters
        ----------
        x : ndarray, shape (n, n_parameters)
        patient : Patient

        Returns
        -------
        Answers
            NaN where a run failed.

        Raises
        ------
        CannotRun
            If the program cannot be started, its files cannot be written, a function that
            writes or reads them cannot be prepared, or a file was changed meanwhile.
        """
        self.files.check()
        found = self._each(x, patient)
        self.files.check()  # what came of a changed file goes nowhere
        return found

    def _each(self, x: FloatArray, patient: Patient) -> Answers:
        """Run the program for each row."""
        for function in (self.write, self.read):
            if why := unprepared(function):
                raise CannotRun(why)
        running = Running()

        def ask(row: FloatArray) -> Answer:
            try:
                with self._turns:
                    return self._ask(row, patient, running)
            except OSError as error:
                raise CannotRun(f"{self.command[0]} cannot be run: {described(error)}") from None

        return answers(
            lambda row: ask_again(partial(ask, row), self.retries),
            x,
            len(self.outputs),
            processors() if self.n_workers is None else self.n_workers,
            running,
        )

    def _ask(self, x: FloatArray, patient: Patient, running: Running) -> Answer:
        """Run the program once; errors of the system are passed on."""
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="run-", dir=self.folder))
        keep = False
        try:
            answer = self._within(folder, x, patient, running)
            if isinstance(answer, NoAnswer) and self.folder is not None:
                keep = len(list(self.folder.glob(f"run-*/{_MARK}"))) < _KEPT
                text = f"{answer.kind}: {answer.text}\n"
                (folder / _MARK).write_text(text, encoding="utf-8")
            return answer
        finally:
            if not keep:
                shutil.rmtree(folder, ignore_errors=True)

    def _within(self, folder: Path, x: FloatArray, patient: Patient, running: Running) -> Answer:
        """Run the program in a folder."""
        values = dict(zip(self.parameters, x.tolist(), strict=True))
        try:
            write = self.write or partial(_write, name=self.input)
            write(folder, values, untouched(patient))
        except Exception as error:
            if isinstance(error, CannotRun) or (self.write is None and isinstance(error, OSError)):
                raise
            return NoAnswer(Kind.RAISED, f"writing the input: {described(error)}")
        if (ended := self._start(folder, values, running)) is not None:
            return ended
        try:
            found = (self.read or partial(_read, name=self.output))(folder)
        except CannotRun:
            raise
        except FileNotFoundError as error:
            name = Path(str(error.filename)).name
            return NoAnswer(Kind.SHAPE, f"{name} is missing after the program ended")
        except Exception as error:
            return NoAnswer(Kind.RAISED, f"reading the output: {described(error)}")
        return selected(found, self.outputs)

    def _start(
        self, folder: Path, values: Mapping[str, float], running: Running
    ) -> NoAnswer | None:
        """Run the program to its end; None if it ended well."""
        places = (folder / self.input, folder / self.output, folder)
        known = dict(zip(_PLACES, map(str, places), strict=True))
        known |= {name: repr(value) for name, value in values.items()}
        command = [_filled(part, known) for part in self.command]
        with (folder / "stdout.txt").open("wb") as out, (folder / "stderr.txt").open("wb") as err:

            def start() -> subprocess.Popen[bytes]:
                return subprocess.Popen(
                    command,
                    cwd=folder,
                    env=dict(os.environ),  # a copy: another thread may change it meanwhile
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,  # so that what it starts can be ended with it
                )

            running.check()
            with killed_with_this(start) as process:
                try:
                    with running.held(partial(_kill_group, process.pid)):
                        _limit(process, self.memory_limit)
                        code = process.wait(self.time_limit)
                except subprocess.TimeoutExpired:
                    return NoAnswer(Kind.TIME_OUT, f"no answer within {self.time_limit:g} s")
                finally:
                    _kill(process)
        if code == 0:
            return None
        how = f"exit status {code}" if code > 0 else f"ended by {_signal(-code)}"
        said = _last_line(folder / "stderr.txt") or _last_line(folder / "stdout.txt")
        return NoAnswer(Kind.CRASHED, f"{how}: {said}" if said else how)


def _filled(part: str, known: Mapping[str, str]) -> str:
    """Put values in the place of names in braces; a file, and other braces, stay as they are."""
    if os.path.isabs(part) and os.path.exists(part):
        return part
    return re.sub(r"\{([^{}]*)\}", lambda found: known.get(found[1], found[0]), part)


def _write(folder: Path, values: Mapping[str, float], patient: Patient, *, name: str) -> None:
    """Write the input as CSV or JSON."""
    path = folder / name
    if path.suffix == ".csv":
        told = {**values, **{k: v for k, v in patient.data.items() if k not in values}}
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerows([told.keys(), told.values()])
        return
    content = {"parameters": dict(values), "patient": dict(patient.data)}
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")


def _read(folder: Path, *, name: str) -> Mapping[str, float]:
    """Read the outputs from CSV or JSON."""
    path = folder / name
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".csv":
        header, row, *further = csv.reader(text.splitlines())
        if further or len(header) != len(row):
            raise ValueError(f"{name}: expected a header and one row of as many cells")
        return {key.strip(): float(value) for key, value in zip(header, row, strict=True)}
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(f"{name}: {type(found).__name__}, expected an object of outputs")
    return found


def _limit(process: subprocess.Popen[bytes], megabytes: float | None) -> None:
    """Hold a process to so much memory."""
    if megabytes is None or sys.platform != "linux":
        return
    import resource

    most = int(megabytes * 1e6)
    with suppress(ProcessLookupError):  # ended already
        resource.prlimit(process.pid, resource.RLIMIT_AS, (most, most))


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started."""
    _kill_group(process.pid)
    process.wait()


def _kill_group(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _signal(number: int) -> str:
    """Name of a signal, where it has one."""
    try:
        return signal.Signals(number).name
    except ValueError:  # one for real time
        return f"signal {number}"


def _last_line(path: Path) -> str:
    """Last line of a text that is not empty."""
    with path.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(file.tell() - _TAIL, 0))
        lines: Sequence[str] = file.read().decode("utf-8", "replace").splitlines()
    return first_line("\n".join(reversed(lines)))
