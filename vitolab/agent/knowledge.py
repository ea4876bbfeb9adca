"""What an agent with continuous actions knows: runs, and how outputs covary with the parameters."""

from __future__ import annotations

import hashlib
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vitolab.agent.covariance import Covariance
from vitolab.experience import Experience
from vitolab.files import stream
from vitolab.parallel.threads import one_thread
from vitolab.problem import FloatArray, IntArray, Patient

# Set by judgement for seconds of learning and milliseconds of planning, and not varied.
N_TUNED = 250  # runs from which covariances are learned: it costs their cube
GROWTH = 1.25  # of the number of runs, after which covariances are learned again
N_SMALL = 64  # runs up to which they are learned again for every patient
N_KNOWN = 256  # stored runs on which a plan rests
N_KEPT = 64  # covariances that are kept in a process
WILD = 3.0  # spreads of the middle 90 % of the outputs beyond which outputs are pulled in

_LOCK = threading.Lock()
_LEARNED: dict[bytes, Future[Covariance]] = {}  # by a digest of the runs


@dataclass(frozen=True)
class Knowledge:
    """Stored runs, ready for an emulator.

    Attributes
    ----------
    experience : Experience
    """

    experience: Experience

    @cached_property
    def base(self) -> Experience:
        """Runs from which covariances are learned: all of few, of many those of a while ago.

        Of many, as many as there were when their number had last grown by a quarter: the agent is
        the same in whatever portions it learned, and mostly the next patient changes nothing.
        Features are in the standard deviations of their patients, so that covariances fit all
        inputs.
        """
        n = len(self.experience.u)
        if n > N_SMALL:
            grown = float(N_SMALL)
            while grown * GROWTH <= n:
                grown *= GROWTH
            n = int(grown)
        return self.experience.first(n)

    @cached_property
    def inputs(self) -> FloatArray:
        """Parameters from −1 to 1 over Ω and features of all runs, shape (n, n_inputs)."""
        f = self.base.features.standard(self.experience.known)[self.experience.patient]
        return np.concatenate([2.0 * self.experience.u - 1.0, f], axis=1)

    @cached_property
    def outputs(self) -> FloatArray:
        """Outputs over ψ of all runs, without the jump of angles and what is far out of range."""
        return pulled_in(self.experience.unwrapped(self.experience.y))

    @cached_property
    def covariance(self) -> Covariance:
        """Covariances of the outputs, as learned from `base`."""
        base = self.base
        return self.tuned(base.inputs, base.patient, pulled_in(self.experience.unwrapped(base.y)))

    def tuned(self, a: FloatArray, patient: IntArray, y: FloatArray) -> Covariance:
        """Learn covariances from runs, or from some of many, see `Covariance.learn`."""
        if len(a) > N_TUNED:
            rng = stream("covariance", self.experience.problem.name, len(a))
            drawn = np.sort(rng.permutation(len(a))[:N_TUNED])
            a, patient, y = a[drawn], patient[drawn], y[drawn]
        return learned(a, patient, y)

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


def learned(a: FloatArray, patient: IntArray, y: FloatArray) -> Covariance:
    """Learn covariances as `Covariance.learn`, from the same runs once in a process.

    An agent after another patient, and one for the next patient of a round, mostly rest on the same
    runs. Threads that ask for what another one is learning wait for it.
    """
    hasher = hashlib.sha256()
    for array in (a, patient, y):
        hasher.update(f"{array.dtype.str} {array.shape} ".encode() + array.tobytes())
    key = hasher.digest()
    with _LOCK:
        known = _LEARNED.pop(key, None)
        found: Future[Covariance] = known or Future()
        _LEARNED[key] = found  # at the end: the first one was not asked for longest
        while len(_LEARNED) > N_KEPT:
            del _LEARNED[next(iter(_LEARNED))]
    if known is None:
        try:
            with one_thread():  # as elsewhere: sums depend on the number of threads
                found.set_result(Covariance.learn(a, patient, y))
        except BaseException as error:
            with _LOCK:
                _LEARNED.pop(key, None)
            found.set_exception(error)
    return found.result()


def pulled_in(y: FloatArray) -> FloatArray:
    """Outputs moved into their plausible range, shape (n, n_objectives)."""
    return np.clip(y, *plausible(y)) if len(y) else y


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
