"""Circulation: one patient in full (section 3.3)."""

from __future__ import annotations

from vitolab.studies import shared
from vitolab.studies.base import N_STATES, Content, Section, StoredRun, Study, choices

#: Curves of a loop, and their labels.
_CURVES = {"time": "time [s]", "lv_volume": "LV volume [mL]", "lv_pressure": "LV pressure [mmHg]"}


def _fit(stored: StoredRun, repeat: int) -> Content:
    from vitolab import plots
    from vitolab.studies import words

    tables = (stored.personalizations, stored.patients, stored.problems)
    table = plots.fit_table(*tables)
    return Content(
        words.solved(stored.personalizations),
        plots.fit_curves(stored.arrays, *tables),
        (("Objective by objective", table),),
    )


def _loops(stored: StoredRun, repeat: int) -> Content:
    import pandas as pd

    from vitolab import plots

    figure = plots.pressure_volume_loops(stored.arrays, stored.problems)
    sentence = "Pressure in the ventricle by the model; it was not measured."
    tables = []
    for setup in stored.problems:
        curves = {name: stored.arrays[f"{setup}/{name}"] for name in _CURVES}
        table = pd.DataFrame({label: curves[name] for name, label in _CURVES.items()})
        tables.append(table.assign(setup=setup))
    return Content(sentence, figure, (("The curves of the model", pd.concat(tables)),))


def _history(stored: StoredRun, repeat: int) -> Content:
    from vitolab import plots
    from vitolab.plots.summary import setups_of

    setup = setups_of(stored.personalizations["setup"])[-1]
    trace = stored.traces[stored.traces["setup"] == setup]
    title = f"synthetic patient {trace['patient'].iloc[0]}, {setup}"
    figure = plots.misfit_history(trace, stored.problems[setup], title=title)
    shown = trace[["iteration", "event", *(c for c in trace if str(c).startswith("c:"))]]
    shown = shown.dropna(axis=1, how="all")
    sentence = f"Misfits after each of {len(trace)} forward runs, in tolerances, in {setup}."
    return Content(sentence, figure, (("Forward run by forward run", shown),))


STUDY = Study(
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
    sections=(
        Section("fit", "Fit", _fit),
        Section("loops", "Loops", _loops),
        Section("history", "History", _history),
        shared.PATIENTS,
    ),
    choices=choices("setups"),
    traces=True,
    tiny={"setups": ["2p", "3p"], "n_samples": 10},
)
