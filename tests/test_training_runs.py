"""The number of runs that a method learned from: all that were made, failed ones too."""

from __future__ import annotations

import numpy as np
from joblib import parallel_config
from part_store import Memory

from vitolab.experience import Experience
from vitolab.exploration import explore
from vitolab.validation import from_nothing
from vitolab.validation.continuing import Continuing
from vitolab.validation.rounds import one_after_another


def test_failed_runs_of_walks_and_of_patients_count(obstructed_problem, obstructed_patients):
    patient, *others = obstructed_patients[:4]
    walks = explore(obstructed_problem, others, n_episodes=10, n_steps=3, seed=0)
    known = Experience.learn(obstructed_problem, walks)
    assert len(known.u) < known.n_runs == walks.n_runs == 3 * 10 * 4
    nothing = Continuing(obstructed_problem, "quadratic", Experience.none(obstructed_problem))
    fit = nothing.personalize(patient)
    more = known.after([(patient, fit)])
    assert more.n_runs == known.n_runs + fit.n_runs
    left = more.without(others[1].name)
    assert left.names == (others[0].name, others[2].name, patient.name)
    assert left.n_runs == more.n_runs - 40
    answered = np.isfinite(fit.trace.y).all(axis=1).sum()
    assert np.bincount(left.patient).tolist()[2] == answered


def test_one_after_another_stores_how_many_were_made(obstructed_problem, obstructed_patients):
    run, patients = Memory(), obstructed_patients[:5]
    begun = Continuing(obstructed_problem, "vito-continuous", Experience.none(obstructed_problem))
    run.write_failures = lambda key, failures: None
    one_after_another(run, "s", begun, patients, max_runs=30)
    rows = run.tables()[0].sort_values("order")
    assert rows["n_failed"].sum() > 0
    assert list(rows["n_training_runs"]) == [0, *np.cumsum(rows["n_runs"])[:-1]]


def test_orders_from_nothing_store_how_many_were_made(obstructed_problem, obstructed_patients):
    run = Memory()
    with parallel_config(backend="threading"):  # worker processes could not import the model
        from_nothing(
            run,
            {"s": obstructed_problem},
            obstructed_patients[:4],
            methods=["vito-continuous", "least-squares"],
            n_orders=1,
            max_runs=30,
        )
    rows = run.tables()[0].sort_values("position")
    assert rows["n_failed"].sum() > 0
    learned = rows[rows["method"] == "vito-continuous"]
    assert list(learned["n_training_runs"]) == [0, *np.cumsum(learned["n_runs"])[:-1]]
    assert rows.loc[rows["method"] == "least-squares", "n_training_runs"].isna().all()
