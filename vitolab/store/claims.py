"""Who owns a run: numbered claims, a live process or a fresh heartbeat behind the last one.

Claims of one fingerprint lie under ``results/<study>/.claims/`` and are never removed. A process
takes a run over by being the first to create the next number, so that of two that try, exactly
one succeeds. An owner on the same machine is asked for by its process; of an owner on another
machine only the heartbeat can be seen.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

from vitolab.files import write_json, writer
from vitolab.parallel.processes import machine, process_started
from vitolab.store.records import SCHEMA, Claim, read_record

HEARTBEAT = 5.0  # s between two signs of life
STALE = 60.0  # s without one, after which an owner on another machine is taken for dead


ABANDONED = 3600.0  # s after which a temporary file of a writer elsewhere is taken for left behind

_CLAIM = re.compile(r"[0-9a-f]{16}-\d{6}\.json")
_TEMPORARY = re.compile(r"\..+\.tmp|\.new-.+")
_WRITER = re.compile(r"(?:\.new-|\.)(?P<mark>.+-)(?P<process>\d+)\.[^.]+")


class RunInUse(RuntimeError):
    """The run that was asked for is being computed by a live process."""


class OutOfTime(RuntimeError):
    """The wall time that a run was given is spent; what is finished is kept."""


class RunFailed(RuntimeError):
    """A run was started and failed; it is stored as such, with its reason."""


def write_claim(path: Path, run: str, *, mode: str = "replace", alive: bool = True) -> None:
    """Write a claim of this process."""
    host, boot = machine()
    claim = Claim(
        schema_version=SCHEMA,
        host=host,
        boot=boot,
        process=os.getpid() if alive else None,
        process_started=process_started(os.getpid()) or "",
        heartbeat=time.time(),
        run=run,
    )
    if mode == "create":
        with path.open("x", encoding="utf-8") as file:
            try:
                file.write(claim.model_dump_json())
                file.flush()
            except OSError as error:  # a full disk: a claim that says nothing would be nobody's
                path.unlink(missing_ok=True)
                raise OSError(error.errno, error.strerror, str(path)) from error
    else:
        write_json(path, claim.model_dump())


def read_claim(path: Path | None) -> Claim | None:
    """Read a claim; None if there is none or it is damaged."""
    if path is not None:
        with suppress(ValueError):
            return read_record(Claim, path)
    return None


def _is_own(claim: Claim) -> bool:
    """Whether a claim is of this very process."""
    own = (*machine(), os.getpid(), process_started(os.getpid()))
    return (claim.host, claim.boot, claim.process, claim.process_started) == own


def is_alive(claim: Claim | None) -> bool:
    """Whether the owner of a claim lives."""
    if claim is None or claim.process is None:
        return False
    if (claim.host, claim.boot) == machine():
        return process_started(claim.process) == claim.process_started
    return time.time() - claim.heartbeat < STALE


def last_claims(folder: Path) -> dict[str, Path]:
    """Last claim of each fingerprint (its first 16 digits) in the folder of a study."""
    try:
        names = sorted(os.listdir(folder / ".claims"))
    except OSError:
        return {}
    claims = [name for name in names if _CLAIM.fullmatch(name)]
    return {name[:16]: folder / ".claims" / name for name in claims}


def take(folder: Path, fingerprint: str) -> Path:
    """Create the next claim of a fingerprint; the file system lets one process succeed.

    Raises
    ------
    RunInUse
        If another process computes this run, or is just starting it.
    """
    claims = folder / ".claims"
    claims.mkdir(parents=True, exist_ok=True)
    last = last_claims(folder).get(fingerprint[:16])
    number = 0
    if last is not None:
        number = int(last.stem[17:])
        claim = read_claim(last)
        if claim is None:  # just being written, unless it is old
            with suppress(OSError):
                if time.time() - last.stat().st_mtime < STALE:
                    raise RunInUse(f"{folder}: another process is starting this run just now")
        elif _is_own(claim):
            _stop(last)
        elif is_alive(claim):
            raise RunInUse(
                f"{folder / claim.run}: process {claim.process} on {claim.host} is computing this "
                "run, wait for it or stop it"
            )
    path = claims / f"{fingerprint[:16]}-{number + 1:06d}.json"
    try:
        write_claim(path, "", mode="create")
    except FileExistsError:
        raise RunInUse(f"{folder}: another process is starting this run just now") from None
    return path


def let_go(claim: Path) -> None:
    """Give a claim up."""
    _stop(claim)
    known = read_claim(claim)
    with suppress(OSError):  # what cannot be written shows when this process ends
        write_claim(claim, known.run if known else "", alive=False)


def sweep(folder: Path) -> None:
    """Remove temporary files and folders of writers that were killed, see `vitolab.files.atomic`.

    A writer on this machine is asked for by its process. Of any other only the time can be seen
    at which it wrote last.
    """
    try:
        names = [name for name in os.listdir(folder) if _TEMPORARY.fullmatch(name)]
    except OSError:
        return
    here = writer().rpartition("-")[0] + "-"
    for name in names:
        path = folder / name
        found = _WRITER.fullmatch(name.removesuffix(".tmp"))
        with suppress(OSError):
            if found is not None and found["mark"].endswith(here):
                left = process_started(int(found["process"])) is None
            else:
                left = time.time() - path.stat().st_mtime > ABANDONED
            if not left:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def sweep_run(root: Path, run: Path) -> None:
    """Sweep the folders of a run, and those that all runs share."""
    folder = run.parent
    places = (folder, folder / ".claims", run, run / "parts")
    for place in (*places, *root.glob("walks/*"), *root.glob(".inputs/**/")):
        sweep(place)


_beating: dict[Path, tuple[Event, Thread]] = {}


def keep_alive(claim: Path) -> None:
    """Refresh the heartbeat of a claim until it is given up or the process ends."""
    stop = Event()

    def beat() -> None:
        while not stop.wait(HEARTBEAT):
            known = read_claim(claim)
            if known is None or not _is_own(known):
                return  # taken away together with its folder
            with suppress(OSError):  # a full disk now may have room later
                write_claim(claim, known.run)

    thread = Thread(target=beat, name="vitolab heartbeat", daemon=True)
    _beating[claim] = (stop, thread)
    thread.start()


def _stop(claim: Path) -> None:
    """End the heartbeat of a claim."""
    stop, thread = _beating.pop(claim, (None, None))
    if stop is not None and thread is not None:
        stop.set()
        thread.join()
