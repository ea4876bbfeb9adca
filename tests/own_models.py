"""Models of one's own in files, run in this process and in workers."""

from pathlib import Path

import numpy as np

from vitolab.problem import Patient

PATIENT = Patient("P", {"u": 1.0}, {"load": 1.0, "curve": [1.0, 2.0]})
X = np.array([[2.0, 3.0]])
MODEL = """
def simulate(x, patient):
    a, b = x
    return {"u": a + b, "w": a * patient.data["load"]}
"""
PATIENTS = "patient,load,u,w\nP00,1.0,7,2\nP01,1.1,7.2,2.97\n"


def described(folder: Path, *, model: str = MODEL, table: str = "") -> Path:
    """Problem file with a model, in a folder that may be new."""
    folder.mkdir(exist_ok=True)
    (folder / "model.py").write_text(model)
    (folder / "patients.csv").write_text(PATIENTS)
    table = table or 'adapter = "function"\nfile = "model.py"\n'
    entries = "".join(
        f'[[{what}]]\nname = "{name}"\n{more}\n'
        for what, name, more in (
            ("parameters", "a", "lower = 0.0\nupper = 10.0"),
            ("parameters", "b", "lower = 0.0\nupper = 10.0"),
            ("objectives", "u", "tolerance = 0.3"),
            ("objectives", "w", "tolerance = 0.3"),
            ("columns", "load", "feature = true"),
        )
    )
    (folder / "problem.toml").write_text(f'name = "own"\n{entries}[model]\n{table}')
    return folder / "problem.toml"


def answer(own) -> list[float]:
    """Outputs of a problem, the processes of which end."""
    y = own.problem.simulate(X, PATIENT)
    if hasattr(own.problem.simulate, "close"):
        own.problem.simulate.close()
    return y[0].tolist()
