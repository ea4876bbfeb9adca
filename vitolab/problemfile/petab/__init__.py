"""Problems in PEtab, version 1, as models of one's own, where the two say the same.

PEtab describes by tables what is to be estimated of a model in SBML. Estimated parameters become
parameters, observables that are one quantity of the model objectives, conditions patients, and
their numbers columns. What has no counterpart here is refused, all of it at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vitolab.files import new_folder
from vitolab.problemfile.own import read_problem
from vitolab.problemfile.petab.files import Wrong, content_of, files_of, model_of
from vitolab.problemfile.petab.tables import (
    A_SETTING,
    TAKEN,
    measurements_of,
    objectives_of,
    parameters_of,
    read_sheet,
    settings_of,
    unique,
)
from vitolab.problemfile.petab.writing import MODEL, csv_text, notes_for, problem_text
from vitolab.problemfile.reading import ProblemError

__all__ = ["Petab", "begin_from_petab", "read_petab"]


@dataclass(frozen=True)
class Petab:
    """A PEtab problem, as the files of a problem of one's own.

    Attributes
    ----------
    path : Path
        Where it was read.
    problem, patients : str
        Text of ``problem.toml`` and ``patients.csv``.
    model : bytes
        The model in SBML, as it is.
    notes : tuple of str
        What its user should know, one sentence each; ``problem`` holds them too.
    """

    path: Path
    problem: str
    patients: str
    model: bytes
    notes: tuple[str, ...]


def begin_from_petab(path: Path | str, folder: Path) -> Petab:
    """Make a folder with a problem, its patients and its model from PEtab, whole or not at all.

    Parameters
    ----------
    path : Path or str
        YAML; the files that it names are found beside it.
    folder : Path
        Must not exist.

    Returns
    -------
    Petab
        What was written.

    Raises
    ------
    ValueError
        If the folder exists, or its parent does not.
    ProblemError
        If the problem is refused, see `read_petab`, or its model cannot be run.
    """
    with new_folder(folder) as temporary:
        found = read_petab(path)
        (temporary / MODEL).write_bytes(found.model)
        (temporary / "patients.csv").write_text(found.patients, encoding="utf-8", newline="")
        written = temporary / "problem.toml"
        written.write_text(found.problem, encoding="utf-8", newline="")
        try:
            read_problem(written)
        except ProblemError as error:  # of the model: what it is made of, what can be set
            raise ProblemError(
                [sentence.replace(str(written), str(found.path)) for sentence in error.sentences]
            ) from None
    return found


def read_petab(path: Path | str) -> Petab:
    """Read a PEtab problem of version 1.

    Labels that are long or hold markup are passed over, as are columns that PEtab does not know;
    a species is its concentration, or its amount where the model says so.

    Parameters
    ----------
    path : Path or str
        YAML; the files that it names are found beside it.

    Returns
    -------
    Petab

    Raises
    ------
    ProblemError
        If it is refused, with one sentence for each thing that is wrong.
    """
    path = Path(path)
    files = files_of(path)
    wrong: Wrong = {}
    content = content_of(files["sbml_files"], wrong)
    model = model_of(files["sbml_files"], content, wrong) if content is not None else None
    conditions = read_sheet(files["condition_files"], ("conditionId",), wrong)
    observables = read_sheet(
        files["observable_files"], ("observableId", "observableFormula", "noiseFormula"), wrong
    )
    measured = read_sheet(
        files["measurement_files"],
        ("observableId", "simulationConditionId", "measurement", "time"),
        wrong,
    )
    parameters = read_sheet(files["parameter_file"], ("parameterId", "estimate"), wrong)
    if content is None or model is None or wrong:
        raise ProblemError(list(wrong.values()))

    settings = conditions.others("conditionId", "conditionName")
    known = unique(observables, "observableId"), unique(conditions, "conditionId")
    data = measurements_of(measured, *known)
    estimated, fixed, columns = parameters_of(parameters, model, settings)
    columns |= settings_of(conditions, settings, model)
    objectives = objectives_of(
        observables, {*TAKEN, *settings, *estimated, *columns}, model, fixed, data
    )
    patients = {
        row["conditionId"]: {name: row.number(name, A_SETTING, fixed=fixed) for name in settings}
        for row in conditions.rows
        if row["conditionId"] in data.conditions
    }
    if not estimated and not wrong:
        wrong["estimated",] = (
            f"{parameters.path}: no parameter has estimate 1, expected at least one"
        )
    if wrong:
        raise ProblemError(list(wrong.values()))
    constant = {name: entry.pop("value") for name, entry in columns.items() if "value" in entry}
    notes = notes_for(
        data, [r["conditionId"] for r in conditions.rows], known[0], objectives, constant
    )
    problem = problem_text(path, notes, estimated, objectives, columns, data.times)
    table = [
        [name, *({**constant, **values}[c] for c in columns), *data.cells(name, objectives)]
        for name, values in patients.items()
    ]
    return Petab(path, problem, csv_text(["patient", *columns, *objectives], table), content, notes)
