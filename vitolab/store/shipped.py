"""Published runs: the tables of whole studies that travel with the package.

They are runs like those in a folder of results, with the executed notebook as a page and without
what only serves computing: no parts, no name of the computer.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vitolab.files import checksum, new_folder, write_arrays, write_json
from vitolab.store.columns import ARRAYS, TABLES
from vitolab.store.info import RunInfo, list_runs
from vitolab.store.parquet import write_table
from vitolab.store.records import FileRecord
from vitolab.store.stored import Run

#: Folder of the published runs.
PUBLISHED = Path(__file__).resolve().parents[1] / "_published"
#: The executed notebook as a page, where it is published.
REPORT = "report.html"
NOTEBOOK = "notebook.ipynb"
TRACES = "traces.parquet"
MOST_BYTES = 2 * 2**20  # of the forward runs of one study: larger tables do not travel


def list_published(study: str | None = None) -> list[RunInfo]:
    """List the published runs, of each study the newest last.

    Parameters
    ----------
    study : str, optional
        Name of one study; by default all, in the order of their names.

    Raises
    ------
    ValueError
        If none is published of the study.
    """
    runs = sorted(list_runs(PUBLISHED), key=lambda info: (info.study, info.path.name))
    if study is None:
        return runs
    if study not in {info.study for info in runs}:
        known = ", ".join(dict.fromkeys(info.study for info in runs)) or "none"
        raise ValueError(f"study is {study!r}, expected one with a published run: {known}")
    return [info for info in runs if info.study == study]


def published(study: str) -> Run:
    """Open the published run of a study, the newest where there are several.

    Parameters
    ----------
    study : str
        Name of a study, such as ``wbc-convergence``.

    Raises
    ------
    ValueError
        If none is published.

    Examples
    --------
    >>> import vitolab as vl
    >>> run = vl.store.published("wbc-convergence")
    >>> run.manifest.status
    'complete'
    """
    return Run.load(list_published(study)[-1].path)


def copy_published(results: Path, study: str | None = None) -> list[Path]:
    """Copy published runs into a folder of results.

    Parameters
    ----------
    results : Path
        Folder of all results.
    study : str, optional
        Name of one study; by default all.

    Returns
    -------
    list of Path
        Folders of the copies. A run that is there already stays as it is.

    Raises
    ------
    ValueError
        If none is published of the study.
    """
    copies = []
    for info in list_published(study):
        copy = results / info.study / info.path.name
        if not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            with new_folder(copy) as folder:
                for file in info.path.iterdir():
                    shutil.copyfile(file, folder / file.name)
        copies.append(copy)
    return copies


def publish(path: Path, folder: Path = PUBLISHED) -> Path:
    """Publish a complete run, with its notebook as a page by ``nbconvert`` of ``vitolab[dev]``.

    Forward runs are left out where their table is larger than two megabytes.

    Parameters
    ----------
    path : Path
        Folder of the run.
    folder : Path
        Where published runs are kept; one of the same study stays beside it.

    Returns
    -------
    Path
        Folder of the published run.

    Raises
    ------
    ValueError
        If the run is not complete, damaged, or published already.
    """
    run = Run.load(path)
    if not run.manifest.finished or run.manifest.status != "complete":
        raise ValueError(f"{path}: the run is not complete, expected one that is")
    target = folder / run.study / path.name
    if target.exists():
        raise ValueError(f"{target}: the run is published already")
    target.parent.mkdir(parents=True, exist_ok=True)
    with new_folder(target) as new:
        for name in TABLES:
            if f"{name}.parquet" in run.manifest.files:
                write_table(new / f"{name}.parquet", getattr(run, name), compression="zstd")
        if (new / TRACES).is_file() and (new / TRACES).stat().st_size > MOST_BYTES:
            (new / TRACES).unlink()
        if ARRAYS in run.manifest.files:
            write_arrays(new / ARRAYS, run.arrays)
        if (path / NOTEBOOK).is_file():
            (new / REPORT).write_text(_as_page(path / NOTEBOOK), encoding="utf-8")
        files = {
            file.name: FileRecord(size=file.stat().st_size, sha256=checksum(file))
            for file in sorted(new.iterdir())
        }
        record = run.manifest.model_copy(
            update={"files": files, "host": "", "process": 0, "process_started": ""}
        )
        write_json(new / "run.json", record.model_dump(mode="json"))
    return target


def _as_page(notebook: Path) -> str:
    """An executed notebook as HTML, without its code and without requests to other machines."""
    import nbformat
    from nbconvert import HTMLExporter

    executed: Any = nbformat.read(notebook, as_version=4)
    for cell in executed.cells:  # what only loads JavaScript shows nothing
        outputs = [o for o in cell.get("outputs", ()) if _is_shown(o)]
        cell.update({"outputs": outputs} if cell.cell_type == "code" else {})
    options = {"exclude_input": True, "exclude_output_prompt": True, "exclude_anchor_links": True}
    exporter: Any = HTMLExporter(template_name="basic", **options)
    body: str = exporter.from_notebook_node(executed)[0]
    body = body.replace(str(notebook.parents[2]), "results")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{notebook.parents[1].name}</title>"
        "<style>body{max-width:64em;margin:2em auto;padding:0 1em;font-family:sans-serif}"
        "pre{white-space:pre-wrap}img{max-width:100%}"
        "table{border-collapse:collapse}td,th{padding:.2em .6em}</style>"
        f"</head><body>{body}</body></html>\n"
    )


def _is_shown(output: Mapping[str, Any]) -> bool:
    """Whether an output is worth a page: no warning, and not only JavaScript that is loaded."""
    data = output.get("data", {})
    script = any(kind.startswith("application/") for kind in data) and "image/png" not in data
    return not script and output.get("name") != "stderr"
