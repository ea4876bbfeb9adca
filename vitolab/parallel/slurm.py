"""Workers that are jobs of Slurm: checked, submitted, ended with the run that asked for them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from vitolab.parallel.jobs import Jobs, watched
from vitolab.parallel.workers import INSTALL, NO_WORKER, SCHEDULER


class _RefusedError(Exception):
    """A job was not submitted."""


def check_slurm() -> None:
    """Refuse to submit jobs where it cannot be done.

    Raises
    ------
    ValueError
        If dask-jobqueue is not installed, the memory of a job is not configured, or this machine
        has no ``sbatch``.
    """
    _settings()
    if shutil.which("sbatch") is None:
        raise ValueError("sbatch is not found, expected a machine that submits jobs to Slurm")


def _settings() -> dict[str, Any]:
    """What is configured for the jobs."""
    try:
        import dask_jobqueue  # noqa: F401  # whose defaults become Dask's
        from dask import config
    except ImportError:
        raise ValueError(f"a cluster needs dask-jobqueue, not installed: {INSTALL}") from None
    found = config.get("jobqueue.slurm")
    # in the environment they have underscores
    settings: dict[str, Any] = {name.replace("_", "-"): found[name] for name in found}
    if not settings["memory"]:
        raise ValueError(
            "jobqueue.slurm.memory is not set in Dask's configuration, such as "
            "~/.config/dask/jobqueue.yaml, expected the memory of a job, such as 4GB"
        )
    return settings


def slurm_cluster() -> Any:
    """Scheduler in this process, encrypted, whose workers are jobs of Slurm; none is there yet.

    All about the jobs (queue, account, memory, cores, walltime, ...) comes from the section
    ``jobqueue.slurm`` of Dask's configuration, and so do the certificates if it names some.
    Each core is a worker of one thread.

    Returns
    -------
    dask_jobqueue.SLURMCluster

    Raises
    ------
    ValueError
        As `check_slurm`, but for ``sbatch``.
    """
    return _cluster()[0]


def _cluster() -> tuple[Any, Jobs]:
    """Cluster of `slurm_cluster`, and what is known of its jobs."""
    settings = _settings()
    from dask_jobqueue import SLURMCluster
    from dask_jobqueue.slurm import SLURMJob
    from distributed import SchedulerPlugin, Security, Status

    # A command that is started from one thread while another changes the environment can find it
    # half changed ("Bad address"): all are given a copy of now.
    environment = dict(os.environ)
    jobs = Jobs(environment)

    class Job(SLURMJob):
        @staticmethod
        async def _call(cmd: list[str], **options: Any) -> Any:
            return await SLURMJob._call(cmd, **({"env": environment} | options))

        async def start(self) -> None:
            """Submit, and say what Dask would only log."""
            try:
                await super().start()
            except (OSError, RuntimeError, ValueError) as error:  # ValueError: no number of a job
                why = " ".join(str(error).split())
                print(f"vitolab: a job was not submitted to Slurm: {why}", file=sys.stderr)
                self.status = Status.failed  # else closing the cluster fails, too
                jobs.refused.add(self.name)
                if jobs.refused.issuperset(cluster.worker_spec):
                    said = (
                        f"Slurm refused all {len(jobs.refused)} jobs, expected one that can start"
                    )
                    cluster.scheduler.set_metadata([NO_WORKER], said)
                raise _RefusedError from None
            jobs.accepted[str(self.job_id)] = self

        async def close(self) -> None:
            """Cancel, and know it: else closing the cluster fails where another was refused."""
            await super().close()
            self.status = Status.closed

    class Cluster(SLURMCluster):
        async def _correct_state_internal(self) -> None:
            with suppress(_RefusedError):  # is said already; Dask would log where it was raised
                await super()._correct_state_internal()

    class Came(SchedulerPlugin):
        def add_worker(self, scheduler: Any, worker: str) -> None:
            """Note the name of a worker."""
            jobs.workers.add(str(scheduler.workers[worker].name))

    cores = settings["cores"] or 1
    security = Security()
    if security.tls_ca_file is None:
        security = Security.temporary()
    cluster = Cluster(
        job_cls=Job,
        cores=cores,
        processes=cores,
        security=security,
        # where jobs read the certificates made for them
        shared_temp_directory=settings["shared-temp-directory"] or str(Path.home()),
        # its web pages ask for no certificate
        scheduler_options={"dashboard_address": "127.0.0.1:0"} | settings["scheduler-options"],
    )
    cluster.scheduler.add_plugin(Came(), name="vitolab")
    return cluster, jobs


@contextmanager
def slurm(n_workers: int) -> Iterator[dict[str, str]]:
    """Let Slurm start workers, and end them.

    Parameters
    ----------
    n_workers : int

    Yields
    ------
    dict of str to str
        Environment of a process whose work they do.

    Raises
    ------
    ValueError
        If Slurm refuses such a job.
    """
    cluster, jobs = _cluster()
    with cluster:
        # what Dask submits later fails in its log alone
        command = ["sbatch", "--test-only"]
        script = cluster.job_script()
        tried = subprocess.run(
            command,
            input=script,
            capture_output=True,
            text=True,
            check=False,
            env=dict(os.environ),  # Dask's threads are there by now
        )
        if tried.returncode:
            raise ValueError(f"Slurm refuses the job: {' '.join(tried.stderr.split())}")
        cluster.scale(n_workers)
        tls = cluster.security.get_tls_config_for_role("client")
        prefix = "DASK_DISTRIBUTED__COMM__TLS__"
        with watched(cluster, jobs, NO_WORKER):
            yield {
                SCHEDULER: cluster.scheduler_address,
                f"{prefix}CA_FILE": tls["ca_file"],
                f"{prefix}CLIENT__CERT": tls["cert"],
                f"{prefix}CLIENT__KEY": tls["key"],
            }
