"""What a user holds in the hand: problems, walks, agents and fits as objects."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from analytic import linear

from vitolab.agent import ContinuousVito, Vito
from vitolab.exploration import explore
from vitolab.files import read_arrays, write_arrays
from vitolab.fit import Fit, Personalizer, StopReason, Trace
from vitolab.methods import learn
from vitolab.problem import Parameter, Patient
from vitolab.reference import BobyqaSimple, LeastSquares, NelderMead
from vitolab.settings import Settings
from vitolab.store.tables import KEYS, trace_table
from vitolab.trajectories import Trajectories


@pytest.fixture(scope="module")
def walks(linear_problem, linear_patients) -> Trajectories:
    return explore(linear_problem, linear_patients, n_episodes=3, n_steps=40, seed=1)


@pytest.fixture(scope="module")
def vito(linear_problem, walks) -> Vito:
    return Vito.learn(linear_problem, walks, 40, seed=2)


@pytest.fixture(scope="module")
def methods(linear_problem, walks, vito) -> list[Personalizer]:
    """One of each kind; no optimiser among them ends by itself within 100 runs of FAR."""
    return [vito, ContinuousVito.learn(linear_problem, walks), NelderMead(linear_problem)]


#: Out of reach, so that agents spend all the runs that they are allowed.
FAR = Patient("far", {"u": 90.0, "w": -90.0}, {"offset": 0.0})


def test_a_personalisation_may_take_fifty_runs_per_parameter(linear_problem, walks):
    three = replace(
        linear_problem,
        parameters=(*linear_problem.parameters, Parameter("k", "k", "", -1.0, 1.0, 0.0, 0.01)),
    )
    longer = replace(walks, x=np.concatenate([walks.x, 0.0 * walks.x[..., :1]], axis=-1))
    for problem, train in ((linear_problem, walks), (three, longer)):
        allowed = 50 * problem.n_parameters
        starts = problem.default[np.newaxis]
        for agent in (Vito.learn(problem, train, 40), ContinuousVito.learn(problem, train)):
            assert agent.personalize(FAR).n_runs == allowed
            assert agent.personalize_from(FAR, starts)[0].n_runs == allowed
        optimiser = LeastSquares(problem, multistart=True)
        assert optimiser.personalize(FAR).n_runs == allowed
        assert optimiser.personalize_from(FAR, starts)[0].n_runs == allowed
    with pytest.raises(ValueError, match="max_runs is 0, expected at least 1"):
        BobyqaSimple(linear_problem).personalize(FAR, max_runs=0)


def test_a_fit_is_a_table_with_the_columns_of_stored_traces(methods, linear_problem):
    label = dict.fromkeys(KEYS, None)
    for method in methods:
        fit = method.personalize(FAR, max_runs=12)
        frame, stored = fit.frame(), trace_table(linear_problem, fit, label)
        assert list(frame)[:10] == [
            *("iteration", "event", "action", "state"),
            *("x:a", "x:b", "y:u", "y:w", "c:u", "c:w"),
        ]
        assert list(stored) == [*KEYS, *frame]
        pd.testing.assert_frame_equal(stored[list(frame)], frame)
        assert len(frame) == fit.n_runs == 12
        np.testing.assert_array_equal(frame[["x:a", "x:b"]], fit.trace.x)
        z = linear_problem.measured(FAR)
        np.testing.assert_allclose(frame[["y:u", "y:w"]] - z, frame[["c:u", "c:w"]])


def test_failed_runs_are_named_in_the_table_of_a_fit(obstructed_problem, obstructed_patients):
    starts = np.array([[0.0, 0.0]])  # where the model fails
    fit = NelderMead(obstructed_problem).personalize_from(obstructed_patients[0], starts)[0]
    frame = fit.frame()
    assert (frame["event"] == "failed").sum() == fit.n_failed > 0
    assert frame.loc[frame["event"] == "failed", "y:u"].isna().all()


def rewritten(path: Path, **arrays: Any) -> None:
    """Replace some arrays of a file; None removes one."""
    known = read_arrays(path) | arrays
    write_arrays(path, {name: value for name, value in known.items() if value is not None})


def described(path: Path, **fields: Any) -> None:
    """Replace some fields of the description of a file."""
    text = json.loads(str(read_arrays(path)["description"])) | fields
    rewritten(path, description=np.array(json.dumps(text)))


def test_fits_come_back_from_their_files_bit_for_bit(methods, linear_problem, tmp_path):
    fits = [m.personalize(FAR, max_runs=9) for m in methods]
    nothing = Trace(*(np.empty((0, 2)),) * 3, *(np.empty(0, dtype=np.int64),) * 3)
    fits.append(Fit.from_trace(linear_problem, nothing, StopReason.ERROR))
    for fit in fits:
        fit.save(tmp_path / "fit.npz")
        loaded = Fit.load(tmp_path / "fit.npz")
        assert loaded == fit
        assert loaded.failures == fit.failures
        for name, array in vars(fit.trace).items():
            if isinstance(array, np.ndarray):
                assert array.tobytes() == getattr(loaded.trace, name).tobytes()
        assert [p.name for p in tmp_path.iterdir()] == ["fit.npz"]


def test_walks_come_back_from_their_file_bit_for_bit(
    walks, obstructed_problem, obstructed_patients, tmp_path
):
    failing = explore(obstructed_problem, obstructed_patients[:3], 2, 20, seed=1)
    assert failing.failures
    for explored in (walks, failing, failing.without("P1")):
        explored.save(tmp_path / "walks.npz")
        loaded = Trajectories.load(tmp_path / "walks.npz")
        assert loaded == explored
        assert loaded.failures == explored.failures
        assert loaded.y.tobytes() == explored.y.tobytes()
        assert loaded.length.dtype == explored.length.dtype


def test_a_faulty_file_of_a_fit_or_of_walks_is_refused_in_one_sentence(vito, walks, tmp_path):
    fit_file, walks_file = tmp_path / "fit.npz", tmp_path / "walks.npz"
    fit = vito.personalize(FAR, max_runs=5)

    def refused(load, path, words):
        with pytest.raises(ValueError, match=words) as caught:
            load(path)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)

    faults = [
        (lambda p: p.write_bytes(b"x"), "is damaged, expected arrays"),
        (lambda p: p.write_bytes(p.read_bytes()[:-30]), "is damaged, expected arrays"),
        (lambda p: rewritten(p, description=None), "description is missing"),
        (lambda p: rewritten(p, description=np.array("[1]")), "expected fields by name"),
        (lambda p: described(p, format=9), "format is 9, expected 1"),
        (lambda p: described(p, kind="Vito"), "kind is 'Vito', expected"),
        (lambda p: rewritten(p, more=np.zeros(2)), "more is not expected"),
    ]
    for damage, words in faults:
        for thing, path, load in (
            (fit, fit_file, Fit.load),
            (walks, walks_file, Trajectories.load),
        ):
            thing.save(path)
            damage(path)
            refused(load, path, words)
    for damage, words in [
        (lambda p: described(p, stop_reason="tired"), "stop_reason is 'tired', expected one of"),
        (lambda p: described(p, parameters=["a", "a"]), "parameters is .*, expected distinct"),
        (
            lambda p: rewritten(p, **{"trace/y": np.zeros((4, 2))}),
            "trace/y holds 4 rows of 2 float64 values, expected 5 rows of 2",
        ),
        (lambda p: rewritten(p, **{"trace/event": np.full(5, 7)}), "trace/event holds 7"),
        (lambda p: rewritten(p, **{"trace/state": None}), "trace/state is missing"),
    ]:
        fit.save(fit_file)
        damage(fit_file)
        refused(Fit.load, fit_file, words)
    for damage, words in [
        (
            lambda p: rewritten(p, x=walks.x[:, :-1]),
            "holds .* float64 values, expected .* numbers",
        ),
        (
            lambda p: rewritten(p, x=walks.x.astype(np.float32)),
            "x has type float32, expected float64",
        ),
        (lambda p: rewritten(p, patient=walks.patient - 1), "patient holds -1"),
        (lambda p: rewritten(p, patient=walks.patient[::-1]), "patient must rise"),
        (
            lambda p: rewritten(p, length=walks.length + 1),
            "length holds 41 in row 1, expected from 0 to 40",
        ),
        (lambda p: described(p, causes=[["odd", "", 0]]), "causes hold .*, expected kind"),
        (lambda p: described(p, patients="P0"), "patients is 'P0', expected list"),
    ]:
        walks.save(walks_file)
        damage(walks_file)
        refused(Trajectories.load, walks_file, words)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        Fit.load(tmp_path / "nowhere")


def test_a_save_that_fails_leaves_the_earlier_file(walks, tmp_path, monkeypatch):
    path = tmp_path / "walks.npz"
    walks.save(path)
    monkeypatch.setattr(np, "savez_compressed", Full())
    with pytest.raises(OSError, match="No space left"):
        walks.without("P0").save(path)
    assert Trajectories.load(path) == walks
    assert list(tmp_path.iterdir()) == [path]


class Full:
    """A disk on which nothing fits any more."""

    def __call__(self, file: Any, **_arrays: Any) -> None:
        file.write(b"half")
        raise OSError(28, "No space left on device")


def shown(problem, patients, walks, vito) -> list[Any]:
    """One of each thing that a user holds."""
    return [
        *(problem, patients[0], walks, vito.personalize(patients[0], max_runs=5)),
        *(vito, vito.states, vito.mdp, vito.policy, vito.initializer),
        *(ContinuousVito.learn(problem, walks), NelderMead(problem), LeastSquares(problem)),
        BobyqaSimple(problem),
    ]


def test_whatever_a_user_holds_prints_on_one_screen(linear_problem, linear_patients, walks, vito):
    large = replace(
        linear_problem,
        parameters=tuple(Parameter(f"p{i}", "", "", 0.0, 1.0, 0.5, 0.01) for i in range(40)),
    )
    for thing in (*shown(linear_problem, linear_patients, walks, vito), large):
        text, html = repr(thing), thing._repr_html_()
        assert text.startswith(type(thing).__name__)
        assert len(text.splitlines()) <= 24
        assert max(map(len, text.splitlines())) <= 100
        assert len(html) < 6000
        assert html.count("<tr>") == len(text.splitlines()) - 1
        ElementTree.fromstring(html)
    assert "'linear'" in repr(vito)
    assert "<script>" not in Patient("<script>", {})._repr_html_()


def test_things_compare_by_their_content_and_never_raise(
    linear_problem, linear_patients, walks, vito
):
    ours = shown(linear_problem, linear_patients, walks, vito)
    again_walks = explore(linear_problem, linear_patients, n_episodes=3, n_steps=40, seed=1)
    again = Vito.learn(linear_problem, again_walks, 40, seed=2)
    others = shown(replace(linear_problem), linear_patients, again_walks, again)
    for i, (a, b) in enumerate(zip(ours, others, strict=True)):
        assert a is b or a == b
        assert hash(a) == hash(b)
        assert [j for j, other in enumerate(others) if a == other] == [i]
    assert walks != walks.without("P0")
    assert vito != replace(vito, restart=False)
    assert linear_problem != replace(linear_problem, version="2")
    assert linear_patients[0] != linear_patients[1]
    scan = {"scan": np.arange(9.0)}
    assert Patient("A", {"u": 1.0}, scan) == Patient("A", {"u": 1.0}, {"scan": np.arange(9.0)})
    holding = [replace(linear_problem, simulate=Holding(np.arange(3.0) + i)) for i in (0, 1)]
    assert holding[0] != holding[1]
    assert len({*holding, linear_problem}) == 3


@dataclass(frozen=True)
class Holding:
    """A model that holds arrays, which neither compare nor hash."""

    offsets: np.ndarray

    def __call__(self, x, patient):
        return linear(x, patient)


def test_a_broken_fit_has_no_number_that_differs_from_itself(linear_problem):
    nothing = Trace(*(np.empty((0, 2)),) * 3, *(np.empty(0, dtype=np.int64),) * 3)
    one, two = (Fit.from_trace(linear_problem, nothing, StopReason.ERROR) for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)


def test_one_call_with_one_settings_object_learns_every_agent(linear_problem, walks):
    settings = Settings(n_states=40, n_replays=1, discount=0.9, initialize=False)
    for agent in (Vito, ContinuousVito):
        whole = agent.learn(linear_problem, walks, settings=settings, seed=3)
        single = agent.learn(
            *(linear_problem, walks, 40),
            seed=3,
            n_replays=1,
            discount=0.9,
            initialize=False,
        )
        assert whole == single
        with pytest.raises(TypeError, match="learn: n_stats is no setting, expected some of n_st"):
            agent.learn(linear_problem, walks, n_states=40, n_stats=3)
        with pytest.raises(TypeError, match="learn: settings is 40, expected Settings"):
            agent.learn(linear_problem, walks, settings=40)
    vito = Vito.learn(linear_problem, walks, settings=settings, discount=0.5, restart=False)
    assert vito.mdp.discount == 0.5
    assert vito.initializer is None
    assert not vito.restart
    assert Vito.learn(linear_problem, walks, 30, settings=settings).states.n_states == 30
    with pytest.raises(ValueError, match="n_states is missing, expected a number of states"):
        Vito.learn(linear_problem, walks, seed=0)


def test_an_agent_with_continuous_actions_ignores_settings_of_states(linear_problem, walks):
    plain = ContinuousVito.learn(linear_problem, walks)
    assert ContinuousVito.learn(linear_problem, walks, n_states=7, epsilon=0.1) == plain


def test_the_table_of_methods_learns_with_the_settings_it_is_given(linear_problem, walks):
    settings = Settings(n_states=40, discount=0.9)
    agents = learn(["vito", "vito-hindsight"], linear_problem, walks, 3, settings)
    assert agents["vito"] == Vito.learn(linear_problem, walks, 40, 3, discount=0.9)
    replayed = Vito.learn(linear_problem, walks, 40, 3, discount=0.9, n_replays=5)
    assert agents["vito-hindsight"] == replayed
