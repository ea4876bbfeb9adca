"""The command that personalises the patients of a user's file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vitolab.catalogue import (
    MODELS,
    find_model,
    read_table,
    synthetic_patients,
    template_for,
)
from vitolab.cli.options import Jobs, Results, Seed


def personalize(
    model: Annotated[
        str, typer.Argument(help=f"{', '.join(MODELS)}, or a problem file of your own.")
    ],
    patients: Annotated[
        Path | None, typer.Option("--patients", metavar="FILE.csv", help="Measurements.")
    ] = None,
    template: Annotated[
        bool, typer.Option("--template", help="Print an example of such a file and stop.")
    ] = False,
    setup: Annotated[
        str | None,
        typer.Option(
            help="; ".join(
                f"{each.name}: {', '.join(each.n_states)} [default: {each.setup}]"
                for each in MODELS.values()
            )
            + "."
        ),
    ] = None,
    train_on: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv",
            help="Patients to learn from [default: synthetic ones; for a model of your own the "
            "other patients of the file].",
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="vito, vito-hindsight, vito-continuous (few forward runs per patient), another "
            "method that learns, such as gp-emulator, or one that learns nothing, such as "
            "least-squares-multistart [default: vito; with --learn-as-you-go vito-continuous]."
        ),
    ] = None,
    n_samples: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Transitions to explore per patient to learn from [default: 2000; 100 for "
            "methods without states, such as vito-continuous, which take two forward runs each; "
            "none with --learn-as-you-go].",
        ),
    ] = None,
    learn_as_you_go: Annotated[
        bool,
        typer.Option(
            "--learn-as-you-go",
            help="Explore nothing: in the order of the file each patient is personalised by a "
            "method that learned from those before.",
        ),
    ] = False,
    agent: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="With it: an agent to go on from, if there is one, and where it is saved.",
        ),
    ] = None,
    total_runs: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="With it: forward runs for the whole file; a larger N goes on from a smaller.",
        ),
    ] = None,
    at_a_time: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            help="With it: patients of a round, which learns from the rounds before; up to --jobs "
            "of them at the same time.",
        ),
    ] = 1,
    give_up: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Chance to meet all measurements below which vito-continuous ends a patient; "
            "other methods have no such rule [default: 0.001 with --learn-as-you-go, else 0].",
        ),
    ] = None,
    allow_missing: Annotated[
        bool,
        typer.Option(
            "--allow-missing", help="Go without measurements of which the cells are empty."
        ),
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.csv", help="Where to write [default: print].")
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    results: Results = Path("results"),
    again: Annotated[bool, typer.Option("--again", help="Recompute a finished run.")] = False,
) -> None:
    """Personalise the patients of a CSV file.

    Each patient is allowed 50 forward runs per parameter (electrophysiology: 100), besides those of
    an exploration.
    """
    chosen = find_model(model)
    setup = chosen.setup if setup is None else setup
    problem = chosen.problem(setup)
    if template:
        typer.echo(template_for(chosen, setup), nl=False)
        return
    if patients is None:
        raise ValueError("--patients FILE.csv is missing, expected it or --template")

    from vitolab.parallel.workers import processors

    n_jobs = jobs or processors()
    table = read_table(chosen, patients, setup, n_jobs=n_jobs, allow_missing=allow_missing)
    for warning in table.warnings:
        typer.echo(f"vitolab: warning: {warning}", err=True)
    if train_on is not None:
        training = read_table(
            chosen, train_on, setup, n_jobs=n_jobs, allow_missing=allow_missing
        ).patients
        trained_on = "patients"
    elif learn_as_you_go and n_samples is None:
        training, trained_on = [], "patients"
    elif (synthetic := synthetic_patients(chosen, setup, n_jobs)) is not None:
        training, trained_on = synthetic, "synthetic patients"
    else:
        training, trained_on = table.patients, "patients of the file"

    from vitolab.display import results_only, shown
    from vitolab.intervals import share_interval, worded
    from vitolab.methods import REFERENCES
    from vitolab.personalization import FLOAT_FORMAT, personalize_file, what_it_took
    from vitolab.store.info import read_progress

    if method in REFERENCES and (train_on is not None or n_samples is not None):
        raise ValueError(
            f"--method is {method}, which learns nothing, expected another one with --train-on or "
            "--n-samples"
        )
    if learn_as_you_go and train_on is not None and n_samples is None:
        raise ValueError(
            "--n-samples is missing, expected it with --train-on: --learn-as-you-go explores "
            "nothing unless asked"
        )
    own: list[Path] = []  # another command may work in the same folder of results
    root = results.absolute()  # a model may leave the folder meanwhile
    with results_only() as output, shown(lambda: read_progress(own[0]) if own else None):
        fitted = personalize_file(
            problem,
            table,
            setup=setup,
            train_on=training,
            trained_on=trained_on,
            n_states=chosen.n_states[setup],
            n_samples=n_samples,
            max_runs=chosen.max_runs,
            methods=None if method is None else (method,),
            learn_as_you_go=learn_as_you_go,
            agent=agent,
            total_runs=total_runs,
            give_up=give_up,
            at_a_time=at_a_time,
            seed=seed,
            n_jobs=n_jobs,
            results_root=root,
            out=out,
            again=again,
            begins=own.append,
        )
    if out is None:
        typer.echo(fitted.to_csv(index=False, float_format=FLOAT_FORMAT), nl=False, file=output)
    else:
        typer.echo(str(out), file=output)
    if learn_as_you_go:
        who = "each patient" if at_a_time == 1 else f"each round of {at_a_time} patients"
        told = f", {who} after what those before taught"
        if 1 < len(table.patients) <= at_a_time:
            told = ", all patients at once"
        told = "" if method in REFERENCES else told
        typer.echo(f"in the order of the file{told}: {what_it_took(fitted, total_runs)}", err=True)
    tried = fitted["solved"].notna()
    n_solved = int(fitted["solved"].fillna(False).sum())
    ends = worded(share_interval(fitted[tried], fitted.loc[tried, "solved"].astype(float)), 0)
    typer.echo(
        f"{n_solved} of {len(table.patients)} patients solved"
        f"{f' (95 % interval: {ends} %)' if ends else ''}, {len(table.skipped)} left "
        f"out; the run is stored under {results / 'personalize'}",
        err=True,
    )
