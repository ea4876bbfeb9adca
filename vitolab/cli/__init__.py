"""The command line.

Exit status 0: done; 1: the run failed; 2: the input was refused, with one sentence that says
why; 3: the time that was given is spent before all was done. Heavy imports are made by the
command that needs them.
"""

from __future__ import annotations

import errno
import io
import json
import logging
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vitolab.cli.check import check
from vitolab.cli.options import Jobs, Results, Seed, in_options
from vitolab.cli.personalize import personalize
from vitolab.cli.published import published

if TYPE_CHECKING:
    from vitolab.store.records import Progress

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Personalise computational models with an agent that learns how they behave.",
)

STOPPED = 130  # exit status after Ctrl-C and SIGTERM
GOES_ON = "the same command goes on from here"
#: What is true of a command that is stopped; of all others there is nothing to say.
WHEN_STOPPED = {
    "run": GOES_ON,
    "demo": GOES_ON,
    "personalize": GOES_ON,
    "dashboard": "the results stay as they are",
}
OUT_OF_TIME = 3  # exit status at a limit of wall time


def _version(asked: bool) -> None:
    """Print the version and stop."""
    if asked:
        from importlib import metadata

        typer.echo(metadata.version("vitolab"))
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Personalise computational models with an agent that learns how they behave."""


@app.command("list")
def list_studies(results: Results = Path("results")) -> None:
    """List the studies, their parameters and last runs."""
    from vitolab.store.info import list_runs
    from vitolab.studies import STUDIES

    runs = list_runs(results)
    for study in STUDIES:
        typer.echo(f"{study.name}: {study.title}")
        quick = study.profiles["quick"]
        values = ", ".join(f"{name}={json.dumps(value)}" for name, value in quick.items())
        typer.echo(f"  parameters (quick): {values or 'none'}")
        sizes = ", ".join(f"{name} ({study.duration[name]})" for name in study.profiles)
        typer.echo(f"  profiles: {sizes}")
        last = next((run for run in runs if run.path.parent.name == study.name), None)
        if last is not None:
            reason = f" ({last.reason})" if last.reason else ""
            far = f" ({_far(last.progress)})" if last.progress is not None else ""
            typer.echo(f"  last run: {last.status}{reason}{far}, {last.path}")


@app.command()
def run(
    study: Annotated[str, typer.Argument(help="Name of the study, see `vitolab list`.")],
    profile: Annotated[str, typer.Option(help="Size: quick, standard or paper.")] = "quick",
    parameter: Annotated[
        list[str] | None,
        typer.Option("--parameter", "-p", metavar="NAME=VALUE", help="Change a parameter."),
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    results: Results = Path("results"),
    again: Annotated[bool, typer.Option("--again", help="Recompute a finished run.")] = False,
    problem: Annotated[
        Path | None,
        typer.Option(metavar="FILE.toml", help="A model of your own, for the study `problem`."),
    ] = None,
    patients: Annotated[
        Path | None,
        typer.Option(metavar="FILE.csv", help="Patients of your own, for the study `problem`."),
    ] = None,
    allow_missing: Annotated[
        bool,
        typer.Option(
            "--allow-missing", help="Of these, go without measurements whose cells are empty."
        ),
    ] = False,
    max_hours: Annotated[
        float | None,
        typer.Option(metavar="H", help="Begin nothing more after H hours; keep what is finished."),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            envvar="VITOLAB_SCHEDULER",
            metavar="ADDRESS",
            help="A Dask scheduler whose workers do the work, such as tcp://127.0.0.1:8786.",
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(help="Start such workers as jobs: slurm, configured as for dask-jobqueue."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Number of workers of the cluster.")
    ] = None,
) -> None:
    """Run a study, or go on with one that was interrupted."""
    from vitolab.studies import find_study, running

    overrides: dict[str, Any] = {}
    for name, value in map(_assignment, parameter or []):
        if name in overrides:
            raise ValueError(f"parameter {name!r} is given twice, expected once")
        overrides[name] = value
    for name, file in (("problem", problem), ("patients", patients)):
        if file is not None:
            overrides[name] = str(file)
    if allow_missing:
        overrides["allow_missing"] = True
    info = running.run(
        find_study(study),
        profile,
        overrides=overrides,
        seed=seed,
        n_jobs=jobs,
        results=results,
        again=again,
        scheduler=scheduler,
        cluster=cluster,
        n_workers=workers,
        max_hours=max_hours,
    )
    if info.status == "interrupted" and info.progress is not None:
        typer.echo(
            f"vitolab: {_far(info.progress)} parts are finished; {GOES_ON}; see {info.path}",
            err=True,
        )
        raise typer.Exit(OUT_OF_TIME)
    _report(info.status, info.reason, info.path)


@app.command()
def new(
    what: Annotated[str, typer.Argument(help="What to begin: problem.")],
    folder: Annotated[Path, typer.Argument(help="A folder that is not there yet.")] = Path(
        "my_problem"
    ),
    petab: Annotated[
        Path | None,
        typer.Option(metavar="PROBLEM.yaml", help="A problem in PEtab instead of the example."),
    ] = None,
) -> None:
    """Begin a model of your own: an example that runs, with remarks, to be changed."""
    if what != "problem":
        raise ValueError(f"what is {what!r}, expected problem")
    if petab is not None:
        from vitolab.problemfile.petab import begin_from_petab

        for note in begin_from_petab(petab, folder).notes:
            typer.echo(note, err=True)
    else:
        from vitolab.problemfile.starter import begin
        from vitolab.studies.notebooks import find_notebook

        begin(find_notebook("starter/problem.toml").parent, folder)
    for path in sorted(folder.iterdir()):
        typer.echo(str(path))
    typer.echo(
        "Change them, or try them as they are: vitolab run problem "
        f"--problem {folder / 'problem.toml'} --patients {folder / 'patients.csv'}",
        err=True,
    )


@app.command()
def demo(results: Results = Path("results")) -> None:
    """Run one quick study per model and print Vito beside the references."""
    from vitolab.studies import demo as demonstration

    last = demonstration.demo(results)[-1]
    if last.status != "complete":
        _report(last.status, last.reason, last.path)


app.command()(check)
app.command()(personalize)


@app.command()
def dashboard(
    results: Results = Path("results"),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 5006,
    address: Annotated[
        str, typer.Option(help="Address to listen on; the default is this machine alone.")
    ] = "127.0.0.1",
    prefix: Annotated[str, typer.Option(help="Path under which a proxy shows it.")] = "",
    basic_auth: Annotated[
        Path | None,
        typer.Option(metavar="FILE.json", help="Users and passwords, in plain text."),
    ] = None,
    origin: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST[:PORT]", help="A proxy whose pages may connect."),
    ] = None,
    published: Annotated[
        bool, typer.Option(help="Show the runs that come with the package, too.")
    ] = True,
) -> None:
    """Browse the results in a web browser."""
    from vitolab.dashboard import serve

    serve(
        results,
        port=port,
        address=address,
        prefix=prefix,
        basic_auth=basic_auth,
        origins=origin or (),
        published=published,
    )


app.command()(published)


@app.command()
def doctor() -> None:
    """Say what is installed and whether it can work."""
    from vitolab.doctor import findings

    for finding in findings():
        typer.echo(finding)


def _assignment(text: str) -> tuple[str, Any]:
    """Name and value of ``name=value``; the value is JSON, or else text."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ValueError(f"parameter {text!r}: expected name=value")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


def _far(progress: Progress) -> str:
    """How far a run is, in words."""
    return f"{progress.stage}: {progress.done} of {progress.total}"


def _report(status: str, reason: str, path: Path) -> None:
    """End with the outcome of a run."""
    if status != "complete":
        typer.echo(f"vitolab: the run failed: {reason}; see {path}", err=True)
        raise typer.Exit(1)
    typer.echo(str(path))


def main() -> None:
    """Run the command line and exit."""
    from vitolab.parallel.processes import exit_despite_threads

    # as after Ctrl-C: whoever ends this process is told how to go on, and no worker is left
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if isinstance(sys.stdout, io.TextIOWrapper) and not sys.stdout.isatty():
        sys.stdout.reconfigure(encoding="utf-8")  # tables are read back as UTF-8
    arguments = sys.argv[1:] or ["--help"]
    try:
        code = app(arguments, standalone_mode=False, prog_name="vitolab")
        if code == STOPPED:  # some versions of typer answer with the status, others raise
            raise KeyboardInterrupt
    except (typer.Abort, KeyboardInterrupt):
        logging.getLogger("asyncio").disabled = True  # the cell that was left is no news
        truth = WHEN_STOPPED.get(arguments[0], "")
        typer.echo(f"vitolab: stopped{truth and f'; {truth}'}", err=True)
        code = STOPPED
    except Exception as error:
        from vitolab.failures import abridged
        from vitolab.store.claims import RunFailed

        message = str(error) if isinstance(error, RunFailed) else _refusal(error)
        if message is None:
            raise
        # a file of one's own may have several faults, each a sentence
        for sentence in getattr(error, "sentences", None) or [message]:
            typer.echo(f"vitolab: {abridged(in_options(sentence))}", err=True)
        code = 1 if isinstance(error, RunFailed) else 2
    exit_despite_threads(code if isinstance(code, int) else 0)


def _refusal(error: Exception) -> str | None:
    """Sentence for an error that the user can mend; None for a fault of the program."""
    from vitolab.failures import CannotRun
    from vitolab.store.claims import RunInUse

    if hasattr(error, "format_message"):  # usage errors of the command line itself
        return str(error.format_message())
    if isinstance(error, OSError) and error.filename is not None:
        full = error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", None))
        expected = "room to write" if full else "a folder or file that can be read and written"
        return f"{error.filename}: {error.strerror or type(error).__name__}, expected {expected}"
    if isinstance(error, (ValueError, OSError, RunInUse, CannotRun)):
        return " ".join(str(error).split())
    return None
