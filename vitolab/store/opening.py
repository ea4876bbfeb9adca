"""Open the run that a notebook fills.

A notebook is written the same way whether it is run by `vitolab.studies.run` or opened by hand
(the notebook of a study says ``STUDY.open(globals())`` for the first line)::

    run = open_run("wbc-fit", {"setups": setups}, results=results, seed=seed, folder=run_folder)
    leave_one_out(run, ...)                 # run.has_part, run.write_part, run.progress
    stored = run.finish(problems=problems, patients=patient_table(...))
    stored.personalizations                 # what figures are functions of
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vitolab.files import digest
from vitolab.store.folder import finished_parts, is_sound_part, left_over, stored_parameters
from vitolab.store.info import inspect_run
from vitolab.store.opened import OpenRun
from vitolab.store.stored import Run
from vitolab.version import code_version


def open_run(
    study: str,
    parameters: Mapping[str, Any],
    *,
    results: Path | str,
    seed: int,
    version: str | None = None,
    folder: Path | str = "",
    again: bool = False,
) -> OpenRun:
    """Open the run that a notebook fills.

    Parameters
    ----------
    study : str
        Name of the study.
    parameters : mapping of str to JSON value
        All parameters of the notebook but ``seed``, ``n_jobs``, ``results``, ``run_folder``.
    results : Path or str
        Folder of all results.
    seed : int
    version : str, optional
        Changes whenever a part would come out differently; by default `code_version` of the study.
    folder : Path or str
        Folder of a run that another process started and will finish. If empty, the notebook
        was opened by hand: it starts, resumes and finishes the run itself, and one that is
        complete is opened to be looked at.
    again : bool
        If opened by hand, recompute what is complete.

    Returns
    -------
    OpenRun

    Raises
    ------
    RunInUse
        If a live process owns the run.
    ValueError
        If the run in `folder` was started with another study, seed or parameters.
    """
    if not folder:
        asked = (Path(results), study, parameters, seed, version or code_version(study))
        left = left_behind(*asked)
        hurt = damaged(*asked)
        run = OpenRun.start(*asked, again=again)
        if left and run.state == "new":
            print(left, file=sys.stderr)
        if hurt and run.state != "complete" and not again:
            print(hurt, file=sys.stderr)
        if run.state == "complete":
            Run.load(run.path).check_files()
            print(f"already complete: {run.path}", file=sys.stderr)
        return run
    run = OpenRun.attach(Path(folder))
    root = run.path.resolve().parents[1]
    given = {"study": study, "seed": seed, **stored_parameters(root, parameters)}
    stored = {"study": run.record.study, "seed": run.record.seed, **run.record.parameters}
    for name in sorted(given.keys() | stored.keys()):
        if name not in given or name not in stored or given[name] != stored[name]:
            raise ValueError(
                f"{run.path}: {name} is {given.get(name, 'absent')!r} in the notebook, expected "
                f"{stored.get(name, 'absent')!r} as the run was started"
            )
    return run


def damaged(
    results_root: Path, study: str, parameters: Mapping[str, Any], seed: int, version: str
) -> str:
    """Sentence on what is damaged of a run that is to be gone on with, or "".

    Parameters
    ----------
    results_root, study, parameters, seed, version
        See `OpenRun.start`.
    """
    fingerprint = digest(study, stored_parameters(results_root, parameters), version, seed)
    for path in sorted((results_root / study).glob(f"*-{fingerprint[:8]}"), reverse=True):
        info = inspect_run(path)
        if info.status == "complete":
            return ""
        parts = finished_parts(path)
        bad = [part.name for part in parts if not is_sound_part(part)]
        lost = f"{len(bad)} of {len(parts)} finished parts are damaged and computed again"
        lost = f"{lost}, such as {bad[0]}" if bad else ""
        if info.status == "unreadable":
            uses = path == left_over(path.parent, fingerprint)
            then = "its finished parts are used" if uses else "it begins again"
            return f"{path}: {info.reason}; {then}{lost and f'; {lost}'}"
        if bad:
            return f"{path}: {lost}"
    return ""


def left_behind(
    results_root: Path, study: str, parameters: Mapping[str, Any], seed: int, version: str
) -> str:
    """Sentence about a run that was interrupted and only another version could resume, or "".

    Parameters
    ----------
    results_root, study, parameters, seed, version
        See `OpenRun.start`.
    """
    asked = stored_parameters(results_root, parameters)
    for path in sorted((results_root / study).glob("*Z-*"), reverse=True):
        info = inspect_run(path)
        if (info.parameters, info.seed) != (asked, seed):
            continue
        if info.version == version or info.status != "interrupted":
            return ""
        return f"{path} was interrupted with another version of the code, and begins again"
    return ""
