"""Jobs that Slurm accepts and that end: the run ends once no worker can come, and goes on later."""

from __future__ import annotations

import os
import re
import signal
import time
from threading import Event
from types import SimpleNamespace

import pytest
import slurm_commands
from slurm_commands import QUEUED, REFUSED, STARTED, command, done, sbatch, stopped

from vitolab.parallel import jobs
from vitolab.parallel import slurm as clusters

pytest.importorskip("dask_jobqueue")
pytest.importorskip("cryptography")
pytestmark = pytest.mark.timeout(120)

slurm = slurm_commands.slurm

#: No interpreter is there where a job runs.
LOST = "/no/python: No such file or directory"


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Slurm is asked more often."""
    monkeypatch.setattr(jobs, "LOOK", 0.3)


@pytest.fixture
def without_python():
    """Jobs cannot start a worker."""
    import dask

    with dask.config.set({"jobqueue.slurm.python": "/no/python"}):
        yield


@pytest.mark.usefixtures("without_python")
def test_a_run_whose_jobs_end_without_a_worker_ends_with_one_sentence(slurm, monkeypatch):
    sbatch(slurm, STARTED)
    said = (
        r"all jobs of Slurm ended before they had a worker \(\d+, (\d+)\); job \1: "
        rf"{re.escape(str(slurm))}/dask-worker-\1\.err ends: .*{LOST}; the same command goes on "
        "from here$"
    )
    with pytest.raises(ConnectionError, match=said), clusters.slurm(4) as environment:
        done(monkeypatch, environment)


@pytest.mark.usefixtures("without_python")
def test_jobs_that_are_refused_or_end_are_counted_together(slurm, monkeypatch):
    sbatch(slurm, f"[ $n -gt 1 ] && {{ {REFUSED}; }}\n{STARTED}")
    said = rf"ended before they had a worker \(\d+, 1 more refused\); job \d+: .*{LOST}; the same"
    with pytest.raises(ConnectionError, match=said), clusters.slurm(4) as environment:
        done(monkeypatch, environment)


@pytest.mark.usefixtures("without_python")
def test_a_run_whose_jobs_end_is_interrupted_and_goes_on_later(
    slurm, tmp_path, monkeypatch, capsys
):
    sbatch(slurm, STARTED)
    last = stopped(tmp_path, monkeypatch, capsys)
    assert last.startswith("vitolab: all jobs of Slurm ended before they had a worker (")
    assert last.endswith(
        "/no/python: No such file or directory; the same command goes on from here"
    )


def test_jobs_that_go_on_do_the_work_and_one_that_ended_is_said(slurm, monkeypatch, capfd):
    lost = STARTED.replace("exec bash job", 'exec bash -c "echo no module numpy >&2" job')
    sbatch(slurm, f"if [ $n -gt 1 ]; then\n{lost}\nelse\n{STARTED}\nfi")
    said, end = "", time.monotonic() + 60
    with clusters.slurm(4) as environment:
        assert done(monkeypatch, environment) == [1, 2, 3]
        while "ended before" not in said and time.monotonic() < end:
            said += capfd.readouterr().err
    (line,) = (line for line in said.splitlines() if "ended before" in line)
    pattern = r"vitolab: job (\d+) of Slurm ended before it had a worker: .*-\1.err ends: no module"
    assert re.match(pattern, line)


def test_further_work_is_not_begun_when_the_last_job_has_ended(slurm, monkeypatch):
    sbatch(slurm, STARTED)
    with clusters.slurm(2) as environment:
        assert done(monkeypatch, environment) == [1, 2, 3]
        (job,) = (int(path.name.partition("-")[2]) for path in slurm.glob("group-*"))
        os.killpg(job, signal.SIGKILL)
        said = rf"all jobs of Slurm ended \({job}\); job {job}: .*; the same command goes on"
        with pytest.raises(ConnectionError, match=said):
            done(monkeypatch, environment)


def test_a_job_without_a_log_is_said_with_where_one_was_looked_for(slurm):
    known = jobs.Jobs(os.environ)
    known.accepted["7"] = SimpleNamespace(name="a", log_directory=str(slurm), job_name=None)
    assert known.log_end("7") == f"it left no log ({slurm}/worker-7.err, {slurm}/worker-7.out)"


def test_of_a_log_the_end_is_said_on_one_line(slurm):
    known = jobs.Jobs(os.environ)
    known.accepted["7"] = SimpleNamespace(name="a", log_directory=str(slurm), job_name="w")
    (slurm / "w-7.err").write_bytes(b"x" * 9000 + b"\n\xff\x1b[1mone\n\n two\nthree\n")
    assert known.log_end("7").endswith("ends: \ufffd[1mone / two / three")


@pytest.mark.parametrize(
    ("answer", "alive"),
    [
        ("echo 1 RUNNING; echo 2 PENDING; echo 3 FAILED", {"1", "2"}),
        ("echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1", set()),
        ("echo 'Unable to contact slurm controller' >&2; exit 1", None),
        ("rm -- $0; exit 1", None),
    ],
)
def test_jobs_live_unless_slurm_says_otherwise(slurm, answer, alive):
    command(slurm / "squeue", f"#!/bin/bash\n{answer}\n")
    known = jobs.Jobs(dict(os.environ))
    known.accepted |= {"1": None, "2": None, "3": None}
    assert known.alive() == alive


@pytest.mark.parametrize("answers", [({"7"},), (set(), {"7"}), (set(), None)])
def test_a_job_that_slurm_forgets_for_a_moment_is_waited_for(answers, capsys):
    """Some Slurms answer what was some time ago, or not at all."""
    over, looks = Event(), []

    class Known(jobs.Jobs):
        def alive(self):
            looks.append(answers[len(looks) % len(answers)])
            if len(looks) == 6:
                over.set()
            return looks[-1]

    known = Known({})
    known.accepted["7"] = SimpleNamespace(name="a")
    scheduler = SimpleNamespace(workers={})  # has nowhere to write why none can come
    jobs._watch(SimpleNamespace(worker_spec=["a"], scheduler=scheduler), known, "why", over)
    assert len(looks) == 6
    assert capsys.readouterr().err == ""


def test_a_job_that_queues_is_no_job_that_ended(slurm, monkeypatch):
    sbatch(slurm, QUEUED)
    command(slurm / "squeue", "#!/bin/bash\necho 7 PENDING\n")
    with clusters.slurm(2) as environment:
        from vitolab.parallel import workers

        monkeypatch.setattr(workers, "POLL", 0.2)
        waits = iter(range(15))

        def wait(client, n, timeout):
            if next(waits, None) is None:
                raise KeyboardInterrupt
            time.sleep(timeout)
            raise TimeoutError

        monkeypatch.setattr("distributed.Client.wait_for_workers", wait)
        with pytest.raises(KeyboardInterrupt):
            done(monkeypatch, environment)
