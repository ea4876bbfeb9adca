"""The lessons on models of one's own run from top to bottom, and what they say is so."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest

from vitolab.failures import Kind

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"


def executed(name: str, **known: Any) -> Mapping[str, Any]:
    """All names of a notebook after its last cell, as if its kernel were this process."""
    cells = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4).cells
    space: dict[str, Any] = {"__name__": "__main__"}  # functions travel as those of a notebook do
    for cell in (cell for cell in cells if cell.cell_type == "code"):
        exec(compile(cell.source, f"{name}: {cell.id}", "exec"), space)
        if cell.id == "imports":
            space |= known
    return space


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A lesson finds its files from any folder, and leaves nothing where it is run."""
    monkeypatch.chdir(tmp_path)
    yield
    assert list(tmp_path.iterdir()) == []


def solved(lesson: Mapping[str, Any], *methods: str) -> bool:
    """Whether these methods solved every patient."""
    return all(fit.solved for (_, name), fit in lesson["fits"].items() if name in methods)


def test_a_function_that_never_ends_is_a_failed_run_and_the_others_answer():
    lesson = executed("own_function")
    # of four calls two are ended, and two have the closed form K R / (V - R)
    assert np.isnan(lesson["y"][[1, 3]]).all()
    for (v_max, k_m), y in zip(lesson["x"][[0, 2]], lesson["y"][[0, 2]], strict=True):
        doses = np.array([300.0, 375.0])
        assert y == pytest.approx(k_m * doses / (v_max - doses), rel=1e-3)
    kinds = [failure.kind for failure in lesson["answer"].failures]
    assert kinds == [
        Kind.RAISED,
        Kind.TIME_OUT,
        Kind.CRASHED,
        Kind.NOT_FINITE,
        Kind.SHAPE,
        Kind.SHAPE,
    ]
    walks = lesson["walks"]
    n_failed = np.count_nonzero(~np.isfinite(walks.y).all(axis=-1))
    assert n_failed == sum(failure.n_runs for failure in walks.failures) > 0
    # half of the last digit that is reported, and what remains of the steps
    assert np.abs(np.array(lesson["exact"]) - lesson["found"]).max() < 0.06
    assert solved(lesson, "vito-continuous", "least-squares-multistart")
    assert lesson["fit"].solved  # the example of a problem in a file


def test_a_steady_beat_has_the_closed_forms_of_its_artery():
    lesson = executed("own_equations")
    assert lesson["p"] == pytest.approx(lesson["decay"], abs=0.01)
    assert lesson["mean"] == pytest.approx(lesson["resistance"] * lesson["flow"], rel=2e-3)
    opened, closed = lesson["solution"].events
    assert 0.0 < opened[0] < closed[0] < lesson["solution"].t[-1]
    assert solved(lesson, "vito-continuous", "least-squares-multistart")


def test_a_program_answers_and_what_failed_was_kept():
    lesson = executed("own_program")
    assert lesson["left"] == pytest.approx(lesson["exact"], rel=1e-9)
    kinds = {failure.patient: failure.kind for failure in lesson["failures"]}
    expected = {"somebody": Kind.CRASHED, "hang": Kind.TIME_OUT, "half": Kind.SHAPE}
    if sys.platform == "linux":
        expected["memory"] = Kind.CRASHED
    assert kinds == expected
    assert not lesson["folder"].exists()
    assert solved(lesson, "vito-continuous", "least-squares-multistart")


def test_formats_that_are_there_agree_with_the_closed_form():
    lesson = executed("own_formats")
    assert ("SBML" in lesson["models"]) == bool(find_spec("roadrunner"))
    expected = lesson["closed_form"](lesson["x"], lesson["somebody"])
    for name, answer in lesson["answers"].items():
        assert answer == pytest.approx(expected, abs=0.01), name
    assert solved(lesson, "vito-continuous", "least-squares-multistart")


def test_formats_that_are_absent_are_said_and_passed_over(capsys: pytest.CaptureFixture[str]):
    lesson = executed("own_formats", find_spec=lambda name: None)
    said = capsys.readouterr().out
    assert lesson["models"] == {}
    assert lesson["chosen"] == "closed form"
    for extra in ("sbml", "cellml", "fmu"):
        assert f"pip install vitolab[{extra}]" in said
    assert solved(lesson, "vito-continuous", "least-squares-multistart")
