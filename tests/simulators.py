"""Simulators that behave badly on purpose; functions of one parameter vector."""

import os
import signal
import time


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
