"""Tables of a study: patients, one row per personalisation, one row per forward run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vitolab.failures import Failure
from vitolab.fit import Fit
from vitolab.problem import Patient, Problem

if TYPE_CHECKING:
    import pandas as pd

#: Columns that tell one personalisation from another, in the order of the stored tables.
KEYS = ("setup", "patient", "method", "n_states", "n_samples", "repeat", "start")
#: Sizes of a training, and their names on an axis.
SIZES = {"n_samples": "training samples per patient", "n_states": "representative states n_S"}


def largest(rows: pd.DataFrame) -> pd.DataFrame:
    """Of methods that learn, the rows of the largest size."""
    for size in SIZES:
        most = rows.groupby(["setup", "method"])[size].transform("max")
        rows = rows[most.isna() | (rows[size] == most)]
    return rows


def fit_row(problem: Problem, fit: Fit, observed: Problem | None = None) -> dict[str, Any]:
    """Columns of the personalizations table that hold the outcome of one personalisation.

    Parameters
    ----------
    problem : Problem
    fit : Fit
    observed : Problem, optional
        The problem with the objectives that were measured, see `Problem.observed`, where these
        are not all: others are NaN, and named.
    """
    observed = problem if observed is None else observed
    row: dict[str, Any] = {
        "solved": fit.solved,
        "n_runs": fit.n_runs,
        "n_failed": fit.n_failed,
        "n_restarts": fit.n_restarts,
        "stop_reason": str(fit.stop_reason),
    }
    if len(observed.objectives) < len(problem.objectives):
        missing = [o.name for o in problem.objectives if o not in observed.objectives]
        row |= {"not_measured": " and ".join(missing), **{f"misfit:{o}": np.nan for o in missing}}
    row |= {f"misfit:{o.name}": c for o, c in zip(observed.objectives, fit.misfits, strict=True)}
    row |= {f"x:{p.name}": x for p, x in zip(problem.parameters, fit.x, strict=True)}
    row |= {f"last:{p.name}": x for p, x in zip(problem.parameters, fit.last_x, strict=True)}
    return row


def table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Personalizations table of some rows; keys that may be absent are nullable integers."""
    import pandas as pd

    frame = pd.DataFrame(rows)
    nullable = ["n_states", "n_samples", "repeat", "start", "n_states_used"]
    if "n_training_runs" in frame:  # not of methods that learn nothing
        nullable.append("n_training_runs")
    return frame.astype(dict.fromkeys(nullable, "Int64"))


Trace = dict[str, NDArray[Any]]


def trace_columns(
    problem: Problem, fit: Fit, label: Mapping[str, Any], observed: Problem | None = None
) -> Trace:
    """Columns of the traces table of one personalisation: one row per forward run.

    Parameters
    ----------
    problem, fit, observed
        See `fit_row`.
    label : mapping of str to value
        The `KEYS`.
    """
    measured = (problem if observed is None else observed).objectives
    unseen = [o.name for o in problem.objectives if o not in measured]
    own = fit.columns()
    further = [name for name in own if name.startswith(("e:", "why:"))]
    columns: Trace = {name: np.full(fit.n_runs, label[name], dtype=object) for name in KEYS}
    columns |= {name: values for name, values in own.items() if name not in further}
    columns |= {f"{what}:{o}": np.full(fit.n_runs, np.nan) for what in ("y", "c") for o in unseen}
    return columns | {name: own[name] for name in further}


def joined_traces(traces: Sequence[Trace]) -> pd.DataFrame | None:
    """Traces table of several personalisations of one problem; None if there are none.

    Columns of expected misfits, and of reasons, are there if one of them has any, and NaN for all
    others.
    """
    import pandas as pd

    if not traces:
        return None
    names = dict.fromkeys(name for trace in traces for name in trace)
    joined = {
        name: np.concatenate([t.get(name, np.full(len(t["iteration"]), np.nan)) for t in traces])
        for name in names
    }
    return pd.DataFrame(joined).astype(
        dict.fromkeys(("n_states", "n_samples", "repeat", "start"), "Int64")
    )


def trace_table(problem: Problem, fit: Fit, label: Mapping[str, Any]) -> pd.DataFrame:
    """Traces table of one personalisation."""
    frame = joined_traces([trace_columns(problem, fit, label)])
    assert frame is not None
    return frame


def failure_table(
    stage: str, setup: str, names: Sequence[str], failures: Sequence[Failure]
) -> pd.DataFrame:
    """Failures table: failed runs by patient and cause, with the parameters of the first of each.

    Parameters
    ----------
    stage : {"exploration", "personalization"}
    setup : str
    names : sequence of str
        Of the parameters.
    failures : sequence of Failure
    """
    import pandas as pd

    rows = [
        {
            "setup": setup,
            "stage": stage,
            "patient": f.patient,
            "kind": str(f.kind),
            "text": f.text,
            "n_runs": f.n_runs,
            "n_retries": f.n_retries,
            **{f"x:{name}": value for name, value in zip(names, f.x, strict=True)},
        }
        for f in failures
    ]
    return pd.DataFrame(rows)


def patient_table(
    problems: Mapping[str, Problem],
    patients: Sequence[Patient],
    truth: Mapping[str, Mapping[str, float]] | None = None,
) -> pd.DataFrame:
    """Patients table: measurements, data and, where synthetic, true parameters.

    Parameters
    ----------
    problems : mapping of setup name to Problem
    patients : sequence of Patient
    truth : mapping of patient name to mapping of parameter name to float, optional
        Read by figures, never by agents.
    """
    import pandas as pd

    rows = []
    for (setup, problem), patient in product(problems.items(), patients):
        row: dict[str, Any] = {"setup": setup, "patient": patient.name}
        # NaN where it was not measured
        row |= {f"z:{o.name}": patient.measurements.get(o.name, np.nan) for o in problem.objectives}
        row |= {f"data:{name}": value for name, value in patient.data.items()}
        if truth is not None:
            row |= {f"truth:{name}": value for name, value in truth[patient.name].items()}
        rows.append(row)
    return pd.DataFrame(rows)
