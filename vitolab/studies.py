"""The studies as plain data, and how one is run: its notebook, through papermill.

The notebook computes and fills the tables of the run; this module owns the run and writes its
manifest.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from vitolab.notebooks import checked_value, declared_parameters, execute, find_notebook
from vitolab.records import Progress
from vitolab.runs import RunFolder, RunInfo, inspect_run, read_progress
from vitolab.store import Run, code_version

if TYPE_CHECKING:
    import pandas as pd

#: Numbers of states that the paper chose for the circulation (section 3.3.2).
N_STATES = {"2p": 70, "3p": 150, "5p": 400, "6p": 600}
#: Parameters of every notebook that are not the study's: they come from arguments of `run`.
GIVEN = ("seed", "n_jobs", "results", "run_folder")


@dataclass(frozen=True)
class Study:
    """A notebook and the sizes at which it is run.

    Attributes
    ----------
    name : str
        With hyphens; runs are stored under ``results/<name>/``.
    notebook : str
        File name, or an absolute path.
    title : str
    profiles : mapping of str to mapping of str to JSON value
        Parameters of each size.
    duration : mapping of str to str
        What to expect of each size on a laptop with two cores.
    """

    name: str
    notebook: str
    title: str
    profiles: Mapping[str, Mapping[str, Any]]
    duration: Mapping[str, str]


#: Reference methods of the circulation studies.
METHODS = [
    *("nelder-mead", "nelder-mead-unweighted", "nelder-mead-wide"),
    *("least-squares", "least-squares-multistart"),
]
_GRID: Mapping[str, Any] = {
    "n_functions": 100,
    "grid_size": 21,
    "n_samples": 1000,
    "n_states": 100,
    "max_runs": 1000,
    "action_sets": ["base", "extended"],
    "borders": ["free", "clip"],
    "restarts": [False, True],
    "signs": ["signed", "absolute"],
    "methods": ["nelder-mead", "least-squares"],
    "n_compared": 40,
    "n_repeats": 1,
}

STUDIES = (
    Study(
        name="tour",
        notebook="tour.ipynb",
        title="From walks to a personalised model, step by step",
        profiles={"quick": {}, "standard": {}, "paper": {}},
        duration={"quick": "a minute", "standard": "a minute", "paper": "a minute"},
    ),
    Study(
        name="rosenbrock-grid",
        notebook="rosenbrock_grid.ipynb",
        title="Rosenbrock functions from a grid of starts (section 3.1)",
        profiles={
            # a fifth of the functions, with as many samples in all
            "quick": {
                **_GRID,
                "n_functions": 20,
                "grid_size": 11,
                "n_samples": 5000,
                "max_runs": 300,
                "action_sets": ["base"],
                "borders": ["free"],
                "signs": ["signed"],
                "n_compared": 30,
            },
            "standard": _GRID,
            "paper": {**_GRID, "n_compared": 441, "n_repeats": 5},
        },
        duration={"quick": "a minute", "standard": "15 minutes", "paper": "about two hours"},
    ),
    Study(
        name="wbc-scouting",
        notebook="wbc_scouting.ipynb",
        title="Circulation: how many states (section 3.3.2)",
        profiles={
            "quick": {
                "setups": ["2p"],
                "n_states": {"2p": [20, 50, 70, 100]},
                "n_samples": 300,
                "n_repeats": 1,
            },
            "standard": {
                "setups": ["2p", "3p", "5p", "6p"],
                "n_states": {
                    "2p": [10, 20, 35, 50, 70, 100, 150, 200],
                    "3p": [20, 50, 75, 100, 150, 200, 300, 400],
                    "5p": [50, 100, 200, 300, 400, 500, 600, 800],
                    "6p": [100, 200, 300, 400, 500, 600, 700, 800],
                },
                "n_samples": 1000,
                "n_repeats": 2,
            },
            "paper": {
                "setups": ["2p", "3p", "5p", "6p"],
                # success and its neighbours alone take 2 n + 1 states
                "n_states": {
                    setup: [fewest, 20, 50, 70, 100, 150, 200, 300, 400, 500, 600, 700, 800]
                    for setup, fewest in (("2p", 10), ("3p", 10), ("5p", 12), ("6p", 14))
                },
                "n_samples": 10000,
                "n_repeats": 5,
            },
        },
        duration={"quick": "a minute", "standard": "10 minutes", "paper": "about half a day"},
    ),
    Study(
        name="wbc-convergence",
        notebook="wbc_convergence.ipynb",
        title="Circulation: how many training samples (section 3.3.4)",
        profiles={
            "quick": {
                "setups": ["2p", "3p", "5p", "6p"],
                "n_patients": 12,
                "n_samples": {setup: [10, 300] for setup in ("2p", "3p", "5p", "6p")},
                "n_states": N_STATES,
                "n_repeats": 1,
                "methods": ["nelder-mead", "least-squares", "least-squares-multistart"],
                "n_starts": 5,
            },
            "standard": {
                "setups": ["2p", "3p", "5p", "6p"],
                "n_patients": 48,
                "n_samples": {
                    "2p": [10, 100, 1000],
                    "3p": [10, 100, 1000],
                    "5p": [100, 1000, 4000],
                    "6p": [100, 1000, 4000],
                },
                "n_states": N_STATES,
                "n_repeats": 1,
                "methods": METHODS,
                "n_starts": 10,
            },
            "paper": {
                "setups": ["2p", "3p", "5p", "6p"],
                "n_patients": 48,
                "n_samples": {
                    setup: [1, 10, 100, 1000, 10000, 100000] for setup in ("2p", "3p", "5p", "6p")
                },
                "n_states": N_STATES,
                "n_repeats": 5,
                "methods": METHODS,
                "n_starts": 100,
            },
        },
        duration={"quick": "a minute", "standard": "15 minutes", "paper": "two to three days"},
    ),
    Study(
        name="wbc-fit",
        notebook="wbc_fit.ipynb",
        title="Circulation: one patient in full",
        profiles={
            profile: {
                "setups": ["2p", "3p", "5p", "6p"],
                "patient": "C01",
                "n_samples": n_samples,
                "n_states": N_STATES,
            }
            for profile, n_samples in (("quick", 300), ("standard", 1000), ("paper", 4000))
        },
        duration={"quick": "a minute", "standard": "a minute", "paper": "a few minutes"},
    ),
)

#: Studies of the demonstration, each at its quick profile.
DEMO = ("rosenbrock-grid", "wbc-convergence")


def find_study(name: str) -> Study:
    """Study of a name.

    Raises
    ------
    ValueError
        If there is none.
    """
    for study in STUDIES:
        if study.name == name:
            return study
    raise ValueError(
        f"there is no study {name!r}, expected one of {', '.join(s.name for s in STUDIES)}"
    )


def run(
    study: Study,
    profile: str = "quick",
    overrides: Mapping[str, Any] | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    results: Path | str = Path("results"),
    again: bool = False,
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

    Returns
    -------
    RunInfo
        Its status is ``complete``, or ``failed`` with the reason.

    Raises
    ------
    ValueError
        If a parameter is not one of the notebook, or not of its type.
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
    root = Path(results).resolve()
    if profile == "paper":
        _say(f"{study.name}: this profile takes {study.duration[profile]}")
    folder = RunFolder.start(root, study.name, parameters, seed, code_version(), again=again)
    if folder.state == "complete":
        _say(f"already complete: {folder.path}")
        return inspect_run(folder.path)
    _say(f"{study.name}: {'resuming' if folder.state == 'resumed' else 'running'} {folder.path}")
    given = {"seed": seed, "n_jobs": jobs, "results": str(root), "run_folder": str(folder.path)}
    try:
        with shown(lambda: read_progress(folder.path)):
            reason = execute(notebook, folder.path, {**parameters, **given})
        folder.finish("failed" if reason else "complete", reason)
    finally:
        folder.release()  # stopped by hand: interrupted, and free to be resumed
    return inspect_run(folder.path)


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
        _check_counts(f"{study.name}: {name}", parameters[name])
    return parameters


def _check_counts(what: str, value: Any) -> None:
    """Refuse a number below one and an empty list: the whole numbers of studies are counts."""
    if isinstance(value, Mapping | list):
        if not value:
            raise ValueError(f"{what} is empty, expected at least one value")
        for item in value.values() if isinstance(value, Mapping) else value:
            _check_counts(what, item)
    elif isinstance(value, int) and not isinstance(value, bool) and value < 1:
        raise ValueError(f"{what} holds {value}, expected at least 1")


def demo(results: Path | str = Path("results")) -> list[RunInfo]:
    """Run one quick study per model and print how Vito stands beside the references.

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
    print(
        "\nThe functions and patients are synthetic: they show that the method works, not what it "
        "does for a real patient.\nRuns are forward runs of the model, each one counted; n is the "
        "number of personalisations, for references\nof the circulation model patients times "
        "random starts. Of several training sizes the largest is shown. This is\nthe quick size: "
        "12 patients, 300 training samples each. `--profile standard` trains with up to 4,000.\n"
    )
    for info in infos:
        print(f"{info.study}: {info.path}")
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
    summary["reference"] = ~summary["method"].str.startswith("vito")
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


def processors() -> int:
    """Number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _say(line: str) -> None:
    """Tell the user."""
    print(line, file=sys.stderr, flush=True)


Read = Callable[[], Progress | None]


@contextmanager
def shown(read: Read) -> Iterator[None]:
    """Show how far a run is while it goes on: a bar on a terminal, plain lines elsewhere.

    Parameters
    ----------
    read : callable
        Answers with the progress of the run, or None where there is none yet.
    """
    stop = Event()
    show = _show_bar if sys.stderr.isatty() else _show_lines
    thread = Thread(target=show, args=(read, stop.wait), name="vitolab progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _show_bar(read: Read, wait: Callable[[float], bool]) -> None:
    """Draw a bar per stage until told to stop."""
    from tqdm import tqdm

    bar, stage, ended = None, None, False
    while not ended:
        ended = wait(0.5)
        progress = read()
        if progress is None or not progress.total:
            continue
        if bar is None or progress.stage != stage:
            if bar is not None:
                bar.close()
            stage = progress.stage
            bar = tqdm(desc=stage, total=progress.total, file=sys.stderr)
        bar.n = progress.done
        bar.refresh()
    if bar is not None:
        bar.close()


def _show_lines(read: Read, wait: Callable[[float], bool]) -> None:
    """Print a line when a stage begins, every half minute and at the end."""
    said: tuple[str, int, int] | None = None
    last = time.monotonic()
    ended = False
    while not ended:
        ended = wait(0.5)
        progress = read()
        if progress is None or not progress.total:
            continue
        state = (progress.stage, progress.done, progress.total)
        began = said is None or said[0] != progress.stage
        if state != said and (began or ended or time.monotonic() - last > 30):
            said, last = state, time.monotonic()
            _say(f"  {progress.stage}: {progress.done} of {progress.total}")
