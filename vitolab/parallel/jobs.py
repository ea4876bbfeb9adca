"""Jobs that Slurm accepted: which of them ended, and whether a worker can still come."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

from vitolab.display import say

LOOK = 10.0  # seconds between two questions to Slurm, which many users share
PATIENCE = 60.0  # seconds that Slurm may take for an answer
#: States in which a job of Slurm does not run again by itself.
OVER = {
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "REVOKED",
    "TIMEOUT",
}
_TAIL = 4096  # bytes of a log that are read
_LINES, _CHARACTERS = 3, 300  # at its end, that are shown


class Jobs:
    """Jobs of a run.

    Parameters
    ----------
    environment : mapping of str to str
        Of the commands of Slurm.

    Attributes
    ----------
    accepted : dict of str to Job
        Dask's jobs, by the numbers that Slurm gave them.
    refused : set
        Names of the others.
    workers : set of str
        Names of all workers that ever came.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.accepted: dict[str, Any] = {}
        self.refused: set[Any] = set()
        self.workers: set[str] = set()
        self._environment = environment

    def alive(self) -> set[str] | None:
        """Ask Slurm which jobs queue or run; None if it does not say."""
        if not self.accepted:
            return set()
        numbers = ",".join(list(self.accepted))
        try:
            answer = subprocess.run(
                ["squeue", "-h", "-t", "all", "-j", numbers, "-o", "%A %T"],
                capture_output=True,
                text=True,
                check=False,
                timeout=PATIENCE,
                env=self._environment,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        # a job that ended some minutes ago it does not know any more, an error where it is the only
        if answer.returncode and "Invalid job id" not in answer.stderr:
            return None
        told = (line.split() for line in answer.stdout.splitlines())
        return {job[0] for job in told if len(job) == 2 and job[1] not in OVER}

    def had_worker(self, number: str) -> bool:
        """Whether a worker of a job ever came."""
        name = self.accepted[number].name
        return any(w == str(name) or w.startswith(f"{name}-") for w in list(self.workers))

    def log_end(self, number: str) -> str:
        """End of what a job wrote, in some words."""
        job = self.accepted[number]
        logs = [Path(f"slurm-{number}.out")]
        if job.log_directory is not None:
            name = f"{job.job_name or 'worker'}-{number}"
            logs = [Path(job.log_directory, f"{name}.{kind}") for kind in ("err", "out")]
        for log in logs:
            with suppress(OSError), log.open("rb") as file:
                file.seek(max(0, log.stat().st_size - _TAIL))
                text = file.read().decode(errors="replace")
                lines = [line.strip() for line in text.splitlines() if line.strip()]
                if lines:
                    return f"{log} ends: {_end(lines)}"
        return f"it left no log ({', '.join(map(str, logs))})"

    def why_none(self, over: list[str]) -> str:
        """Say why no worker can come, all jobs being over."""
        idle = [number for number in over if not self.had_worker(number)]
        before = "" if self.workers else " before they had a worker"
        refused = f", {len(self.refused)} more refused" if self.refused else ""
        last = (idle or over)[-1]
        return (
            f"all jobs of Slurm ended{before} ({', '.join(over)}{refused}); job {last}: "
            f"{self.log_end(last)}"
        )


def _end(lines: Sequence[str]) -> str:
    """Last lines on one, of a file that may hold anything."""
    text = "".join(c for c in " / ".join(lines[-_LINES:]) if c.isprintable())
    return text if len(text) <= _CHARACTERS else f"…{text[-_CHARACTERS:]}"


@contextmanager
def watched(cluster: Any, jobs: Jobs, key: str) -> Iterator[None]:
    """Say which jobs end before they have a worker, and once no worker can come, why.

    Parameters
    ----------
    cluster : dask_jobqueue.SLURMCluster
    jobs : Jobs
    key : str
        Where its scheduler then keeps a sentence, for who waits for a worker.
    """
    ended = Event()
    watch = Thread(target=_watch, args=(cluster, jobs, key, ended), daemon=True)
    watch.start()
    try:
        yield
    finally:
        ended.set()
        watch.join(PATIENCE)


def _watch(cluster: Any, jobs: Jobs, key: str, ended: Event) -> None:
    """Look after the jobs until the run ends, or all of them have."""
    absent: set[str] = set()
    over: set[str] = set()
    while not ended.wait(LOOK):
        alive = jobs.alive()
        missing = set() if alive is None else set(jobs.accepted) - alive
        new = (missing & absent) - over  # at two looks: some Slurms answer what was some time ago
        absent, over = missing, over | new
        if len(cluster.worker_spec) > len(over) + len(jobs.refused) or cluster.scheduler.workers:
            for number in sorted(new, key=int):
                if not jobs.had_worker(number):
                    end = jobs.log_end(number)
                    say(f"vitolab: job {number} of Slurm ended before it had a worker: {end}")
        elif over:
            cluster.scheduler.set_metadata([key], jobs.why_none(sorted(over, key=int)))
            return
