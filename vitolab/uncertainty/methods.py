"""Which methods a study of uncertainty runs: optimisers by name, and agents that learn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from vitolab.agent import Vito
from vitolab.problem import Patient, Problem
from vitolab.trajectories import Personalizer, Trajectories
from vitolab.validation import REFERENCES, child_seed, walks_for
from vitolab.validation.parts import Part, PartStore, allowed, work_through

#: Learns from walks: ``learner(problem, walks, seed=...)``.
Learner = Callable[..., Personalizer]


@dataclass(frozen=True)
class Methods:
    """What personalises in a study.

    Attributes
    ----------
    references : sequence of str
        Names in `vitolab.validation.REFERENCES`.
    learners : mapping of str to (callable, int)
        By method name: the learner, see `vito_learner`, and the transitions per training patient
        that it learns from.
    training : sequence of Patient
        Who is explored; the patient at hand is always left out. Explored walks do not depend on
        measurements.

    Raises
    ------
    ValueError
        If there is no method, a name is not known or used twice, or nobody is left to learn from.
    """

    references: Sequence[str] = ()
    learners: Mapping[str, tuple[Learner, int]] = field(default_factory=dict)
    training: Sequence[Patient] = ()

    def __post_init__(self) -> None:
        if not self.references and not self.learners:
            raise ValueError("methods: there is none, expected a reference or a learner")
        for name in self.references:
            if name not in REFERENCES:
                raise ValueError(f"method is {name!r}, expected one of {', '.join(REFERENCES)}")
            if name in self.learners:
                raise ValueError(f"method {name!r} occurs twice, expected once")
        if self.learners and len(self.training) < 2:
            raise ValueError(
                f"{len(self.training)} training patients, expected at least 2 to leave one out"
            )

    def n_samples(self, method: str) -> int | None:
        """Transitions per training patient that a method learns from; None if it does not."""
        return self.learners[method][1] if method in self.learners else None

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
        stage: str,
        problem: Problem,
        work: Mapping[str, tuple[Any, ...]],
        fold: Callable[..., Part],
        seed: int,
        n_jobs: int,
        cache: Path | None,
    ) -> None:
        """Compute the parts that the run lacks: ``fold(walks or None, *work[key])``."""
        walks = None
        if self.learners:
            most = max(n_samples for _, n_samples in self.learners.values())
            child = child_seed(seed, "repeat", 0)  # the studies', so that walks are shared
            walks = partial(walks_for, problem, self.training, most, child, n_jobs, cache)
        else:
            fold = partial(fold, None)
        # short steps of plain Python between the runs, which threads would take in turns
        work_through(run, stage, work, fold, n_jobs, walks=walks, prefer="processes")

    def personalizers(
        self, problem: Problem, walks: Trajectories | None, patient: Patient, seed: int
    ) -> dict[str, Personalizer]:
        """By name; learners have learned from everybody but this patient."""
        found = {name: REFERENCES[name](problem) for name in self.references}
        if walks is not None:
            train = walks.without(patient.name)
            fold_seed = child_seed(child_seed(seed, "repeat", 0), "fold", patient.name)
            for name, (learner, n_samples) in self.learners.items():
                found[name] = learner(problem, train.first(n_samples), seed=fold_seed)
        return found


def vito_learner(n_states: int) -> Learner:
    """Learner of the paper's agent, with fewer states where the walks do not allow so many."""
    return partial(_vito, n_states=n_states)


def _vito(problem: Problem, walks: Trajectories, *, seed: int, n_states: int) -> Vito:
    return Vito.learn(problem, walks, allowed(n_states, problem, walks), seed)
