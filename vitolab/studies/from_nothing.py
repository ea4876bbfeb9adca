"""From nothing: each patient is personalised by what those before have taught."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vitolab.asked import checked_chance
from vitolab.catalogue import CIRCULATION, ELECTROPHYSIOLOGY, GLUCOSE, ROSENBROCK
from vitolab.methods import AGENTS, METHODS, REFERENCES, learns_states
from vitolab.settings import GIVE_UP
from vitolab.studies.base import (
    N_CIRCULATION,
    N_HEARTS,
    OPPONENTS,
    Content,
    Section,
    StoredRun,
    Study,
    choices,
)

if TYPE_CHECKING:
    import pandas as pd

#: Methods that learn from single runs, and those that learn nothing; of any problem.
CONTINUING = tuple(
    name for name in (*AGENTS, *REFERENCES) if not learns_states(name) and not METHODS[name].needs
)
_OTHERS = (GLUCOSE.name, ROSENBROCK.name)
_ALL: Mapping[str, Any] = {
    "n_patients": N_CIRCULATION,
    "n_ep_patients": N_HEARTS,
    "n_glucose_patients": GLUCOSE.n_patients,
    "n_functions": 100,
    "mode": "table",
    "methods": ["vito-continuous", *OPPONENTS, "least-squares-multistart"],
    "give_up": GIVE_UP,
}


def _rows(stored: StoredRun) -> pd.DataFrame:
    """Personalisations in which nobody was given up."""
    from vitolab.plots.orders import without_giving_up

    return without_giving_up(stored.personalizations)[0]


def _runs(stored: StoredRun, repeat: int) -> Content:
    from vitolab import plots

    table = plots.continuing_table(_rows(stored))
    sentences = []
    for setup, own in table.groupby("setup", sort=False):
        told = (
            f"{row['method']} {row['runs, whole cohort']:,.0f} ({row['solved [%]']:.0f} % solved, "
            f"95 % {row['95 % from']:.0f} to {row['to']:.0f})"
            for row in own.to_dict("records")
        )
        who = own["patients"].iloc[0].partition(",")[0]
        sentences.append(f"{setup}, forward runs for all {who} patients: {'; '.join(told)}.")
    figure = plots.cumulative_curves(_rows(stored))
    return Content("\n".join(sentences), figure, (("All numbers", table),))


def _positions(stored: StoredRun, repeat: int) -> Content:
    from vitolab import plots
    from vitolab.plots.orders import position_table

    table = position_table(_rows(stored))
    sentences = []
    for setup, own in table.groupby("setup", sort=False):
        told = []
        for _, row in own.iterrows():
            known = row[[c for c in table.columns[2:] if not c.endswith("95 %")]].dropna().tolist()
            told.append(f"{row['method']} {known[0]:g} and {known[-1]:g}")
        sentences.append(
            f"{setup}, forward runs at the first and at the last positions: {'; '.join(told)}."
        )
    return Content(
        "\n".join(sentences),
        plots.position_curves(_rows(stored)),
        (("Forward runs by position", table),),
    )


def _paired(stored: StoredRun, repeat: int) -> Content:
    from vitolab import plots

    table = plots.paired_table(_rows(stored))
    if table.empty:
        raise ValueError(
            "the run holds no method beside vito-continuous, expected one to compare it with"
        )
    sentence = (
        "Both methods personalised the same patients in the same orders. A sign test "
        "(McNemar's with one order) counts the patients whom one solved in more orders than the "
        "other; the interval of the difference in runs is that of resampled patients, each with "
        "its mean over the orders. "
        "The other method was chosen by these results, which favours it."
    )
    return Content(sentence, tables=(("Beside the best other method", table),))


def _giving_up(stored: StoredRun, repeat: int) -> Content:
    from vitolab.plots.orders import giving_up_table, without_giving_up

    without, ends = without_giving_up(stored.personalizations)
    if ends.empty:
        raise ValueError(
            "the run holds nobody whom a method could give up, expected rows of a method that may"
        )
    table = giving_up_table(without[without["method"].isin(set(ends["method"]))], ends)
    sentence = (
        "The continuous agent once more, which ends a patient when its chance to meet all "
        f"measurements is below {stored.parameters['give_up']:g} twice in a row. All other numbers "
        "of this run are without that rule, which no other method has."
    )
    return Content(sentence, tables=(("With and without giving up", table),))


def _check(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Refuse a chance that is none."""
    checked_chance(f"{STUDY.name}: give_up", parameters["give_up"])
    return {}


STUDY = Study(
    name="from-nothing",
    notebook="from_nothing.ipynb",
    title="From nothing: patients who teach each other, without exploration",
    profiles={
        "quick": {
            **_ALL,
            "setups": ["6p", "bem"],
            "n_patients": 12,
            "n_ep_patients": 12,
            "methods": [
                "vito-continuous",
                "gp-emulator",
                "least-squares-nearest",
                "least-squares-multistart",
            ],
            "n_orders": 2,
        },
        "standard": {**_ALL, "setups": ["6p", "12p", "20p", "bem", "glucose"], "n_orders": 5},
        "paper": {
            **_ALL,
            "setups": [*CIRCULATION.n_states, *ELECTROPHYSIOLOGY.n_states, *_OTHERS],
            "mode": "exact",
            "n_orders": 20,
        },
    },
    duration={"quick": "two minutes", "standard": "about two hours", "paper": "about a day"},
    sections=(
        Section("runs", "Forward runs", _runs),
        Section("positions", "Patient by patient", _positions),
        Section("paired", "Beside the best other", _paired),
        Section("giving-up", "Giving up", _giving_up),
    ),
    choices={
        **choices("mode"),
        "setups": (*CIRCULATION.n_states, *ELECTROPHYSIOLOGY.n_states, *_OTHERS),
        "methods": CONTINUING,
    },
    least={"n_patients": 2, "n_ep_patients": 2, "n_glucose_patients": 2, "n_functions": 2},
    most={
        "n_patients": N_CIRCULATION,
        "n_ep_patients": N_HEARTS,
        "n_glucose_patients": GLUCOSE.n_patients,
    },
    check=_check,
    traces=True,
    tiny={
        "setups": ["2p", "rosenbrock"],
        "n_patients": 3,
        "n_functions": 3,
        "methods": ["vito-continuous", "least-squares-multistart"],
        "give_up": 0.1,
    },
)
