"""Jobs that Slurm refuses: the run ends once none is left that could start, and goes on later."""

from __future__ import annotations

import operator
import os
import sys

import nbformat
import pytest

from vitolab import cli
from vitolab.parallel import slurm as jobs
from vitolab.parallel import workers
from vitolab.store import list_runs
from vitolab.studies import STUDIES

pytest.importorskip("dask_jobqueue")
pytest.importorskip("cryptography")
pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Configuration of jobs of two workers, in the environment so that a kernel has it, too."""
    import dask

    commands = tmp_path / "bin"
    commands.mkdir()
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")
    settings = {"memory": "4GB", "cores": 2, "interface": "lo"}
    settings |= {"shared-temp-directory": str(tmp_path), "log-directory": str(tmp_path)}
    with dask.config.set({f"jobqueue.slurm.{name}": value for name, value in settings.items()}):
        yield commands


def sbatch(folder, submit: str) -> None:
    """Commands of Slurm; jobs are counted, the check of the script is always passed."""
    script = (
        '#!/bin/bash\n[ "$1" = --test-only ] && exit\nn=1\n'
        f"until mkdir {folder}/$n 2>/dev/null; do n=$((n + 1)); done\n{submit}\n"
    )
    # of a number that no job was given it ends nothing: kill takes -1 for all there is
    cancel = f"#!/bin/bash\n[ -f {folder}/group-$1 ] && kill -- -$1\n"
    for name, text in (("sbatch", script), ("scancel", cancel)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)


REFUSED = 'echo "Quota is used up" >&2; exit 1'
QUEUED = 'echo "Submitted batch job 7"'


def added(monkeypatch, environment):
    """Sums that the workers of a cluster compute."""
    import dask

    with monkeypatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        with dask.config.set(dask.config.merge(dask.config.config, dask.config.collect_env())):
            return sorted(workers.parallel(operator.add, 1, [(i,) for i in range(3)]))


@pytest.mark.parametrize("submit", [REFUSED, 'echo "Hello"'], ids=["refused", "no job number"])
def test_a_run_whose_jobs_are_all_refused_ends_with_one_sentence(slurm, monkeypatch, capfd, submit):
    sbatch(slurm, submit)
    with (
        pytest.raises(ConnectionError, match=r"Slurm refused all 2 jobs, expected one that can"),
        jobs.slurm(4) as environment,
    ):
        added(monkeypatch, environment)
    assert capfd.readouterr().err.count("vitolab: a job was not submitted to Slurm: ") == 2


def test_jobs_of_a_command_that_is_gone_are_refused(slurm, monkeypatch):
    sbatch(slurm, REFUSED)
    (slurm / "sbatch").write_text('#!/bin/bash\nrm -- "$0"\n')
    with (
        pytest.raises(ConnectionError, match="Slurm refused all 2 jobs"),
        jobs.slurm(4) as environment,
    ):
        added(monkeypatch, environment)


def test_one_job_of_several_does_the_work(slurm, tmp_path, monkeypatch, capfd):
    start = (
        f"cp $1 {tmp_path}/job$n; setsid bash {tmp_path}/job$n >{tmp_path}/log 2>&1 &\n"
        f">{slurm}/group-$!"
    )
    sbatch(slurm, f'[ $n -gt 1 ] && {{ {REFUSED}; }}\n{start}\necho "Submitted batch job $!"')
    with jobs.slurm(4) as environment:
        assert added(monkeypatch, environment) == [1, 2, 3]
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
    code = (
        "import operator\nfrom vitolab.parallel.workers import parallel\n"
        "sums = list(parallel(operator.add, 1, [(1,)]))"
    )
    parameters = nbformat.v4.new_code_cell(
        "seed: int = 0\nn_jobs: int = 1\nresults: str = ''\nrun_folder: str = ''\n",
        metadata={"tags": ["parameters"]},
    )
    notebook = nbformat.v4.new_notebook(cells=[parameters, nbformat.v4.new_code_cell(code)])
    nbformat.write(notebook, tmp_path / "n.ipynb")
    from dataclasses import replace

    study = replace(STUDIES[0], notebook=str(tmp_path / "n.ipynb"), profiles={"quick": {}})
    monkeypatch.setattr("vitolab.studies.find_study", lambda name: study)
    results = ["--results", str(tmp_path / "results")]
    arguments = ["vitolab", "run", study.name, "--cluster", "slurm", "--workers", "4", *results]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    last = said.splitlines()[-1]
    assert last == (
        "vitolab: Slurm refused all 2 jobs, expected one that can start; the same command goes on "
        "from here"
    )
    (run,) = list_runs(tmp_path / "results")
    assert run.status == "interrupted"


def test_a_configuration_in_the_environment_is_read(monkeypatch, tmp_path):
    import dask

    name = "DASK_JOBQUEUE__SLURM__SHARED_TEMP_DIRECTORY"
    given = dask.config.collect_env({name: str(tmp_path), "DASK_JOBQUEUE__SLURM__MEMORY": "4GB"})
    given = {"jobqueue": {"slurm": dict(given["jobqueue"]["slurm"])}}
    dask.config.update(given, {"jobqueue": dask.config.get("jobqueue")}, priority="old")
    monkeypatch.setitem(dask.config.config, "jobqueue", given["jobqueue"])
    with jobs.slurm_cluster():
        assert [path for path in tmp_path.iterdir() if ".key." in path.name]
