"""Hand-made tables of results."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest

from vitolab.methods import REFERENCES
from vitolab.models import circulation, rosenbrock

METHODS = ("vito", "vito-deterministic", *REFERENCES)
NULLABLE = ("n_states", "n_samples", "repeat", "start")


def rows(
    setup: str,
    method: str,
    outcomes: list[tuple[bool, int]],
    *,
    n_states: int | None = None,
    n_samples: int | None = None,
    repeat: int | None = None,
    start: int | None = None,
    n_restarts: int = 0,
    **extra: Any,
) -> list[dict[str, Any]]:
    """Rows of the personalizations table: one patient per (solved, runs)."""
    return [
        {
            "setup": setup,
            "patient": f"P{i}",
            "method": method,
            "n_states": n_states,
            "n_samples": n_samples,
            "repeat": repeat,
            "start": start,
            "seed": 0,
            "solved": solved,
            "n_runs": runs,
            "n_restarts": n_restarts,
            **extra,
        }
        for i, (solved, runs) in enumerate(outcomes)
    ]


def frame(*parts: list[dict[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame(list(itertools.chain(*parts))).astype(dict.fromkeys(NULLABLE, "Int64"))


def share(percent: int, runs: int = 10) -> list[tuple[bool, int]]:
    """Outcomes of ten patients of which some are solved; the others take 100 runs."""
    return [(10 * i < percent, runs if 10 * i < percent else 100) for i in range(10)]


@pytest.fixture
def convergence() -> pd.DataFrame:
    """Two setups, three sizes, two repeats, four starts of each reference."""
    parts = []
    for setup, harder in (("2p", 0), ("6p", 30)):
        for method, size, repeat in itertools.product(METHODS[:2], (10, 100, 1000), (0, 1)):
            percent = {10: 40, 100: 60, 1000: 100}[size] - harder + 10 * repeat * (size == 100)
            key = {"n_states": 70, "n_samples": size, "repeat": repeat}
            parts.append(rows(setup, method, share(percent), **key))
        for method, start in itertools.product(REFERENCES, range(4)):
            parts.append(rows(setup, method, share(50 + 10 * start, 20), start=start))
    return frame(*parts)


STARTS = rosenbrock.grid(3)


@pytest.fixture
def grid_run() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two functions from nine starts, base and extended; one failure far away, one start off."""
    optima = {"P0": (1.0, 1.0), "P1": (-2.0, 4.0)}
    patients = pd.DataFrame(
        [
            {"setup": setup, "patient": name, "truth:x1": x1, "truth:x2": x2}
            for setup in ("base, free", "extended, free, restart")
            for name, (x1, x2) in optima.items()
        ]
    )
    table = []
    for setup, start in itertools.product(("base, free", "extended, free, restart"), range(9)):
        failed = setup == "base, free" and start == 4
        for row in rows(
            setup,
            "vito",
            [(True, 10), (not failed, 30)],
            n_states=100,
            n_samples=1000,
            repeat=0,
            start=start,
        ):
            x1, x2 = optima[row["patient"]]
            off = (3.0, 4.0) if failed and row["patient"] == "P1" else (0.03, 0.04)
            table.append(row | {"last:x1": x1 + off[0], "last:x2": x2 - off[1]})
    return frame(table), patients


@pytest.fixture
def fitted() -> dict[str, Any]:
    """Tables and curves of one patient in two setups."""
    time = np.linspace(0.0, 0.8, 40)
    shape = np.sin(np.pi * np.clip(time / 0.4, 0.0, 1.0)) ** 2
    arrays = {}
    for source in ("measured", "2p", "6p"):
        arrays |= {
            f"{source}/time": time,
            f"{source}/lv_volume": 180.0 - 70.0 * shape,
            f"{source}/lv_pressure": 10.0 + 110.0 * shape,
            f"{source}/aortic_pressure": 80.0 + 40.0 * shape,
        }
    z = dict(
        zip(
            (o.name for o in circulation.problem("6p").objectives),
            (180, 110, 95, 120, 80, 270),
            strict=True,
        )
    )
    problems = {setup: circulation.problem(setup) for setup in ("2p", "6p")}
    patients, personalizations = [], []
    for setup, problem in problems.items():
        names = [o.name for o in problem.objectives]
        patients.append({"setup": setup, "patient": "C01"} | {f"z:{n}": z[n] for n in names})
        misfits = {f"misfit:{n}": 25.0 if n == "lv_esv" else 5.0 for n in names}
        personalizations += rows(setup, "vito", [(False, 1)], n_samples=10, repeat=0, **misfits)
    return {
        "arrays": arrays,
        "personalizations": frame(personalizations),
        "patients": pd.DataFrame(patients),
        "problems": problems,
    }
