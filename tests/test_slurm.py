"""Workers that Slurm starts, without a cluster."""

from __future__ import annotations

import operator
import os
import sys
import time
from pathlib import Path

import pytest

from vitolab.parallel import slurm as jobs
from vitolab.parallel import workers


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Configuration of jobs, and a folder for commands in the place of Slurm's."""
    pytest.importorskip("dask_jobqueue")
    pytest.importorskip("cryptography")
    import dask

    commands = tmp_path / "bin"
    commands.mkdir()
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")
    settings = {"memory": "4GB", "cores": 2, "queue": "short", "walltime": "01:00:00"}
    settings |= {"account": "heart", "interface": "lo", "shared-temp-directory": str(tmp_path)}
    with dask.config.set({f"jobqueue.slurm.{name}": value for name, value in settings.items()}):
        yield commands


def command(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/bash\n{script}\n")
    path.chmod(0o755)


def test_the_job_script_asks_for_workers_of_one_thread_with_certificates(slurm, tmp_path):
    with jobs.slurm_cluster() as cluster:
        lines = cluster.job_script().splitlines()
        assert cluster.scheduler_address.startswith("tls://127.0.0.1:")
        keys = [path for path in tmp_path.iterdir() if ".key." in path.name]
        assert keys
        assert all(path.stat().st_mode & 0o077 == 0 for path in keys)
    assert lines[0].startswith("#!")
    asked = {line for line in lines if line.startswith("#SBATCH")}
    assert {"#SBATCH -p short", "#SBATCH -A heart", "#SBATCH -t 01:00:00"} <= asked
    assert {"#SBATCH --cpus-per-task=2", "#SBATCH --mem=4G"} <= asked
    start = lines[-1]
    assert start.startswith(f"{sys.executable} -m distributed.cli.dask_worker tls://")
    for option in ("--nthreads 1", "--nworkers 2", "--protocol tls://", "--tls-key"):
        assert option in start


@pytest.mark.timeout(120)
def test_jobs_that_slurm_starts_do_the_work(slurm, tmp_path, monkeypatch):
    # a script is read while it runs, but gone once it is submitted
    command(
        slurm / "sbatch",
        f'[ "$1" = --test-only ] && exit; cp "$1" {tmp_path}/job; '
        f'setsid bash {tmp_path}/job >{tmp_path}/log 2>&1 & echo "Submitted batch job $!"',
    )
    command(slurm / "scancel", f'kill -- "-$1"; echo "$1" >>{tmp_path}/ended')
    jobs.check_slurm()
    with jobs.slurm(2) as environment, monkeypatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        import dask

        with dask.config.set(dask.config.merge(dask.config.config, dask.config.collect_env())):
            done = sorted(workers.parallel(operator.add, 1, [(i,) for i in range(5)]))
    assert done == [1, 2, 3, 4, 5]
    assert (tmp_path / "ended").read_text().split()


def test_a_job_that_slurm_refuses_is_one_sentence(slurm):
    command(slurm / "sbatch", "echo 'Invalid account' >&2; exit 1")
    with (
        pytest.raises(ValueError, match="Slurm refuses the job: Invalid account"),
        jobs.slurm(1),
    ):
        pass


def test_commands_of_slurm_have_the_environment_of_the_start(slurm, tmp_path, monkeypatch):
    command(
        slurm / "sbatch",
        f'[ "$1" = --test-only ] && exit; echo "${{CHANGED:-no}}" >{tmp_path}/changed; '
        'echo "Submitted batch job 1"',
    )
    command(slurm / "scancel", "exit")
    with jobs.slurm_cluster() as cluster:
        monkeypatch.setenv("CHANGED", "yes")
        cluster.scale(2)
        wait_for(lambda: (tmp_path / "changed").exists() and (tmp_path / "changed").read_text())
    assert (tmp_path / "changed").read_text() == "no\n"


def test_a_job_that_is_refused_later_is_said(slurm, capfd):
    command(slurm / "sbatch", '[ "$1" = --test-only ] && exit; echo "Quota is used up" >&2; exit 1')
    said = ""

    def is_said():
        nonlocal said
        said += capfd.readouterr().err
        return "vitolab: a job was not submitted to Slurm:" in said and "Quota is used up" in said

    with jobs.slurm(2):
        wait_for(is_said)


def wait_for(holds):
    end = time.monotonic() + 8
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_without_sbatch_slurm_is_refused(slurm, monkeypatch):
    monkeypatch.setenv("PATH", str(slurm))
    with pytest.raises(ValueError, match="sbatch is not found"):
        jobs.check_slurm()
