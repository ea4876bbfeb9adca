"""The setups of the circulation with the right heart and the lungs: 9p and 12p."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from vitolab.catalogue import CIRCULATION
from vitolab.files import source_version
from vitolab.kernels import circulation as kernel
from vitolab.models import circulation
from vitolab.models.circulation import inputs, model, parameters, truth
from vitolab.models.circulation.inputs import pack
from vitolab.problem import Patient
from vitolab.studies.base import N_STATES

PATIENT = Patient("P1", {}, {"heart_rate": 75})


@pytest.fixture(scope="module")
def patients():
    cohort = circulation.cohort()
    return cohort.scouting + cohort.evaluation


@pytest.mark.parametrize(("setup", "n"), [("9p", 9), ("12p", 12)])
def test_the_further_setups_go_on_where_the_paper_ends(setup, n):
    problem, paper = circulation.problem(setup), circulation.problem("6p")
    assert problem.name == f"circulation-{setup}"
    assert problem.n_parameters == problem.n_objectives == n
    assert problem.parameters[:6] == paper.parameters
    assert problem.objectives[:6] == paper.objectives
    names = "rv_emax pulmonary_resistance pulmonary_compliance rv_time_to_emax lv_emin rv_emin"
    assert [p.name for p in problem.parameters[6:]] == names.split()[: n - 6]
    names = "rv_esv pulmonary_mean pulmonary_diastolic rv_edv pulmonary_systolic la_mean"
    assert [o.name for o in problem.objectives[6:]] == names.split()[: n - 6]
    np.testing.assert_array_equal(problem.tolerance[6:], [20, 5, 5, 20, 5, 4][: n - 6])
    np.testing.assert_allclose(problem.step, 0.005 * (problem.upper - problem.lower))


def test_domains_in_the_units_of_the_kernel():
    problem = circulation.problem("12p")
    rows = pack(np.array([problem.lower, problem.upper]), PATIENT, "12p")
    total = (
        rows[:, kernel.PULMONARY_RESISTANCE] + rows[:, kernel.PULMONARY_CHARACTERISTIC_RESISTANCE]
    )
    np.testing.assert_allclose(total, [0.03, 0.6], rtol=1e-3)  # mmHg s/mL
    np.testing.assert_allclose(rows[:, kernel.PULMONARY_COMPLIANCE], [1, 12], rtol=1e-3)  # mL/mmHg
    np.testing.assert_allclose(rows[:, kernel.RV_TIME_TO_EMAX], [0.1, 0.6])  # s
    np.testing.assert_array_equal(rows[:, kernel.RV_EMAX], [0.15, 2])  # mmHg/mL
    for name in ("LV_EMIN", "RV_EMIN"):
        np.testing.assert_array_equal(rows[:, getattr(kernel, name)], [0.015, 0.15])


def test_defaults_are_those_of_the_kernel():
    problem = circulation.problem("12p")
    row = pack(problem.default[np.newaxis], PATIENT, "12p")[0]
    np.testing.assert_allclose(row, kernel.DEFAULTS, rtol=1e-14)


def test_the_version_follows_kernel_tables_and_model():
    sources = kernel.__file__, parameters.__file__, inputs.__file__, model.__file__
    version = f"{model.VERSION}-{source_version(*sources)}"
    assert {circulation.problem(setup).version for setup in circulation.SETUPS} == {version}
    stiff = circulation.problem("12p", cosine_shape=1.0)
    assert stiff.version.startswith(f"{version}-")
    assert stiff.version == circulation.problem("6p", cosine_shape=1.0).version


def test_outputs_do_not_depend_on_how_many_rows_are_asked_for():
    for setup in circulation.SETUPS:
        problem = circulation.problem(setup)
        x = problem.draw(np.random.default_rng(1), 5)
        y = problem.simulate(x, PATIENT)
        assert y.flags.c_contiguous  # a sum over objectives has one order
        single = [problem.simulate(row[np.newaxis], PATIENT)[0] for row in x]
        np.testing.assert_array_equal(y, single, strict=True)


def test_objectives_are_the_outputs_of_their_names():
    problem = circulation.problem("12p")
    x = problem.draw(np.random.default_rng(2), 4)
    runs, y = circulation.run(x, PATIENT, "12p"), problem.simulate(x, PATIENT)
    for i, objective in enumerate(problem.objectives):
        np.testing.assert_array_equal(
            y[:, i], runs.outputs[:, kernel.OUTPUTS.index(objective.name)]
        )


def test_runs_over_the_whole_domain_find_their_periodic_state():
    # Of 8000 random points none failed; 13 % pump less than 10 mL or 20 mmHg (6p: 7 %).
    problem = circulation.problem("12p")
    x = problem.draw(np.random.default_rng(3), 600)
    runs = circulation.run(x, PATIENT, "12p")
    assert not runs.failed.any()
    assert runs.beats.max() < 100
    assert np.mean((runs.status & kernel.LOW_OUTPUT) > 0) == pytest.approx(0.13, abs=0.04)


def test_every_corner_of_the_further_parameters_runs():
    # the clipped walks and the bounded methods end on corners, RV of equal elastances among them
    problem = circulation.problem("12p")
    corners = np.array(list(product(*zip(problem.lower[6:], problem.upper[6:], strict=True))))
    x = np.concatenate([np.tile(problem.default[:6], (len(corners), 1)), corners], axis=1)
    for rate in (50, 120):
        runs = circulation.run(x, Patient("P", {}, {"heart_rate": rate}), "12p")
        assert not runs.failed.any()
        assert np.isfinite(runs.outputs).all()


def test_volume_is_kept_and_both_ventricles_eject_the_same():
    problem = circulation.problem("12p", circulation.Numerics(tolerance=1e-6))
    rng = np.random.default_rng(4)
    x = problem.default + 0.2 * (problem.draw(rng, 6) - problem.default)
    for row in x:
        curves = circulation.curves(row, PATIENT, "12p")
        volumes = sum(values for name, values in curves.items() if name.endswith("_volume"))
        np.testing.assert_allclose(volumes, row[0] + 275, rtol=1e-12)
        for name in ("mitral", "aortic", "tricuspid", "pulmonary"):
            assert curves[f"{name}_flow"].min() == 0  # no valve leaks
    y = dict(zip((o.name for o in problem.objectives), problem.simulate(x, PATIENT).T, strict=True))
    np.testing.assert_allclose(y["lv_edv"] - y["lv_esv"], y["rv_edv"] - y["rv_esv"], atol=1e-3)


def moved(name: str, factor: float) -> dict[str, float]:
    """Change of each objective when one parameter is multiplied, from a failing heart."""
    problem = circulation.problem("12p")
    x = np.tile(problem.default, (2, 1))
    x[:, [0, 1]] = 600, 0.8
    x[1, [p.name for p in problem.parameters].index(name)] *= factor
    y = problem.simulate(x, PATIENT)
    return dict(zip((o.name for o in problem.objectives), y[1] - y[0], strict=True))


def test_further_parameters_act_as_they_should():
    resistance = moved("pulmonary_resistance", 3.0)
    assert resistance["pulmonary_mean"] > 5
    assert resistance["la_mean"] < 0
    compliance = moved("pulmonary_compliance", 2.0)
    assert compliance["pulmonary_systolic"] - compliance["pulmonary_diastolic"] < -3
    stiff = moved("lv_emin", 2.0)  # a stiff LV dams the blood up in the lungs
    assert stiff["la_mean"] > 2
    assert stiff["lv_edv"] < -10
    strong = moved("rv_emax", 2.0)
    assert strong["rv_esv"] < -10
    assert strong["pulmonary_mean"] > 0
    assert moved("rv_emin", 2.0)["rv_edv"] < -5


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        (6, 0.01, "row 1: rv_emax is 0.01 mmHg/mL, expected at least the minimum elastance 0.05"),
        (7, 19.0, r"row 1: pulmonary_resistance is 19 g/\(cm⁴ s\), expected above the 20 of"),
        (8, 0.0, "row 1: pulmonary_compliance is 0 1e-3 cm⁴ s²/g, expected a positive number"),
        (9, np.nan, "row 1: rv_time_to_emax is nan ms, expected a positive number"),
        (10, 3.0, "row 1: lv_emax is 2.4 mmHg/mL, expected above the minimum elastance 3"),
        (11, -1.0, "row 1: rv_emin is -1 mmHg/mL, expected a positive number"),
        (2, -5.0, "row 1: aortic_resistance is -5 .*positive"),
    ],
)
def test_impossible_parameters_are_refused(column, value, message):
    problem = circulation.problem("12p")
    x = np.tile(problem.default, (2, 1))
    x[1, column] = value
    with pytest.raises(ValueError, match=message):
        problem.simulate(x, PATIENT)


def test_a_constant_that_leaves_part_of_the_domain_without_a_model_is_refused():
    with pytest.raises(ValueError, match=r"rv_emax is 0.15 mmHg/mL, expected at least .* 0.2"):
        circulation.problem("9p", rv_emin=0.2)
    with pytest.raises(ValueError, match=r"pulmonary_resistance is 40 .*, expected above the 53.3"):
        circulation.problem("12p", pulmonary_characteristic_resistance=0.04)
    with pytest.raises(ValueError, match="lv_emin"):
        circulation.problem("9p", lv_emin=0.2)
    with pytest.raises(ValueError, match=r"x has shape \(1, 6\), expected \(n, 12\) for 12p"):
        circulation.problem("12p").simulate(np.ones((1, 6)), PATIENT)


def test_failed_runs_are_rows_of_nan():
    hasty = circulation.problem("12p", circulation.Numerics(max_beats=2))
    y = hasty.simulate(hasty.default[np.newaxis], PATIENT)
    assert y.shape == (1, 12)
    assert np.isnan(y).all()
    with pytest.raises(ValueError, match="'P1': no periodic state"):
        circulation.curves(hasty.default, PATIENT, "12p", circulation.Numerics(max_beats=2))


def test_truth_of_the_cohort_in_twelve_parameters(patients):
    problem, true = circulation.problem("12p"), truth.truth()
    names = [p.name for p in problem.parameters]
    x = np.array([[true[patient.name][name] for name in names] for patient in patients])
    inside = (x[:, 6:] >= problem.lower[6:]) & (x[:, 6:] <= problem.upper[6:])
    assert inside.all()
    # back in the kernel's units these are the generator's constants
    constants = {row["patient"]: row for row in truth._rows()}
    for patient, row in zip(patients, pack(x, PATIENT, "12p"), strict=True):
        for p in parameters.FURTHER_PARAMETERS:
            name = p.name
            expected = float(constants[patient.name][f"constant:{name}"])
            offset = constants[patient.name]["constant:pulmonary_characteristic_resistance"]
            if name == "pulmonary_resistance":  # the generator's root differs, the total agrees
                expected += float(offset) - 0.015
            assert row[kernel.NAMES.index(name)] == pytest.approx(expected, rel=1e-5)
    # other constants than the model's: most patients miss a tolerance at their own truth
    misfits = [
        problem.misfit(problem.simulate(row[np.newaxis], patient)[0], problem.measured(patient))
        for row, patient in zip(x, patients, strict=True)
    ]
    assert problem.is_solved(np.array(misfits)).sum() == 10  # of 56; 12 in the setup 6p
    right = np.abs(np.array(misfits)[:, 6:]) / problem.tolerance[6:]
    assert np.sqrt(np.mean(right**2)) < 1.0


def test_the_command_line_offers_every_setup_and_the_studies_keep_their_sizes():
    assert set(CIRCULATION.n_states) == set(circulation.SETUPS)
    for setup, n in circulation.SETUPS.items():
        assert CIRCULATION.problem(setup).name == f"circulation-{setup}"
        assert CIRCULATION.n_states[setup] >= 2 * n + 1  # success and its neighbours
    assert N_STATES == {"2p": 70, "3p": 150, "5p": 400, "6p": 600}
