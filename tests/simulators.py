"""Simulators that behave badly on purpose; functions of one parameter vector."""

import os
import signal
import time

import numpy as np
from analytic import linear

from vitolab.parallel import workers
from vitolab.problem import Patient


def decent(x, patient):
    """Two outputs, as of `analytic.linear` without an offset."""
    return {"w": x[0] - x[1], "u": x[0] + x[1]}


def moody(x, patient):
    """Answer well, or badly in the way of the first parameter."""
    if x[0] == 1:
        raise ValueError("x is one")
    if x[0] == 2:
        time.sleep(100)
    if x[0] == 3:
        os.kill(os.getpid(), signal.SIGSEGV)
    if x[0] == 4:
        raise SystemExit(3)
    if x[0] == 5:
        return {"u": 1.0}
    if x[0] == 6:
        return [1.0, None]
    if x[0] == 7:
        return 3.0
    if x[0] == 8:
        raise TimeoutError("from within")
    return decent(x, patient)


def interruptible():
    """Let the process that is begun hear Ctrl-C, though this one may have been told not to."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Unready:
    """Function that cannot be prepared."""

    def __init__(self, error):
        self.error = error

    def __call__(self, x, patient):
        return [1.0, 2.0]

    def prepare(self):
        raise self.error


def unreadable(text):
    raise ImportError(text)


class Untravelled:
    """Function that cannot be read where it arrives."""

    def __call__(self, x, patient):
        return [1.0, 2.0]

    def __reduce__(self):
        return unreadable, ("not installed here",)


def where(x, patient):
    """Tell in which process this is."""
    time.sleep(0.1)
    return [os.getpid(), 1.0]


def asked(model, n):
    """Process of the worker, processors that it has, and what the model answers there."""
    y = model(np.zeros((n, 2)), Patient("P", {}))
    return os.getpid(), workers.processors(), y.tolist()


# Batched models: as `analytic.linear`, but for what they say where a > 2.


def nowhere(x, patient):
    raise RuntimeError("no license\nsecond line")


def corner(say):
    """Answer as `linear` does, but say something else where a > 2."""

    def simulate(x, patient):
        bad = x[:, 0] > 2
        return say(linear(x, patient), bad) if bad.any() else linear(x, patient)

    return simulate


def raising(y, bad):
    raise ArithmeticError("diverged")


def leaving(y, bad):
    raise SystemExit(3)


def nothing(y, bad):
    return None


def short(y, bad):
    return y[:, :1]


def with_value(value):
    def say(y, bad):
        y = y.astype(object)
        y[bad, 1] = value
        return y

    return say
