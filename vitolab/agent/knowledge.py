"""What an agent with continuous actions knows: runs, and how outputs covary with the parameters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vitolab.agent.covariance import Covariance
from vitolab.experience import Experience
from vitolab.files import stream
from vitolab.parallel.threads import one_thread
from vitolab.problem import FloatArray, IntArray, Patient

N_TUNED = 250  # runs from which covariances are learned: it costs their cube
GROWTH = 1.25  # of the number of runs, after which covariances are learned again
N_SMALL = 64  # runs up to which they are learned again for every patient
N_KNOWN = 256  # stored runs on which a plan rests
WILD = 3.0  # spreads of the middle 90 % of the outputs beyond which outputs are pulled in


@dataclass(frozen=True)
class Knowledge:
    """Stored runs, ready for an emulator.

    Attributes
    ----------
    experience : Experience
    """

    experience: Experience

    @cached_property
    def outputs(self) -> FloatArray:
        """Outputs over ψ of all runs, without the jump of angles and what is far out of range."""
        y = self.experience.unwrapped(self.experience.y)
        return np.clip(y, *self.plausible) if len(y) else y

    @cached_property
    def plausible(self) -> tuple[FloatArray, FloatArray]:
        """Range of outputs, see `plausible`."""
        return plausible(self.experience.unwrapped(self.experience.y))

    @cached_property
    def covariance(self) -> Covariance:
        """Covariances of the outputs, as learned from the stored runs.

        From all of few runs; of many, only from as many as there were when their number had last
        grown by a quarter, so that the agent is the same in whatever portions it learned.
        """
        n = len(self.experience.u)
        if n > N_SMALL:
            grown = float(N_SMALL)
            while grown * GROWTH <= n:
                grown *= GROWTH
            n = int(grown)
        return self.tuned(self.experience.inputs[:n], self.experience.patient[:n], self.outputs[:n])

    def tuned(self, a: FloatArray, patient: IntArray, y: FloatArray) -> Covariance:
        """Learn covariances from runs, or from some of many, see `Covariance.learn`."""
        if len(a) > N_TUNED:
            rng = stream("covariance", self.experience.problem.name, len(a))
            drawn = np.sort(rng.permutation(len(a))[:N_TUNED])
            a, patient, y = a[drawn], patient[drawn], y[drawn]
        with one_thread():  # as elsewhere: sums depend on the number of threads
            return Covariance.learn(a, patient, y)

    def rows(self, patient: Patient) -> IntArray:
        """Stored runs on which plans for a patient rest: of many, half are the nearest ones."""
        n = len(self.experience.u)
        if n <= N_KNOWN:
            return np.arange(n)
        half = N_KNOWN // 2
        order = np.argsort(sum(self.experience.distance(patient)), kind="stable")
        rest = np.sort(order[half:])
        rng = stream("known", self.experience.problem.name, n)
        drawn = rest[rng.permutation(len(rest))[:half]]
        return np.sort(np.concatenate([order[:half], drawn]))


def knowledge_of(experience: Experience) -> Knowledge:
    """Knowledge of these runs, made once: what is learned is kept with them."""
    kept = vars(experience)
    if "_knowledge" not in kept:
        kept["_knowledge"] = Knowledge(experience)
    known: Knowledge = kept["_knowledge"]
    return known


def plausible(y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Range of outputs beyond which they tell nothing, as of solvers that gave up.

    Parameters
    ----------
    y : ndarray, shape (n, n_objectives)
        Over ψ.

    Returns
    -------
    lowest, highest : ndarray, shape (n_objectives,)
    """
    low, high = np.quantile(y, [0.05, 0.95], axis=0)
    reach = WILD * np.maximum(high - low, 1.0)
    return low - reach, high + reach
