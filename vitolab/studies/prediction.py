"""Whether a personalised model predicts arterial pressure after a fluid bolus."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vitolab.methods import AGENTS, CONTINUOUS_AGENT, learns_states
from vitolab.studies.base import OPPONENTS, PEERS, Content, Section, StoredRun, Study, choices

_BOLUS: Mapping[str, Any] = {"data": "", "n_samples": 100, "episode": 1}
#: Subjects of the file that comes with the package.
_SYNTHETIC = "synthetic subjects"
#: The agent, and what else would learn from the same walks.
_LEARNERS = [CONTINUOUS_AGENT, *OPPONENTS]


def _forecast(stored: StoredRun, repeat: int) -> Content:
    from vitolab import plots
    from vitolab.uncertainty import summary

    rows = stored.personalizations
    method = rows["method"][0]
    if CONTINUOUS_AGENT in set(rows["method"]):
        method = CONTINUOUS_AGENT
    table = summary.forecast_table(rows)
    subjects = "subjects of a file" if stored.parameters.get("data") else _SYNTHETIC
    sentence = (
        f"Pressures of {subjects} after a fluid bolus, forecast from a personalisation before it. "
        "On the horizontal line a forecast says no change; what does not beat that predicts "
        "nothing."
    )
    if subjects == _SYNTHETIC:
        sentence += " Their errors say nothing about real patients."
    figure = plots.forecast_changes(rows, method=method, subjects=subjects)
    return Content(sentence, figure, (("Errors", table),))


def _read(file: Path) -> object:
    """Read a file of measurements before and after a bolus."""
    from vitolab.uncertainty.bolus import read_bolus

    return read_bolus(file)


STUDY = Study(
    name="prediction",
    notebook="prediction.ipynb",
    title="Does a personalised model predict? Arterial pressure after a fluid bolus",
    profiles={
        "quick": {
            **_BOLUS,
            "agents": [CONTINUOUS_AGENT],
            "methods": ["nelder-mead", "least-squares"],
        },
        "standard": {**_BOLUS, "agents": _LEARNERS, "methods": PEERS},
        "paper": {**_BOLUS, "agents": _LEARNERS, "methods": PEERS, "n_samples": 1000},
    },
    duration={"quick": "a minute", "standard": "two minutes", "paper": "some minutes"},
    sections=(Section("forecast", "Forecast", _forecast),),
    choices={
        **choices("methods"),
        "agents": tuple(name for name in AGENTS if not learns_states(name)),
    },
    read=_read,
    tiny={"n_samples": 5},
)
