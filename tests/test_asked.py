"""Arguments of the wrong type or size are refused in one sentence that names them."""

import numpy as np
import pytest

import vitolab as vl
from vitolab.guard import personalized
from vitolab.uncertainty import solution_set

BAD_COUNTS = [1.5, 300.0, True, "5", -1, 10**30, 10**4000, np.nan]
BAD_SEEDS = ["a", 1.5, True, None, -1, 2**63, 10**4000]


@pytest.fixture(scope="module")
def problem():
    return vl.models.rosenbrock.problem()


@pytest.fixture(scope="module")
def patients():
    return vl.models.rosenbrock.cohort(4)


@pytest.fixture(scope="module")
def walks(problem, patients):
    return vl.explore(problem, patients[1:], n_episodes=2, n_steps=20, seed=0)


@pytest.fixture(scope="module")
def personalizers(problem, walks):
    return (
        vl.Vito.learn(problem, walks, 12),
        vl.ContinuousVito.learn(problem, walks),
        vl.LeastSquares(problem),
    )


@pytest.mark.parametrize(
    "value", ["5", None, True, 1j, np.nan, [1.0], 10**400, 10**4000, np.array([1.0])]
)
def test_a_measurement_that_is_no_finite_number_is_refused(value):
    with pytest.raises(ValueError, match=r"patient 'P1': t1 is .*, expected a finite number"):
        vl.Patient("P1", {"t1": value})


def test_what_else_a_patient_is_made_of_is_checked():
    for arguments, says in (
        ((5, {"t1": 1.0}), "name is 5, expected text"),
        (("P1", [1.0]), r"measurements is \[1.0\], expected values by name"),
        (("P1", {"t1": 1.0}, "72"), "data is '72', expected values by name"),
    ):
        with pytest.raises(ValueError, match=says):
            vl.Patient(*arguments)


@pytest.mark.parametrize("value", [5, np.float32(5), np.int64(5), np.float64(5.0)])
def test_numbers_of_numpy_are_measurements(value):
    assert vl.Patient("P1", {"t1": value}).measurements["t1"] == 5


@pytest.mark.parametrize("value", [0, *BAD_COUNTS])
def test_a_number_of_runs_that_is_none_is_refused(problem, patients, personalizers, value):
    for personalizer in personalizers:
        with pytest.raises(ValueError, match=r"max_runs is .*, expected"):
            personalizer.personalize(patients[0], max_runs=value)
        with pytest.raises(ValueError, match=r"max_runs is .*, expected"):
            personalizer.personalize_from(patients[0], problem.default[np.newaxis], max_runs=value)


@pytest.mark.parametrize("value", BAD_SEEDS)
def test_a_seed_that_is_none_is_refused(problem, patients, walks, personalizers, value):
    says = "seed is .*, expected"
    for personalizer in personalizers:
        with pytest.raises(ValueError, match=says):
            personalizer.personalize(patients[0], max_runs=3, seed=value)
        with pytest.raises(ValueError, match=says):
            personalizer.personalize_from(patients[0], problem.default[np.newaxis], seed=value)
        # input that no method can work with, and no error of the method
        with pytest.raises(ValueError, match=says):
            personalized(problem, personalizer, patients[0], max_runs=3, seed=value)
    with pytest.raises(ValueError, match=says):
        vl.Vito.learn(problem, walks, 12, seed=value)
    with pytest.raises(ValueError, match=says):
        vl.explore(problem, patients, n_episodes=1, n_steps=5, seed=value)
    with pytest.raises(ValueError, match=says):
        solution_set(problem, personalizers[2], patients[0], n_starts=2, seed=value)


@pytest.mark.parametrize("value", BAD_COUNTS)
def test_other_counts_are_refused_alike(problem, patients, walks, personalizers, value):
    for name in ("n_episodes", "n_steps"):
        with pytest.raises(ValueError, match=rf"{name} is .*, expected"):
            vl.explore(problem, patients, **{name: value})
    with pytest.raises(ValueError, match=r"n_states is .*, expected"):
        vl.Vito.learn(problem, walks, value)
    with pytest.raises(ValueError, match=r"n_starts is .*, expected"):
        solution_set(problem, personalizers[2], patients[0], n_starts=value)
    if value != 10**30 and value != 10**4000:  # which are replays without end
        with pytest.raises(ValueError, match=r"n_replays is .*, expected"):
            vl.Vito.learn(problem, walks, 12, n_replays=value)


@pytest.mark.parametrize("seed", [0, np.int64(7), np.uint8(7), 2**63 - 1])
def test_whole_numbers_of_numpy_are_seeds_and_give_the_same_bits(patients, personalizers, seed):
    for personalizer in personalizers:
        one, other = (
            personalizer.personalize(patients[0], max_runs=count, seed=own)
            for count, own in ((5, int(seed)), (np.int32(5), seed))
        )
        assert np.array_equal(one.trace.x, other.trace.x)


@pytest.mark.parametrize("agent", [vl.Vito, vl.ContinuousVito])
@pytest.mark.parametrize("walks", [[], None, "walks", np.zeros((2, 3))])
def test_walks_of_another_type_are_refused(problem, agent, walks):
    if walks is None and agent is vl.ContinuousVito:
        pytest.skip("an agent that begins without walks")
    with pytest.raises(TypeError, match=r"walks is .*, expected Trajectories"):
        agent.learn(problem, walks, 12)


@pytest.mark.parametrize("agent", [vl.Vito, vl.ContinuousVito])
def test_walks_of_another_problem_are_refused(agent, walks):
    with pytest.raises(ValueError, match=r"walks: [xy] has \d columns, expected \d as problem"):
        agent.learn(vl.models.circulation.problem("6p"), walks, 12)
