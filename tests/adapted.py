"""Answers of adapters with their causes, and a program of one's own."""

import sys

import numpy as np
import pytest

from vitolab.adapters import ProgramModel
from vitolab.problem import Objective, Parameter, Patient, Problem

PATIENT = Patient("P", {"u": 1.0}, {"heart_rate": 60.0})
OUTPUTS = ("u", "w")


def causes(model, x):
    """Answers of a model, and its causes by row."""
    found = model.answers(np.array(x, dtype=float), PATIENT)
    return found.y, found.reasons


def problem_of(model, names=OUTPUTS):
    """Problem of two parameters whose objectives are the outputs of a model."""
    return Problem(
        "p",
        "1",
        (Parameter("a", "a", "", -9, 9, 0.5, 0.1), Parameter("b", "b", "", -9, 9, 0.5, 0.1)),
        tuple(Objective(name, name, "", 1.0) for name in names),
        model,
    )


# A program of one's own: here Python, which is there on every machine.

PROGRAM = """
import json, os, sys, time
told = json.load(open(sys.argv[1]))
a, b = told["parameters"]["a"], told["parameters"]["b"]
print("working", flush=True)
if a == 1: sys.exit("cannot go on\\n")
if a == 2: time.sleep(100)
if a == 3: os.kill(os.getpid(), 9)
if a == 4: sys.exit(0)
if a == 5: bytearray(3_000_000_000)
if a == 6: open(sys.argv[2], "w").write("{"); sys.exit(0)
json.dump({"u": a + b, "w": a - b, "rate": told["patient"]["heart_rate"]}, open(sys.argv[2], "w"))
"""


@pytest.fixture
def program(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)

    def make(**more):
        return ProgramModel(
            (sys.executable, str(script), "{input}", "{output}"),
            ("a", "b"),
            ("u", "w"),
            folder=tmp_path / "calls",
            **{"n_workers": 2, **more},
        )

    return make
