"""The page Patient without a server: each decision of a fit as a sentence."""

from __future__ import annotations

import shutil

import numpy as np
import pandas as pd
import patient_pages
from patient_pages import opened, replace_table, words

from vitolab import explain
from vitolab.agent import ContinuousVito
from vitolab.exploration import explore
from vitolab.fit import REASONS
from vitolab.mdp import Policy
from vitolab.states import StateSpace
from vitolab.store.policies import Knowledge
from vitolab.store.tables import trace_table

learned = patient_pages.learned
fitted = patient_pages.fitted
store = patient_pages.store


def test_each_decision_is_a_sentence(learned, fitted):
    """Actions are named as the problem names them; the last run says it solved."""
    problem, _, vito = learned
    _, key, fit = next(row for row in fitted if row[1]["method"] == "vito" and row[2].solved)
    label = {"setup": "2p", "patient": "C01", "seed": 0} | key
    trace = trace_table(problem, fit, label)
    known = Knowledge(vito.states, vito.policy, vito.mdp.visits)
    told = explain.sentences(trace, problem, known)
    assert told[0].startswith("Run 1: the start")
    assert told[-1].endswith("solved.")
    for k, action in enumerate(fit.trace.action):
        if action >= 0:
            named = problem.describe_action(int(action)).replace("-", "−")
            assert told[k].startswith(f"Run {k + 1}: {named}, because in state")
            state = int(vito.states.quantize(fit.trace.misfits[k - 1][None])[0])
            assert f"state {state} " in told[k]
    assert explain.state_words(trace).endswith("0 (success)")
    assert "discarded" not in " ".join(told)
    # a trace of an earlier version tells no reasons: those of a stored policy stand in
    old = trace[[name for name in trace if not name.startswith("why:")]]
    again = explain.sentences(old, problem, known)
    for one, other in zip(told, again, strict=True):
        assert one.partition(", no action")[0].partition(" (")[0][:40] == other[:40]
    unexplained = explain.sentences(old, problem, None)
    assert not any("because in state" in words for words in unexplained)


def test_reasons_are_of_the_agent_that_acted_not_of_the_stored_policy(learned, fitted):
    """An agent that left another patient out has other states and values."""
    problem, _, vito = learned
    _, key, fit = next(row for row in fitted if row[1]["method"] == "vito")
    trace = trace_table(problem, fit, {"setup": "2p", "patient": "C01", "seed": 0} | key)
    other = Knowledge(
        StateSpace(vito.states.centroids[:3], problem.tolerance),
        Policy(-vito.policy.q[:3], vito.policy.v[:3]),
        vito.mdp.visits[:3],
    )
    told = explain.sentences(trace, problem, other)
    assert told == explain.sentences(trace, problem, None)
    for k, action in enumerate(fit.trace.action):
        if action >= 0:
            state = fit.trace.state[k - 1]
            why = dict(zip(REASONS, fit.trace.reasons[k], strict=True))
            assert why["q"] == vito.policy.q[state, action]
            assert why["q_best"] == vito.policy.v[state] == vito.policy.q[state].max()
            assert why["chance"] == vito.policy.probabilities[state, action] > 0
            assert why["seen"] == vito.mdp.visits[state, action]
            assert f"{abs(why['q']):.2f}" in told[k]


def test_a_run_of_an_earlier_version_says_whose_reasons_are_told(tmp_path, store):
    shutil.copytree(store, tmp_path / "copy")
    run = next((tmp_path / "copy" / "wbc-convergence").glob("2*"))
    assert not opened(store, method="vito")[0]._film.explained
    traces = pd.read_parquet(run / "traces.parquet")
    replace_table(run, "traces", traces[[n for n in traces if not n.startswith("why:")]])
    view, *_ = opened(tmp_path / "copy", method="vito")
    assert view._film.explained
    assert "of an earlier version" in words(view.outcome.object)


def test_a_reason_tells_the_best_and_the_others(learned):
    """The best action is called the best, another is compared with it, a discarded one said so."""
    problem, _, _ = learned
    c = np.array([100.0, 0.0])
    states = StateSpace(np.array([[0.0, 0.0], [100.0, 0.0]]), problem.tolerance)
    q = np.full((2, problem.n_actions), -9.0)
    q[1, 0], q[1, 1] = -2.0, -2.5
    known = Knowledge(states, Policy(q, q.max(axis=1)), np.ones_like(q, dtype=int))
    names = explain.action_names(problem)
    best = explain.because(known, c, 0, names)
    assert "no action there is worth more" in best
    assert f"next best: {names[1]}" in best
    second = explain.because(known, c, 1, names)
    assert f"the best action there is {names[0]}, worth −2.00" in second
    assert "one of 2 candidates" in second
    assert "discarded" in explain.because(known, c, 5, names)
    flat = Knowledge(states, Policy(np.zeros_like(q), q[:, 0]), known.visits)
    assert "equally good" in explain.because(flat, c, 3, names)


def test_restarts_say_why(learned):
    """After a failed run, and where an action would lead back."""
    problem, _, _ = learned
    trace = pd.DataFrame(
        {
            "event": ["start", "failed", "restart", "step", "restart"],
            "action": [-1, 3, -1, 2, -1],
            "state": [4, -1, 5, 6, 7],
            "c:lv_edv": [50.0, np.nan, 50.0, 40.0, 60.0],
            "c:lv_esv": [50.0, np.nan, 50.0, 40.0, 60.0],
        }
    )
    told = explain.sentences(trace, problem, None)
    assert "no answer" in told[1]
    assert "gave no answer in the run before" in told[2]
    assert "tried before" in told[4]
    assert explain.state_words(trace) == "4 → failed → ⟲ 5 → 6 → ⟲ 7"


def test_a_policy_of_another_shape_explains_nothing(learned):
    """Arrays that do not fit the problem are left alone."""
    problem, _, vito = learned
    arrays = {"2p/centroids": vito.states.centroids, "2p/v": vito.policy.v}
    arrays |= {"2p/q": vito.policy.q[:, :5], "2p/visits": vito.mdp.visits}
    assert explain.knowledge(arrays, "2p", problem) is None
    arrays["2p/q"] = vito.policy.q
    assert explain.knowledge(arrays, "2p, restart", problem) is not None
    assert explain.knowledge(arrays, "3p", problem) is None


def test_steps_on_a_local_model_tell_what_they_expected(learned):
    """The agent without states explains itself by predicted against found misfit."""
    problem, patients, _ = learned
    walks = explore(problem, patients, n_episodes=2, n_steps=1)
    agent = ContinuousVito.learn(problem, walks.without(patients[0].name))
    fit = agent.personalize(patients[0], max_runs=30)
    label = dict.fromkeys(("setup", "patient", "method"), "-")
    label |= dict.fromkeys(("n_states", "n_samples", "repeat", "start"))
    told = explain.sentences(trace_table(problem, fit, label), problem, None)
    assert len(told) == fit.n_runs
    found = np.abs(fit.misfits / problem.tolerance).max()
    assert "it expected a worst misfit of" in told[-1]
    assert f"and found {found:.2f}" in told[-1]
    assert "optimiser" not in " ".join(told)
    (fit,) = agent.personalize_from(patients[0], problem.default[np.newaxis], max_runs=30)
    given, *steps = explain.sentences(trace_table(problem, fit, label), problem, None)
    assert "expected" not in given, "nothing is expected of a start that was given"
    assert all("it expected a worst misfit of" in step for step in steps)


def test_numbers_get_a_wide_sign_and_words_keep_their_hyphens():
    told = explain.signed("End-diastolic volume: -4.2 mL, value -1, (-3), 1e-3 cm, 10-20")
    assert told == "End-diastolic volume: −4.2 mL, value −1, (−3), 1e-3 cm, 10-20"
