"""The setup 20p of the circulation: atria, valves and the root of the aorta."""

from __future__ import annotations

from itertools import product

import naive_circulation as naive
import numpy as np
import pandas as pd
import pytest
from patient_files import read_patients, template

from vitolab import cli
from vitolab.identifiability import sensitivity
from vitolab.kernels import circulation as kernel
from vitolab.methods import build
from vitolab.models import circulation
from vitolab.models.circulation import truth
from vitolab.models.circulation.inputs import pack
from vitolab.patients import InputError
from vitolab.problem import Patient

PATIENT = Patient("P1", {}, {"heart_rate": 75})
PARAMETERS = [
    "la_emin",
    "la_active_elastance",
    "ra_emin",
    "ra_active_elastance",
    "mitral_leak",
    "mitral_resistance",
    "pulmonary_valve_resistance",
    "aortic_characteristic_resistance",
]
OBJECTIVES = [
    "ra_mean",
    "lv_edp",
    "lv_dpdt",
    "rv_dpdt",
    "la_volume_max",
    "la_volume_min",
    "ra_volume_max",
    "ra_volume_min",
]
RICH = {
    "aortic_valve_loss": 4e-5,
    "mitral_leak": 1 / 8,
    "lv_source": 6e-4,
    "lv_stiffening": 0.003,
    "aortic_stiffening": 0.25,
}


@pytest.fixture(scope="module")
def problem():
    return circulation.problem("20p")


@pytest.fixture(scope="module")
def answers(problem):
    """Answers of least squares from the defaults, by patient."""
    method = build("least-squares", problem)
    patients = circulation.cohort().evaluation
    start = problem.default[np.newaxis]
    return {patient: method.personalize_from(patient, start)[0] for patient in patients}


def failing(problem, **others):
    """Parameters of a failing heart, some of them changed."""
    x = problem.default.copy()
    for name, value in ({"initial_volume": 600, "lv_emax": 0.8} | others).items():
        x[[p.name for p in problem.parameters].index(name)] = value
    return x


def change(problem, name, value):
    """Change of each objective from a failing heart to one with another value."""
    y = problem.simulate(np.array([failing(problem), failing(problem, **{name: value})]), PATIENT)
    return dict(zip((o.name for o in problem.objectives), y[1] - y[0], strict=True))


def test_20p_goes_on_where_12p_ends(problem):
    twelve = circulation.problem("12p")
    assert problem.name == "circulation-20p"
    assert problem.n_parameters == problem.n_objectives == 20
    assert problem.parameters[:12] == twelve.parameters
    assert problem.objectives[:12] == twelve.objectives
    assert [p.name for p in problem.parameters[12:]] == PARAMETERS
    assert [o.name for o in problem.objectives[12:]] == OBJECTIVES
    np.testing.assert_array_equal(problem.tolerance[12:], [4, 4, 150, 50, 15, 15, 15, 15])
    np.testing.assert_allclose(problem.step, 0.005 * (problem.upper - problem.lower))


def test_defaults_are_those_of_the_kernel_and_domains_in_its_units(problem):
    row = pack(problem.default[np.newaxis], PATIENT, "20p")[0]
    np.testing.assert_allclose(row, kernel.DEFAULTS, rtol=1e-14)
    low, high = pack(np.array([problem.lower, problem.upper]), PATIENT, "20p")
    for i, (lower, upper) in {
        kernel.LA_EMIN: (0.03, 0.4),  # mmHg/mL
        kernel.LA_EMAX: (0.03, 1.0),
        kernel.RA_EMIN: (0.02, 0.3),
        kernel.RA_EMAX: (0.02, 0.8),
        kernel.MITRAL_LEAK: (0.0, 1.0),  # mL/(mmHg s)
        kernel.MITRAL_RESISTANCE: (0.0015, 0.045),  # mmHg s/mL
        kernel.PULMONARY_VALVE_RESISTANCE: (0.0015, 0.045),
    }.items():
        np.testing.assert_allclose([low[i], high[i]], [lower, upper], rtol=1e-4)
    root = [r[kernel.CHARACTERISTIC_SHARE] * r[kernel.AORTIC_RESISTANCE] for r in (low, high)]
    np.testing.assert_allclose(root, [0.0075, 0.12], rtol=1e-4)


@pytest.mark.parametrize(
    ("theta", "rate", "others"),
    [
        ((400, 2.4, 1100, 1.4, 10, 300), 75, {}),
        ((950, 0.3, 1500, 1.5, 250, 280), 70, {}),
        ((300, 4, 900, 3, 0, 200), 95, {}),
        ((700, 0.9, 1300, 1.2, 60, 320), 80, RICH),
    ],
)
def test_further_outputs_are_those_of_a_finely_sampled_beat(theta, rate, others):
    row = naive.constants(theta, rate, **others)[np.newaxis]
    start = kernel.simulate(row, kernel.initial_states(row), 5e-3, 1e-2, 200)[3]
    found = dict(zip(kernel.FURTHER_OUTPUTS, kernel.examine(row, start, 5e-3)[0], strict=True))
    table = kernel.beat(row[0], start[0], 2e-4)[2]
    curve = dict(zip(kernel.CURVES, table.T, strict=True))
    t = curve["time"]
    mean = np.trapezoid(curve["ra_pressure"], t) / t[-1]
    assert found["ra_mean"] == pytest.approx(mean, abs=0.01)  # mmHg
    assert found["lv_edp"] == pytest.approx(curve["lv_pressure"][0], abs=1e-9)
    for side in ("lv", "rv"):
        slope = np.max(np.diff(curve[f"{side}_pressure"]) / np.diff(t))
        assert found[f"{side}_dpdt"] == pytest.approx(slope, rel=0.01)
    for side in ("la", "ra"):
        volume = curve[f"{side}_volume"]
        assert found[f"{side}_volume_max"] == pytest.approx(volume.max(), abs=0.05)  # mL
        assert found[f"{side}_volume_min"] == pytest.approx(volume.min(), abs=0.05)


def test_the_twelve_outputs_of_the_smaller_setups_are_the_same_bits(problem):
    x = problem.draw(np.random.default_rng(5), 20)
    runs, rows = circulation.run(x, PATIENT, "20p"), pack(x, PATIENT, "20p")
    outputs, *_ = kernel.simulate(rows, kernel.initial_states(rows), 5e-3, 1e-2, 200)
    np.testing.assert_array_equal(runs.outputs[:, :12], outputs)
    assert runs.outputs.shape == (20, 20)
    assert circulation.run(x[:, :12], PATIENT, "12p").outputs.shape == (20, 12)


def test_the_default_time_step_is_far_more_exact_than_the_tolerances(problem):
    x = problem.default + 0.3 * (problem.draw(np.random.default_rng(6), 40) - problem.default)
    coarse, fine = (
        circulation.problem("20p", circulation.Numerics(step, 1e-6)).simulate(x, PATIENT)
        for step in (5e-3, 5e-4)
    )
    error = np.abs(coarse - fine) / problem.tolerance
    assert np.isfinite(error).all()
    assert error.max() < 0.05


def test_a_leak_makes_the_left_ventricle_eject_more_than_the_right(problem):
    leaking = change(problem, "mitral_leak", 0.5)
    more = leaking["lv_edv"] - leaking["lv_esv"] - leaking["rv_edv"] + leaking["rv_esv"]
    assert more > 8  # mL return to the left atrium
    assert leaking["la_volume_max"] > 3
    assert leaking["aortic_mean"] < 0


def test_atria_valves_and_root_act_as_they_should(problem):
    narrow = change(problem, "mitral_resistance", 40.0)
    assert narrow["la_mean"] > 2
    assert narrow["lv_edv"] < -5
    stiff = change(problem, "la_emin", 0.3)
    assert stiff["la_volume_max"] < -20
    assert stiff["la_mean"] > 0.5
    fibrillating = change(problem, "la_active_elastance", 0.0)
    assert fibrillating["la_volume_min"] > 10
    assert fibrillating["lv_edv"] < 0
    assert change(problem, "ra_emin", 0.25)["ra_volume_max"] < -15
    assert change(problem, "ra_active_elastance", 0.0)["ra_volume_min"] > 10
    assert change(problem, "pulmonary_valve_resistance", 50.0)["pulmonary_systolic"] < -1
    root = change(problem, "aortic_characteristic_resistance", 150.0)
    assert root["aortic_systolic"] - root["aortic_diastolic"] > 5


def test_every_corner_of_the_new_parameters_runs(problem):
    corners = np.array(list(product(*zip(problem.lower[12:], problem.upper[12:], strict=True))))
    x = np.tile(problem.default, (2 * len(corners), 1))
    x[:, 12:] = np.concatenate([corners, corners])
    x[:, 2] = np.repeat([problem.lower[2], problem.upper[2]], len(corners))
    longest = circulation.Numerics(time_step=0.01)
    for rate, numerics in product((50, 120), (circulation.Numerics(), longest)):
        runs = circulation.run(x, Patient("P", {}, {"heart_rate": rate}), "20p", numerics)
        assert not runs.failed.any()
        assert np.isfinite(runs.outputs).all()


def test_runs_over_the_whole_domain_find_their_periodic_state(problem):
    runs = circulation.run(problem.draw(np.random.default_rng(3), 600), PATIENT, "20p")
    assert not runs.failed.any()
    assert runs.beats.max() < 100
    answered = (runs.status & (kernel.NO_STRESSED_VOLUME | kernel.NEGATIVE_VOLUME)) == 0
    assert runs.outputs[answered][:, 16:].min() > 0  # no atrium below zero either


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("la_active_elastance", -0.1, "la_active_elastance is -0.1 mmHg/mL, expected a non-neg"),
        ("mitral_leak", -1.0, r"mitral_leak is -1 mL/\(mmHg s\), expected a non-negative number"),
        ("mitral_leak", np.nan, r"mitral_leak is nan mL/\(mmHg s\), expected a non-negative"),
        ("mitral_resistance", 0.0, r"mitral_resistance is 0 g/\(cm⁴ s\), expected a positive"),
        ("aortic_resistance", 60.0, r"aortic_resistance is 60 g.*, expected above the char.* 66"),
    ],
)
def test_impossible_parameters_are_refused(problem, name, value, message):
    x = np.array([failing(problem), failing(problem, **{name: value})])
    with pytest.raises(ValueError, match=f"row 1: {message}"):
        problem.simulate(x, PATIENT)


def test_truth_of_the_cohort_in_twenty_parameters(problem):
    true, cohort = truth.truth(), circulation.cohort()
    patients = cohort.scouting + cohort.evaluation
    x = np.array([[true[patient.name][p.name] for p in problem.parameters] for patient in patients])
    inside = (x[:, 12:] >= problem.lower[12:]) & (x[:, 12:] <= problem.upper[12:])
    assert (~inside).sum(axis=0).tolist() == [0, 0, 0, 0, 0, 0, 0, 2]  # stiff aortas
    constants = {row["patient"]: row for row in truth._rows()}
    for patient, row in zip(patients, pack(x, PATIENT, "20p"), strict=True):
        for name in ("la_emax", "ra_emax", "mitral_leak", "characteristic_share"):
            expected = float(constants[patient.name][f"constant:{name}"])
            assert row[kernel.NAMES.index(name)] == pytest.approx(expected, rel=1e-5)
    # other constants than the model's: most patients miss a tolerance at their own truth
    misfits = [
        problem.misfit(problem.simulate(row[np.newaxis], patient)[0], problem.measured(patient))
        for row, patient in zip(x, patients, strict=True)
    ]
    assert problem.is_solved(np.array(misfits)).sum() == 5  # of 56; 10 in the setup 12p


@pytest.fixture
def file(problem, tmp_path):
    """The cohort as a user's file."""
    path, lines = tmp_path / "cohort.csv", [template(problem).splitlines()[0]]
    for patient in circulation.cohort().evaluation:
        values = [patient.measurements[o.name] for o in problem.objectives]
        lines.append(",".join(map(str, [patient.name, patient.data["heart_rate"], *values])))
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_the_synthetic_cohort_is_accepted_with_all_its_measurements(problem, file):
    table = read_patients(file, problem)
    assert [p.measurements for p in table.patients] == [
        {o.name: p.measurements[o.name] for o in problem.objectives}
        for p in circulation.cohort().evaluation
    ]


@pytest.mark.parametrize("side", ["la", "ra"])
def test_an_atrium_that_is_smallest_when_it_is_largest_is_refused(problem, file, side):
    table = pd.read_csv(file)
    table.loc[3, f"{side}_volume_min [mL]"] = 400.0
    table.to_csv(file, index=False)
    with pytest.raises(InputError, match=f"expected {side}_volume_min below {side}_volume_max"):
        read_patients(file, problem)


def test_a_users_file_is_personalised_by_the_command_line(file, tmp_path, monkeypatch):
    pd.read_csv(file).head(2).to_csv(file, index=False)
    out = tmp_path / "fit.csv"
    options = ["--setup", "20p", "--patients", file, "--method", "least-squares", "--out", out]
    arguments = ["personalize", "circulation", *options, "--results", tmp_path / "results"]
    monkeypatch.setattr("sys.argv", ["vitolab", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert not ended.value.code
    fitted = pd.read_csv(out)
    assert fitted["solved"].tolist() == [True, True]
    assert "mitral_leak [mL/(mmHg s)]" in fitted
    assert "lv_dpdt_modelled [mmHg/s]" in fitted


def test_every_patient_of_the_cohort_has_an_answer(problem, answers):
    """Least squares from the defaults finds one for each of the 48, in few forward runs."""
    assert len(answers) == 48
    for patient, fit in answers.items():
        y = problem.simulate(fit.x[np.newaxis], patient)[0]
        assert problem.is_solved(problem.misfit(y, problem.measured(patient)))
    assert np.mean([fit.n_runs for fit in answers.values()]) < 100


def test_only_the_leak_tells_the_stroke_volumes_apart(problem):
    exact = circulation.problem("20p", circulation.Numerics(tolerance=1e-6))
    found = sensitivity(exact, problem.default, PATIENT)
    assert found.singular_values[-1] > 0.5  # in 12p, without a leak, it is zero
    names = list(found.objectives)
    strokes = np.zeros(20)
    strokes[[names.index("lv_edv"), names.index("rv_esv")]] = 1.0
    strokes[[names.index("lv_esv"), names.index("rv_edv")]] = -1.0
    seen = np.abs(strokes @ found.jacobian)
    leak = found.parameters.index("mitral_leak")
    assert seen[leak] > 0.5
    assert np.delete(seen, leak).max() < 2e-3


def test_the_measurements_leave_two_to_four_combinations_of_twenty_open(problem, answers):
    """Open: a move across the whole domain stays within one tolerance, all objectives together."""
    exact = circulation.problem("20p", circulation.Numerics(tolerance=1e-6))
    determined, shares = [], []
    for patient, fit in answers.items():
        found = sensitivity(exact, fit.x, patient)
        open_ = found.singular_values < 1.0
        determined.append(20 - open_.sum())
        shares.append((found.directions[open_] ** 2).sum(axis=0))
    assert (min(determined), np.median(determined), max(determined)) == (16, 17, 18)
    share = dict(zip(found.parameters, np.median(shares, axis=0), strict=True))
    worst = sorted(share, key=share.__getitem__, reverse=True)
    assert worst[:2] == ["mitral_leak", "pulmonary_valve_resistance"]
    assert share["mitral_leak"] > 0.7
    assert share["pulmonary_valve_resistance"] > 0.6
    assert max(share[name] for name in worst[2:]) < 0.25
