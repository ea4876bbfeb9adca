"""The patients of a file one after the other: what is asked for, where it begins, how it ends."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitolab.agent import ContinuousVito
from vitolab.agent.continuous import FILE
from vitolab.agent.experienced import check_experience
from vitolab.agent.folder import check_replaceable
from vitolab.asked import checked_count
from vitolab.display import say
from vitolab.experience import Experience
from vitolab.methods import CONTINUOUS_AGENT, Settings
from vitolab.patients import InputError
from vitolab.personalization.kept import alone, holds, once
from vitolab.problem import Patient, Problem
from vitolab.quantities import checksum_of
from vitolab.store import OpenRun, Run, list_runs
from vitolab.store.folder import stored_parameters, take_over_parts
from vitolab.trajectories import Trajectories
from vitolab.validation.continuing import Continuing
from vitolab.validation.rounds import one_after_another, read_fits
from vitolab.version import code_version

_BEGUN, _LEARNED = "begun/", "learned_key"  # among the arrays of a run


@dataclass(frozen=True)
class Order:
    """How the patients of a file are personalised one after the other.

    Attributes
    ----------
    method : Continuing
        With the experience to begin with.
    agent : Path or None
        Where the agent is kept.
    total_runs : int or None
    at_a_time : int
    found : str
        Key of the experience of the agent as it is replaced in the end; empty if there is none, or
        it has learned from others, too.
    """

    method: Continuing
    agent: Path | None = None
    total_runs: int | None = None
    at_a_time: int = 1
    found: str = ""

    def __post_init__(self) -> None:
        checked_count("at_a_time", self.at_a_time)
        if self.total_runs is not None:
            checked_count("total_runs", self.total_runs)
        name = self.method.method
        if self.agent is None:
            return
        if name != CONTINUOUS_AGENT:
            raise ValueError(f"method is {name!r}, expected {CONTINUOUS_AGENT!r} with an agent")
        if not self.agent.parent.is_dir():
            raise InputError(
                f"{self.agent}: there is no folder {self.agent.parent}, expected a name in a "
                "folder that exists"
            )
        if not os.access(self.agent.parent, os.W_OK):
            raise InputError(f"{self.agent}: expected a name in a folder that can be written to")
        with alone(self.agent):
            check_replaceable(self.agent, FILE)

    @classmethod
    def asked(
        cls,
        problem: Problem,
        method: str,
        seed: int,
        give_up: float,
        agent: Path | None,
        total_runs: int | None,
        at_a_time: int,
    ) -> Order:
        """Check what is asked for, and load the agent if there is one.

        Raises
        ------
        ValueError
            If the method learns states, or the agent is another one or of another problem.
        InputError
            If the agent could not be saved.
        """
        begun = Experience.none(problem)
        settings = Settings(give_up=give_up)
        order = cls(
            Continuing(problem, method, begun, settings, seed), agent, total_runs, at_a_time
        )
        known = order.known()
        return order if known is None else order.beginning(known, known.key)

    def known(self) -> Experience | None:
        """Experience of the agent; None if there is none."""
        if self.agent is None or not self.agent.parent.is_dir():
            return None
        with alone(self.agent):
            return self._known()

    def _known(self) -> Experience | None:
        if self.agent is None or not self.agent.exists():
            return None
        problem = self.method.problem
        try:
            return ContinuousVito.load(self.agent, problem).experience
        except ValueError:
            if _is_older(self.agent, problem):
                raise ValueError(
                    f"{self.agent}: the model or its files have changed since the agent learned, "
                    f"expected version {problem.version}: put them back, or name another folder "
                    "for an agent of the changed model"
                ) from None
            raise

    def beginning(self, begun: Experience, found: str) -> Order:
        """The same with other experience to begin with, and another key of what was found."""
        return replace(self, method=replace(self.method, experience=begun), found=found)

    def parameters(self, patients: Sequence[Patient]) -> dict[str, Any]:
        """Parameters of the run."""
        return {
            "learn_as_you_go": True,
            "order": [patient.name for patient in patients],
            "at_a_time": self.at_a_time,
            "total_runs": self.total_runs,
            "agent_key": "" if self.agent is None else self.method.experience.key,
        }

    def resumed(
        self,
        root: Path,
        study: str,
        parameters: Mapping[str, Any],
        patients: Sequence[Patient],
        again: bool,
    ) -> tuple[Order, Path | None]:
        """Go on with the newest finished run of the same patients, whatever its total was.

        The agent that such a run left behind is what the run made of an earlier one: the patients
        would count twice if it learned from them again. It may have learned from others since;
        with `again` it is then another agent.

        Returns
        -------
        Order
            Beginning where that run began, if the agent holds what it left behind.
        Path or None
            Folder of that run, whose parts are there already.
        """
        free = ("total_runs", "agent_key")
        asked = stored_parameters(root, parameters)
        asked = {name: value for name, value in asked.items() if name not in free}
        for info in list_runs(root):
            known = {name: v for name, v in info.parameters.items() if name not in free}
            of_version = (info.path.parent.name, info.seed, info.version) == (
                study,
                self.method.seed,
                code_version(study),
            )
            if not of_version or known != asked or info.status != "complete":
                continue
            begun = info.parameters.get("agent_key", "")
            if begun == parameters["agent_key"]:
                return self, info.path
            run = Run.load(info.path)
            try:
                run.check_files()
            except ValueError:
                if again:
                    continue
                raise
            left = str(run.arrays.get(_LEARNED))
            is_left = left == self.method.experience.key
            if is_left or (left != "None" and not again and self._holds(run, patients)):
                own = {
                    name.removeprefix(_BEGUN): array
                    for name, array in run.arrays.items()
                    if name.startswith(_BEGUN)
                }
                check_experience(info.path / "arrays.npz", self.method.problem, own)
                begins = Experience.from_arrays(self.method.problem, own)
                return self.beginning(begins, self.found if is_left else ""), info.path
        return self, None

    def _holds(self, run: Run, patients: Sequence[Patient]) -> bool:
        """Whether the agent has learned from a run already."""
        m = self.method
        fits = read_fits(m.problem, patients, run.personalizations, run.traces)
        return holds(m.experience, Experience.none(m.problem).after(fits))

    def personalize(
        self,
        run: OpenRun,
        setup: str,
        patients: Sequence[Patient],
        *,
        earlier: Path | None,
        walks: Callable[[], Trajectories] | None,
        left_out: Mapping[str, Sequence[str]],
        trained_on: str,
        n_samples: int | None,
        max_runs: int,
        n_jobs: int,
    ) -> dict[str, NDArray[Any]]:
        """Personalise the patients of a file, see `one_after_another`.

        Parameters
        ----------
        run : OpenRun
        setup : str
        patients : sequence of Patient
        earlier : Path, optional
            Folder of a run of which the finished parts are taken over.
        walks : callable, optional
            Gives walks to begin with, of which those of a patient's own are left out.
        left_out : mapping of patient name to sequence of str
        trained_on : str
        n_samples : int, optional
        max_runs, n_jobs : int

        Returns
        -------
        dict of str to ndarray
            What the run stores of where it began and what was learned.
        """
        if run.state == "new" and earlier is not None:
            take_over_parts(earlier / "parts", run.path / "parts")
        problem = self.method.problem

        def known(patient: Patient) -> Experience:
            if explored is None:  # the runs of another file may be the patient's own
                return self.method.experience.without(patient.name, checksum_of(patient))
            others = [n for n in explored.patients if n not in left_out[patient.name]]
            return Experience.learn(problem, explored.select(others))

        explored = None if walks is None else walks()

        learned = one_after_another(
            run,
            setup,
            self.method,
            patients,
            known=known,
            known_as="patients of the agent" if walks is None else trained_on,
            n_samples=n_samples,
            max_runs=max_runs,
            total_runs=self.total_runs,
            at_a_time=self.at_a_time,
            n_jobs=n_jobs,
        )
        if self.agent is None:
            return {}
        begun = self.method.experience.to_arrays()
        return {
            **{f"{_BEGUN}{name}": array for name, array in begun.items()},
            _LEARNED: np.array(once(learned.experience).key),
        }

    def keep(self, stored: Run, patients: Sequence[Patient]) -> None:
        """Save the agent that learned from a finished run, if one is asked for.

        What another command has taught it meanwhile is kept, too.
        """
        if self.agent is None:
            return
        m = self.method
        fits = read_fits(m.problem, patients, stored.personalizations, stored.traces)
        with alone(self.agent):
            known = self._known()
            if known is None or known.key == self.found:
                learned = m.experience.after(fits)
            elif holds(known, Experience.none(m.problem).after(fits)):
                learned = known
            else:
                learned = known.after(fits)
                say(f"{self.agent} has learned from other patients meanwhile, and keeps them")
            agent = ContinuousVito(m.problem, once(learned), m.settings.give_up)
            agent.save(self.agent, replace=True)


def _is_older(agent: Path, problem: Problem) -> bool:
    """Whether an agent learned this problem, but for the version of its model."""
    try:
        learned = json.loads((agent / FILE).read_text(encoding="utf-8"))["problem"]
        given = json.loads(json.dumps(problem.describe()))
        return bool({**learned, "version": given["version"]} == given != learned)
    except (OSError, ValueError, KeyError, TypeError):
        return False
