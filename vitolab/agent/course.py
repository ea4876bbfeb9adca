"""One personalisation by the agent with continuous actions."""

from __future__ import annotations

import numpy as np

from vitolab.agent.covariance import Covariance
from vitolab.agent.emulator import Emulator
from vitolab.agent.failing import SAME, held, nearest_answer
from vitolab.agent.knowledge import GROWTH, Knowledge, plausible
from vitolab.agent.planning import Plan, Target, best_plan, compromise, likeliest_first
from vitolab.agent.verdict import unreachable
from vitolab.failures import Failure
from vitolab.fit import Event, Fit, StopReason, Trace, budget
from vitolab.problem import FloatArray, Patient, Problem
from vitolab.scale import N_FIRST

# Set by judgement. Values beside them were tried as in `vitolab.agent.planning`, where these need
# 41.9 runs; "first" is an earlier value, replaced without a table; the rest was not varied.
N_NEAR = 3  # stored runs from which plans start; 1: 42.2, 6: 40.0
LEAST_RUNS = 2  # that answered, beside one per parameter, before a patient is ended; first 3 in all
UNREACHED = np.log(1e-3)  # chance below which the best compromise is run
DOUBT = 3.0  # by which standard deviations are multiplied at most; 1: 44.2
# Hopeless plans in a row that end a patient, first 2, then 3; two once the best compromise was run.
N_HOPELESS = 4
# Share of Ω around failed runs that is avoided; and by which a plan that is held must be away from
# the run that answered, since a shorter step teaches little.
REACH = 0.1
MOST = 10  # surprises that count for the growth
SURPRISE, MORE = 0.01, 2.0  # the same around surprising runs, and its growth with each of them
FAR = 4.0  # standard deviations from what was expected that surprise; 8: 41.9
LEAST = 0.1  # ψ that a standard deviation counts at least


class Course:
    """One personalisation under way.

    Parameters
    ----------
    problem : Problem
    knowledge : Knowledge
    patient : Patient
    max_runs : int, optional
    rng : Generator
        Of points that are drawn.
    give_up : float
        See `vitolab.agent.ContinuousVito`.
    """

    def __init__(
        self,
        problem: Problem,
        knowledge: Knowledge,
        patient: Patient,
        max_runs: int | None,
        rng: np.random.Generator,
        give_up: float = 0.0,
    ) -> None:
        self.knowledge, self.experience = knowledge, knowledge.experience
        self.problem = problem
        self.patient, self.max_runs, self.rng = patient, budget(self.problem, max_runs), rng
        self.scale = self.experience.scale
        self.z = self.problem.measured(patient)
        self.f = knowledge.base.features.standard(problem.featured(patient))
        self.group = len(self.experience.known)  # a patient of its own
        self.reason: StopReason | None = None
        self.note = ""
        self.hope = np.log(give_up) if give_up else -np.inf  # below which a patient is ended
        self.n_hopeless = 0  # plans in a row
        self.x: list[FloatArray] = []
        self.y: list[FloatArray] = []
        self.event: list[Event] = []
        self.expected: list[FloatArray] = []
        self.failures: list[Failure] = []
        self.failed: list[FloatArray] = []  # where runs failed, in the unit cube
        self.surprises: list[FloatArray] = []
        self.errors: list[
            float
        ] = []  # mean squares of the errors of what was expected, over its variance
        # of the runs that did not fail: inputs, outputs and the worst misfit, over ψ
        self.own = np.empty((0, self.problem.n_parameters + len(self.f)))
        self.found = np.empty((0, self.problem.n_objectives))
        self.cost: list[float] = []
        self.covariance: Covariance | None = None
        self.emulator: Emulator | None = None
        self.n_learned = len(self.experience.u)
        near = self.experience.near(patient)
        self.near = [u for u, _ in zip(near, range(N_NEAR), strict=False)]

    def fit(self, start: FloatArray | None) -> Fit:
        """Personalise from the start given, or from the best that can be planned."""
        for u in self._first(start):
            if self.reason is None:
                self._run(u, Event.RESTART if self.x else Event.START, None)
        while self.reason is None:
            self._step()
        trace = Trace(
            np.array(self.x),
            np.array(self.y),
            self.problem.misfit(np.array(self.y), self.z),
            np.array(self.event, dtype=np.int64),
            np.full(len(self.x), -1),
            np.full(len(self.x), -1),
            np.array(self.expected),
            failures=tuple(self.failures),
        )
        return Fit.from_trace(self.problem, trace, self.reason, self.note)

    def _first(self, start: FloatArray | None) -> list[FloatArray]:
        """Points to run before the first plan: with few stored runs, some spread over Ω."""
        points = []
        if start is not None:
            x = np.clip(np.asarray(start, float), self.problem.lower, self.problem.upper)
            points.append(self.scale.unit(x))
        missing = N_FIRST - len(self.experience.u) - len(points)
        if missing > 0:
            first = self.scale.first(self.rng)
            points += list(first[len(points) :][:missing])  # the default unless a start is given
        return points

    def _step(self) -> None:
        """Run the model where it is most probable that the measurements are met."""
        n = self.problem.n_parameters
        if not len(self.own) and not len(self.experience.u):  # every run failed
            self._run(self.rng.random(n), Event.RESTART, None)
            return
        z = self.experience.unwrapped(self.z / self.problem.tolerance)
        emulator, avoided = self._emulated(), self._avoided()
        target = Target(self.problem, emulator, self.group, self.f, z, *avoided, self._doubt())
        starts = self._starts()
        made = self.scale.unit(np.reshape(self.x, (-1, n)))
        plan = best_plan(target, starts, made, self.rng)
        run = self._may_answer(plan, target)
        self.n_hopeless = self.n_hopeless + 1 if run.log_probability < self.hope else 0
        if plan.log_probability < UNREACHED or self.n_hopeless:  # what is the best to be had?
            best = compromise(target, [*starts, plan.u])
            is_run = bool((np.abs(made - best.u).max(axis=1) <= SAME).any())
            is_known = len(self.own) >= n + LEAST_RUNS
            if is_known and self.n_hopeless >= (2 if is_run else N_HOPELESS):
                other = self._may_answer(best, target)
                likeliest = max(run.log_probability, other.log_probability)
                self.reason = StopReason.UNREACHABLE
                self.note = unreachable(self.problem, best.expected, likeliest)
                return
            if plan.log_probability < UNREACHED and not is_run:
                run = self._may_answer(best, target)
        event = Event.STEP if len(self.own) and run.start == 0 else Event.RESTART
        self._run(run.u, event if self.x else Event.START, run.expected)

    def _may_answer(self, plan: Plan, target: Target) -> Plan:
        """Stop a plan where the model may fail, or go elsewhere if that would teach nothing."""
        stop = self._held(plan.u)
        if stop is plan.u:
            return plan
        if stop is None:
            scattered = likeliest_first(target, self.rng)
            stop = scattered[next((i for i, v in enumerate(scattered) if self._held(v) is v), 0)]
        misfits, inside = target.expected(stop[np.newaxis])
        return plan._replace(u=stop, expected=misfits[0], log_probability=float(inside[0]))

    def _held(self, u: FloatArray) -> FloatArray | None:
        """Stop a plan where the model may fail; none if that is where the model answered before."""
        if not self.failed:
            return u
        failed = np.array(self.failed)
        answered = np.concatenate([(self.own[:, : len(u)] + 1.0) / 2.0, self.experience.u])
        base = nearest_answer(u, answered, failed)
        if base is None:
            return u
        stop = held(u, base, failed)
        return stop if stop is u or np.abs(stop - base).max() > REACH else None

    def _avoided(self) -> tuple[FloatArray, FloatArray]:
        """Points near which no plan should end, and how far around them.

        Near failed runs; and, the farther the more of them there are, near runs that came out far
        from what was expected: at a jump of the outputs an emulator expects a solution again and
        again where there is none.
        """
        avoided = np.reshape(self.failed + self.surprises, (-1, self.problem.n_parameters))
        reach = np.full(len(avoided), REACH)
        reach[len(self.failed) :] = min(REACH, SURPRISE * MORE ** min(len(self.surprises), MOST))
        return avoided, reach

    def _doubt(self) -> float:
        """How much too sure the emulator was of this patient's runs, one that was right added."""
        errors = np.append(self.errors, 1.0)
        return float(np.clip(np.sqrt(errors.mean()), 1.0, DOUBT))

    def _starts(self) -> list[FloatArray]:
        """Points from which plans start: the patient's best run, and stored runs."""
        starts = list(self.near)
        if len(self.own):
            best = self.own[int(np.argmin(self.cost))]
            starts.insert(0, (best[: self.problem.n_parameters] + 1.0) / 2.0)
        return starts

    def _emulated(self) -> Emulator:
        """Emulator of the patient's model, given stored runs and those made so far."""
        n = len(self.experience.u) + len(self.own)
        is_due = n >= GROWTH * self.n_learned
        if self.emulator is None or is_due:
            known, found = self.knowledge, self.found
            if len(found):
                found = np.clip(found, *plausible(np.concatenate([known.outputs, found])))
            a = np.concatenate([known.inputs, self.own])
            y = np.concatenate([known.outputs, found])
            patient = np.append(self.experience.patient, np.full(len(self.own), self.group))
            if is_due:
                self.n_learned, self.covariance = n, known.tuned(a, patient, y)
            rows = np.append(known.rows(self.patient), np.arange(len(known.outputs), n))
            covariance = self.covariance or known.covariance
            self.emulator = Emulator.given(covariance, a[rows], patient[rows], y[rows])
        return self.emulator

    def _judge(self, u: FloatArray, a: FloatArray, found: FloatArray) -> None:
        """Compare outputs with what the emulator expected of them."""
        assert self.emulator is not None
        expected = self.emulator.at(a[np.newaxis], self.group, self.problem.n_parameters)
        away = self.problem.relative_misfit(found, expected.mean[0])
        deviation = np.sqrt(expected.variance[0] + self.emulator.covariance.noise)
        error = np.abs(away) / np.maximum(deviation, LEAST)
        self.errors.append(float((error**2).mean()))
        if (error > FAR).any():
            self.surprises.append(u)

    def _run(self, u: FloatArray, event: Event, expected: FloatArray | None) -> None:
        """Run the model at u and learn from it."""
        problem, psi = self.problem, self.problem.tolerance
        x = self.scale.parameters(u)
        u = self.scale.unit(x)  # walks may have left Ω, plans do not
        runs = problem.run(x[np.newaxis], self.patient, confirm=self.z)
        y = runs.y[0]
        self.failures += runs.failures
        c = problem.misfit(y, self.z)
        self.x.append(x)
        self.y.append(y)
        self.event.append(event)
        self.expected.append(np.full(len(c), np.nan) if expected is None else expected * psi)
        if problem.is_solved(c):
            self.reason = StopReason.SOLVED
        elif len(self.x) == self.max_runs:
            self.reason = StopReason.BUDGET
        elif np.isfinite(c).all():
            a = np.concatenate([2.0 * u - 1.0, self.f])
            found = self.experience.unwrapped(y / psi)
            self.own = np.concatenate([self.own, a[np.newaxis]])
            self.found = np.concatenate([self.found, found[np.newaxis]])
            self.cost.append(float(np.abs(c / psi).max()))
            if self.emulator is not None:
                self._judge(u, a, found)
                seen = plausible(np.concatenate([self.emulator.y, found[np.newaxis]]))
                self.emulator = self.emulator.after(a, self.group, np.clip(found, *seen))
        else:
            self.failed.append(u)
