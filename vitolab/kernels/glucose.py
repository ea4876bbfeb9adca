"""Glucose, insulin and beta cells: Topp, Promislow, deVries, Miura & Finegood (2000).

J. theor. Biol. 206, 605-619, with glucose G (mg/dL), insulin I (μU/mL), mass of beta
cells β (mg), and time in days:

    dG/dt = R0 − (EG0 + SI I) G
    dI/dt = σ β G²/(α + G²) − k I
    dβ/dt = (−d0 + r1 G − r2 G²) β

A run starts in the fasting state: G and I where they rest at the mass β that is given. Then a dose
of glucose raises G at once. Everything after that is the whole model, from minutes to years; no
part of it is taken to be at rest. It is stiff, insulin following within minutes what beta cells do
within months, and is integrated with RODAS, a Rosenbrock method of order 4 with an embedded one of
order 3 (Hairer & Wanner, Solving Ordinary Differential Equations II), and ln β in place of β, which
so stays positive.

Everything that describes a run is one row of constants, see `TABLE`.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Triple = tuple[float, float, float]

# name, default, unit, meaning; all but the last as published
TABLE: tuple[tuple[str, float, str, str], ...] = (
    ("glucose_production", 864.0, "mg/dL/d", "R0, net production at no glucose"),
    ("glucose_effectiveness", 1.44, "1/d", "EG0, at no insulin"),
    ("insulin_sensitivity", 0.72, "mL/μU/d", "SI"),
    ("beta_cell_mass", 300.0, "mg", "β at the start"),
    ("secretion", 43.2, "μU/mL/d/mg", "σ, of insulin at most"),
    ("half_secretion", 20000.0, "mg²/dL²", "α, square of the glucose at half of that"),
    ("insulin_clearance", 432.0, "1/d", "k"),
    ("beta_cell_loss", 0.06, "1/d", "d0, at no glucose"),
    ("beta_cell_gain", 0.84e-3, "dL/mg/d", "r1"),
    ("glucose_toxicity", 2.4e-6, "dL²/mg²/d", "r2"),
    ("dose", 0.0, "mg/dL", "rise of glucose at the start"),
)
NAMES = tuple(row[0] for row in TABLE)
DEFAULTS = np.array([row[1] for row in TABLE])
DEFAULTS.flags.writeable = False
N_CONSTANTS = len(TABLE)
R0, EG0, SI, BETA, SIGMA, ALPHA, K, D0, R1, R2, DOSE = range(N_CONSTANTS)

STATES = ("glucose", "insulin", "beta_cell_mass")
N_STATES = len(STATES)

# Outcome of a run
SUCCESS, TOO_MANY_STEPS, NON_FINITE = 0, 1, 2

FIRST_STEP = 1e-4  # d
MOST_STEPS = 20000
SAFETY, SHRINK, GROW = 0.9, 0.2, 6.0
SMALLEST = 1e-6  # of what a relative tolerance refers to, in the unit of the state
MOST_ITERATIONS = 200

# RODAS, Hairer & Wanner; the last two stages and the step share their weights
GAMMA = 0.25
A21 = 1.544
A31, A32 = 0.9466785280815826, 0.2557011698983284
A41, A42, A43 = 3.314825187068521, 2.896124015972201, 0.9986419139977817
A51, A52, A53, A54 = 1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950
C21 = -5.6688
C31, C32 = -2.430093356833875, -0.2063599157091915
C41, C42, C43 = -0.1073529058151375, -9.594562251023355, -20.47028614809616
C51, C52, C53, C54 = 7.496443313967647, -10.24680431464352, -33.99990352819905, 11.70890893206160
C61, C62, C63 = 8.083246795921522, -7.981132988064893, -31.52159432874371
C64, C65 = 16.31930543123136, -6.058818238834054


@njit(cache=True, nogil=True)
def fasting(row: Floats) -> tuple[float, float]:
    """Glucose and insulin at rest at the mass of beta cells that is given.

    The uptake of glucose rises with G, so that it equals R0 at one G in (0, R0/EG0].
    """
    most = row[BETA] * row[SIGMA] / row[K]
    low, high = 0.0, row[R0] / row[EG0]
    g = 0.5 * high
    for _ in range(MOST_ITERATIONS):
        share = g * g / (row[ALPHA] + g * g)
        away = (row[EG0] + row[SI] * most * share) * g - row[R0]
        if away > 0.0:
            high = g
        else:
            low = g
        slope = row[EG0] + row[SI] * most * share * (1.0 + 2.0 * row[ALPHA] / (row[ALPHA] + g * g))
        new = g - away / slope
        if not low < new < high:
            new = 0.5 * (low + high)
        if abs(new - g) <= 1e-15 * g:
            break
        g = new
    return g, most * g * g / (row[ALPHA] + g * g)


@njit(cache=True, nogil=True)
def rates(row: Floats, g: float, i: float, b: float) -> Triple:
    """Rates of G, I and ln β per day."""
    return (
        row[R0] - (row[EG0] + row[SI] * i) * g,
        row[SIGMA] * math.exp(b) * g * g / (row[ALPHA] + g * g) - row[K] * i,
        -row[D0] + (row[R1] - row[R2] * g) * g,
    )


@njit(cache=True, nogil=True)
def _solve(w: tuple[float, ...], r: Triple) -> Triple:
    """Solve the equations of a stage; their matrix has no entries (1, 3) and (3, 2)."""
    w11, w12, w21, w22, w23, w31, w33 = w
    top = r[0] - w12 / w22 * (r[1] - w23 * r[2] / w33)
    g = top / (w11 - w12 / w22 * (w21 - w23 * w31 / w33))
    b = (r[2] - w31 * g) / w33
    return g, (r[1] - w21 * g - w23 * b) / w22, b


@njit(cache=True, nogil=True)
def _stage(row: Floats, w: tuple[float, ...], y: Triple, c: Triple, h: float) -> Triple:
    """Solve for one stage at y, with what earlier stages add, times h."""
    f = rates(row, y[0], y[1], y[2])
    return _solve(w, (f[0] + c[0] / h, f[1] + c[1] / h, f[2] + c[2] / h))


@njit(cache=True, nogil=True)
def step(row: Floats, y: Triple, h: float) -> tuple[Triple, Triple]:
    """One step of length h: the state after it, G, I and ln β, and an estimate of its error."""
    g, i, b = y
    inverse = 1.0 / (GAMMA * h)
    rest = row[ALPHA] + g * g
    made = row[SIGMA] * math.exp(b)
    w = (
        inverse + row[EG0] + row[SI] * i,
        row[SI] * g,
        -made * 2.0 * g * row[ALPHA] / (rest * rest),
        inverse + row[K],
        -made * g * g / rest,
        -row[R1] + 2.0 * row[R2] * g,
        inverse,
    )
    k1 = _stage(row, w, y, (0.0, 0.0, 0.0), h)
    at = (g + A21 * k1[0], i + A21 * k1[1], b + A21 * k1[2])
    k2 = _stage(row, w, at, (C21 * k1[0], C21 * k1[1], C21 * k1[2]), h)
    at = (
        g + A31 * k1[0] + A32 * k2[0],
        i + A31 * k1[1] + A32 * k2[1],
        b + A31 * k1[2] + A32 * k2[2],
    )
    c = (
        C31 * k1[0] + C32 * k2[0],
        C31 * k1[1] + C32 * k2[1],
        C31 * k1[2] + C32 * k2[2],
    )
    k3 = _stage(row, w, at, c, h)
    at = (
        g + A41 * k1[0] + A42 * k2[0] + A43 * k3[0],
        i + A41 * k1[1] + A42 * k2[1] + A43 * k3[1],
        b + A41 * k1[2] + A42 * k2[2] + A43 * k3[2],
    )
    c = (
        C41 * k1[0] + C42 * k2[0] + C43 * k3[0],
        C41 * k1[1] + C42 * k2[1] + C43 * k3[1],
        C41 * k1[2] + C42 * k2[2] + C43 * k3[2],
    )
    k4 = _stage(row, w, at, c, h)
    at = (
        g + A51 * k1[0] + A52 * k2[0] + A53 * k3[0] + A54 * k4[0],
        i + A51 * k1[1] + A52 * k2[1] + A53 * k3[1] + A54 * k4[1],
        b + A51 * k1[2] + A52 * k2[2] + A53 * k3[2] + A54 * k4[2],
    )
    c = (
        C51 * k1[0] + C52 * k2[0] + C53 * k3[0] + C54 * k4[0],
        C51 * k1[1] + C52 * k2[1] + C53 * k3[1] + C54 * k4[1],
        C51 * k1[2] + C52 * k2[2] + C53 * k3[2] + C54 * k4[2],
    )
    k5 = _stage(row, w, at, c, h)
    at = (at[0] + k5[0], at[1] + k5[1], at[2] + k5[2])
    c = (
        C61 * k1[0] + C62 * k2[0] + C63 * k3[0] + C64 * k4[0] + C65 * k5[0],
        C61 * k1[1] + C62 * k2[1] + C63 * k3[1] + C64 * k4[1] + C65 * k5[1],
        C61 * k1[2] + C62 * k2[2] + C63 * k3[2] + C64 * k4[2] + C65 * k5[2],
    )
    k6 = _stage(row, w, at, c, h)
    return (at[0] + k6[0], at[1] + k6[1], at[2] + k6[2]), k6


@njit(cache=True, nogil=True)
def simulate(rows: Floats, times: Floats, tolerance: float) -> tuple[Floats, Integers]:
    """Run the model.

    Parameters
    ----------
    rows : ndarray, shape (n, N_CONSTANTS)
        See `TABLE`.
    times : ndarray, shape (n_times,)
        Rising, in days since the dose. The state at 0 is the one before it.
    tolerance : float
        Largest error of a step, relative to each of G, I and β.

    Returns
    -------
    states : ndarray, shape (n, n_times, N_STATES)
        NaN from where a run failed.
    status : ndarray of int, shape (n,)
        SUCCESS, TOO_MANY_STEPS or NON_FINITE.
    """
    states = np.full((len(rows), len(times), N_STATES), np.nan)
    status = np.zeros(len(rows), dtype=np.int64)
    for n in range(len(rows)):
        row = rows[n]
        g, i = fasting(row)
        y = (g + row[DOSE], i, math.log(row[BETA]))
        t, h, n_steps = 0.0, FIRST_STEP, 0
        for m in range(len(times)):
            if times[m] <= 0.0:
                states[n, m] = g, i, row[BETA]
                continue
            while t < times[m] and status[n] == SUCCESS:
                left = times[m] - t
                taken = min(h, left)
                new, error = step(row, y, taken)
                size = max(
                    abs(error[0]) / (max(abs(y[0]), abs(new[0])) + SMALLEST),
                    abs(error[1]) / (max(abs(y[1]), abs(new[1])) + SMALLEST),
                    abs(error[2]),
                )
                n_steps += 1
                if n_steps > MOST_STEPS:
                    status[n] = TOO_MANY_STEPS
                elif taken < 1e-300:
                    status[n] = NON_FINITE
                elif size <= tolerance and new[0] > 0.0 and new[1] >= 0.0:
                    t = times[m] if taken == left else t + taken
                    y = new
                    ratio = SAFETY * (tolerance / max(size, 1e-30)) ** 0.25
                    # a step cut short at a time that was asked for says nothing of the next one
                    h = max(h, taken * min(GROW, ratio)) if taken < h else h * min(GROW, ratio)
                elif size < np.inf:
                    ratio = SAFETY * (tolerance / max(size, tolerance)) ** 0.25
                    h = taken * min(max(SHRINK, ratio), 0.5)
                else:
                    h = taken * SHRINK
            if status[n] != SUCCESS:
                break
            states[n, m] = y[0], y[1], math.exp(y[2])
    return states, status
