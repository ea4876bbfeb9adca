"""Jobs that Slurm refuses: the run ends once none is left that could start, and goes on later."""

from __future__ import annotations

import pytest
import slurm_commands
from slurm_commands import QUEUED, REFUSED, STARTED, done, sbatch, stopped

from vitolab.parallel import slurm as jobs
from vitolab.parallel import workers

pytest.importorskip("dask_jobqueue")
pytest.importorskip("cryptography")
pytestmark = pytest.mark.timeout(120)

slurm = slurm_commands.slurm


@pytest.mark.parametrize("submit", [REFUSED, 'echo "Hello"'], ids=["refused", "no job number"])
def test_a_run_whose_jobs_are_all_refused_ends_with_one_sentence(slurm, monkeypatch, capfd, submit):
    sbatch(slurm, submit)
    with (
        pytest.raises(ConnectionError, match=r"Slurm refused all 2 jobs, expected one that can"),
        jobs.slurm(4) as environment,
    ):
        done(monkeypatch, environment)
    assert capfd.readouterr().err.count("vitolab: a job was not submitted to Slurm: ") == 2


def test_jobs_of_a_command_that_is_gone_are_refused(slurm, monkeypatch):
    sbatch(slurm, REFUSED)
    (slurm / "sbatch").write_text('#!/bin/bash\nrm -- "$0"\n')
    with (
        pytest.raises(ConnectionError, match="Slurm refused all 2 jobs"),
        jobs.slurm(4) as environment,
    ):
        done(monkeypatch, environment)


def test_one_job_of_several_does_the_work(slurm, monkeypatch, capfd):
    sbatch(slurm, f"[ $n -gt 1 ] && {{ {REFUSED}; }}\n{STARTED}")
    with jobs.slurm(4) as environment:
        assert done(monkeypatch, environment) == [1, 2, 3]
    assert "Quota is used up" in capfd.readouterr().err


def test_a_job_that_queues_is_waited_for(slurm, monkeypatch):
    sbatch(slurm, f"[ $n -gt 1 ] && {{ {REFUSED}; }}\n{QUEUED}")
    looks = []

    class Client:
        """Answers of a scheduler; a worker comes after the third look."""

        def __init__(self, real):
            self._real = real

        def wait_for_workers(self, n, timeout):
            if len(looks) < 3:
                self._real.wait_for_workers(n, timeout=0.2)

        def get_metadata(self, keys, default):
            looks.append(self._real.get_metadata(keys, default))
            return looks[-1]

    from distributed import Client as Real

    with jobs.slurm_cluster() as cluster, Real(cluster, set_as_default=False) as real:
        cluster.scale(4)
        workers._wait_for_one(Client(real))
    assert looks == [None] * 3


def test_a_run_without_jobs_is_refused_and_goes_on_later(slurm, tmp_path, monkeypatch, capsys):
    sbatch(slurm, REFUSED)
    assert stopped(tmp_path, monkeypatch, capsys) == (
        "vitolab: Slurm refused all 2 jobs, expected one that can start; the same command goes on "
        "from here"
    )


def test_a_configuration_in_the_environment_is_read(monkeypatch, tmp_path):
    import dask

    name = "DASK_JOBQUEUE__SLURM__SHARED_TEMP_DIRECTORY"
    given = dask.config.collect_env({name: str(tmp_path), "DASK_JOBQUEUE__SLURM__MEMORY": "4GB"})
    given = {"jobqueue": {"slurm": dict(given["jobqueue"]["slurm"])}}
    dask.config.update(given, {"jobqueue": dask.config.get("jobqueue")}, priority="old")
    monkeypatch.setitem(dask.config.config, "jobqueue", given["jobqueue"])
    with jobs.slurm_cluster():
        assert [path for path in tmp_path.iterdir() if ".key." in path.name]
