"""Tables of a study: patients, one row per personalisation, one row per forward run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vitolab.failures import Failure
from vitolab.fit import Event, Fit, StopReason, Trace
from vitolab.problem import FloatArray, IntArray, Patient, Problem

if TYPE_CHECKING:
    import pandas as pd

#: Columns that tell one personalisation from another, in the order of the stored tables.
KEYS = ("setup", "patient", "method", "n_states", "n_samples", "repeat", "start")
#: Columns of runs in which patients are personalised one after the other: place and round.
IN_ORDER = ("order", "round")
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
    return row | ({"note": fit.note} if fit.note else {})


def stored_fit(problem: Problem, row: Mapping[Any, Any], traces: pd.DataFrame | None) -> Fit:
    """Fit of a stored personalisation, from which methods learn the same as from the fit itself.

    Causes of failed runs are stored elsewhere; what led to these is not stored.

    Parameters
    ----------
    problem : Problem
        With the objectives that were measured, see `Problem.observed`.
    row : mapping of str to value
        Row of the personalizations.
    traces : DataFrame or None
        Its forward runs, in their order; None if there was none.
    """
    events = {event.name.lower(): int(event) for event in Event}

    def read(what: str, names: Sequence[str]) -> FloatArray:
        if traces is None:
            return np.empty((0, len(names)))
        columns = [f"{what}:{name}" for name in names]
        return np.ascontiguousarray(traces[columns].to_numpy(dtype=float))

    def whole(name: str) -> IntArray:
        found = np.empty(0) if traces is None else traces[name].to_numpy()
        return found.astype(np.int64)

    objectives = [o.name for o in problem.objectives]
    event = [] if traces is None else [events.get(e, int(Event.STEP)) for e in traces["event"]]
    trace = Trace(
        read("x", [p.name for p in problem.parameters]),
        read("y", objectives),
        read("c", objectives),
        np.array(event, dtype=np.int64),
        whole("action"),
        whole("state"),
    )
    note = row.get("note", "")
    reason = StopReason(row["stop_reason"])
    return Fit.from_trace(problem, trace, reason, note if isinstance(note, str) else "")


def table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Personalizations table of some rows; keys that may be absent are nullable integers."""
    import pandas as pd

    frame = pd.DataFrame(rows)
    nullable = ["n_states", "n_samples", "repeat", "start", "n_states_used"]
    # not of methods that learn nothing, or not from one patient after the other
    nullable += [name for name in ("n_training_runs", "max_runs", *IN_ORDER) if name in frame]
    return frame.astype(dict.fromkeys(nullable, "Int64"))


Columns = dict[str, NDArray[Any]]


def trace_columns(
    problem: Problem, fit: Fit, label: Mapping[str, Any], observed: Problem | None = None
) -> Columns:
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
    columns: Columns = {name: np.full(fit.n_runs, label[name], dtype=object) for name in KEYS}
    columns |= {name: values for name, values in own.items() if name not in further}
    columns |= {f"{what}:{o}": np.full(fit.n_runs, np.nan) for what in ("y", "c") for o in unseen}
    return columns | {name: own[name] for name in further}


def joined_traces(traces: Sequence[Columns]) -> pd.DataFrame | None:
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
