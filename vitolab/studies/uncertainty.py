"""How sure: all solutions, and their probability."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vitolab.studies import shared
from vitolab.studies.base import N_CIRCULATION, Content, Section, StoredRun, Study, choices

#: The error of a measurement, in tolerances, and what the continuous agent learns from.
_SURE: Mapping[str, Any] = {
    "deviation_share": 0.5,
    "episode": 1,
    "n_samples": 100,
    "n_walkers": 32,
    "n_ensembles": 2,
}


def _solutions(stored: StoredRun, repeat: int) -> Content:
    from vitolab import plots
    from vitolab.uncertainty import summary

    rows, problems = stored.personalizations, shared.problems(stored)
    table = summary.identifiability_table(rows, problems)
    sentence = (
        "From many starts a method ends at other parameters wherever the measurements do not "
        "determine them: the range of its solutions, as a share of the domain. It grows with the "
        "number of solutions."
    )
    return Content(
        sentence, plots.solution_ranges(rows, problems), (("Range of solutions", table),)
    )


def _posterior(stored: StoredRun, repeat: int) -> Content:
    from vitolab import plots

    rows, problems = stored.personalizations, shared.problems(stored)
    setup = next(iter(problems))
    first = stored.patients[stored.patients["setup"] == setup].iloc[0]
    known = first.filter(like="truth:").dropna()
    figure = plots.posterior_marginals(
        stored.traces,
        problems[setup],
        setup=setup,
        patient=first["patient"],
        personalizations=rows,
        truth={str(name).removeprefix("truth:"): float(x) for name, x in known.items()},
    )
    sentence = (
        f"Posterior of {first['patient']} in {setup}, parameter by parameter: the central 50 and "
        "90 % are shaded, marks below are the solutions of all methods. The true parameters are "
        "those of the model that made the patient."
    )
    return Content(sentence, figure)


def _worth(stored: StoredRun, repeat: int) -> Content:
    from vitolab import plots
    from vitolab.uncertainty.widths import left_open, width_table

    rows, problems = stored.personalizations, shared.problems(stored)
    figure = plots.posterior_widths(rows, problems)
    table = width_table(rows, problems)
    return Content(left_open(table), figure, (("Width of the posterior", table),))


def _coverage(stored: StoredRun, repeat: int) -> Content:
    from vitolab import plots
    from vitolab.uncertainty import summary

    rows, problems = stored.personalizations, shared.problems(stored)
    tables = (
        ("Truth within the region", summary.coverage_table(rows, problems)),
        ("How well it was sampled", summary.sampling_table(rows)),
    )
    sentence = (
        "On the diagonal a region of the posterior holds the true parameters as often as it says; "
        "grey is binomial error. It has to on patients of the personalised model itself, and need "
        "not on those of a richer one."
    )
    return Content(sentence, plots.coverage_curves(rows, problems), tables)


def _check(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Refuse an odd number of walkers: emcee moves one half by the other."""
    if parameters["n_walkers"] % 2:
        raise ValueError(
            f"{STUDY.name}: n_walkers holds {parameters['n_walkers']}, expected an even number"
        )
    return {}


STUDY = Study(
    name="uncertainty",
    notebook="uncertainty.ipynb",
    title="How sure: all solutions, and their probability",
    profiles={
        "quick": {
            **_SURE,
            "setups": ["2p", "6p"],
            "n_patients": 4,
            "n_simulated": 8,
            "n_starts": 10,
            "methods": ["least-squares"],
            "n_steps": 400,
            "n_burn": 200,
            "n_draws": 200,
        },
        "standard": {
            **_SURE,
            "setups": ["2p", "3p", "5p", "6p"],
            "n_patients": N_CIRCULATION,
            "n_simulated": 100,
            "n_starts": 20,
            "methods": ["least-squares", "nelder-mead"],
            "n_steps": 4000,
            "n_burn": 2000,
            "n_draws": 400,
        },
        "paper": {
            **_SURE,
            "setups": ["2p", "3p", "5p", "6p", "9p", "12p"],
            "n_patients": N_CIRCULATION,
            "n_simulated": 1000,
            "n_starts": 100,
            "methods": ["least-squares", "nelder-mead"],
            "n_steps": 10000,
            "n_burn": 5000,
            "n_draws": 1000,
        },
    },
    duration={"quick": "two minutes", "standard": "some hours", "paper": "days"},
    sections=(
        Section("solutions", "All solutions", _solutions),
        Section("posterior", "One posterior", _posterior),
        Section("worth", "What an answer is worth", _worth),
        Section("coverage", "Coverage", _coverage),
    ),
    choices=choices("setups", "methods"),
    least={"n_patients": 2, "n_steps": 2, "n_walkers": 4, "n_ensembles": 1},
    most={"n_patients": N_CIRCULATION},
    check=_check,
    tiny={
        "setups": ["2p"],
        "n_patients": 3,
        "n_simulated": 2,
        "n_starts": 2,
        "n_samples": 10,
        "n_steps": 20,
        "n_burn": 5,
        "n_draws": 10,
    },
)
