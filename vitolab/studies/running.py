"""How a study is run: its notebook, through papermill.

The notebook computes and fills the tables of the run; this module owns the run and writes its
manifest.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from vitolab.asked import checked_count, checked_seed
from vitolab.display import say, shown
from vitolab.files import atomic, checked_name, resolved, write_json
from vitolab.methods import check_installed
from vitolab.parallel.slurm import check_slurm, slurm
from vitolab.parallel.workers import SCHEDULER, check_scheduler, is_exposed, processors
from vitolab.store.claims import OutOfTime
from vitolab.store.folder import stored_parameters
from vitolab.store.info import RunInfo, inspect_run, read_progress
from vitolab.store.opened import OpenRun
from vitolab.store.opening import damaged, left_behind
from vitolab.store.stored import Run
from vitolab.studies.base import FILES, Study
from vitolab.studies.checking import checked_parameters
from vitolab.studies.notebooks import execute, find_notebook
from vitolab.studies.problem import STUDY as OWN
from vitolab.version import code_version


def run(
    study: Study,
    profile: str = "quick",
    overrides: Mapping[str, Any] | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    results: Path | str = Path("results"),
    again: bool = False,
    scheduler: str | None = None,
    cluster: str | None = None,
    n_workers: int | None = None,
    max_hours: float | None = None,
) -> RunInfo:
    """Run a study, or go on with it, or say where it is.

    Parameters
    ----------
    study : Study
    profile : str
        Which of the study's sizes.
    overrides : mapping of str to JSON value, optional
        Parameters to change.
    seed : int
    n_jobs : int, optional
        Folds at the same time; by default one per processor. Does not change results.
    results : Path or str
        Folder of all results.
    again : bool
        Recompute a finished run.
    scheduler : str, optional
        Address of a Dask scheduler whose workers explore and compute the folds, such as
        ``tcp://127.0.0.1:8786``. Does not change results, nor does the cluster.
    cluster : {"slurm"}, optional
        Have them started for this run instead, see `vitolab.parallel.slurm.slurm_cluster`.
    n_workers : int, optional
        Workers of the cluster.
    max_hours : float, optional
        Wall time (h) after which no further part is begun. What has begun is finished, and the
        tables of the finished parts are assembled; the run can be gone on with.

    Returns
    -------
    RunInfo
        Its status is ``complete``, or ``failed`` with the reason, or ``interrupted`` where the
        time was spent; its progress then says how many parts are finished.

    Raises
    ------
    ValueError
        If a parameter is not one of the notebook, or not of its type, or the workers cannot be
        used.
    CannotRun
        If a method needs an extra that is missing.
    ConnectionError
        If the scheduler does not answer, or all workers are lost or refused; what is finished is
        kept.
    RunInUse
        If a live process is computing the run.
    """
    notebook = find_notebook(study.notebook)
    parameters = checked_parameters(study, profile, overrides or {})
    for name in ("agents", "methods"):
        check_installed(parameters.get(name, ()))
    seed = checked_seed(seed, f"{study.name}: seed")
    asked = processors() if n_jobs is None else n_jobs
    jobs = checked_count(f"{study.name}: the number of jobs", asked)
    working = _workers(study, scheduler, cluster, n_workers)
    if max_hours is not None and not 0 < max_hours < math.inf:
        raise ValueError(f"{study.name}: max_hours is {max_hours}, expected above 0")
    root = resolved(Path(results))
    if profile == "paper":
        say(f"{study.name}: this profile takes {study.duration[profile]}")
    for name in FILES:
        if parameters.get(name):
            parameters[name] = str(_kept(root, Path(parameters[name])))
    version = code_version(study.name)
    if study is OWN:
        from vitolab.problemfile import read_problem

        described = read_problem(parameters["problem"]).described()
        write_json(root / ".inputs" / f"{parameters['problem_key']}.json", described)
        if not again and not OpenRun.is_known(root, study.name, parameters, seed, version):
            _check_unchanged(root, stored_parameters(root, parameters), seed, described)
    left = left_behind(root, study.name, parameters, seed, version)
    hurt = damaged(root, study.name, parameters, seed, version)
    run = OpenRun.start(root, study.name, parameters, seed, version, again=again)
    if left and run.state == "new":
        say(f"{study.name}: {left}")
    if hurt and run.state != "complete" and not again:
        say(f"{study.name}: {hurt}")
    if run.state == "complete":
        Run.load(run.path).check_files()
        say(f"already complete: {run.path}")
        return inspect_run(run.path)
    say(f"{study.name}: {'resuming' if run.state == 'resumed' else 'running'} {run.path}")
    given = {"seed": seed, "n_jobs": jobs, "results": str(root), "run_folder": str(run.path)}
    try:
        if max_hours is not None:
            run.allow(max_hours)
        with working as environment, shown(lambda: read_progress(run.path)):
            reason = execute(notebook, run.path, {**parameters, **given}, environment)
        kind, _, sentence = reason.partition(": ")
        if kind == ConnectionError.__name__:
            raise ConnectionError(sentence)  # nothing of the run is wrong: it waits for workers
        if kind != OutOfTime.__name__:
            run.close("failed" if reason else "complete", reason)
    finally:
        run.release()  # stopped by hand or by the clock: interrupted, and free to be resumed
    return inspect_run(run.path)


def _workers(
    study: Study, scheduler: str | None, cluster: str | None, n_workers: int | None
) -> AbstractContextManager[Mapping[str, str]]:
    """Refuse workers that cannot be used; give what starts and ends those of a cluster."""
    if cluster is None and n_workers is not None:
        raise ValueError(f"{study.name}: the number of workers is for a cluster, there is none")
    if cluster is not None:
        if scheduler is not None:
            raise ValueError(
                f"{study.name}: the cluster is {cluster!r} and the scheduler {scheduler!r}, "
                "expected one of them"
            )
        if cluster != "slurm":
            raise ValueError(f"{study.name}: the cluster is {cluster!r}, expected 'slurm'")
        if n_workers is None or n_workers < 1:
            raise ValueError(
                f"{study.name}: the number of workers is {n_workers}, expected at least 1"
            )
        check_slurm()
        return slurm(n_workers)
    if scheduler is None:
        return nullcontext({})
    if check_scheduler(scheduler) == 0:
        say(f"{study.name}: {scheduler} has no workers yet, waiting for the first")
    if is_exposed(scheduler):
        say(
            f"{study.name}: anyone who reaches {scheduler} can run code there, expected tls:// "
            "beyond this machine"
        )
    return nullcontext({SCHEDULER: scheduler})


def _kept(root: Path, file: Path) -> Path:
    """Copy of a user's file among the results, by its content: a run is of what it held then."""
    content = file.read_bytes()
    kept = root / ".inputs" / hashlib.sha256(content).hexdigest()[:16] / file.name
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with atomic(kept) as temporary:
            temporary.write_bytes(content)
    return kept


def _check_unchanged(
    root: Path, parameters: Mapping[str, Any], seed: int, described: Mapping[str, Any]
) -> None:
    """Refuse to forget a run of the same files that is half done.

    Raises
    ------
    ProblemError
        If the files held something else when that run was started; with every difference.
    """
    from vitolab.problemfile import ProblemError, changed_fields, changed_rows

    alike = {n: v for n, v in parameters.items() if n not in ("problem_key", "patients")}
    for path in sorted((root / OWN.name).glob("*"), reverse=True):
        info = inspect_run(path)
        before = stored_parameters(root, info.parameters)
        if (info.status, info.seed) != ("interrupted", seed):
            continue
        if {n: before.get(n) for n in alike} != alike:
            continue
        patients = root / str(before.get("patients"))
        if patients.name != Path(parameters["patients"]).name:
            continue
        if before == dict(parameters):
            return  # with another version of this package
        known = root / ".inputs" / checked_name("problem_key", str(before["problem_key"]))
        changed = changed_fields(known.with_suffix(".json"), described)
        if before["patients"] != parameters["patients"]:
            changed += changed_rows(patients, root / parameters["patients"])
        start = f"{parameters['problem']}: {path.name} was interrupted, and cannot go on: "
        raise ProblemError(
            [
                *(f"{start}{change}" for change in changed),
                "expected what it was started with, or again=True to begin another run",
            ]
        )
