"""Patients of a file one after the other: each makes the next one cheaper, nothing is explored."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import personalized
import pytest
from joblib import parallel_config
from personalized import TABLES, counted, in_order, stored

from vitolab.experience import Experience
from vitolab.failures import CannotRun
from vitolab.patients import InputError
from vitolab.personalization import what_it_took
from vitolab.problem import Patient
from vitolab.store import Run, latest, list_runs
from vitolab.store.claims import RunFailed
from vitolab.validation import rounds
from vitolab.validation.continuing import Continuing

go, run = personalized.go, personalized.run


def test_each_patient_is_personalised_by_what_the_patients_before_taught(
    go, linear_problem, linear_patients, tmp_path
):
    fitted = go(linear_patients[:5])
    begun = Continuing(linear_problem, "vito-continuous", Experience.none(linear_problem), seed=3)
    expected = [fit for fit, _ in begun.one_by_one(linear_patients[:5], max_runs=60)]
    assert list(fitted["n_runs"]) == [fit.n_runs for fit in expected]
    assert fitted[["a [mL]", "b [ms]"]].to_numpy().tolist() == [list(fit.x) for fit in expected]
    assert list(fitted["order"]) == list(fitted["round"]) == [1, 2, 3, 4, 5]
    assert list(fitted["training"])[:3] == [
        "nobody before",
        "1 patient before",
        "2 patients before",
    ]
    assert fitted["n_runs"][2:].max() < fitted["n_runs"][0]
    rows = latest(tmp_path / "results", "personalize").personalizations
    assert list(rows["n_training_runs"]) == list(np.cumsum([0, *fitted["n_runs"][:-1]]))


def test_nothing_is_explored_unless_asked(go, linear_patients, tmp_path, monkeypatch):
    monkeypatch.setattr("vitolab.validation.parts.explore", None)
    go(linear_patients[:2])
    assert not (tmp_path / "results" / "walks").exists()


def test_walks_that_are_asked_for_come_first_without_the_own_ones(run, linear_patients, tmp_path):
    asked = {"learn_as_you_go": True, "n_samples": 20}
    fitted = run(linear_patients[:3], linear_patients[2:], **asked)
    assert list(fitted["training"]) == [
        "8 patients and nobody before",
        "8 patients and 1 patient before",
        "7 patients and 2 patients before",
    ]
    assert fitted["solved"].all()
    rows = latest(tmp_path / "results", "personalize").personalizations
    assert rows["n_training_runs"][0] == 8 * 20 * 2
    assert set(rows["n_samples"]) == {20}


def test_a_file_that_was_interrupted_ends_in_the_same_bytes(
    go, linear_patients, tmp_path, monkeypatch
):
    file = linear_patients[:4]
    go(file, results_root=tmp_path / "whole")
    for stop_at in ("P1", "P3"):
        with monkeypatch.context() as patched:
            counted(patched, stop_at)
            with pytest.raises(KeyboardInterrupt):
                go(file, results_root=tmp_path / stop_at)
        (info,) = list_runs(tmp_path / stop_at)
        assert info.status == "interrupted"
        with monkeypatch.context() as patched:
            done = counted(patched)
            go(file, results_root=tmp_path / stop_at)
        assert done == [p.name for p in file if p.name >= stop_at]
        assert stored(tmp_path / stop_at) == stored(tmp_path / "whole")


def test_a_damaged_part_is_computed_again_and_those_after_it_stay(
    go, linear_patients, tmp_path, monkeypatch
):
    file, results = linear_patients[:4], tmp_path / "killed"
    go(file, results_root=tmp_path / "whole")
    with monkeypatch.context() as patched:
        counted(patched, "P3")
        with pytest.raises(KeyboardInterrupt):
            go(file, results_root=results)
    (info,) = list_runs(results)
    (own,) = [
        part
        for part in (info.path / "parts").glob("*.parquet")
        if part.name.count(".") == 1 and set(pd.read_parquet(part)["patient"]) == {"P1"}
    ]
    own.write_bytes(own.read_bytes()[:-9])
    done = counted(monkeypatch)
    go(file, results_root=results)
    assert done == ["P1", "P3"]
    assert stored(results) == stored(tmp_path / "whole")


def test_a_part_that_was_learned_from_other_runs_is_computed_again(
    linear_problem, linear_patients, tmp_path, monkeypatch
):
    """After a failure the patients without an answer are computed again, and teach otherwise."""
    broken = {"P0"}

    def simulate(x, patient):
        if patient.name in broken:
            raise ValueError("valve does not close")
        return linear_problem.simulate(x, patient)

    problem, file = replace(linear_problem, simulate=simulate), linear_patients[:3]
    with monkeypatch.context() as patched:
        personalizer = Continuing.personalizer

        def full(self, patient):
            if patient.name == "P2":
                raise CannotRun("the disk is full")
            return personalizer(self, patient)

        patched.setattr(Continuing, "personalizer", full)
        with pytest.raises(RunFailed):
            in_order(problem, file, tmp_path)
    broken.clear()
    done = counted(monkeypatch)
    in_order(problem, file, tmp_path)
    assert done == ["P0", "P1", "P2"]
    (last,) = [info for info in list_runs(tmp_path / "results") if info.status == "complete"]
    in_order(problem, file, tmp_path, results_root=tmp_path / "whole")
    (whole,) = list_runs(tmp_path / "whole")
    for name in TABLES:
        assert (last.path / name).read_bytes() == (whole.path / name).read_bytes()


def test_a_round_learns_from_the_rounds_before_whatever_the_number_of_workers(
    go, linear_patients, tmp_path
):
    for n_jobs in (1, 3):
        with parallel_config(backend="threading"):  # worker processes could not import the model
            fitted = go(
                linear_patients[:5], at_a_time=2, n_jobs=n_jobs, results_root=tmp_path / str(n_jobs)
            )
    assert stored(tmp_path / "1") == stored(tmp_path / "3")
    assert list(fitted["round"]) == [1, 1, 2, 2, 3]
    assert list(fitted["training"])[1:4] == ["nobody before", *["2 patients before"] * 2]


def test_a_total_ends_the_patient_under_way_and_leaves_the_others_open(
    go, linear_patients, tmp_path
):
    asked = {"methods": ("least-squares-multistart",)}
    free = go(linear_patients[:5], results_root=tmp_path / "free", **asked)
    total = int(free["n_runs"][:2].sum()) + 1
    assert free["n_runs"][2] > 1
    fitted = go(linear_patients[:5], total_runs=total, **asked)
    assert fitted["n_runs"].sum() == total
    assert list(fitted["outcome"]) == ["solved", "solved", "open", "open", "open"]
    assert list(fitted["n_runs"])[2:] == [1, 0, 0]
    assert fitted["stop_reason"][2] == f"The total of {total} forward runs was used up."
    assert fitted["stop_reason"][3] == f"Not begun. The total of {total} forward runs was used up."
    assert fitted["a [mL]"][3:].isna().all()
    said = what_it_took(fitted, total)
    more = 3 * free["n_runs"][1]
    assert said.startswith(
        f"2 solved, 0 unreachable, 0 not solved, 3 open; {total} of {total} forward runs used. An "
        f"estimate: the 3 open would take about {more} more, "
    )


@pytest.mark.parametrize(
    ("n_runs", "said"),
    [
        ([9, 3, 2, 0, 0], "the 2 open would take about 5 more, 2.5 each, the mean of the last 2 s"),
        ([9, 2, 2, 1, 0], "the 1 open would take about 2 more, 1.67 each, the mean of the last 3 "),
        ([9, 0, 0, 0, 0], "the 4 open would take about 36 more, 9 each, the mean of the last 1 so"),
    ],
)
def test_an_estimate_leaves_the_first_patient_out_and_multiplies(n_runs, said):
    outcome = ["solved" if n else "open" for n in n_runs]
    table = {"outcome": outcome, "order": [1, 2, 3, 4, 5], "n_runs": n_runs}
    assert f"An estimate: {said}" in what_it_took(pd.DataFrame(table))


@pytest.mark.parametrize(
    ("method", "more"), [("vito-continuous", 0), ("least-squares-multistart", 1)]
)
def test_a_larger_total_goes_on_from_a_smaller_one_to_the_same_bytes(
    go, linear_patients, tmp_path, monkeypatch, method, more
):
    file, asked = linear_patients[:4], {"methods": (method,)}
    free = go(file, results_root=tmp_path / "free", **asked)
    total = int(free["n_runs"][:2].sum()) + more
    go(file, total_runs=total, **asked)
    go(file, total_runs=500, results_root=tmp_path / "whole", **asked)
    done = counted(monkeypatch)
    go(file, total_runs=500, **asked)
    assert done == ["P2", "P3"]
    (info,) = [i for i in list_runs(tmp_path / "results") if i.parameters["total_runs"] == 500]
    (whole,) = list_runs(tmp_path / "whole")
    for name in TABLES:
        assert (info.path / name).read_bytes() == (whole.path / name).read_bytes()


def test_a_round_shares_what_is_left_of_a_total(go, linear_patients):
    assert rounds.shares(7, 3, 60) == [3, 2, 2]
    assert rounds.shares(2, 3, 60) == [1, 1, 0]
    assert rounds.shares(500, 3, 60) == [60, 60, 60]
    assert rounds.shares(None, 2, 60) == [60, 60]
    fitted = go(linear_patients[:5], total_runs=4, at_a_time=3)
    assert list(fitted["n_runs"]) == [2, 1, 1, 0, 0]
    assert what_it_took(fitted, 4).endswith("no estimate of what more would take.")


def test_a_patient_whom_the_model_cannot_reach_ends_early_with_a_sentence(go, linear_patients):
    far = Patient("far", {"u": 90.0, "w": 90.0}, {"offset": 0.0})
    file = [*linear_patients[:3], far]
    fitted = go(file, give_up=None)
    assert list(fitted["outcome"]) == ["solved", "solved", "solved", "unreachable"]
    assert fitted["n_runs"][3] < 60
    assert "u" in fitted["stop_reason"][3]
    assert fitted["stop_reason"][3] != "No parameters are expected to meet all measurements."
    u, w = fitted[["u_misfit [mL]", "w_misfit [mmHg]"]].iloc[3]
    assert fitted["stop_reason"][3].endswith(
        f" That is expected; of the runs made, the best misses u by {u:+.3g} mL, w by {w:+.3g} "
        "mmHg."
    )
    never = go(file, give_up=0.0)
    assert never["n_runs"][3] == 60


def test_a_patient_whose_runs_all_fail_does_not_end_the_file(
    linear_problem, linear_patients, tmp_path
):
    def breaks(x, patient):
        if patient.name == "P1":
            raise ValueError("valve does not close")
        return linear_problem.simulate(x, patient)

    problem = replace(linear_problem, simulate=breaks)
    fitted = in_order(problem, linear_patients[:3], tmp_path, max_runs=100)
    assert list(fitted["outcome"]) == ["solved", "not solved", "solved"]
    assert fitted["n_failed"][1] == fitted["n_runs"][1] == 100
    assert "valve does not close" in fitted["stop_reason"][1]


@pytest.mark.parametrize("method", ["vito-continuous", "gp-emulator", "nelder-mead"])
@pytest.mark.parametrize("at_a_time", [1, 2])
def test_a_model_that_never_answers_ends_the_file_with_the_first_patient(
    linear_problem, linear_patients, tmp_path, capsys, method, at_a_time
):
    """After some fifty runs and not after everybody's, and the first failed run is said at once."""
    calls, said = [], []

    def breaks(x, patient):
        calls.append(patient.name)
        if len(calls) == 10:
            said.append(capsys.readouterr().err)
        raise ValueError("valve does not close")

    problem = replace(linear_problem, simulate=breaks)
    more = {"methods": (method,), "at_a_time": at_a_time}
    with pytest.raises(RunFailed, match=r"first: all 50 runs so far failed, expected some that .*"):
        in_order(problem, linear_patients[:5], tmp_path, max_runs=100, **more)
    assert set(calls) == {"P0"}
    assert len(calls) < 60  # to see whether it takes a batch, it is called some more times
    assert said[0].count("P0: a forward run failed (a=") == 1
    assert "a forward run failed" not in capsys.readouterr().err
    (failed,) = list_runs(tmp_path / "results")
    assert failed.reason.endswith(
        "): raised: ValueError: valve does not close; if that is so of this patient alone, put "
        "another one first"
    )
    causes = Run.load(failed.path).failures
    assert causes[["patient", "text", "n_runs"]].to_numpy().tolist() == [
        ["P0", "ValueError: valve does not close", 50]
    ]
    # mended, nothing of it is left
    in_order(linear_problem, linear_patients[:2], tmp_path, max_runs=100, **more)
    assert latest(tmp_path / "results", "personalize").failures.empty


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"methods": ("vito",)}, "method is 'vito', which learns states, expected one of vito-con"),
        (
            {"methods": ("gp-emulator",), "agent": "agent"},
            "method is 'gp-emulator', expected 'vito-continuous' with an agent",
        ),
        ({"methods": ("vito-continuous", "quadratic")}, "expected one with learn_as_you_go"),
        ({"agent": "agent", "n_samples": 10}, "agent is given with 10 samples to explore"),
        ({"agent": "clinic.csv"}, "clinic.csv is a file, expected the folder of an agent"),
        ({"agent": "nowhere/agent"}, "nowhere, expected a name in a folder that exists"),
        ({"give_up": 1.0}, "give_up is 1.0, expected from 0 to below 1"),
        ({"total_runs": 0}, "total_runs is 0, expected at least 1"),
        ({"at_a_time": 0}, "at_a_time is 0, expected at least 1"),
        ({"learn_as_you_go": False, "total_runs": 9}, "total_runs is given, which needs learn_as_"),
        ({"learn_as_you_go": False, "at_a_time": 2}, "at_a_time is given, which needs learn_as_"),
        ({"learn_as_you_go": False, "agent": "agent"}, "agent is given, which needs learn_as_"),
    ],
)
def test_what_does_not_go_together_is_refused_before_anything_is_computed(
    go, linear_patients, tmp_path, more, said
):
    if "agent" in more:
        more = {**more, "agent": tmp_path / more["agent"]}
    with pytest.raises((ValueError, InputError), match=said):
        go(linear_patients[:2], **more)
    assert not (tmp_path / "results").exists()


def test_a_reference_method_has_a_total_and_learns_nothing(go, linear_patients, tmp_path):
    fitted = go(linear_patients[:3], methods=("nelder-mead",), total_runs=500)
    alone = go(linear_patients[2:3], methods=("nelder-mead",), results_root=tmp_path / "alone")
    assert list(fitted["training"]) == [""] * 3
    assert fitted["n_runs"][2] == alone["n_runs"][0]


def test_the_patients_of_a_round_are_worked_on_by_processes(go, linear_patients, monkeypatch):
    """Methods are many short steps of Python; a round of one patient needs no worker."""
    asked = []

    def parallel(work, shared, items, n_jobs, prefer):
        items = list(items)
        asked.append((len(items), n_jobs, prefer))
        return (work(shared, *item) for item in items)

    monkeypatch.setattr(rounds, "parallel", parallel)
    go(linear_patients[:3], at_a_time=2, n_jobs=4)
    assert asked == [(2, 4, "processes"), (1, 1, "processes")]
