"""Which methods a study of uncertainty runs: optimisers by name, and agents that learn."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from vitolab.fit import Personalizer
from vitolab.methods import AGENTS, EPISODE, REFERENCES, Settings, build, find, learn
from vitolab.problem import Patient, Problem
from vitolab.trajectories import Trajectories
from vitolab.validation import child_seed
from vitolab.validation.parts import (
    Part,
    PartStore,
    recorded_walks,
    work_through,
    workers,
)


@dataclass(frozen=True)
class Learning:
    """What an agent learns from, and how.

    Attributes
    ----------
    n_samples : int
        Transitions per training patient.
    settings : Settings
        See `vitolab.methods.learn`; the walks may allow fewer states than it says.
    n_steps : int
        Steps of each explored walk.
    """

    n_samples: int
    settings: Settings = field(default_factory=Settings)
    n_steps: int = EPISODE


#: Walks by their number of steps.
Walks = Mapping[int, Trajectories]


@dataclass(frozen=True)
class Methods:
    """What personalises in a study.

    Attributes
    ----------
    references : sequence of str
        Names of reference methods, see `vitolab.methods`.
    learners : mapping of str to Learning
        By name of an agent, see `vitolab.methods`.
    training : sequence of Patient
        Who is explored; the patient at hand is always left out. Explored walks do not depend on
        measurements.

    Raises
    ------
    ValueError
        If there is no method, a name is not known, or nobody is left to learn from.
    """

    references: Sequence[str] = ()
    learners: Mapping[str, Learning] = field(default_factory=dict)
    training: Sequence[Patient] = ()

    def __post_init__(self) -> None:
        if not self.references and not self.learners:
            raise ValueError("methods: there is none, expected a reference or a learner")
        for name in self.references:
            find(name, REFERENCES)
        for name in self.learners:
            find(name, AGENTS)
        if self.learners and len(self.training) < 2:
            raise ValueError(
                f"{len(self.training)} training patients, expected at least 2 to leave one out"
            )

    def n_samples(self, method: str) -> int | None:
        """Transitions per training patient that a method learns from; None if it does not."""
        return self.learners[method].n_samples if method in self.learners else None

    def label(
        self,
        setup: str,
        patient: Patient,
        method: str,
        seed: int,
        *,
        repeat: int | None = None,
        start: int | None = None,
    ) -> dict[str, Any]:
        """Keys of a row of the personalizations table."""
        return {
            "setup": setup,
            "patient": patient.name,
            "method": method,
            "n_states": None,
            "n_samples": self.n_samples(method),
            "repeat": repeat,
            "start": start,
            "seed": seed,
            "n_states_used": None,
        }

    def work_through(
        self,
        run: PartStore,
        setup: str,
        what: str,
        problem: Problem,
        work: Mapping[str, tuple[Any, ...]],
        fold: Callable[..., Part],
        seed: int,
        n_jobs: int,
        cache: Path | None,
    ) -> None:
        """Compute the parts that the run lacks: ``fold(walks, *work[key])``."""
        stage = f"{setup}, {what}"
        walks: dict[int, Trajectories] = {}
        missing = not all(run.has_part(key) for key in work)
        if self.learners and missing and time.time() < run.until:
            run.progress(f"{stage}: exploring", 0, len(work))
            walks = self._explore(run, setup, problem, seed, n_jobs, cache)
        # short steps of plain Python between the runs, which threads would take in turns
        work_through(run, stage, work, partial(fold, walks), n_jobs, prefer=workers(problem))

    def _explore(
        self,
        run: PartStore,
        setup: str,
        problem: Problem,
        seed: int,
        n_jobs: int,
        cache: Path | None,
    ) -> dict[int, Trajectories]:
        """Walks of all training patients, as long and as many as the learners ask for."""
        most: dict[int, int] = {}
        for learning in self.learners.values():
            most[learning.n_steps] = max(most.get(learning.n_steps, 0), learning.n_samples)
        child = child_seed(seed, "repeat", 0)  # the studies', so that walks are shared
        return {
            n_steps: recorded_walks(
                run, setup, problem, self.training, n_samples, child, n_jobs, cache, n_steps
            )
            for n_steps, n_samples in most.items()
        }

    def personalizers(
        self, problem: Problem, walks: Walks, patient: Patient, seed: int
    ) -> dict[str, Personalizer]:
        """By name; learners have learned from everybody but this patient."""
        found = {name: build(name, problem) for name in self.references}
        fold_seed = child_seed(child_seed(seed, "repeat", 0), "fold", patient.name)
        for name, learning in self.learners.items():
            train = walks[learning.n_steps].without(patient.name).first(learning.n_samples)
            found |= learn([name], problem, train, fold_seed, learning.settings)
        return found
