"""The command that lists the published runs, copies them, and says what they decide."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vitolab.cli.options import Results


def published(
    study: Annotated[
        str | None, typer.Argument(help="Name of a study; all that are published by default.")
    ] = None,
    copy: Annotated[
        bool, typer.Option("--copy", help="Copy them to the folder of all results.")
    ] = False,
    claims: Annotated[
        bool, typer.Option("--claims", help="The paper's claims, and what the runs say of each.")
    ] = False,
    results: Results = Path("results"),
) -> None:
    """List the runs whose tables come with the package, or copy them.

    Example: vitolab published wbc-convergence --copy
    """
    if claims:
        from vitolab.studies.claims import as_markdown, on_published

        typer.echo(as_markdown(on_published()))
        return
    from vitolab.store.shipped import copy_published, list_published
    from vitolab.studies import profile_of

    if copy:
        for path in copy_published(results, study):
            typer.echo(str(path))
        return
    for info in list_published(study):
        size = profile_of(info.study, info.parameters) or "own parameters"
        typer.echo(f"{info.study}: {size}, seed {info.seed}, {info.started[:10]}, {info.path}")
