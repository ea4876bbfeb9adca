from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vitolab.problem import Objective, Parameter, Patient, Problem


def two_parameters(border="clip", multipliers=(1, 10, 100)):
    return Problem(
        name="plain",
        version="1",
        parameters=(
            Parameter("a", "first", "mL", -1.0, 1.0, 0.0, 0.01),
            Parameter("b", "second", "ms", 100.0, 600.0, 300.0, 2.5),
        ),
        objectives=(
            Objective("u", "u", "mmHg", 10.0),
            Objective("phi", "axis", "deg", 10.0, kind="angle"),
        ),
        simulate=lambda x, patient: x,
        multipliers=multipliers,
        border=border,
    )


def test_each_action_changes_one_parameter_by_a_multiple_of_its_step():
    actions = two_parameters().actions
    assert actions.shape == (12, 2)
    assert ((actions != 0).sum(axis=1) == 1).all()
    assert sorted(actions[:, 0][actions[:, 0] != 0]) == [-100, -10, -1, 1, 10, 100]
    assert two_parameters(multipliers=(1, 10, 100, 500)).n_actions == 16


def test_action_in_words():
    problem = two_parameters()
    words = [problem.describe_action(a) for a in range(problem.n_actions)]
    assert "first +10 steps" in words
    assert "second -1 step" in words


@given(y=st.floats(-1e4, 1e4), z=st.floats(-1e4, 1e4), turns=st.integers(-3, 3))
@settings(deadline=None, max_examples=200)
def test_angles_are_wrapped_and_do_not_feel_full_turns(y, z, turns):
    problem = two_parameters()
    c = problem.misfit([0.0, y], [0.0, z])[1]
    assert -180 < c <= 180
    turned = problem.misfit([0.0, y + 360 * turns], [0.0, z])[1]
    distance = abs(c - turned)
    assert min(distance, 360 - distance) < 1e-6


def test_misfit_is_output_minus_measurement():
    c = two_parameters().misfit([[3.0, 170.0]], [1.0, -170.0])
    assert c.tolist() == [[2.0, -20.0]]


def test_success_is_strictly_within_every_tolerance():
    problem = two_parameters()
    c = np.array([[9.9, -9.9], [10.0, 0.0], [0.0, np.nan], [0.0, 0.0]])
    assert problem.is_solved(c).tolist() == [True, False, False, True]


def test_only_what_counts_as_success_is_confirmed():
    asked = []

    def confirm(x, patient):
        asked.append(x)
        return x + np.array([100.0, 20.0])

    plain = two_parameters()
    problem = replace(plain, confirm=confirm)
    x = np.array([[9.0, 0.0], [11.0, 0.0], [np.nan, 0.0], [0.0, 5.0]])
    patient, z = Patient("P", {"u": 0.0, "phi": 0.0}), np.zeros(2)
    assert np.array_equal(
        problem.run(x, patient, confirm=z).y,
        [[109.0, 20.0], [11.0, 0.0], [np.nan, 0.0], [100.0, 25.0]],
        equal_nan=True,
    )
    assert np.array_equal(asked, [x[[0, 3]]])
    problem.run(x[1:2], patient, confirm=z)
    assert len(asked) == 1
    assert np.array_equal(plain.run(x, patient, confirm=z).y, x, equal_nan=True)


def test_a_confirmed_problem_says_so_and_no_other_changes():
    plain = two_parameters().describe()
    confirmed = replace(two_parameters(), confirm=lambda x, patient: x).describe()
    assert "confirmed" not in plain
    assert confirmed == plain | {"confirmed": True}


@given(seed=st.integers(0, 10_000), border=st.sampled_from(["clip", "reject"]))
@settings(deadline=None, max_examples=60)
def test_walks_stay_in_the_domain_and_on_their_grid(seed, border):
    problem = two_parameters(border)
    rng = np.random.default_rng(seed)
    start = problem.draw(rng, 5)
    count = np.zeros((5, 2), dtype=np.int64)
    for _ in range(60):
        count = problem.move(start, count, rng.integers(problem.n_actions, size=5))
        x = problem.at(start, count)
        assert (x >= problem.lower).all()
        assert (x <= problem.upper).all()
        on_grid = np.isclose(x, start + count * problem.step)
        on_border = (x == problem.lower) | (x == problem.upper)
        assert (on_grid | on_border).all()
        if border == "reject":
            assert on_grid.all()


def test_a_move_beyond_the_border_ends_on_it_is_not_made_or_leaves():
    start = np.array([[0.995, 300.0]])
    zero = np.zeros((1, 2), dtype=np.int64)
    up = [int(np.flatnonzero((two_parameters().actions == [10, 0]).all(axis=1))[0])]
    ends = {}
    for border in ("clip", "reject", "free"):
        problem = two_parameters(border)
        ends[border] = problem.at(start, problem.move(start, zero, up))[0, 0]
    assert ends == {"clip": 1.0, "reject": 0.995, "free": pytest.approx(1.095)}


@given(actions=st.lists(st.integers(0, 11), max_size=40))
@settings(deadline=None, max_examples=100)
def test_a_free_walk_and_its_reverse_return_to_the_start_exactly(actions):
    problem = two_parameters("free")
    start = np.array([[0.1, 333.3]])
    count = np.zeros((1, 2), dtype=np.int64)
    opposite = {
        a: int(np.flatnonzero((problem.actions == -problem.actions[a]).all(axis=1))[0])
        for a in range(12)
    }
    for a in actions + [opposite[a] for a in reversed(actions)]:
        count = problem.move(start, count, [a])
    assert np.array_equal(problem.at(start, count), start)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Parameter("r", "r", "", 2.0, 1.0, 1.5, 0.1), "'r': lower is 2"),
        (lambda: Parameter("r", "r", "", 0.0, 1.0, 1.5, 0.1), "default is 1.5"),
        (lambda: Parameter("r", "r", "", 0.0, 1.0, 0.5, 0.0), "step is 0"),
        (lambda: Parameter("r", "r", "", 0.0, 1.0, 0.5, 0.1, "log"), "above 0 on a log scale"),
        (lambda: Parameter("r", "r", "", 0.0, np.inf, 0.5, 0.1), "expected finite numbers"),
        (lambda: Objective("u", "u", "", -1.0), "tolerance is -1"),
        (lambda: Patient("", {}), "name is empty"),
        (lambda: Patient("P", {"u": float("nan")}), "'P': u is nan"),
        (lambda: two_parameters(border="bounce"), "border is 'bounce'"),
        (lambda: two_parameters(multipliers=(10, 1)), "multipliers are (10, 1)"),
        (lambda: two_parameters().measured(Patient("P", {"u": 1.0})), "phi is not measured"),
    ],
)
def test_bad_values_are_named(make, says):
    with pytest.raises(ValueError, match=r".") as caught:
        make()
    assert says in str(caught.value)
