"""Each fact about a model stands with the model, and one door leads to it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import vitolab as vl
from vitolab import catalogue, cli
from vitolab.catalogue import MODELS, find_model, model_of, read_table, template_for
from vitolab.dashboard import load_dashboards
from vitolab.models import rosenbrock
from vitolab.models.description import Curves, Lesson, Model, Panel
from vitolab.problem import FloatArray, Objective, Parameter, Patient, Problem

lessons = load_dashboards("pages.teach.lessons")
pictures = load_dashboards("charts.pictures")
answers = load_dashboards("charts.answers")


# --- a further model: its own facts, and one line -------------------------------------------------


def spring(x: FloatArray, patient: Patient) -> FloatArray:
    """Length of a spring under the load of a patient."""
    return 1.0 + patient.data["load"] / x


def toy_problem(setup: str = "1p") -> Problem:
    stiffness = Parameter("stiffness", "Stiffness", "N/m", 1.0, 10.0, 5.0, 0.05)
    return Problem(
        name=f"spring-{setup}",
        version="1",
        parameters=(stiffness,),
        objectives=(Objective("length", "Length", "m", 0.01),),
        simulate=spring,
    )


def toy_patients() -> list[Patient]:
    return [Patient(f"S{i}", {"length": 1.5}, {"load": 2.0 + 0.1 * i}) for i in range(6)]


TOY = Model(
    name="spring",
    n_states={"1p": 20},
    setup="1p",
    problem=toy_problem,
    patients=toy_patients,
    n_patients=6,
    data={"load": "N"},
    ranges={"load": (0.0, 30.0, "N"), "length": (0.0, 100.0, "m")},
    picture=Curves(
        (Panel("Spring", "force", "length", "force [N]", "length [m]", {"length": "l"}),)
    ),
    answer=lambda problem, x, patient: {
        "force": np.array([0.0, patient.data["load"]]),
        "length": np.array([1.0, spring(x[np.newaxis], patient)[0, 0]]),
    },
    current=lambda problem: toy_problem(),
    lessons=(Lesson("spring-1p", "A spring", toy_problem, 3, 2, 20, 50),),
)


@pytest.fixture
def with_toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one line elsewhere."""
    monkeypatch.setitem(MODELS, TOY.name, TOY)


@pytest.mark.usefixtures("with_toy")
def test_a_further_model_is_offered_by_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def call(*arguments: object) -> str:
        monkeypatch.setattr(sys, "argv", ["vitolab", "personalize", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        assert ended.value.code == 0, said.err
        return said.out

    text = call("spring", "--template")
    assert text.splitlines()[:2] == ["patient,load [N],length [m]", "example 1,10,3"]
    (tmp_path / "springs.csv").write_text(text)
    options = ["--patients", tmp_path / "springs.csv", "--results", tmp_path, "--jobs", 1]
    said = call("spring", *options, "--n-samples", 200)
    assert said.startswith("patient,")
    assert "example 2" in said


@pytest.mark.usefixtures("with_toy")
def test_a_further_model_is_taught_and_drawn_by_the_dashboard() -> None:
    assert "spring-1p" in lessons.offered()
    problem, patients = lessons.problem_of("spring-1p"), lessons.patients_of("spring-1p")
    assert list(patients) == [f"S{i}" for i in range(6)]
    vito = lessons.agent("spring-1p", "S0")
    assert vito.personalize(patients["S0"], max_runs=50, seed=0).n_runs >= 1
    assert "need have a solution" in lessons.hope(patients["S0"], problem)
    assert answers.current(problem).name == "spring-1p"
    picture = pictures.picture(problem)
    picture.patient(patients["S0"], {})
    picture.show(answers.simulate(problem, problem.default, patients["S0"]), np.zeros(1))
    assert picture.model.data["length"].tolist() == [1.0, 1.4]
    assert picture.bands["length"].bottom == pytest.approx(1.49)


# --- the built-in ones ----------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
def test_the_facts_of_a_model_agree_with_the_model(model: Model, tmp_path: Path) -> None:
    assert model.setup in model.n_states
    if model.patients is not None:
        assert len(model.patients()) == model.n_patients
    for setup, n_states in model.n_states.items():
        problem = model.problem(setup)
        assert model_of(problem) is model
        assert n_states >= 2 * problem.n_parameters + 1  # success and its neighbours
        again = model.current(problem)
        assert again is not None
        assert (again.name, again.version) == (problem.name, problem.version)
    with pytest.raises(ValueError, match="is 'none', expected"):
        model.problem("none")
    for lesson in model.lessons:
        problem = lesson.problem()
        assert model_of(problem) is model
        assert lesson.n_training < (lesson.n_patients or model.n_patients)
        assert lesson.first in {"", *(p.name for p in model.patients())}  # type: ignore[misc]
    if isinstance(model.picture, Curves):
        names = {o.name for s in model.n_states for o in model.problem(s).objectives}
        assert {level for panel in model.picture.panels for level in panel.levels} <= names
    if not model.prepares:
        path = tmp_path / "patients.csv"
        path.write_text(template_for(model, model.setup), encoding="utf-8")
        assert len(read_table(model, path, model.setup).patients) == 2


def test_curves_hold_what_their_picture_draws() -> None:
    model = catalogue.CIRCULATION
    problem, patient = model.problem("6p"), model.patients()[0]  # type: ignore[misc]
    assert isinstance(model.picture, Curves)
    answer = model.answer(problem, problem.default, patient)
    known = model.background(problem, patient)
    for panel in model.picture.panels:
        assert len(answer[panel.x]) == len(answer[panel.y]) > 10
        if panel.measured:
            assert len(known[panel.x]) == len(known[panel.y]) == 60
    period = 60e3 / patient.data["heart_rate"]
    assert answer["time"][-1] == pytest.approx(period, rel=0.02)


def test_the_map_of_a_function_has_the_values_of_its_formula() -> None:
    patient = rosenbrock.cohort(2)[1]
    x = np.array([[0.5, -1.0], [2.0, 3.0]])
    alpha = patient.data["alpha"]
    expected = (alpha - x[:, 0]) ** 2 + 100.0 * (x[:, 1] - x[:, 0] ** 2) ** 2
    np.testing.assert_allclose(rosenbrock.values(x, patient), expected, rtol=1e-14)
    assert rosenbrock.values(rosenbrock.optimum(patient)[np.newaxis], patient) == [0.0]


def test_a_problem_of_another_name_or_setup_is_no_built_in_one() -> None:
    for name in ("mine", "circulation-own", "spring-1p"):
        problem = toy_problem()
        assert model_of(Problem(**{**vars(problem), "name": name})) is None


# --- one door -------------------------------------------------------------------------------------


def test_python_opens_the_door_of_the_command_line() -> None:
    assert vl.find_model is find_model
    assert vl.find_model("circulation") is vl.models.circulation.MODEL
    starter = Path(__file__).parents[1] / "notebooks" / "starter" / "problem.toml"
    own = vl.find_model(starter)
    assert own.setup == own.name
    assert own.problem(own.setup).n_parameters * 100 == own.n_states[own.setup]
    with pytest.raises(ValueError, match="expected none for a model of your own"):
        own.problem("6p")
    with pytest.raises(ValueError, match=r"model is 'heart', expected one of circ.* \.toml"):
        vl.find_model("heart")


def test_models_are_listed_without_loading_one() -> None:
    heavy = ("numba", "numpy", "pandas", "scipy", "sklearn")
    program = (
        "import sys; from vitolab.catalogue import MODELS\n"
        "facts = [(m.n_states, m.ranges, m.lessons) for m in MODELS.values()]\n"
        f"print([m for m in {heavy} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", list(MODELS))
def test_a_package_of_a_model_names_what_it_has(name: str) -> None:
    package = getattr(vl.models, name)
    assert package.MODEL is MODELS[name]
    assert {"MODEL", "problem"} <= set(dir(package))
    assert all(getattr(package, each) is not None for each in dir(package))
    with pytest.raises(AttributeError, match=f"module 'vitolab.models.{name}' has no attribute"):
        _ = package.lungs
