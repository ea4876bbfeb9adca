"""The stored runs of other patients, flattened once for all opponents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from vitolab.features import Features
from vitolab.objects import Value
from vitolab.problem import FloatArray, IntArray, Patient, Problem
from vitolab.scale import Scale
from vitolab.trajectories import Trajectories

APART = 0.15  # share of Ω, in the parameter that differs most, from which two starts are apart
N_APART = 12  # starts among the stored runs


@dataclass(frozen=True, eq=False, repr=False)
class StoredRuns(Value):
    """All runs of the training patients that did not fail.

    Attributes
    ----------
    problem : Problem
    u : ndarray, shape (n, n_parameters)
        Parameters in the unit cube, see `vitolab.scale.Scale`.
    y : ndarray, shape (n, n_objectives)
        Outputs over the tolerances ψ.
    f : ndarray, shape (n, n_features)
        Features of each run's patient in standard deviations from the mean, 0 where not known.
    patient : ndarray of int, shape (n,)
    features : Features
    """

    problem: Problem
    u: FloatArray
    y: FloatArray
    f: FloatArray
    patient: IntArray
    features: Features

    @classmethod
    def learn(cls, problem: Problem, walks: Trajectories) -> StoredRuns:
        """Flatten walks.

        Raises
        ------
        ValueError
            If no run among them succeeded.
        """
        counted = walks.require_runs(problem)
        patient = np.broadcast_to(walks.patient[:, np.newaxis], counted.shape)[counted]
        features, f = Features.learn(problem, walks)
        return cls(
            problem,
            Scale(problem).unit(walks.x[counted]),
            walks.y[counted] / problem.tolerance,
            f[patient],
            patient,
            features,
        )

    @property
    def scale(self) -> Scale:
        """Coordinates of the parameters."""
        return Scale(self.problem)

    @property
    def inputs(self) -> FloatArray:
        """Parameters about the centre of Ω, and features: what emulators are given; (n, d)."""
        return np.concatenate([2.0 * self.u - 1.0, self.f], axis=1)

    def misfit(self, y: FloatArray, z: FloatArray) -> FloatArray:
        """Misfit y − z where both are over ψ."""
        psi = self.problem.tolerance
        return self.problem.misfit(y * psi, z * psi) / psi

    def unwrapped(self) -> FloatArray:
        """Outputs with angles counted from their mean direction, shape (n, n_objectives).

        Their jump is then where fewest runs are, and an emulator is learned once for all patients.
        """
        angular, psi = self.problem.angular, self.problem.tolerance
        centre = self.y[0].copy()
        turn = np.exp(1j * np.radians(self.y[:, angular] * psi[angular])).mean(axis=0)
        centre[angular] = np.degrees(np.angle(turn)) / psi[angular]
        return np.where(angular, centre + self.misfit(self.y, centre), self.y)

    def near(self, patient: Patient) -> Iterator[FloatArray]:
        """Parameters of stored runs, the nearest to a patient first, then others that are apart.

        Near by the squares of the misfits in tolerances; features settle ties. Added to the
        misfits they cost least squares a quarter more runs with six parameters of the circulation.

        Yields
        ------
        ndarray, shape (n_parameters,)
        """
        z = self.problem.measured(patient) / self.problem.tolerance
        away = (self.misfit(self.y, z) ** 2).sum(axis=1)
        unlike = ((self.f - self.features.of(self.problem, patient)) ** 2).sum(axis=1)
        chosen = np.empty((0, self.u.shape[1]))
        for u in self.u[np.lexsort((unlike, away))]:
            if (np.abs(chosen - u).max(axis=1) > APART).all():
                chosen = np.concatenate([chosen, u[np.newaxis]])
                yield u
            if len(chosen) == N_APART:
                return
