"""Models in standard formats: a Windkessel against closed forms and an oracle."""

from __future__ import annotations

import shutil
from dataclasses import replace
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import numpy as np
import pytest
import standard_models
from scipy.integrate import solve_ivp
from standard_models import Format, person

from vitolab.problem import FloatArray, Patient
from vitolab.problemfile import read_problem

fmu = standard_models.fmu
myokit_compiles = standard_models.myokit_compiles
format_ = standard_models.format_

EXAMPLES = Path(__file__).resolve().parents[1] / "notebooks" / "examples"
NOBODY = Patient("P", {})
SYSTOLE = 0.35
BEATS, PER_BEAT = 20, 200  # of the Windkessel
FAILED = r"CVODE Error|numerical error|fmi2ExitInitializationMode failed"


def oracle(x: FloatArray, patient: Patient) -> dict[str, float]:
    """Pressures of the last beat: SciPy, each pulse and each diastole by itself."""
    total, impedance, compliance = x
    period, volume = 60.0 / patient.data["heart_rate"], patient.data["stroke_volume"]
    peak = np.pi * volume / (2.0 * SYSTOLE * period)

    def flow(u: FloatArray) -> FloatArray:
        return peak * np.sin(np.pi * u / SYSTOLE)

    def pulse(u: float, p: FloatArray) -> FloatArray:
        return period * (flow(u) - p / (total - impedance)) / compliance

    def decay(u: FloatArray) -> FloatArray:
        return np.exp(-period * (u - SYSTOLE) / ((total - impedance) * compliance))

    u = np.linspace(0.0, 1.0, PER_BEAT + 1)
    early = u < SYSTOLE
    start = total * volume / period
    for _ in range(BEATS):
        ejected = solve_ivp(
            pulse, (0.0, SYSTOLE), [start], t_eval=[*u[early], SYSTOLE], rtol=1e-10, atol=1e-10
        ).y[0]
        start = ejected[-1] * decay(1.0)
    pressure = ejected[-1] * decay(u)
    pressure[early] = ejected[:-1] + impedance * flow(u[early])
    mean = np.mean((pressure[1:] + pressure[:-1]) / 2.0)
    return {"mean": mean, "systolic": pressure.max(), "diastolic": pressure.min()}


POINTS = [
    ([1.1, 0.05, 1.4], person()),
    ([2.0, 0.1, 3.0], person(50.0, 95.0)),
    ([0.6, 0.02, 0.5], person(110.0, 45.0)),
]


@pytest.mark.parametrize(("x", "patient"), POINTS)
def test_windkessel_agrees_with_scipy_to_a_thousandth_of_a_mmhg(
    format_: Format, x: list[float], patient: Patient
):
    assert format_.windkessel()(np.array(x), patient) == pytest.approx(
        oracle(np.array(x), patient), abs=1e-3
    )


def test_a_problem_file_runs_a_model_of_each_format_in_processes_of_its_own(
    format_: Format, tmp_path: Path
):
    kind = {".xml": "sbml", ".mmt": "cellml", ".fmu": "fmu"}[format_.path.suffix]
    shutil.copy(format_.path, tmp_path)
    text = (EXAMPLES.parent / "starter" / "problem.toml").read_text(encoding="utf-8")
    for name, own in (("resistance", "R"), ("impedance", "Zc"), ("compliance", "C")):
        text = text.replace(
            f'name = "{name}"', f'name = "{name}"\ntarget = "{format_.artery}{own}"'
        )
    for name, own in zip(("heart_rate", "stroke_volume"), format_.heart, strict=True):
        text = text.replace(f'name = "{name}"', f'name = "{name}"\ntarget = "{own}"')
    for name, what in (("mean", "mean"), ("systolic", "maximum"), ("diastolic", "minimum")):
        wanted = f'output = "{format_.artery}pressure"\nfeature = "{what}"'
        text = text.replace(f'output = "{name}"', wanted)
    head, _, _ = text.partition("[model]")
    (tmp_path / "problem.toml").write_text(
        f"""{head}[model]
adapter = "{kind}"
file = "{format_.path.name}"
duration = {BEATS}.0
points = {BEATS * PER_BEAT + 1}
skip = {BEATS - 1}
time_limit = 60.0
workers = 1
{"trusted = true" if kind == "fmu" else ""}
""",
        encoding="utf-8",
    )
    problem = read_problem(tmp_path / "problem.toml").problem
    x, patient = POINTS[0]
    total, impedance, compliance = x
    y = problem.run(np.array([[total, compliance, impedance]]), patient).y[0]
    problem.simulate.close()
    assert y == pytest.approx(list(oracle(np.array(x), patient).values()), abs=1e-3)


def test_windkessel_starts_at_the_mean_pressure_and_decays_exponentially(format_: Format):
    stored = f"{format_.artery}stored"
    model = format_.windkessel(
        duration=1.0,
        n_points=401,
        skip=0.0,
        outputs={"start": (stored, "initial"), "end": (stored, "final")},
    )
    late = replace(model, skip=SYSTOLE)
    x = np.array([1.5, 0.2, 0.9])
    y, beyond = model(x, person(80.0, 60.0)), late(x, person(80.0, 60.0))
    assert y["start"] == pytest.approx(1.5 * 60.0 * 80.0 / 60.0, rel=1e-12)
    assert beyond["end"] == y["end"]
    decay = np.exp(-(1.0 - SYSTOLE) * 0.75 / (1.3 * 0.9))
    assert y["end"] / beyond["start"] == pytest.approx(decay, rel=1e-5)


def test_mean_pressure_is_resistance_times_output_once_beats_have_settled(format_: Format):
    x = np.array([0.9, 0.05, 0.6])
    mean = format_.windkessel()(x, person(60.0, 80.0))["mean"]
    assert mean == pytest.approx(0.9 * 80.0, abs=0.02)  # of points, not of the flow itself


def test_answers_do_not_depend_on_what_ran_before(format_: Format):
    model = format_.windkessel(n_points=401)
    other = format_.windkessel(  # sets other names of the same file
        n_points=101, duration=5.0, skip=0.0, parameters=(f"{format_.artery}C",), data={}
    )
    a, b = np.array([1.1, 0.05, 1.4]), np.array([2.0, 0.1, 3.0])
    first, own = model(a, person()), other(np.array([2.0]), NOBODY)
    assert model(b, person(50.0, 95.0)) != first
    with pytest.raises(Exception, match=FAILED):  # which leaves nothing behind
        model(np.array([np.nan, 0.05, 1.4]), person())
    assert other(np.array([2.0]), NOBODY) == own
    assert model(a, person()) == first


def test_model_travels_to_other_processes(format_: Format):
    model = format_.windkessel(n_points=401)
    copy = ForkingPickler.loads(ForkingPickler.dumps(model))
    assert copy == model
    x = np.array([1.1, 0.05, 1.4])
    assert copy(x, person()) == model(x, person())


def test_model_tells_which_file_it_is(format_: Format, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(format_.path.parent)
    relative = replace(format_, path=Path(format_.path.name)).windkessel()
    assert relative.sources == (format_.path,)
