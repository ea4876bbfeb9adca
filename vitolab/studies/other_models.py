"""Patients that another circulation model made: a cohort that is no sister of the one personalised.

The synthetic patients of this package come from a richer model of the same kind, with the same
kernel. A table of another model's virtual subjects, or of real patients, is fairer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from vitolab.studies import shared
from vitolab.studies.base import (
    N_STATES,
    OPPONENTS,
    PEERS,
    Content,
    Section,
    StoredRun,
    Study,
    choices,
)

if TYPE_CHECKING:
    from vitolab.problem import Patient

#: Setup whose measurements a table has to hold: those of the others are among them.
WHOLE = "6p"
#: Columns of a public table of another model (ModularCirc), by the names that they have here.
COLUMNS: Mapping[str, str] = {
    "sample": "patient",
    "HR_bpm": "heart_rate [bpm]",
    "EDV_mL": "lv_edv [mL]",
    "ESV_mL": "lv_esv [mL]",
    "mean_AoP_mmHg": "aortic_mean [mmHg]",
    "peak_sys_AoP_mmHg": "aortic_systolic [mmHg]",
    "end_dia_AoP_mmHg": "aortic_diastolic [mmHg]",
    "ejection_time_ms": "ejection_time [ms]",
}
_SETUPS = ("2p", "3p", "5p", "6p")
_STUDY: Mapping[str, Any] = {
    "data": "",
    "most_heart_rate": 120.0,
    "most_aortic_mean": 140.0,
    "n_states": N_STATES,
    "agents": ["vito", "vito-continuous", *OPPONENTS],
    "episode": 1,
}


def patients_of(
    file: Path, most_heart_rate: float = 120.0, most_aortic_mean: float = 140.0
) -> list[Patient]:
    """Patients of a table whose heart rate and pressure are plausible at rest.

    Parameters
    ----------
    file : Path
        As ``vitolab personalize circulation --setup 6p --template`` prints it, or with the
        `COLUMNS` of a public table.
    most_heart_rate : float
        Largest heart rate [1/min].
    most_aortic_mean : float
        Largest mean aortic pressure [mmHg].

    Returns
    -------
    list of Patient

    Raises
    ------
    ValueError
        If the table is refused, or fewer than two patients are left.
    """
    from vitolab.catalogue import CIRCULATION, read_table

    with TemporaryDirectory() as folder:
        named = Path(folder) / file.name
        header, _, rows = file.read_text(encoding="utf-8-sig").partition("\n")
        names = [COLUMNS.get(name.strip(), name) for name in header.split(",")]
        named.write_text(",".join(names) + "\n" + rows, encoding="utf-8")
        try:
            table = read_table(CIRCULATION, named, WHOLE)
        except ValueError as error:
            raise ValueError(str(error).replace(str(named), str(file))) from None
    kept = [
        patient
        for patient in table.patients
        if patient.data["heart_rate"] <= most_heart_rate
        and patient.measurements["aortic_mean"] <= most_aortic_mean
    ]
    if len(kept) < 2:
        raise ValueError(
            f"{file}: {len(kept)} of {len(table.patients)} patients have a heart rate of at most "
            f"{most_heart_rate:g} 1/min and a mean aortic pressure of at most "
            f"{most_aortic_mean:g} mmHg, expected two"
        )
    return kept


def first(patients: Sequence[Patient], n: int) -> list[Patient]:
    """At most `n` patients, evenly spread over the table."""
    step = max(1.0, len(patients) / n)
    return [patients[int(k * step)] for k in range(min(n, len(patients)))]


def _curves(stored: StoredRun, repeat: int) -> Content:
    """Methods against training, of the patients of the table."""
    if stored.parameters.get("data"):
        return shared.experience(stored, repeat, "of a table", "patients of a table")
    return shared.experience(stored, repeat)


STUDY = Study(
    name="other-models",
    notebook="other_models.ipynb",
    title="Circulation: patients that another model made",
    profiles={
        "quick": {
            **_STUDY,
            "setups": ["2p", "6p"],
            "n_subjects": 8,
            "n_samples": {"2p": [10], "6p": [10]},
            "n_repeats": 1,
            "methods": ["least-squares-multistart", "least-squares-default"],
            "n_starts": 3,
        },
        "standard": {
            **_STUDY,
            "setups": list(_SETUPS),
            "n_subjects": 120,
            "n_samples": {setup: [2, 10, 100] for setup in _SETUPS},
            "n_repeats": 1,
            "methods": [*PEERS, "least-squares-default"],
            "n_starts": 5,
        },
        "paper": {
            **_STUDY,
            "setups": list(_SETUPS),
            "n_subjects": 120,
            "n_samples": {setup: [2, 10, 100, 1000] for setup in _SETUPS},
            "n_repeats": 3,
            "methods": [*PEERS, "least-squares-default"],
            "n_starts": 20,
        },
    },
    duration={"quick": "two minutes", "standard": "some hours", "paper": "a day"},
    sections=(
        Section("curves", "Curves", _curves),
        shared.PAIRED,
        shared.PATIENTS,
    ),
    choices=choices("setups", "agents", "methods"),
    least={"n_subjects": 2},
    read=patients_of,
    traces=True,
    tiny={
        "setups": ["2p"],
        "n_subjects": 3,
        "n_samples": {"2p": [10]},
        "agents": ["vito-continuous", "least-squares-nearest"],
        "methods": ["least-squares-multistart"],
        "n_starts": 1,
    },
)
