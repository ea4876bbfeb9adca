"""Workers elsewhere: the same bits, whoever is lost; what would give other bits is refused."""

from __future__ import annotations

import operator
import os
import re
import signal
import socket
import sys
import time

import nbformat
import numpy as np
import pandas as pd
import pytest
import simulators
from part_store import Parts
from stores import write_csv

from vitolab import cli, studies
from vitolab.adapters import FunctionModel
from vitolab.exploration import explore
from vitolab.failures import CannotRun
from vitolab.parallel import workers
from vitolab.patients import read_patients
from vitolab.personalization import personalize_file
from vitolab.studies.notebooks import execute
from vitolab.validation import leave_one_out

distributed = pytest.importorskip("distributed")
QUIET = {"protocol": "tcp", "dashboard_address": "127.0.0.1:0", "silence_logs": 60}


@pytest.fixture(scope="module")
def cluster():
    """Four processes of one thread."""
    with distributed.LocalCluster(n_workers=4, threads_per_worker=1, **QUIET) as cluster:
        yield cluster


@pytest.fixture
def near():
    """One worker in this process."""
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, **QUIET
    ) as cluster:
        yield cluster


def validate(run, problem, patients):
    leave_one_out(
        run,
        {"linear": problem},
        patients,
        n_states={"linear": [15]},
        n_samples={"linear": [40]},
        max_runs=20,
    )


def assert_same(one: Parts, other: Parts) -> None:
    assert one.parts.keys() == other.parts.keys()
    for key, tables in one.parts.items():
        for mine, its in zip(tables, other.parts[key], strict=True):
            if mine is None:
                assert its is None
            else:
                pd.testing.assert_frame_equal(mine, its, check_exact=True)


def test_walks_have_the_same_bits_and_are_kept_by_who_asked(
    linear_problem, linear_patients, tmp_path, monkeypatch, cluster
):
    here = explore(linear_problem, linear_patients, 3, 20, seed=1)
    monkeypatch.setenv(workers.SCHEDULER, cluster.scheduler_address)
    explore(linear_problem, linear_patients, 1, 20, seed=1, cache=tmp_path)
    there = explore(linear_problem, linear_patients, 3, 20, seed=1, cache=tmp_path)
    for name in ("x", "y", "action", "patient"):
        assert np.array_equal(getattr(here, name), getattr(there, name)), name
    assert len(list((tmp_path / "walks").rglob("*.npz"))) == len(linear_patients)


def test_folds_have_the_same_bits_though_half_the_workers_are_lost(
    linear_problem, linear_patients, monkeypatch, cluster
):
    serial = Parts()
    validate(serial, linear_problem, linear_patients)
    nannies = list(cluster.workers.values())[:2]

    class Losing(Parts):
        def write_part(self, key, personalizations, traces=None, failures=None) -> None:
            super().write_part(key, personalizations, traces, failures)
            if len(self.parts) == 2:
                for nanny in nannies:
                    nanny.close_gracefully("so that no other worker takes its place")
                    os.kill(nanny.pid, signal.SIGKILL)

    monkeypatch.setenv(workers.SCHEDULER, cluster.scheduler_address)
    run = Losing()
    validate(run, linear_problem, linear_patients)
    assert len(run.parts) == 10
    assert_same(serial, run)
    assert len(cluster.scheduler.workers) == 2


def test_patients_of_a_file_have_the_same_fit_whoever_computes_them(
    linear_problem, linear_patients, tmp_path, monkeypatch, near
):
    path = write_csv(tmp_path / "clinic.csv", linear_patients[:4])
    table = read_patients(path, linear_problem, data={"offset": ""})

    def fitted(where: str) -> pd.DataFrame:
        return personalize_file(
            linear_problem,
            table,
            setup="2p",
            train_on=linear_patients,
            n_states=12,
            n_samples=60,
            max_runs=20,
            methods=("vito", "least-squares"),
            results_root=tmp_path / where,
        )

    here = fitted("here")
    monkeypatch.setenv(workers.SCHEDULER, near.scheduler_address)
    pd.testing.assert_frame_equal(fitted("there"), here, check_exact=True)


def test_a_task_that_no_worker_survives_ends_the_run(monkeypatch, cluster):
    monkeypatch.setenv(workers.SCHEDULER, cluster.scheduler_address)
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    with pytest.raises(RuntimeError, match=r"every worker that tried a task died \(1\)"):
        list(workers.parallel(os._exit, 1, [()]))


def test_one_worker_does_the_work_and_not_the_client(monkeypatch, near):
    monkeypatch.setenv(workers.SCHEDULER, near.scheduler_address)
    monkeypatch.setattr(workers, "_itself", lambda: (str(distributed.get_worker().id), "1", 1))
    monkeypatch.setattr(workers, "code_version", lambda: "1")
    assert sorted(workers.parallel(operator.add, 1, [(i,) for i in range(3)])) == [1, 2, 3]


def test_a_scheduler_that_is_lost_is_one_sentence(monkeypatch, near):
    monkeypatch.setenv(workers.SCHEDULER, near.scheduler_address)
    finished = workers.parallel(operator.methodcaller("__call__", 0.2), time.sleep, [()] * 20)
    next(finished)
    near.close()
    with pytest.raises(ConnectionError, match="the scheduler or all its workers are lost"):
        list(finished)


def test_an_error_of_the_work_is_the_users(monkeypatch, near):
    monkeypatch.setenv(workers.SCHEDULER, near.scheduler_address)
    with pytest.raises(ZeroDivisionError):
        list(workers.parallel(operator.truediv, 1, [(1,), (0,)]))


def test_a_worker_of_another_version_is_refused(monkeypatch, near):
    monkeypatch.setenv(workers.SCHEDULER, near.scheduler_address)
    assert workers.check_scheduler(near.scheduler_address) == 1
    monkeypatch.setattr(workers, "_version", lambda: "other")
    said = f"version other there, expected {workers.code_version()} as here"
    with pytest.raises(ValueError, match=said):
        workers.check_scheduler(near.scheduler_address)
    with pytest.raises(ValueError, match=said):  # one that came after the check
        list(workers.parallel(operator.add, 1, [(1,)]))


def test_a_worker_of_two_threads_is_refused():
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, **QUIET
        ) as cluster,
        pytest.raises(ValueError, match="it has 2 threads, expected one"),
    ):
        workers.check_scheduler(cluster.scheduler_address)


def test_a_function_runs_in_the_worker_which_may_start_no_process(monkeypatch, cluster):
    monkeypatch.setenv(workers.SCHEDULER, cluster.scheduler_address)
    model = FunctionModel(simulators.where, ("u", "w"))
    ((process, processors, y),) = workers.parallel(simulators.asked, model, [(3,)])
    assert process != os.getpid()
    assert processors == 1
    assert y == [[process, 1.0]] * 3
    limited = FunctionModel(simulators.where, ("u", "w"), time_limit=9.0)
    with pytest.raises(CannotRun, match="DASK_DISTRIBUTED__WORKER__DAEMON=False"):
        list(workers.parallel(simulators.asked, limited, [(3,)]))


def test_a_worker_that_may_starts_one_process(monkeypatch):
    import dask

    with (
        dask.config.set({"distributed.worker.daemon": False}),
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, **QUIET) as willing,
    ):
        monkeypatch.setenv(workers.SCHEDULER, willing.scheduler_address)
        model = FunctionModel(simulators.where, ("u", "w"), time_limit=9.0)
        ((process, processors, y),) = workers.parallel(simulators.asked, model, [(4,)])
    assert processors == 1
    (child,) = {row[0] for row in y}
    assert child not in (process, os.getpid())


def refused(capsys, monkeypatch, *arguments: str) -> str:
    """Sentence with which the command line refuses to run a study."""
    monkeypatch.setattr(sys, "argv", ["vitolab", "run", "tour", *arguments])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_a_scheduler_that_does_not_answer_is_one_sentence(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(workers, "TIMEOUT", 0.5)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    line = refused(capsys, monkeypatch, "--scheduler", address, "--results", str(tmp_path))
    assert line == (
        f"vitolab: {address}: no scheduler answers within 0.5 s, expected one that runs"
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--scheduler", "here"], "scheduler is 'here', expected an address such as tcp://"),
        (["--scheduler", "http://here:80"], "expected an address such as tcp://"),
        (["--scheduler", "tcp://here"], "expected an address such as tcp://"),
        (["--scheduler", "tcp://here:port"], "expected an address such as tcp://"),
        (["--workers", "2"], "the number of workers is for a cluster, there is none"),
        (["--cluster", "pbs", "--workers", "2"], "the cluster is 'pbs', expected 'slurm'"),
        (["--cluster", "slurm"], "the number of workers is None, expected at least 1"),
        (["--cluster", "slurm", "--scheduler", "tcp://a:1"], "expected one of them"),
        (["--cluster", "slurm", "--workers", "2"], "jobqueue.slurm.memory is not set"),
    ],
)
def test_workers_that_cannot_be_used_are_refused(capsys, monkeypatch, tmp_path, options, said):
    assert said in refused(capsys, monkeypatch, *options, "--results", str(tmp_path))
    assert not list(tmp_path.iterdir())


def test_without_dask_the_sentence_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ValueError, match=re.escape("pip install 'vitolab[cluster]'")):
        workers.check_scheduler("tcp://127.0.0.1:8786")


@pytest.mark.parametrize(
    ("address", "exposed"),
    [
        ("tcp://127.0.0.1:8786", False),
        ("tcp://[::1]:8786", False),
        ("tcp://localhost:8786", False),
        ("tls://node7:8786", False),
        ("tcp://node7:8786", True),
        ("tcp://192.0.2.7:8786", True),
    ],
)
def test_who_may_reach_a_scheduler_is_known(address, exposed):
    assert workers.is_exposed(address) == exposed


def test_the_scheduler_reaches_the_kernel_and_is_no_parameter(tmp_path):
    source = "import os\nassert os.environ['VITOLAB_SCHEDULER'] == 'tcp://a:1'"
    cells = [nbformat.v4.new_code_cell(source)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "n.ipynb")
    run = tmp_path / "run"
    run.mkdir()
    assert execute(tmp_path / "n.ipynb", run, {}, {workers.SCHEDULER: "tcp://a:1"}) == ""
    assert workers.SCHEDULER not in os.environ
    assert workers.SCHEDULER not in studies.GIVEN
