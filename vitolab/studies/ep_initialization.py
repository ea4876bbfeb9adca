"""Electrophysiology: how good the first guess is (section 3.2.5)."""

from __future__ import annotations

from vitolab.studies import shared
from vitolab.studies.base import EP, N_HEARTS, Content, Section, StoredRun, Study, choices


def _boxes(stored: StoredRun, repeat: int) -> Content:
    from vitolab import plots
    from vitolab.studies import words

    problem = next(iter(stored.problems.values()))
    table = plots.initialization_table(stored.personalizations, problem.objectives)
    return Content(
        words.boxes(table),
        plots.initialization_boxes(stored.personalizations, problem.objectives),
        (("Medians and quartiles of the absolute misfits", table),),
    )


STUDY = Study(
    name="ep-initialization",
    notebook="ep_initialization.ipynb",
    title="Electrophysiology: error after the first guess (section 3.2.5)",
    profiles={
        profile: {
            **EP,
            "lead_field": "bem",
            "mode": mode,
            "n_patients": n_patients,
            "n_samples": [10**power for power in range(powers)],
            "n_starts": n_starts,
        }
        for profile, mode, n_patients, powers, n_starts in (
            ("quick", "table", 6, 4, 5),
            ("standard", "table", N_HEARTS, 5, 20),
            ("paper", "exact", N_HEARTS, 6, 100),
        )
    },
    duration={"quick": "a minute", "standard": "10 minutes", "paper": "half a day"},
    sections=(Section("boxes", "Errors of the start", _boxes), shared.METHODS),
    choices=choices("lead_field", "mode"),
    least={"n_patients": 2},
    most={"n_patients": N_HEARTS},
    tiny={"n_patients": 2, "n_samples": [5, 20], "max_runs": 20, "n_starts": 2},
)
