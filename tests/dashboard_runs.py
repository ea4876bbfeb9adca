"""Small runs of every kind of study, made up in milliseconds, and pages that show them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from bokeh.document import Document
from bokeh.models import Axis

from vitolab.dashboard import load_dashboards
from vitolab.models import bolus, circulation, rosenbrock
from vitolab.plots.orders import GIVES_UP
from vitolab.problem import Objective, Parameter, Problem
from vitolab.settings import GIVE_UP
from vitolab.store import OpenRun, assemble
from vitolab.store.tables import patient_table, table
from vitolab.validation import policy_arrays

#: Columns that only methods which learn fill.
SIZES = ("n_states", "n_samples")

EP = Problem(
    name="electrophysiology",
    version="1",
    parameters=(Parameter("v_myo", "Myocardial speed", "mm/s", 100.0, 1000.0, 500.0, 1.0),),
    objectives=(
        Objective("qrs_duration", "QRS duration", "ms", 5.0),
        Objective("electrical_axis", "Electrical axis", "°", 10.0, "angle"),
    ),
    simulate=lambda x, patient: np.hstack([x, x]),
)


def store(
    root: Path,
    study: str,
    rows: list[dict[str, Any]],
    *,
    problems: Mapping[str, Problem],
    patients: pd.DataFrame | None = None,
    arrays: Mapping[str, Any] | None = None,
    traces: pd.DataFrame | None = None,
    parameters: Mapping[str, Any] | None = None,
    seed: int = 0,
    status: str = "complete",
) -> str:
    """A run with these rows; its identifier."""
    run = OpenRun.start(root, study, parameters or {"n_patients": 3}, seed, "1", again=True)
    run.write_part("part", table(rows), traces)
    if status == "running":
        run.progress("folds", 1, 4)
        return run.path.name
    if patients is None:
        names = dict.fromkeys((row["setup"], row["patient"]) for row in rows)
        patients = pd.DataFrame(list(names), columns=["setup", "patient"])
    assemble(run.path, problems=problems, patients=patients, arrays=arrays)
    run.close(status, "" if status == "complete" else "ValueError: <b>no</b>")
    return run.path.name


def row(problem: Problem, **values: Any) -> dict[str, Any]:
    """A row of the personalizations table; what is not given is plain."""
    plain: dict[str, Any] = {
        "setup": "2p",
        "patient": "P1",
        "method": "vito",
        "n_states": 20,
        "n_samples": 100,
        "repeat": 0,
        "start": None,
        "seed": 0,
        "n_states_used": 20,
        "solved": True,
        "n_runs": 5,
        "n_restarts": 0,
        "stop_reason": "solved",
    }
    if not str(values.get("method", "vito")).startswith("vito"):
        plain |= {"n_states": None, "n_samples": None, "repeat": None, "n_states_used": None}
    plain |= {f"misfit:{o.name}": 0.5 for o in problem.objectives}
    for prefix in ("x", "last"):
        plain |= {f"{prefix}:{p.name}": p.default for p in problem.parameters}
    return plain | values


def convergence(root: Path, *, solved: int = 3, seed: int = 0, **more: Any) -> str:
    """Circulation in two setups, two sizes, two repeats; `solved` of three with the larger."""
    problems = {setup: circulation.problem(setup) for setup in ("2p", "3p")}
    rows = []
    for setup, problem in problems.items():
        for k in range(3):
            keys = {"setup": setup, "patient": f"P{k}"}
            for size in (10, 100):
                rows += [
                    row(problem, **keys, method=method, n_samples=size, repeat=repeat)
                    | {"solved": size == 100 and k < solved, "n_runs": 40 - size // 10 + repeat}
                    for method in ("vito", "vito-deterministic")
                    for repeat in (0, 1)
                ]
            rows += [
                row(problem, **keys, method="nelder-mead", start=start, solved=start == 0)
                for start in (0, 1)
            ]
    parameters = {"n_patients": 3, "n_starts": 2, "n_samples": {"2p": [10, 100]}}
    given = {"parameters": parameters | more.pop("parameters", {})}
    return store(root, "wbc-convergence", rows, problems=problems, seed=seed, **given, **more)


def scouting(root: Path, **more: Any) -> str:
    """Circulation with three numbers of states."""
    problem = circulation.problem("2p")
    rows = [
        row(problem, n_states=n, patient=f"P{k}", solved=n > 20 * k, repeat=0)
        for n in (20, 50, 70)
        for k in range(3)
    ]
    return store(root, "wbc-scouting", rows, problems={"2p": problem}, **more)


def agents(root: Path, study: str = "hindsight") -> str:
    """Three setups by two agents of two sizes and one reference."""
    problems = {setup: circulation.problem(setup) for setup in ("2p", "12p")} | {"bem": EP}
    rows = []
    for (setup, problem), k in product(problems.items(), range(3)):
        keys = {"setup": setup, "patient": f"P{k}"}
        rows += [
            row(problem, **keys, method=method, n_samples=size, n_states=None, solved=k < size)
            for method in ("vito-hindsight", "vito-continuous")
            for size in (1, 100)
        ]
        rows.append(row(problem, **keys, method="least-squares-multistart", start=0, n_runs=20))
    return store(root, study, rows, problems=problems)


def from_nothing(
    root: Path, *, give_up: float = GIVE_UP, setup: str = "6p", seed: int = 0, **more: Any
) -> str:
    """Two orders of four patients: 6 or 8 runs, then one for each; least squares takes 10."""
    problem = circulation.problem(setup)
    rows = []
    for repeat, position in product(range(2), range(4)):
        keys: dict[str, Any] = {
            "setup": setup,
            "patient": f"P{(position + repeat) % 4}",
            "repeat": repeat,
        }
        keys |= {"position": position + 1, "n_states": None, "n_samples": None}
        learned = (6 + 2 * repeat) if position == 0 else 1
        for name, method, n in (
            (setup, "vito-continuous", learned),
            (setup + GIVES_UP, "vito-continuous", learned),
            (setup, "least-squares-multistart", 10),
        ):
            rows.append(row(problem, method=method) | keys | {"setup": name, "n_runs": n})
    problems = {setup: problem, setup + GIVES_UP: problem}
    parameters = {"give_up": give_up}
    given = {"problems": problems, "parameters": parameters, "seed": seed}
    return store(root, "from-nothing", rows, **given, **more)


def uncertainty(root: Path) -> str:
    """Three starts and a posterior of each patient, whose truth is known."""
    problem, patients = circulation.problem("2p"), circulation.cohort().first(4)
    rows = []
    for k, patient in enumerate(patients):
        keys: dict[str, Any] = {"patient": patient.name, "n_states": None}
        for start in range(3):
            x = {f"x:{p.name}": p.default + 5 * start * p.step for p in problem.parameters}
            one = row(problem, **keys, method="vito-continuous", start=start)
            rows.append(one | x)
        sampled = {"acceptance": 0.3, "autocorrelation": 8.0, "n_effective": 900.0, "n_failed": 0}
        placed = {"level": 0.2 + 0.2 * k}
        placed |= {f"rank:{p.name}": 0.1 + 0.2 * k for p in problem.parameters}
        rows.append(row(problem, **keys, method="posterior", repeat=None) | sampled | placed)
    known = patient_table({"2p": problem}, patients)
    return store(root, "uncertainty", rows, problems={"2p": problem}, patients=known)


def stability(root: Path) -> str:
    """Three perturbations of each patient by two methods."""
    problem = circulation.problem("2p")
    rows = []
    for k, repeat, method in product(range(3), range(3), ("vito-continuous", "least-squares")):
        keys: dict[str, Any] = {"patient": f"P{k}", "method": method, "repeat": repeat}
        x = {f"x:{p.name}": p.default + repeat * p.step for p in problem.parameters}
        rows.append(row(problem, **keys) | x)
    return store(root, "stability", rows, problems={"2p": problem})


def prediction(root: Path, **more: Any) -> str:
    """Forecasts that follow the measured change, and those that say no change."""
    problem = bolus.problem()
    rows = []
    for k in range(6):
        one = row(problem, setup="bolus", patient=f"P{k}", method="vito-continuous")
        for name in bolus.PRESSURES:
            one |= {f"before:{name}": 80.0, f"after:{name}": 85.0 + k}
            one |= {f"model:{name}": 84.0 + k, f"model's change:{name}": 86.0 + k}
        rows.append(one)
    return store(root, "prediction", rows, problems={"bolus": problem}, **more)


def initialization(root: Path) -> str:
    """Errors of fixed and learned starts."""
    rows = []
    for k in range(4):
        keys = {"setup": "bem", "patient": f"P{k}", "misfit:qrs_duration": 10.0 * k + 1.0}
        rows += [
            row(EP, **keys, method="fixed"),
            row(EP, **keys, method="vito-initial", n_samples=10),
            row(EP, **keys, method="vito-initial", n_samples=100),
            row(EP, **(keys | {"misfit:qrs_duration": 1.0}), method="vito"),
        ]
    return store(root, "ep-initialization", rows, problems={"bem": EP})


def personalization(root: Path) -> str:
    """Electrophysiology by three methods."""
    rows = []
    for k in range(4):
        keys = {"setup": "bem", "patient": f"P{k}"}
        rows.append(row(EP, **keys, solved=k > 0))
        rows += [
            row(EP, **keys, method=method, start=start, solved=k > start)
            for method in ("bobyqa-simple", "least-squares")
            for start in (0, 1)
        ]
    return store(root, "ep-personalization", rows, problems={"bem": EP})


def grid(root: Path, *, transitions: bool = True) -> str:
    """Rosenbrock functions from a grid of nine starts, with a learned policy."""
    problem, functions, starts = rosenbrock.problem(), rosenbrock.cohort(3), rosenbrock.grid(3)
    rows = []
    for k, function in enumerate(functions):
        best = rosenbrock.optimum(function)
        for start in range(len(starts)):
            # the second function ends worst, and the farther the later the start
            off = 0.01 + (0.3 * start if k == 1 else 0.0)
            last = {"last:x1": best[0] + off, "last:x2": best[1]}
            keys = {"setup": "base, free", "patient": function.name, "start": start}
            rows.append(row(problem, **keys, solved=off < 0.05) | last)
    optima = {
        f.name: dict(zip(("x1", "x2"), rosenbrock.optimum(f), strict=True)) for f in functions
    }
    problems = {"base, free": problem}
    sizes = {"n_states": {"base, free": 30}, "n_samples": {"base, free": 2000}}
    arrays = policy_arrays(problems, functions, **sizes)
    if not transitions:
        arrays = {name: a for name, a in arrays.items() if "counts" not in name}
    trace = pd.DataFrame(
        {"iteration": [0, 1], "event": ["start", "step"], "action": [-1, 3], "state": [5, 0]}
        | {"x:x1": [0.0, 1.0], "x:x2": [0.0, 0.5], "y:t1": [1.0, 0.0], "y:t2": [0.0, 0.0]}
        | {"c:t1": [1.0, 0.0], "c:t2": [0.0, 0.0]}
    ).assign(setup="base, free", patient=functions[0].name, method="vito", n_states=20)
    trace = trace.assign(n_samples=100, repeat=0, start=0)
    return store(
        root,
        "rosenbrock-grid",
        rows,
        problems=problems,
        patients=patient_table(problems, functions, optima),
        arrays=arrays | {"grid/x1": starts[:, 0], "grid/x2": starts[:, 1]},
        traces=trace.astype(dict.fromkeys(("n_states", "n_samples", "repeat", "start"), "Int64")),
    )


def fit(root: Path) -> str:
    """One patient in one setup, with curves."""
    problem = circulation.problem("2p")
    time = np.linspace(0.0, 0.8, 9)
    curves = {"time": time, "lv_volume": 100 + time, "lv_pressure": 80 + time}
    curves |= {"aortic_pressure": 90 + time}
    arrays = {f"{who}/{name}": a for who in ("2p", "measured") for name, a in curves.items()}
    measured = {f"z:{o.name}": 100.0 for o in problem.objectives}
    patients = pd.DataFrame([{"setup": "2p", "patient": "P1", **measured}])
    rows = [row(problem)]
    return store(root, "wbc-fit", rows, problems={"2p": problem}, patients=patients, arrays=arrays)


def traced(root: Path, *, n_patients: int = 48, n_starts: int = 21, n_steps: int = 100) -> str:
    """Forward runs of many personalisations, made up: 100,800 unless told otherwise."""
    problem, rng = circulation.problem("2p"), np.random.default_rng(0)
    patients = circulation.cohort().first(n_patients)
    rows = [
        row(problem, method="nelder-mead", patient=patient.name, start=start, n_runs=n_steps)
        for patient in patients
        for start in range(n_starts)
    ]
    fits = pd.DataFrame(rows)[["setup", "patient", "method", *SIZES, "repeat", "start"]]
    traces = fits.loc[fits.index.repeat(n_steps)].reset_index(drop=True)
    steps = np.tile(np.arange(n_steps), len(fits))
    traces = traces.assign(iteration=steps, event="step", action=-1, state=-1)
    for parameter in problem.parameters:
        traces[f"x:{parameter.name}"] = rng.uniform(parameter.lower, parameter.upper, len(traces))
    for objective in problem.objectives:
        c = objective.tolerance * rng.normal(size=len(traces))
        z = {patient.name: patient.measurements[objective.name] for patient in patients}
        traces[f"y:{objective.name}"] = traces["patient"].map(z) + c
        traces[f"c:{objective.name}"] = c
    return store(
        root,
        "wbc-convergence",
        rows,
        problems={"2p": problem},
        patients=patient_table({"2p": problem}, patients),
        traces=traces.astype(dict.fromkeys((*SIZES, "repeat", "start"), "Int64")),
    )


def listed(root):
    """What reads a store."""
    found = load_dashboards("kit.source").Source(root)
    found.refresh(older_than=0)
    return found


def opened(page_of, found, **state):
    """A page that has shown what it is asked for."""
    page = page_of.__name__.removesuffix("View").lower()
    chosen = load_dashboards("kit.selection").Selection(page=page, **state)
    crew = load_dashboards("kit.worker").Worker()
    view = page_of(chosen, found, crew)
    content = view.panel()
    crew.wait(60)
    return view, content


def plots_of(gallery):
    """Figures that a gallery shows, as the browser gets them."""
    return [column[1].item for column in gallery if column.visible]


def figure_of(picture):
    """The figure that a browser builds of a picture."""
    return Document.from_json(json.loads(picture.item)["doc"]).roots[0]


def labels_of(picture):
    """Labels of the axes of a picture."""
    axes = figure_of(picture).select({"type": Axis})
    return {axis.axis_label.replace("\n", " ") for axis in axes}
