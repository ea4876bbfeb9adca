"""A study checks what it is given before anything is stored."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from small_studies import GIVEN, study

from vitolab.catalogue import MODELS
from vitolab.methods import AGENTS, REFERENCES
from vitolab.models import bolus, circulation, electrophysiology, rosenbrock
from vitolab.studies import (
    OWN,
    STUDIES,
    Study,
    checked_parameters,
    find_study,
    run,
)
from vitolab.studies.base import CHOICES
from vitolab.studies.notebooks import checked_value, declared_parameters, in_words


def test_a_notebook_declares_types_and_defaults(tmp_path: Path) -> None:
    declared = declared_parameters(Path(study(tmp_path).notebook))
    assert declared["n"] == ("int", 3)
    assert declared["sizes"] == ("dict[str, list[int]]", {"a": [1, 2]})
    assert declared["names"] == ("list[str] | None", None)
    assert declared["plain"] == ("list[str]", ["x"])


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (3, "int"),
        (3, "float"),
        (None, "int | None"),
        ([True, False], "list[bool]"),
        ({"2p": [1]}, "dict[str, list[int]]"),
        ([[1.5]], "list[list[float]]"),
    ],
)
def test_values_of_the_declared_type_pass(value: Any, kind: str) -> None:
    assert checked_value("it", value, kind) == value


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("3", "int"),
        (3.0, "int"),
        (True, "int"),
        (1, "bool"),
        (3, "str"),
        (float("nan"), "float"),
        ([float("inf")], "list[float]"),
        (None, "int"),
        (["a", 1], "list[str]"),
        ("ab", "list[str]"),
        ({"2p": 1}, "dict[str, list[int]]"),
    ],
)
def test_values_of_another_type_are_refused(value: Any, kind: str) -> None:
    with pytest.raises(ValueError, match="it is") as caught:
        checked_value("it", value, kind)
    assert str(caught.value).endswith(f", expected {in_words(kind)}")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("float", "a finite number"),
        ("list[str]", "a list of texts"),
        ("dict[str, list[int]]", "a list of whole numbers for each name"),
        ("list[list[float]]", "a list of lists of finite numbers"),
        ("int | None", "a whole number or null"),
        ("dict", "values by name"),
    ],
)
def test_a_type_is_said_in_words(kind: str, words: str) -> None:
    assert in_words(kind) == words


@pytest.mark.parametrize(
    ("overrides", "error"),
    [
        ({"m": 1}, r"there is no parameter 'm', expected one of n, sizes, share, names, plain"),
        ({"share": float("nan")}, "try: share is nan, expected a finite number"),
        ({"n": "4"}, "try: n is '4', expected a whole number"),
        (
            {"sizes": {"a": [1.5]}},
            "try: sizes is .*, expected a list of whole numbers for each name",
        ),
        ({"seed": 1}, "'seed' is not set as a parameter"),
        ({"run_folder": "x"}, "'run_folder' is not set as a parameter"),
    ],
)
def test_what_the_notebook_does_not_declare_is_refused_before_anything_is_stored(
    tmp_path: Path, overrides: Mapping[str, Any], error: str
) -> None:
    tried = study(tmp_path)
    with pytest.raises(ValueError, match=error) as caught:
        run(tried, overrides=overrides, results=tmp_path / "results")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"profile": "large"}, "there is no profile 'large', expected one of quick"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 1.5}, r"seed is 1\.5"),
        ({"n_jobs": 0}, "number of jobs is 0"),
    ],
)
def test_other_arguments_are_checked(tmp_path: Path, arguments: dict[str, Any], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        run(study(tmp_path), results=tmp_path / "results", **arguments)


def test_notebooks_that_cannot_be_run_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="does not declare 'seed'"):
        checked_parameters(study(tmp_path, parameters="n = 1"), "quick", {})
    with pytest.raises(ValueError, match="n is not a literal"):
        checked_parameters(study(tmp_path, parameters=f"{GIVEN}n = 1 + 1j * 2"), "quick", {})
    with pytest.raises(ValueError, match="there is no parameter 'n', it has none"):
        checked_parameters(study(tmp_path, parameters=GIVEN, profile={"n": 1}), "quick", {})
    (tmp_path / "t.ipynb").write_text("{}")
    with pytest.raises(ValueError, match="damaged, expected a notebook"):
        declared_parameters(tmp_path / "t.ipynb")
    with pytest.raises(ValueError, match="is not installed"):
        run(Study("no", "no.ipynb", "", {}, {}), results=tmp_path)
    with pytest.raises(ValueError, match="there is no study 'no', expected one of tour,"):
        find_study("no")


#: Those that need no files.
BUILT_IN = [study for study in STUDIES if study is not OWN]


@pytest.mark.parametrize("known", BUILT_IN, ids=lambda known: known.name)
def test_each_study_fits_its_notebook(known: Study) -> None:
    assert known.notebook == known.name.replace("-", "_") + ".ipynb"
    assert list(known.profiles) == ["quick", "standard", "paper"] == list(known.duration)
    for profile, values in known.profiles.items():
        parameters = checked_parameters(known, profile, {})
        assert parameters.keys() == values.keys(), "each profile names every parameter"


@pytest.mark.parametrize("known", BUILT_IN, ids=lambda known: known.name)
def test_each_profile_names_what_there_is(known: Study) -> None:
    """Setups, lead fields and modes, with a size for each of them."""
    for profile in known.profiles:
        parameters = checked_parameters(known, profile, {})
        for field in parameters.get("lead_fields", []):
            electrophysiology.problem(field, parameters["mode"])
        for setup in parameters.get("setups", []):
            if setup in MODELS:  # the only setup of another model goes by its name
                MODELS[setup].problem(MODELS[setup].setup)
            elif setup in electrophysiology.LEAD_FIELDS:
                electrophysiology.problem(setup, parameters["mode"])
            else:
                circulation.problem(setup)


def test_the_choices_of_studies_are_what_there_is() -> None:
    assert set(CHOICES["setups"]) == set(circulation.SETUPS)
    assert CHOICES["lead_fields"] == electrophysiology.LEAD_FIELDS
    assert set(CHOICES["methods"]) == set(REFERENCES)
    assert set(CHOICES["agents"]) == set(AGENTS)
    for mode in CHOICES["mode"]:
        electrophysiology.problem("bem", mode)
    for border in find_study("rosenbrock-grid").choices["borders"]:
        rosenbrock.problem(border=border)


def test_a_file_is_named_from_where_the_user_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And one that is not there is refused before anything is stored."""
    prediction = find_study("prediction")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"data is .*measured\.csv, expected a file that exists"):
        run(prediction, overrides={"data": "measured.csv"}, results=tmp_path / "results")
    assert not (tmp_path / "results").exists()
    shutil.copy(bolus.SYNTHETIC, tmp_path / "measured.csv")
    parameters = checked_parameters(prediction, "quick", {"data": "measured.csv"})
    assert parameters["data"] == str(tmp_path / "measured.csv")


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        ({"n_patients": -1}, "wbc-convergence: n_patients holds -1, expected at least 2"),
        ({"n_samples": {"2p": [0]}}, "n_samples holds 0"),
        ({"setups": []}, "setups is empty"),
    ],
)
def test_too_small_counts_are_refused_before_anything_runs(
    overrides: dict[str, Any], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        checked_parameters(find_study("wbc-convergence"), "quick", overrides)


@pytest.mark.parametrize(
    ("study", "overrides", "says"),
    [
        ("wbc-12p", {"setups": ["7p"]}, "setups holds '7p', expected one of 2p, 3p, 5p, 6p, 9p"),
        ("wbc-12p", {"agents": ["foo"]}, "agents holds 'foo', expected one of vito,"),
        ("wbc-12p", {"methods": ["vito"]}, "methods holds 'vito', expected one of bobyqa-simple,"),
        ("wbc-12p", {"setups": ["9p"]}, "n_samples holds nothing for '9p', expected a size"),
        ("stability", {"n_perturbations": 1}, "n_perturbations holds 1, expected at least 2"),
        ("stability", {"deviation_share": -1.0}, "deviation_share holds -1, expected above 0"),
        ("stability", {"setups": ["2p", "2p"]}, r"setups is \['2p', '2p'\], expected each once"),
        ("uncertainty", {"n_walkers": 3}, "n_walkers holds 3, expected at least 4"),
        ("uncertainty", {"n_walkers": 5}, "n_walkers holds 5, expected an even number"),
        ("wbc-12p", {"n_patients": 49}, "n_patients holds 49, expected at most 48"),
        ("ep-convergence", {"n_patients": 76}, "n_patients holds 76, expected at most 75"),
        ("hindsight", {"n_ep_patients": 76}, "n_ep_patients holds 76, expected at most 75"),
        ("hindsight", {"mode": "fast"}, "mode holds 'fast', expected one of table, exact"),
        ("ep-scouting", {"lead_fields": ["exact"]}, "lead_fields holds 'exact', expected one of"),
        ("ep-personalization", {"n_patients": 1}, "n_patients holds 1, expected at least 2"),
    ],
)
def test_what_a_study_cannot_do_is_refused_before_anything_runs(
    study: str, overrides: dict[str, Any], says: str
) -> None:
    with pytest.raises(ValueError, match=f"{study}: {says}"):
        checked_parameters(find_study(study), "quick", overrides)


def test_a_malformed_file_is_refused_before_anything_runs(tmp_path: Path) -> None:
    file = tmp_path / "measured.csv"
    file.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"measured\.csv, row 1: column"):
        run(find_study("prediction"), overrides={"data": str(file)}, results=tmp_path / "results")
    assert not (tmp_path / "results").exists()
