"""A Python function of one parameter vector, run in worker processes that can be ended."""

from __future__ import annotations

import multiprocessing
from dataclasses import dataclass, field
from typing import Any

from vitolab.adapters.calls import Batched, Workers, called
from vitolab.adapters.files import KnownFiles
from vitolab.adapters.rows import (
    Answer,
    Function,
    Running,
    answers,
    ask_again,
    check_limits,
)
from vitolab.failures import CannotRun
from vitolab.parallel.workers import processors
from vitolab.problem import FloatArray, Patient
from vitolab.running import Answers


@dataclass(frozen=True)
class FunctionModel:
    """A batched model from a function of one parameter vector.

    The function may be defined anywhere, also in a notebook or within another function. It runs
    in worker processes, which are started once and kept; a call that takes longer than the limit
    ends with its process, as does one that brings the process down. Either is a failed run.
    Where processes may not be started, as in an ordinary worker of Dask, the function is called
    in the process that is there.

    Attributes
    ----------
    function : callable
        ``function(x, patient)`` with x of shape (n_parameters,); answers with numbers by name of
        output, or in the order of the outputs. An exception is a failed run. What it has to do
        once per process may be in a method ``prepare()``, whose time does not count; where that
        raises an exception the model cannot be run at all.
    outputs : tuple of str
        Names of the outputs, in the order of the problem's objectives.
    time_limit : float, optional
        Of one call, s of wall clock; without one a call may take forever.
    n_workers : int, optional
        Processes; by default one per processor of where it runs. With 0 the function is called in
        this process, where nothing can end it: for functions that take less than some
        milliseconds.
    retries : int
        Further attempts for a call that fails, for failures that are a matter of luck.
    files : KnownFiles
        Files that must stay as they are, for the answers depend on them.

    Raises
    ------
    ValueError
        If a setting makes no sense, or there is a limit without processes.
    """

    function: Function
    outputs: tuple[str, ...]
    time_limit: float | None = None
    n_workers: int | None = None
    retries: int = 0
    files: KnownFiles = field(default_factory=KnownFiles)

    def __post_init__(self) -> None:
        check_limits(self.outputs, self.time_limit, self.retries, self.n_workers)
        if self.n_workers == 0 and self.time_limit is not None:
            raise ValueError("time_limit needs worker processes, expected n_workers above 0")
        object.__setattr__(self, "_workers", Workers(self.function))

    @property
    def own_processes(self) -> bool:
        """Whether studies leave it to the model to start processes."""
        return self.n_workers != 0

    def __call__(self, x: FloatArray, patient: Patient) -> FloatArray:
        """Run the model, shape (n, n_outputs); NaN where a run failed. See `answers`."""
        return self.answers(x, patient).y

    def answers(self, x: FloatArray, patient: Patient) -> Answers:
        """Run the model, and say why rows have no answer.

        Parameters
        ----------
        x : ndarray, shape (n, n_parameters)
        patient : Patient

        Returns
        -------
        Answers
            NaN where a run failed.

        Raises
        ------
        CannotRun
            If the function cannot be brought to a process or prepared there, there is a time
            limit where processes may not be started, or a file was changed meanwhile.
        """
        self.files.check()
        found = self._each(x, patient)
        self.files.check()  # what came of a changed file goes nowhere
        return found

    def _each(self, x: FloatArray, patient: Patient) -> Answers:
        """Call the function for each row."""
        workers: Workers = vars(self)["_workers"]
        no_children = multiprocessing.current_process().daemon
        if no_children and self.time_limit is not None:
            raise CannotRun(
                "a model with a time limit needs processes of its own, which this process may not "
                "start; start Dask workers with DASK_DISTRIBUTED__WORKER__DAEMON=False in their "
                "environment, or with --no-nanny"
            )
        if no_children or self.n_workers == 0:
            workers.prepare_here()
            return answers(lambda row: self._here(row, patient), x, len(self.outputs), 1)
        n_workers = self.n_workers or processors()
        running = Running()

        def ask(row: FloatArray) -> Answer:
            with workers.one(n_workers) as worker, running.held(worker.end):
                return ask_again(
                    lambda: worker.ask(row, patient, self.outputs, self.time_limit), self.retries
                )

        return answers(ask, x, len(self.outputs), n_workers, running)

    def _here(self, row: FloatArray, patient: Patient) -> Answer:
        """Call the function in this process."""

        def ask() -> Answer:
            return called(self.function, row.copy(), patient, self.outputs)

        answer = ask_again(ask, self.retries)
        if isinstance(answer, Batched):
            raise CannotRun(answer.text)
        return answer

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the processes, which do not travel."""
        return {name: value for name, value in vars(self).items() if name != "_workers"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take everything over, without processes yet."""
        vars(self).update(state, _workers=Workers(state["function"]))

    def close(self) -> None:
        """End the worker processes; another call starts them again."""
        vars(self)["_workers"].close()

    def __enter__(self) -> FunctionModel:
        """Use the model in a block, at whose end the processes end."""
        return self

    def __exit__(self, *error: object) -> None:
        """End the worker processes."""
        self.close()
