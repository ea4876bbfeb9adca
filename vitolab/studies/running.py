"""How a study is run: its notebook, through papermill.

The notebook computes and fills the tables of the run; this module owns the run and writes its
manifest.
"""

from __future__ import annotations

import hashlib
import math
import shlex
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitolab.files import atomic, checked_name, write_json
from vitolab.methods import METHODS, is_agent
from vitolab.parallel.workers import (
    SCHEDULER,
    check_scheduler,
    check_slurm,
    is_exposed,
    processors,
    slurm,
)
from vitolab.store.claims import OutOfTime
from vitolab.store.display import say, shown
from vitolab.store.folder import (
    RunFolder,
    RunInfo,
    inspect_run,
    left_behind,
    read_progress,
    stored_parameters,
)
from vitolab.store.stored import Run, code_version
from vitolab.studies.notebooks import checked_value, declared_parameters, execute, find_notebook
from vitolab.studies.sizes import (
    CHOICES,
    DEMO,
    HEARTS,
    LEAST,
    MOST,
    OWN,
    STUDIES,
    Study,
    find_study,
)

if TYPE_CHECKING:
    import pandas as pd

    from vitolab.problemfile import OwnProblem

__all__ = [
    "DEMO",
    "GIVEN",
    "OWN",
    "STUDIES",
    "Study",
    "checked_parameters",
    "demo",
    "find_study",
    "run",
]

#: Parameters of every notebook that are not the study's: they come from arguments of `run`.
GIVEN = ("seed", "n_jobs", "results", "run_folder")
#: Parameters that name a file of data, of which a copy is kept; empty for none.
FILES = ("data", "patients")


def _read_bolus(file: Path) -> object:
    from vitolab.uncertainty.bolus import read_bolus

    return read_bolus(file)


#: What reads the file of a study, and refuses a malformed one before anything is run.
READERS: Mapping[str, Callable[[Path], object]] = {"prediction": _read_bolus}


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
        Compute anew what is complete.
    scheduler : str, optional
        Address of a Dask scheduler whose workers explore and compute the folds, such as
        ``tcp://127.0.0.1:8786``. Does not change results, nor does the cluster.
    cluster : {"slurm"}, optional
        Have them started for this run instead, see `vitolab.parallel.workers.slurm_cluster`.
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
    ConnectionError
        If the scheduler does not answer.
    RunInUse
        If a live process is computing the run.
    """
    notebook = find_notebook(study.notebook)
    parameters = checked_parameters(study, profile, overrides or {})
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise ValueError(f"{study.name}: seed is {seed!r}, expected a whole number from 0 to 2^63")
    jobs = n_jobs if n_jobs is not None else processors()
    if jobs < 1:
        raise ValueError(f"{study.name}: the number of jobs is {jobs}, expected at least 1")
    working = _workers(study, scheduler, cluster, n_workers)
    if max_hours is not None and not 0 < max_hours < math.inf:
        raise ValueError(f"{study.name}: max_hours is {max_hours}, expected above 0")
    root = Path(results).resolve()
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
        if not again and not RunFolder.is_known(root, study.name, parameters, seed, version):
            _check_unchanged(root, stored_parameters(root, parameters), seed, described)
    left = left_behind(root, study.name, parameters, seed, version)
    folder = RunFolder.start(root, study.name, parameters, seed, version, again=again)
    if left and folder.state == "new":
        say(f"{study.name}: {left}")
    if folder.state == "complete":
        say(f"already complete: {folder.path}")
        return inspect_run(folder.path)
    say(f"{study.name}: {'resuming' if folder.state == 'resumed' else 'running'} {folder.path}")
    given = {"seed": seed, "n_jobs": jobs, "results": str(root), "run_folder": str(folder.path)}
    try:
        if max_hours is not None:
            folder.allow(max_hours)
        with working as environment, shown(lambda: read_progress(folder.path)):
            reason = execute(notebook, folder.path, {**parameters, **given}, environment)
        if not reason.startswith(f"{OutOfTime.__name__}: "):
            folder.finish("failed" if reason else "complete", reason)
    finally:
        folder.release()  # stopped by hand or by the clock: interrupted, and free to be resumed
    return inspect_run(folder.path)


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
            f"{study.name}: whoever reaches {scheduler} can run code there, expected tls:// beyond "
            "this machine"
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
                "expected what it was started with, or --again to begin another run",
            ]
        )


def checked_parameters(study: Study, profile: str, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters of a run, each declared by the notebook and of its type.

    Raises
    ------
    ValueError
        With one sentence that names the parameter, its value and what was expected.
    """
    if profile not in study.profiles:
        raise ValueError(
            f"{study.name}: there is no profile {profile!r}, expected one of "
            f"{', '.join(study.profiles)}"
        )
    declared = declared_parameters(find_notebook(study.notebook))
    for name in GIVEN:
        if name not in declared:
            raise ValueError(f"{study.name}: {study.notebook} does not declare {name!r}")
        if name in overrides:
            raise ValueError(f"{study.name}: {name!r} is not set as a parameter, use its option")
    own = {name: known for name, known in declared.items() if name not in GIVEN}
    parameters = {name: default for name, (_, default) in own.items()}
    for name, value in {**study.profiles[profile], **overrides}.items():
        if name not in own:
            expected = f"expected one of {', '.join(own)}" if own else "it has none"
            raise ValueError(f"{study.name}: there is no parameter {name!r}, {expected}")
        parameters[name] = checked_value(f"{study.name}: {name}", value, own[name][0])
        _check_counts(f"{study.name}: {name}", parameters[name], LEAST.get(name, 1))
    if study is OWN:
        parameters |= _check_own(parameters)
    if (
        study in STUDIES or study is OWN
    ):  # in a notebook of somebody else's these names may mean other things
        _check_choices(study, parameters)
    for name in FILES:
        if parameters.get(name):
            file = Path(parameters[name]).absolute()  # a notebook runs in another folder
            if not file.is_file():
                raise ValueError(f"{study.name}: {name} is {file}, expected a file that exists")
            parameters[name] = str(file)
            if study.name in READERS:
                READERS[study.name](file)
    return parameters


def _check_own(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Read a problem and its patients, to refuse them before anything runs.

    Returns
    -------
    dict
        Parameters that follow: where the problem is, and its key.

    Raises
    ------
    ProblemError, InputError, ValueError
    """
    from vitolab.patients import read_patients
    from vitolab.problemfile import read_problem

    for name in ("problem", "patients"):
        if not parameters[name]:
            raise ValueError(f"{OWN.name}: {name} is missing, expected --{name} FILE")
    if parameters["problem_key"]:
        raise ValueError(f"{OWN.name}: problem_key follows from the problem, expected none")
    own: OwnProblem = read_problem(parameters["problem"])
    table = read_patients(
        Path(parameters["patients"]).absolute(),
        own.problem,
        data=own.data,
        ranges=own.ranges,
        allow_missing=parameters["allow_missing"],
    )
    for warning in table.warnings:
        say(f"vitolab: warning: {warning}")
    whole = [p for p in table.patients if own.problem.observed(p) is own.problem]
    if len(whole) < 2:
        raise ValueError(
            f"{parameters['patients']}: found {len(whole)} patients with all measurements, "
            "expected at least 2: each is personalised by what was learned from the others"
        )
    for name in parameters["methods"]:
        method = METHODS.get(name)
        if method is not None and not method.applies_to(own.problem):
            raise ValueError(
                f"{OWN.name}: method is {name!r}, which needs {', '.join(method.needs)}, expected "
                "another one"
            )
    return {"problem": str(own.path), "problem_key": own.key}


def _check_counts(what: str, value: Any, least: int) -> None:
    """Refuse too small a number and an empty list: numbers of studies are counts and shares."""
    if isinstance(value, Mapping | list):
        if not value:
            raise ValueError(f"{what} is empty, expected at least one value")
        for item in value.values() if isinstance(value, Mapping) else value:
            _check_counts(what, item, least)
    elif isinstance(value, float) and value <= 0:
        raise ValueError(f"{what} holds {value:g}, expected above 0")
    elif isinstance(value, int) and not isinstance(value, bool) and value < least:
        raise ValueError(f"{what} holds {value}, expected at least {least}")


def _check_choices(study: Study, parameters: Mapping[str, Any]) -> None:
    """Refuse what is none of the choices, and sizes that lack what was chosen."""
    for name in CHOICES.keys() & parameters.keys():
        value = parameters[name]
        if isinstance(value, list) and len(set(value)) < len(value):
            raise ValueError(f"{study.name}: {name} is {value}, expected each once")
        for item in value if isinstance(value, list) else [value]:
            if item not in CHOICES[name]:
                raise ValueError(
                    f"{study.name}: {name} holds {item!r}, expected one of "
                    f"{', '.join(CHOICES[name])}"
                )
    for name in MOST.keys() & parameters.keys():
        most = MOST["n_ep_patients"] if study.name in HEARTS else MOST[name]
        if parameters[name] > most:
            raise ValueError(
                f"{study.name}: {name} holds {parameters[name]}, expected at most {most}, as many "
                "as the cohort has"
            )
    if parameters.get("n_walkers", 0) % 2:
        raise ValueError(
            f"{study.name}: n_walkers holds {parameters['n_walkers']}, expected an even number"
        )
    chosen = [*parameters.get("setups", []), *parameters.get("lead_fields", [])]
    for name in ("n_samples", "n_states"):
        sizes = parameters.get(name)
        missing = [item for item in chosen if isinstance(sizes, Mapping) and item not in sizes]
        if missing:
            raise ValueError(
                f"{study.name}: {name} holds nothing for {missing[0]!r}, expected a size for each "
                f"of {', '.join(chosen)}"
            )


def demo(results: Path | str = Path("results")) -> list[RunInfo]:
    """Run quick studies and print how Vito stands beside the references.

    Returns
    -------
    list of RunInfo
        Up to the first that failed.
    """
    infos = []
    for name in DEMO:
        infos.append(run(find_study(name), "quick", results=results))
        if infos[-1].status != "complete":
            return infos
    for info in infos:
        stored = Run.load(info.path)
        print(f"\n{find_study(info.study).title}")
        print(_table(standing(stored.personalizations)))
        if "solvable" in stored.patients:
            for setup, own in stored.patients.groupby("setup", sort=False):
                print(
                    f"{setup}: {own['solvable'].sum()} of {len(own)} patients have a solution, as "
                    "far as a search over the domain tells"
                )
    print(
        "\nThe functions and patients are synthetic: they show how methods are run and compared, "
        "not what they do\nfor a real patient. "
        "Runs are forward runs of the model, each one counted; n is the "
        "number of personalisations, for references\nof the clinical models patients times "
        "random starts. Of several training sizes the largest is shown. This is\nthe quick size: "
        "the agent has few patients and samples to learn from. `--profile standard` takes all.\n"
    )
    for info in infos:
        print(f"{info.study}: {info.path}")
    folder = shlex.quote(str(results))
    print(
        "\nA plain least-squares solver beats the paper's agent where outputs are smooth; an agent "
        "that keeps what it explored\nbeats both. What experience adds: "
        f"vitolab run continuous-convergence --results {folder}"
    )
    print(f"\nBrowse them and play against Vito: vitolab dashboard --results {folder}")
    return infos


def standing(personalizations: pd.DataFrame) -> pd.DataFrame:
    """Success and cost of each method in each setup, Vito first.

    Parameters
    ----------
    personalizations : DataFrame
        Table of a stored run. Of several training sizes only the largest counts; where all
        methods went from the same numbered starts, only starts that all of a setup used.

    Returns
    -------
    DataFrame
        See `vitolab.plots.summary.summarize`; by setup and method.
    """
    from vitolab.plots.summary import summarize

    table = personalizations
    for size in ("n_samples", "n_states"):
        largest = table.groupby(["setup", "method"])[size].transform("max")
        table = table[largest.isna() | (table[size] == largest)]
    numbered = table.groupby("setup")["start"].transform(lambda start: start.notna().all())
    used = table.groupby(["setup", "start"])["method"].transform("nunique")
    methods = table.groupby("setup")["method"].transform("nunique")
    summary = summarize(table[~numbered | (used == methods)], ["setup", "method"])
    summary["reference"] = ~summary["method"].map(is_agent).astype(bool)
    ordered = summary.sort_values(["setup", "reference", "method"], ignore_index=True)
    return ordered.drop(columns="reference")


def _table(summary: pd.DataFrame) -> str:
    """Text of a summary."""
    width = max(5, *(len(str(setup)) for setup in summary["setup"]))
    head = f"{'setup':<{width}}  {'method':<26}{'success':>8}{'runs: all':>11}{'solved':>9}{'n':>7}"
    lines = [head]
    for row in summary.to_dict("records"):
        solved = "-" if math.isnan(row["runs_solved"]) else f"{row['runs_solved']:.1f}"
        lines.append(
            f"{row['setup']:<{width}}  {row['method']:<26}{row['success']:>7.1f} %"
            f"{row['runs_all']:>11.1f}{solved:>9}{row['n']:>7}"
        )
    return "\n".join(lines)
