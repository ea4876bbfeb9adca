"""Equations of one's own: closed forms, periods, events, and what is refused."""

import numpy as np
import pytest

from vitolab.adapters import FunctionModel, OdeFunction
from vitolab.failures import Kind
from vitolab.problem import Objective, Parameter, Patient, Problem

PATIENT = Patient("P", {"u": 1.0}, {"heart_rate": 60.0})


# Differential equations with known solutions.


def test_decay_is_the_closed_form():
    model = OdeFunction(
        rhs=lambda t, s, x, patient: -x[0] * s,
        initial=lambda x, patient: [x[1]],
        features=lambda solution, x, patient: [solution.state[0, -1], len(solution.t)],
        duration=2.0,
        options={"rtol": 1e-9, "atol": 1e-12},
    )
    last, n = model(np.array([0.7, 3.0]), PATIENT)
    assert last == pytest.approx(3.0 * np.exp(-1.4), rel=1e-7)
    assert n == 201


def test_a_driven_system_is_followed_to_its_period():
    """s' = −k s + cos ωt settles to (k cos ωt + ω sin ωt) / (k² + ω²)."""
    k = 0.3

    def duration(x, patient):
        return 60.0 / patient.data["heart_rate"]

    def rhs(t, s, x, patient):
        return -k * s + np.cos(2 * np.pi * t / duration(x, patient))

    model = OdeFunction(
        rhs=rhs,
        initial=lambda x, patient: [100.0],
        features=lambda solution, x, patient: [solution.state[0, 0], solution.n_cycles],
        duration=duration,
        periodic=True,
        tolerance=1e-7,
        options={"rtol": 1e-9, "atol": 1e-11},
    )
    first, n_cycles = model(np.array([0.0]), PATIENT)
    omega = 2 * np.pi
    assert first == pytest.approx(k / (k**2 + omega**2), rel=1e-4)
    # the rest of the beginning fades by exp(−k) in each cycle
    assert n_cycles == pytest.approx(np.log(100 / 1e-7 / 0.16) / k, rel=0.15)
    with pytest.raises(ArithmeticError, match="not periodic after 3 cycles"):
        OdeFunction(**{**vars(model), "max_cycles": 3})(np.array([0.0]), PATIENT)


def test_events_are_found_and_end_a_cycle():
    """A ball thrown up with v returns after 2 v / g."""

    def ground(t, s, x, patient):
        return s[0]

    ground.terminal, ground.direction = True, -1
    model = OdeFunction(
        rhs=lambda t, s, x, patient: [s[1], -9.81],
        initial=lambda x, patient: [0.0, x[0]],
        features=lambda solution, x, patient: [
            solution.t[-1],
            solution.events[0][-1],
            solution.state[0, -1],
        ],
        duration=100.0,
        events=(ground,),
        options={"rtol": 1e-10, "atol": 1e-12},
    )
    ended, event, height = model(np.array([4.0]), PATIENT)
    assert ended == event == pytest.approx(8.0 / 9.81, rel=1e-9)
    assert height == pytest.approx(0.0, abs=1e-9)


def test_a_solver_that_gives_up_is_a_failed_run():
    model = FunctionModel(
        OdeFunction(
            rhs=lambda t, s, x, patient: s**2,  # infinite at t = 1
            initial=lambda x, patient: [1.0],
            features=lambda solution, x, patient: [solution.state[0, -1]],
            duration=2.0,
        ),
        ("u",),
        n_workers=0,
    )
    problem = Problem(
        "blow-up",
        "1",
        (Parameter("a", "a", "", 0, 1, 0.5, 0.1),),
        (Objective("u", "u", "", 1.0),),
        model,
    )
    runs = problem.run(np.array([[0.5]]), PATIENT)
    assert np.isnan(runs.y).all()
    assert runs.failures[0].kind is Kind.RAISED
    assert runs.failures[0].text.startswith("ArithmeticError: the solver gave up")


def cycle(**more):
    known = {
        "rhs": lambda t, s, x, patient: -s,
        "initial": lambda x, patient: [1.0],
        "features": lambda solution, x, patient: [solution.state[0, -1]],
        "duration": 1.0,
        "periodic": True,
    }
    return OdeFunction(**{**known, **more})


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"n_points": 1}, "n_points is 1, expected a whole number of at least 2"),
        ({"n_points": 2.5}, "n_points is 2.5"),
        ({"max_cycles": 0}, "max_cycles is 0, expected a whole number of at least 1"),
        ({"max_cycles": 1.5}, "max_cycles is 1.5"),
        ({"max_cycles": np.nan}, "max_cycles is nan"),
        ({"max_cycles": np.inf}, "max_cycles is inf"),
        ({"duration": -1.0}, "duration is -1.0, expected above 0"),
        ({"duration": np.inf}, "duration is inf"),
    ],
)
def test_equations_without_sense_are_refused(settings, says):
    with pytest.raises(ValueError, match=says):
        cycle(**settings)


def test_a_cycle_of_no_length_is_not_settled():
    def at_once(t, s, x, patient):
        return t

    at_once.terminal = True
    with pytest.raises(ArithmeticError, match="cycle 1 ends when it begins"):
        cycle(events=(at_once,))(np.zeros(1), PATIENT)
    for duration in (-1.0, 0.0, np.nan):
        with pytest.raises(ArithmeticError, match=r"duration is .*, expected above 0"):
            cycle(duration=lambda x, patient, d=duration: d)(np.zeros(1), PATIENT)
