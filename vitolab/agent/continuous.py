"""An agent with continuous actions: a model of the model, learned from the runs so far.

It plans where the paper's agent looks up. An emulator tells which outputs to expect of a patient's
model, and how sure that is; the agent runs the model where the emulator finds the measurements most
probable, corrects the emulator by what it found, and plans on. Without stored runs it begins with
the default values and points spread over Ω.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vitolab.agent.course import Course
from vitolab.agent.experienced import check_experience
from vitolab.agent.folder import ARRAYS, check_features, read_agent, write_agent
from vitolab.agent.knowledge import Knowledge, knowledge_of
from vitolab.asked import checked_chance, checked_seed
from vitolab.experience import Experience
from vitolab.files import bits, stream
from vitolab.fit import Fit
from vitolab.objects import Value
from vitolab.parallel.threads import one_thread
from vitolab.problem import FloatArray, Patient, Problem
from vitolab.saved import field
from vitolab.settings import Settings, chosen
from vitolab.trajectories import Trajectories

FILE = "continuous.json"


@dataclass(frozen=True, eq=False, repr=False)
class ContinuousVito(Value):
    """The agent with continuous actions.

    Attributes
    ----------
    problem : Problem
    experience : Experience
    give_up : float
        Chance to meet all measurements below which it ends a patient as one whose measurements the
        model cannot reach; 0 for never. It takes two plans in a row below that chance once the
        best compromise was run, four before, and two runs more than parameters that answered.
        `Fit.note` then names the measurements that contradict each other.

    Raises
    ------
    ValueError
        If the chance is no share below 1.

    Examples
    --------
    >>> import vitolab as vl
    >>> problem = vl.models.rosenbrock.problem()
    >>> patient, *others = vl.models.rosenbrock.cohort(4)
    >>> walks = vl.explore(problem, others, n_episodes=2, n_steps=20, seed=0)
    >>> vl.ContinuousVito.learn(problem, walks).personalize(patient).solved
    True

    Without walks it learns from one patient after the other:

    >>> agent = vl.ContinuousVito.learn(problem)
    >>> for other in others:
    ...     agent = agent.update([(other, agent.personalize(other))])
    >>> agent.personalize(patient).solved
    True
    """

    problem: Problem
    experience: Experience
    give_up: float = 0.0

    def __post_init__(self) -> None:
        checked_chance("give_up", self.give_up)

    def facts(self) -> dict[str, Any]:
        """Rows of the printed form, by name."""
        return {
            "problem": self.problem,
            "runs": len(self.experience.u),
            "patients": len(self.experience.known),
            "features": self.problem.features,
        }

    @classmethod
    def learn(
        cls,
        problem: Problem,
        walks: Trajectories | Experience | None = None,
        n_states: int | None = None,
        seed: int = 0,
        *,
        settings: Settings | None = None,
        **changes: Any,
    ) -> ContinuousVito:
        """Learn from explored walks, or from nothing.

        Walks of one step from random starts (``explore(..., n_steps=1, by_scale=True)``) teach more
        per run than long ones, which stay where they began.

        Parameters
        ----------
        problem : Problem
        walks : Trajectories or Experience, optional
            Walks of the training patients, where `Trajectories.without` leaves one out; or runs.
        n_states, seed, settings, **changes
            Accepted as by `Vito.learn`, so that one call serves every agent, and ignored but for
            `Settings.give_up`: this agent has no states and draws nothing while it learns.

        Raises
        ------
        ValueError
            If no run among the walks succeeded.
        TypeError
            If a keyword is no setting.
        """
        give_up = chosen(settings, n_states, changes).give_up
        if walks is None or (isinstance(walks, Experience) and not len(walks.u)):
            return cls(problem, Experience.none(problem), give_up)
        return cls(problem, Experience.learn(problem, walks), give_up)

    def update(self, fits: Sequence[tuple[Patient, Fit]]) -> ContinuousVito:
        """Learn from personalisations, too.

        Parameters
        ----------
        fits : sequence of (Patient, Fit)
            In their order; in any grouping the agent is the same.

        Returns
        -------
        ContinuousVito
        """
        return replace(self, experience=self.experience.after(fits))

    @property
    def knowledge(self) -> Knowledge:
        """What plans rest on; the covariances are learned when they are asked for, and kept."""
        return knowledge_of(self.experience)

    def personalize(self, patient: Patient, *, max_runs: int | None = None, seed: int = 0) -> Fit:
        """Personalise one patient, starting where the agent expects the solution.

        Parameters
        ----------
        patient : Patient
        max_runs : int, optional
            Largest number of forward runs, the first one included; by default 50 per parameter.
        seed : int
            Of points that are drawn.

        Returns
        -------
        Fit
            Its trace holds the misfit expected of each run; it has no actions and no states.

        Raises
        ------
        ValueError
            If no run is allowed or a measurement is missing.
        """
        rng = stream("continuous", self.problem.name, checked_seed(seed), patient.name)
        with one_thread():
            return Course(self.problem, self.knowledge, patient, max_runs, rng, self.give_up).fit(
                None
            )

    def personalize_from(
        self, patient: Patient, starts: FloatArray, *, max_runs: int | None = None, seed: int = 0
    ) -> list[Fit]:
        """Personalise one patient from given starts.

        Parameters
        ----------
        patient : Patient
        starts : ndarray, shape (n, n_parameters)
            Moved into Ω, which the agent never leaves.
        max_runs : int, optional
        seed : int
            The outcome of a start does not depend on the other starts.

        Returns
        -------
        list of Fit

        Raises
        ------
        ValueError
            If no run is allowed or a measurement is missing.
        """
        fits = []
        with one_thread():
            for start in starts:
                own = (checked_seed(seed), patient.name, bits(start))
                rng = stream("continuous", self.problem.name, *own)
                fits.append(
                    Course(self.problem, self.knowledge, patient, max_runs, rng, self.give_up).fit(
                        start
                    )
                )
        return fits

    def save(self, path: Path, *, replace: bool = False) -> None:
        """Write the agent as a folder of plain arrays and JSON, whole or not at all.

        Parameters
        ----------
        path : Path
        replace : bool
            Whether the folder of an earlier agent may be there, which is replaced.

        Raises
        ------
        FileExistsError
            If the path exists.
        ValueError
            If a folder to be replaced holds more than such an agent.
        """
        known = {"features": list(self.problem.features), "give_up": self.give_up}
        arrays = self.experience.to_arrays()
        write_agent(path, FILE, self.problem, known, arrays, check_experience, replace=replace)

    @classmethod
    def load(cls, path: Path, problem: Problem) -> ContinuousVito:
        """Read an agent written by `save`; the problem must be the one it learned.

        Raises
        ------
        ValueError
            If the format is unknown or the problem differs.
        """
        path = Path(path)
        description, arrays = read_agent(path, FILE, problem)
        check_features(path, FILE, problem, description)
        if "variation" in arrays:
            raise ValueError(
                f"{path}: the agent was saved by an earlier version, which kept less than it now "
                "needs; learn it again from its walks"
            )
        check_experience(path / ARRAYS, problem, arrays)
        give_up = field(path / FILE, description, "give_up", float)
        try:
            return cls(problem, Experience.from_arrays(problem, arrays), give_up)
        except ValueError as error:
            raise ValueError(f"{path / FILE}: {error}") from None
