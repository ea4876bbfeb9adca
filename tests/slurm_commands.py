"""Commands in the place of Slurm's, and runs whose workers are its jobs."""

from __future__ import annotations

import operator
import os
import sys
from dataclasses import replace

import nbformat
import pytest

from vitolab import cli
from vitolab.parallel import workers
from vitolab.store import list_runs
from vitolab.studies import STUDIES

#: What `sbatch` does with a job: refuse it, queue it for ever, or run it.
REFUSED = 'echo "Quota is used up" >&2; exit 1'
QUEUED = 'echo "Submitted batch job 7"'
_LOG = "dask-worker-$$"
STARTED = (
    "cp $1 {folder}/job$n; cd {folder}\n"
    f"setsid bash -c 'exec bash job'$n' >{_LOG}.out 2>{_LOG}.err' >/dev/null 2>&1 &\n"
    '>group-$!; echo "Submitted batch job $!"'
)
#: Jobs that run; an unburied one does not.
_QUEUE = """#!/bin/bash
for job in ${5//,/ }; do
  [[ "$(cat /proc/$job/stat 2>/dev/null)" == *") "[!Z]* ]] && echo "$job RUNNING"
done
exit 0
"""


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Configuration of jobs of two workers, in the environment so that a kernel has it, too."""
    import dask

    commands = tmp_path / "bin"
    commands.mkdir()
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")
    settings = {"memory": "4GB", "cores": 2, "interface": "lo"}
    settings |= {"shared-temp-directory": str(tmp_path), "log-directory": str(commands)}
    with dask.config.set({f"jobqueue.slurm.{name}": value for name, value in settings.items()}):
        yield commands


def command(path, text: str) -> None:
    """Make a command."""
    path.write_text(text)
    path.chmod(0o755)


def sbatch(folder, submit: str) -> None:
    """Commands of Slurm; jobs are counted, the check of the script is always passed."""
    script = (
        '#!/bin/bash\n[ "$1" = --test-only ] && exit\nn=1\n'
        f"until mkdir {folder}/$n 2>/dev/null; do n=$((n + 1)); done\n{submit}\n"
    )
    command(folder / "sbatch", script.replace("{folder}", str(folder)))
    command(folder / "squeue", _QUEUE)
    # of a number that no job was given it ends nothing: kill takes -1 for all there is
    command(
        folder / "scancel", f"#!/bin/bash\n[ -f {folder}/group-$1 ] && kill -- -$1 2>/dev/null\n"
    )


def done(monkeypatch, environment, work=operator.add, shared=1, items=((0,), (1,), (2,))):
    """What the workers of a cluster compute; sums, unless something else is asked for."""
    import dask

    with monkeypatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        with dask.config.set(dask.config.merge(dask.config.config, dask.config.collect_env())):
            return sorted(workers.parallel(work, shared, items))


def stopped(tmp_path, monkeypatch, capsys) -> str:
    """Last line of a command whose run on two jobs is refused, and can go on later."""
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
    study = replace(STUDIES[0], notebook=str(tmp_path / "n.ipynb"), profiles={"quick": {}})
    monkeypatch.setattr("vitolab.studies.find_study", lambda name: study)
    results = ["--results", str(tmp_path / "results")]
    arguments = ["vitolab", "run", study.name, "--cluster", "slurm", "--workers", "4", *results]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    (run,) = list_runs(tmp_path / "results")
    assert run.status == "interrupted"
    return said.splitlines()[-1]
