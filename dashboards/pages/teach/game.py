"""The game of the page Teach: one patient, personalised by hand, by Vito, or by both in turn."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from vitolab.agent import Vito
from vitolab.explain import action_names, because
from vitolab.files import stream
from vitolab.fit import Fit
from vitolab.methods import build, references
from vitolab.problem import FloatArray, Patient, Problem
from vitolab.store.policies import Knowledge
from vitolab.validation import child_seed

from ...kit.safe import fill

YOU, VITO, START = "you", "Vito", ""
SHOWN = 6  # actions in Vito's table


@dataclass(frozen=True)
class Move:
    """A forward run that is to be made.

    Attributes
    ----------
    who : str
        `YOU`, `VITO`, or `START`: the first run is nobody's move.
    x : ndarray, shape (n_parameters,)
    words : str
        What is done, in words.
    origin : ndarray, shape (n_parameters,)
        Point from which whole steps are counted.
    count : ndarray of int, shape (n_parameters,)
    jump : bool
        Whether it begins anew.
    """

    who: str
    x: FloatArray
    words: str
    origin: FloatArray
    count: np.ndarray
    jump: bool = False


@dataclass
class Game:
    """State of a game.

    Attributes
    ----------
    problem : Problem
    patient : Patient
    moves : list of Move
        Forward runs that were made.
    y, c : list of ndarray
        Their outputs and misfits.
    at : int
        The forward run from which the next move goes on.
    n_candidates : int
        Start candidates that Vito has used.
    """

    problem: Problem
    patient: Patient
    moves: list[Move] = field(default_factory=list)
    y: list[FloatArray] = field(default_factory=list)
    c: list[FloatArray] = field(default_factory=list)
    at: int = 0
    n_candidates: int = 0

    @property
    def n_runs(self) -> int:
        """Forward runs so far."""
        return len(self.c)

    @property
    def here(self) -> Move:
        """The run from which the next move goes on."""
        return self.moves[self.at]

    @property
    def misfits(self) -> FloatArray:
        """Misfits of that run."""
        return self.c[self.at]

    @property
    def solved_at(self) -> int | None:
        """The first run with all misfits within their tolerances, from 1."""
        for k, c in enumerate(self.c):
            if bool(self.problem.is_solved(c)):
                return k + 1
        return None

    @property
    def best(self) -> int:
        """The run whose worst misfit in tolerances is smallest, from 0."""
        worst = np.max(np.abs(self.c) / self.problem.tolerance, axis=1)
        return int(np.argmin(np.nan_to_num(worst, nan=np.inf)))

    @property
    def worst(self) -> float:
        """Smallest worst misfit so far, in tolerances."""
        return float(np.max(np.abs(self.c[self.best]) / self.problem.tolerance))

    def begin(self) -> tuple[Move, FloatArray]:
        """Make the first run; in a worker.

        Returns
        -------
        move : Move
            At the default parameters; where they are a solution already, at random ones.
        y : ndarray, shape (n_objectives,)
        """
        x, words = self.problem.default.copy(), "the start, at the default values"
        rng = stream("teach", self.problem.name, self.patient.name)
        z = self.problem.measured(self.patient)
        for _ in range(20):
            y = run_model(self.problem, self.patient, x)
            if not bool(self.problem.is_solved(self.problem.misfit(y, z))):
                break
            x = self.problem.draw(rng)[0]
            words = "the start, at random values, as the default ones are a solution"
        return self._jump(START, x, words), y

    def step(self, action: int, who: str = YOU) -> Move:
        """One of the paper's actions."""
        here = self.here
        count = self.problem.move(
            here.origin[np.newaxis], here.count[np.newaxis], np.array([action])
        )
        x = self.problem.at(here.origin[np.newaxis], count)[0]
        words = action_names(self.problem)[action]
        if not np.array_equal(count[0] - here.count, self.problem.actions[action]):
            words += ", as far as the border"
        return Move(who, x, words, here.origin, count[0])

    def slide(self, x: FloatArray) -> Move:
        """Parameters set by hand, kept within the domain."""
        x = np.clip(np.asarray(x, dtype=np.float64), self.problem.lower, self.problem.upper)
        changed = [
            f"{p.label} = {value:.4g}"
            for p, value, before in zip(self.problem.parameters, x, self.here.x, strict=True)
            if not np.isclose(value, before)
        ]
        return self._jump(YOU, x, ", ".join(changed) or "the same parameters again")

    def is_idle(self, move: Move) -> bool:
        """Whether a move leads nowhere: at the border, or by sliders that were not moved."""
        return bool(np.array_equal(move.x, self.here.x))

    def _jump(self, who: str, x: FloatArray, words: str) -> Move:
        """A run away from the steps so far."""
        return Move(who, x, words, x, np.zeros(len(x), dtype=np.int64), jump=True)

    def record(self, move: Move, y: FloatArray) -> None:
        """Keep a run that was made; the game goes on from it."""
        self.moves.append(move)
        self.y.append(y)
        self.c.append(self.problem.misfit(y, self.problem.measured(self.patient)))
        self.at = self.n_runs - 1

    def advise(self, vito: Vito) -> tuple[str, pd.DataFrame]:
        """What Vito would do here and why, in a sentence, and its best actions as a table."""
        if not np.isfinite(self.misfits).all():
            return "The model gave no answer here: Vito would begin anew.", pd.DataFrame()
        state = int(vito.states.quantize(self.misfits[np.newaxis])[0])
        if state == 0:
            return "This is state 0: every misfit is within its tolerance.", pd.DataFrame()
        q, chance = vito.policy.q[state], vito.policy.probabilities[state]
        visits = vito.mdp.visits
        names = action_names(self.problem)
        best = int(np.argmax(q))
        known = Knowledge(vito.states, vito.policy, visits)
        why = because(known, self.misfits, best, names)
        order = np.argsort(-q, kind="stable")[:SHOWN]
        table = pd.DataFrame(
            {
                "action": [names[a] for a in order],
                "value": [f"{q[a]:.2f}" for a in order],
                "drawn in [%]": [f"{100 * chance[a]:.0f}" for a in order],
                "seen": [int(visits[state, a]) for a in order],
                "led to": [_led_to(vito, state, int(a)) for a in order],
            }
        )
        return f"Vito would take {names[best]}, because {why}.", table

    def vito_move(self, vito: Vito) -> Move:
        """Vito's move from here, as when it personalises: it begins anew where it would repeat."""
        rng = stream("teach", self.problem.name, self.patient.name, self.n_runs)
        if not np.isfinite(self.misfits).all():
            return self._afresh(vito, rng, "the model gave no answer")
        state = int(vito.states.quantize(self.misfits[np.newaxis])[0])
        action = int(vito.policy.sample([state], [rng.random()])[0])
        move = self.step(action, VITO)
        since = max(k for k in range(self.at + 1) if self.moves[k].jump or k == 0)
        if any(np.array_equal(seen.x, move.x) for seen in self.moves[since : self.at + 1]):
            return self._afresh(vito, rng, f"{move.words} led back to parameters tried before")
        return move

    def _afresh(self, vito: Vito, rng: np.random.Generator, why: str) -> Move:
        """Begin anew at the next start candidate, as Vito does."""
        candidates = vito.candidates(self.patient)
        if self.n_candidates < len(candidates):
            x = candidates[self.n_candidates]
            self.n_candidates += 1
        else:
            x = self.problem.draw(rng)[0]
        return self._jump(VITO, x, f"a fresh start, because {why}")

    def status_html(self) -> str:
        """How the game stands, in a sentence; HTML."""
        yours, vitos = (sum(move.who == who for move in self.moves) for who in (YOU, VITO))
        runs = f"{self.n_runs} forward run{'' if self.n_runs == 1 else 's'}"
        runs += f" (the start, {yours} by you, {vitos} by Vito)" if vitos else ""
        if self.solved_at is not None:
            words = f"Solved in {self.solved_at} forward runs! So far {runs}."
        else:
            words = f"{runs}; the best so far has a worst misfit of {self.worst:.2f} tolerances."
        who = f", {self.here.who}" if self.here.who else ""
        here = f"Run {self.at + 1}{who}: {self.here.words}."
        return fill(
            "<div aria-live='polite'><h2>{words}</h2><div>{here}</div></div>",
            words=words,
            here=here,
        )


def run_model(problem: Problem, patient: Patient, x: FloatArray) -> FloatArray:
    """One forward run, shape (n_objectives,); in a worker."""
    return problem.run(x[np.newaxis], patient, confirm=problem.measured(patient)).y[0]


def _led_to(vito: Vito, state: int, action: int) -> str:
    """Where an action led from a state in training, in words."""
    mdp = vito.mdp
    row = state * mdp.n_actions + action
    own = slice(int(mdp.start[row]), int(mdp.start[row + 1]))
    successor, counts = mdp.successor[own], mdp.counts[own]
    if not len(counts):
        return "never tried"
    order = np.argsort(-counts, kind="stable")[:3]
    share = 100 * counts / counts.sum()
    names = {0: "success", vito.states.n_states: "a failed run"}
    return ", ".join(
        f"{names.get(int(successor[k]), f'state {successor[k]}')} {share[k]:.0f} %" for k in order
    )


def methods(problem: Problem) -> list[str]:
    """Methods of the scoreboard."""
    return list(references(problem))


def reference(
    method: str, problem: Problem, patient: Patient, start: FloatArray, max_runs: int
) -> Fit:
    """Personalise by a reference method from where the game started; in a worker."""
    seed = child_seed(0, "teach", method)
    optimiser = build(method, problem)
    starts = start[np.newaxis].copy()
    return optimiser.personalize_from(patient, starts, max_runs=max_runs, seed=seed)[0]


def score(who: str, fit: Fit, problem: Problem) -> dict[str, object]:
    """Row of the scoreboard."""
    worst = float(np.max(np.abs(fit.misfits) / problem.tolerance))
    return {
        "who": who,
        "solved": "yes" if fit.solved else "no",
        "runs": fit.n_runs,
        "worst misfit [tol.]": f"{worst:.2f}",
    }


def own_score(game: Game) -> dict[str, object]:
    """Row of the player in the scoreboard."""
    made = {move.who for move in game.moves[: game.solved_at]}
    who = "you, with Vito's help" if VITO in made else "you"
    who = "Vito, in this game" if VITO in made and YOU not in made else who
    return {
        "who": who,
        "solved": "yes" if game.solved_at else "not yet",
        "runs": game.solved_at or game.n_runs,
        "worst misfit [tol.]": f"{game.worst:.2f}",
    }
