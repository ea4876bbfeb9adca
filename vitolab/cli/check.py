"""The command that reads a model and its patients, runs it, and says how long that takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vitolab.catalogue import MODELS, find_model, read_table, synthetic_patients

if TYPE_CHECKING:
    from vitolab.patients import PatientTable
    from vitolab.problem import Problem

#: A second run is made where the first, which also loads and compiles, took less (s).
PATIENCE = 10.0
MANY = 100  # runs, of which the time is told


def check(
    model: Annotated[
        str, typer.Argument(help=f"A problem file of your own, or {', '.join(MODELS)}.")
    ],
    patients: Annotated[
        Path | None,
        typer.Option(
            "--patients",
            metavar="FILE.csv",
            help="All are read, and the first is run [default: a synthetic one, if the model has "
            "any].",
        ),
    ] = None,
    setup: Annotated[str | None, typer.Option(help="Setup of a built-in model.")] = None,
) -> None:
    """Read a model and its patients, run it at its default values, and say how long that takes."""
    chosen = find_model(model)
    setup = chosen.setup if setup is None else setup
    problem = chosen.problem(setup)
    if patients is not None:
        table = read_table(chosen, patients, setup, allow_missing=True)
        known = table.patients
        for said in _remarks(problem, table):
            typer.echo(f"vitolab: {said}", err=True)
        if not known:
            raise ValueError(f"{patients}: no patient has what the model needs, expected one")
    else:
        known = synthetic_patients(chosen, setup, 1) or []
    if not known:
        raise ValueError(
            "--patients FILE.csv is missing, expected it for a model without synthetic ones"
        )

    import time

    import numpy as np

    from vitolab.display import lasting, results_only

    patient = known[0]
    x = np.array([[p.default for p in problem.parameters]])
    times: list[float] = []
    answers = []
    with results_only() as output:
        while not times or (len(times) == 1 and times[0] < PATIENCE):
            began = time.perf_counter()
            runs = problem.run(x, patient)
            times.append(time.perf_counter() - began)
            answers.append(runs.y)
    told = []
    for objective, value in zip(problem.objectives, runs.y[0].tolist(), strict=True):
        measured = patient.measurements.get(objective.name)
        beside = "not measured" if measured is None else f"measured {measured:g}"
        told.append(f"{objective.name} {value:.6g} {objective.unit}".strip() + f" ({beside})")
    if not runs.failures:
        typer.echo(f"{patient.name} at the default values: {', '.join(told)}", file=output)
    first = f" (the first, with loading, {lasting(times[0])})" if len(times) > 1 else ""
    typer.echo(
        f"one run took {lasting(times[-1])}{first}; {MANY} one after the other would take "
        f"{lasting(MANY * times[-1])}",
        file=output,
    )
    if not np.array_equal(answers[0], answers[-1], equal_nan=True):
        apart = np.max(np.abs(problem.misfit(answers[-1], answers[0])) / problem.tolerance)
        how = f"by up to {apart:.3g} tolerances" if np.isfinite(apart) else "once not at all"
        typer.echo(
            f"vitolab: warning: the second run answered otherwise, {how}: results will not be the "
            "same again",
            err=True,
        )
    for failure in runs.failures:
        why = f"{patient.name} at the default values: the run failed, {failure.sentence}"
        typer.echo(f"vitolab: {why}", err=True)
        raise typer.Exit(1)


def _remarks(problem: Problem, table: PatientTable) -> list[str]:
    """What there is to say of a file that can be read: who is left out, and what is missing."""
    said = [f"warning: {warning}" for warning in table.warnings]
    said += [f"{table.path}: patient '{name}' is left out, {why}" for name, why in table.skipped]
    for patient in table.patients:
        missing = [o.name for o in problem.objectives if o.name not in patient.measurements]
        if missing:
            said.append(
                f"{table.path}, row {table.rows[patient.name]}: patient '{patient.name}' lacks "
                f"{', '.join(missing)}, expected a number or --allow-missing"
            )
    return said
