"""Closed-loop whole-body circulation: four elastance chambers, two circulations, periodic state.

Twelve states: the volumes (mL) of left atrium, left ventricle, right atrium, right ventricle,
systemic arteries, systemic veins, pulmonary arteries and pulmonary veins, and the flows (mL/s)
through mitral, aortic, tricuspid and pulmonary valve. Pressures are in mmHg, time in s.

Chambers         p = E(t) (V - V0), E = Emin + (Emax - Emin) e(t)
Vessels          p = V / C; V is the stressed volume
Windkessels      q = Δp / R between systemic arteries and veins, veins and right atrium, and so on
Aortic root      p_ao = p_sa + Rc Q_av, Rc = κ R, the rest (1 - κ) R towards the veins
Valves           open: L dQ/dt = Δp - R Q; closed: Q = 0
Valve events     opens when Δp rises through 0, closes when Q falls through 0

Because volumes are the states, their sum is a linear invariant that Runge-Kutta steps and affine
mixing keep to round-off. Beats are integrated with classical RK4 in steps of fixed length; valve
events are located inside the step. The periodic state is the fixed point of the map from one
beat's start to the next, found by Anderson mixing.

Everything that describes a run is one row of constants, see `TABLE`. The terms below "Terms of a
richer model" are off by default.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Numbers = tuple[float, ...]

# name, default, unit, meaning
TABLE: tuple[tuple[str, float, str, str], ...] = (
    # Timing: rows that agree in these share their tables of ventricular and atrial activation.
    ("heart_period", 0.8, "s", "length RR of one beat"),
    ("rv_time_to_emax", 0.3, "s", "time of maximum RV elastance"),
    ("atrial_onset", 0.80, "RR", "start of atrial contraction"),
    ("atrial_contraction", 0.11, "RR", "length of atrial contraction"),
    ("atrial_relaxation", 0.11, "RR", "length of atrial relaxation"),
    ("hill_rise", 1.32, "1", "exponent n1 of the rising Hill term (Stergiopulos 1996)"),
    ("hill_fall", 21.9, "1", "exponent n2 of the falling Hill term"),
    ("hill_ratio", 0.508 / 0.303, "1", "time constant of falling to rising term"),
    ("cosine_shape", 0.0, "0 or 1", "1: ventricles follow a piecewise cosine instead"),
    ("lv_time_to_emax", 0.3, "s", "time of maximum LV elastance"),
    # Left ventricle and systemic circulation
    ("initial_volume", 400.0, "mL", "volume in the LV at t = 0; see reference_volume"),
    ("reference_volume", 275.0, "mL", "what the other compartments hold at t = 0 in all"),
    ("lv_emax", 2.4, "mmHg/mL", "maximum LV elastance"),
    ("lv_emin", 0.04, "mmHg/mL", "minimum LV elastance; published 0.03 to 0.17"),
    ("lv_dead_volume", 10.0, "mL", "LV volume at zero pressure"),
    ("aortic_resistance", 1100.0 / 1333.22, "mmHg s/mL", "total R of the systemic arteries"),
    ("characteristic_share", 0.06, "1", "share κ of R at the aortic root; practice 0.05 to 0.1"),
    ("aortic_compliance", 1.4e-3 * 1333.22, "mL/mmHg", "systemic arteries"),
    ("venous_resistance", 0.03, "mmHg s/mL", "systemic veins"),
    ("venous_compliance", 15.0, "mL/mmHg", "systemic veins"),
    # Right heart, left atrium and pulmonary circulation; between values of published models
    ("rv_emax", 0.6, "mmHg/mL", "maximum RV elastance"),
    ("rv_emin", 0.05, "mmHg/mL", "minimum RV elastance"),
    ("rv_dead_volume", 10.0, "mL", "RV volume at zero pressure"),
    ("la_emax", 0.25, "mmHg/mL", "maximum LA elastance"),
    ("la_emin", 0.12, "mmHg/mL", "minimum LA elastance"),
    ("la_dead_volume", 4.0, "mL", "LA volume at zero pressure"),
    ("ra_emax", 0.20, "mmHg/mL", "maximum RA elastance"),
    ("ra_emin", 0.08, "mmHg/mL", "minimum RA elastance"),
    ("ra_dead_volume", 4.0, "mL", "RA volume at zero pressure"),
    ("pulmonary_characteristic_resistance", 0.015, "mmHg s/mL", "root of the pulmonary artery"),
    ("pulmonary_resistance", 0.08, "mmHg s/mL", "from pulmonary arteries to pulmonary veins"),
    ("pulmonary_compliance", 4.0, "mL/mmHg", "pulmonary arteries"),
    ("pulmonary_venous_resistance", 0.01, "mmHg s/mL", "pulmonary veins"),
    ("pulmonary_venous_compliance", 8.0, "mL/mmHg", "pulmonary veins"),
    # Valves; inertance ρl/A of about 1 cm / 4 cm² (atrioventricular), 2 to 3 cm / 4 cm² (arterial)
    ("mitral_resistance", 0.0075, "mmHg s/mL", "open mitral valve"),
    ("aortic_valve_resistance", 0.0075, "mmHg s/mL", "open aortic valve"),
    ("tricuspid_resistance", 0.0075, "mmHg s/mL", "open tricuspid valve"),
    ("pulmonary_valve_resistance", 0.0075, "mmHg s/mL", "open pulmonary valve"),
    ("mitral_inertance", 2e-4, "mmHg s²/mL", "mitral valve"),
    ("aortic_valve_inertance", 5e-4, "mmHg s²/mL", "aortic valve"),
    ("tricuspid_inertance", 2e-4, "mmHg s²/mL", "tricuspid valve"),
    ("pulmonary_valve_inertance", 5e-4, "mmHg s²/mL", "pulmonary valve"),
    # Terms of a richer model
    ("mitral_loss", 0.0, "mmHg s²/mL²", "Bernoulli loss B |Q| Q"),
    ("aortic_valve_loss", 0.0, "mmHg s²/mL²", "Bernoulli loss B |Q| Q"),
    ("tricuspid_loss", 0.0, "mmHg s²/mL²", "Bernoulli loss B |Q| Q"),
    ("pulmonary_valve_loss", 0.0, "mmHg s²/mL²", "Bernoulli loss B |Q| Q"),
    ("mitral_leak", 0.0, "mL/(mmHg s)", "conductance from LV back to LA"),
    ("lv_source", 0.0, "s/mL", "LV pressure falls by this share per outflow"),
    ("lv_stiffening", 0.0, "1/mL", "k in the passive LV law Emin (exp(k (V - V0)) - 1) / k"),
    ("aortic_stiffening", 0.0, "1", "relative rise of 1/C per 90 mmHg, about 90 mmHg"),
    ("lv_pressure_offset", 0.0, "mmHg", "added to LV pressure"),
    ("rv_pressure_offset", 0.0, "mmHg", "added to RV pressure"),
    ("la_pressure_offset", 0.0, "mmHg", "added to LA pressure"),
    ("ra_pressure_offset", 0.0, "mmHg", "added to RA pressure"),
)
NAMES = tuple(row[0] for row in TABLE)
DEFAULTS = np.array([row[1] for row in TABLE])
N_CONSTANTS = len(TABLE)

HEART_PERIOD = NAMES.index("heart_period")
RV_TIME_TO_EMAX = NAMES.index("rv_time_to_emax")
ATRIAL_ONSET = NAMES.index("atrial_onset")
ATRIAL_CONTRACTION = NAMES.index("atrial_contraction")
ATRIAL_RELAXATION = NAMES.index("atrial_relaxation")
HILL_RISE = NAMES.index("hill_rise")
HILL_FALL = NAMES.index("hill_fall")
HILL_RATIO = NAMES.index("hill_ratio")
COSINE_SHAPE = NAMES.index("cosine_shape")
LV_TIME_TO_EMAX = NAMES.index("lv_time_to_emax")
INITIAL_VOLUME = NAMES.index("initial_volume")
REFERENCE_VOLUME = NAMES.index("reference_volume")
LV_EMAX = NAMES.index("lv_emax")
LV_EMIN = NAMES.index("lv_emin")
LV_DEAD_VOLUME = NAMES.index("lv_dead_volume")
AORTIC_RESISTANCE = NAMES.index("aortic_resistance")
CHARACTERISTIC_SHARE = NAMES.index("characteristic_share")
AORTIC_COMPLIANCE = NAMES.index("aortic_compliance")
VENOUS_RESISTANCE = NAMES.index("venous_resistance")
VENOUS_COMPLIANCE = NAMES.index("venous_compliance")
RV_EMAX = NAMES.index("rv_emax")
RV_EMIN = NAMES.index("rv_emin")
RV_DEAD_VOLUME = NAMES.index("rv_dead_volume")
LA_EMAX = NAMES.index("la_emax")
LA_EMIN = NAMES.index("la_emin")
LA_DEAD_VOLUME = NAMES.index("la_dead_volume")
RA_EMAX = NAMES.index("ra_emax")
RA_EMIN = NAMES.index("ra_emin")
RA_DEAD_VOLUME = NAMES.index("ra_dead_volume")
PULMONARY_CHARACTERISTIC_RESISTANCE = NAMES.index("pulmonary_characteristic_resistance")
PULMONARY_RESISTANCE = NAMES.index("pulmonary_resistance")
PULMONARY_COMPLIANCE = NAMES.index("pulmonary_compliance")
PULMONARY_VENOUS_RESISTANCE = NAMES.index("pulmonary_venous_resistance")
PULMONARY_VENOUS_COMPLIANCE = NAMES.index("pulmonary_venous_compliance")
MITRAL_RESISTANCE = NAMES.index("mitral_resistance")
AORTIC_VALVE_RESISTANCE = NAMES.index("aortic_valve_resistance")
TRICUSPID_RESISTANCE = NAMES.index("tricuspid_resistance")
PULMONARY_VALVE_RESISTANCE = NAMES.index("pulmonary_valve_resistance")
MITRAL_INERTANCE = NAMES.index("mitral_inertance")
AORTIC_VALVE_INERTANCE = NAMES.index("aortic_valve_inertance")
TRICUSPID_INERTANCE = NAMES.index("tricuspid_inertance")
PULMONARY_VALVE_INERTANCE = NAMES.index("pulmonary_valve_inertance")
MITRAL_LOSS = NAMES.index("mitral_loss")
AORTIC_VALVE_LOSS = NAMES.index("aortic_valve_loss")
TRICUSPID_LOSS = NAMES.index("tricuspid_loss")
PULMONARY_VALVE_LOSS = NAMES.index("pulmonary_valve_loss")
MITRAL_LEAK = NAMES.index("mitral_leak")
LV_SOURCE = NAMES.index("lv_source")
LV_STIFFENING = NAMES.index("lv_stiffening")
AORTIC_STIFFENING = NAMES.index("aortic_stiffening")
LV_PRESSURE_OFFSET = NAMES.index("lv_pressure_offset")
RV_PRESSURE_OFFSET = NAMES.index("rv_pressure_offset")
LA_PRESSURE_OFFSET = NAMES.index("la_pressure_offset")
RA_PRESSURE_OFFSET = NAMES.index("ra_pressure_offset")
N_TIMING = LV_TIME_TO_EMAX  # constants before this one set the shared activation tables

STATES = (
    "la_volume",
    "lv_volume",
    "ra_volume",
    "rv_volume",
    "sa_volume",
    "sv_volume",
    "pa_volume",
    "pv_volume",
    "mitral_flow",
    "aortic_flow",
    "tricuspid_flow",
    "pulmonary_flow",
)
N_VOLUMES, N_STATES = 8, 12
LA, LV, RA, RV, SA, SV, PA, PV, Q_MV, Q_AV, Q_TV, Q_PV = range(N_STATES)
DROP, P_AO, P_PUL, P_LA, DP_AO, DP_PUL = 12, 16, 17, 18, 19, 20  # what follows in `_rates`

OUTPUTS = (
    "lv_edv",  # mL, largest LV volume
    "lv_esv",  # mL, smallest
    "aortic_mean",  # mmHg
    "aortic_systolic",  # mmHg, largest aortic pressure
    "aortic_diastolic",  # mmHg, smallest: at valve opening
    "ejection_time",  # ms that the aortic valve is open
    "rv_edv",
    "rv_esv",
    "pulmonary_mean",
    "pulmonary_systolic",
    "pulmonary_diastolic",
    "la_mean",  # mmHg, stands for the wedge pressure
)
N_OUTPUTS = len(OUTPUTS)
EDV, ESV, MAP, PSAP, EDAP, ET, RV_EDV, RV_ESV, MPAP, SPAP, DPAP, MLAP = range(N_OUTPUTS)

# What `examine` adds from the periodic beat; in `_beat` these follow the others.
FURTHER_OUTPUTS = (
    "ra_mean",  # mmHg
    "lv_edp",  # mmHg, LV pressure where ventricular contraction starts
    "lv_dpdt",  # mmHg/s, steepest rise of LV pressure
    "rv_dpdt",
    "la_volume_max",  # mL
    "la_volume_min",
    "ra_volume_max",
    "ra_volume_min",
)
N_FURTHER = len(FURTHER_OUTPUTS)
MRAP, LVEDP, LV_DPDT, RV_DPDT, LA_MAX, LA_MIN, RA_MAX, RA_MIN = range(
    N_OUTPUTS, N_OUTPUTS + N_FURTHER
)

# What a curve holds per point, after the time (s) and the twelve states.
CURVES = ("time", *STATES, *(f"{name}_pressure" for name in ("la", "lv", "ra", "rv", "sa", "sv")))
CURVES += ("pa_pressure", "pv_pressure", "aortic_pressure", "pulmonary_pressure")

# Bits of the status of a run
NO_STRESSED_VOLUME = 1  # dead volumes exceed the blood
LOW_OUTPUT = 2  # mean aortic pressure below 20 mmHg or stroke volume below 10 mL
NEGATIVE_VOLUME = 4  # LV volume below zero (a dead volume below zero, strong LV)
AORTIC_ALWAYS_OPEN = 8  # aortic valve open for at least 0.9 RR
AORTIC_NEVER_OPENS = 16
NOT_CONVERGED = 32  # no periodic state within the allowed beats
NON_FINITE = 64
TMAX_CLAMPED = 128  # LV time to maximum elastance cut to 0.8 RR

DEPTH = 5  # of the Anderson mixing
FLOW_WEIGHT = 0.01  # s; weighs flows (mL/s) against volumes (mL) in the mixing
MAX_SWITCHES = 12  # valve events per step
MAX_TRIALS = 6  # steps to locate one valve event
EVENT_TOLERANCE = 1e-6  # s; the state's error is of second order in it
SLOPE_STEP = 1e-5  # s; difference behind dp/dt


@njit(cache=True, nogil=True, error_model="numpy")
def _hill_peak(rise: float, fall: float, ratio: float) -> float:
    """Location y of the maximum of y^n1 / (1 + y^n1) / (1 + (y / ρ)^n2)."""
    low, high = 0.0, 2.0 * ratio
    for _ in range(60):  # the logarithmic derivative falls through zero once
        y = 0.5 * (low + high)
        b = (y / ratio) ** fall
        if rise / (1.0 + y**rise) > fall * b / (1.0 + b):
            low = y
        else:
            high = y
    return 0.5 * (low + high)


@njit(cache=True, nogil=True, error_model="numpy")
def _n_steps(c: Floats, time_step: float) -> int:
    """Equal steps per beat, none longer than time_step."""
    n: int = math.ceil(c[HEART_PERIOD] / time_step - 1e-9)
    return n


@njit(cache=True, nogil=True, error_model="numpy")
def _relaxation(t_max: float, period: float) -> tuple[float, float]:
    """Fit the time to maximum into the beat; factor that ends relaxation at 0.95 RR."""
    t_max = min(t_max, 0.8 * period)
    return t_max, max(1.0, 0.5 * t_max / (0.95 * period - t_max))


@njit(cache=True, nogil=True, error_model="numpy")
def _ventricle(t: float, t_max: float, k: float, w: Floats, c: Floats) -> float:
    """Activation e(t) of a ventricle, 1 at t_max; e(s) with s = t / t_max, compressed after."""
    s = t / t_max
    if s > 1.0:
        s = 1.0 + (s - 1.0) * k
    if c[COSINE_SHAPE] != 0.0:
        if s < 1.0:
            return 0.5 * (1.0 - math.cos(math.pi * s))
        if s < 1.5:
            return 0.5 * (1.0 + math.cos(2.0 * math.pi * (s - 1.0)))
        return 0.0
    if s <= 0.0 or s > 2.0:
        return 0.0
    log_s = math.log(s)
    a = math.exp(c[HILL_RISE] * log_s + w[4])
    b = math.exp(c[HILL_FALL] * log_s + w[5])
    e: float = a / ((1.0 + a) * (1.0 + b) * w[6])
    return e


@njit(cache=True, nogil=True, error_model="numpy")
def _atrium(t: float, c: Floats) -> float:
    """Activation of the atria: cosine up, cosine down, across the end of the beat."""
    period = c[HEART_PERIOD]
    s = (t / period - c[ATRIAL_ONSET]) % 1.0
    if s < c[ATRIAL_CONTRACTION]:
        return 0.5 * (1.0 - math.cos(math.pi * s / c[ATRIAL_CONTRACTION]))
    s -= c[ATRIAL_CONTRACTION]
    if s < c[ATRIAL_RELAXATION]:
        return 0.5 * (1.0 + math.cos(math.pi * s / c[ATRIAL_RELAXATION]))
    return 0.0


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _rates(y: Numbers, e: Numbers, valve: Numbers, c: Floats, inv: Floats) -> Numbers:
    """Rates of state y with activations e; valve is 1 where open, 0 where closed.

    Returns the rates of the twelve states, pressure drops over the four valves, aortic,
    pulmonary and left-atrial pressure, and the rates of the first two.
    """
    v_la, v_lv, v_ra, v_rv, v_sa, v_sv, v_pa, v_pv, q_mv, q_av, q_tv, q_pv = y
    e_lv, e_rv, e_at = e
    x = v_lv - c[LV_DEAD_VOLUME]
    passive = c[LV_EMIN] * x
    if c[LV_STIFFENING] != 0.0:
        passive = c[LV_EMIN] * math.expm1(c[LV_STIFFENING] * x) * inv[LV_STIFFENING]
    p_lv = e_lv * c[LV_EMAX] * x + (1.0 - e_lv) * passive
    p_lv = p_lv * (1.0 - c[LV_SOURCE] * q_av) + c[LV_PRESSURE_OFFSET]
    p_rv = (c[RV_EMIN] + (c[RV_EMAX] - c[RV_EMIN]) * e_rv) * (v_rv - c[RV_DEAD_VOLUME])
    p_rv += c[RV_PRESSURE_OFFSET]
    p_la = (c[LA_EMIN] + (c[LA_EMAX] - c[LA_EMIN]) * e_at) * (v_la - c[LA_DEAD_VOLUME])
    p_ra = (c[RA_EMIN] + (c[RA_EMAX] - c[RA_EMIN]) * e_at) * (v_ra - c[RA_DEAD_VOLUME])
    p_la += c[LA_PRESSURE_OFFSET]
    p_ra += c[RA_PRESSURE_OFFSET]
    slope = inv[AORTIC_COMPLIANCE]
    p_sa = v_sa * slope
    if c[AORTIC_STIFFENING] != 0.0:
        above = p_sa - 90.0
        slope *= 1.0 + c[AORTIC_STIFFENING] * above / 90.0
        p_sa += 0.5 * c[AORTIC_STIFFENING] * above * above / 90.0
    p_sv = v_sv * inv[VENOUS_COMPLIANCE]
    p_pa = v_pa * inv[PULMONARY_COMPLIANCE]
    p_pv = v_pv * inv[PULMONARY_VENOUS_COMPLIANCE]

    r_ao = c[CHARACTERISTIC_SHARE] * c[AORTIC_RESISTANCE]
    r_pul = c[PULMONARY_CHARACTERISTIC_RESISTANCE]
    p_ao = p_sa + r_ao * q_av
    p_pul = p_pa + r_pul * q_pv
    sa_sv = (p_sa - p_sv) * inv[AORTIC_RESISTANCE]
    sv_ra = (p_sv - p_ra) * inv[VENOUS_RESISTANCE]
    pa_pv = (p_pa - p_pv) * inv[PULMONARY_RESISTANCE]
    pv_la = (p_pv - p_la) * inv[PULMONARY_VENOUS_RESISTANCE]
    la_lv = q_mv - c[MITRAL_LEAK] * max(p_lv - p_la, 0.0)

    mv, av, tv, pv = p_la - p_lv, p_lv - p_ao, p_ra - p_rv, p_rv - p_pul
    lost_mv = (c[MITRAL_RESISTANCE] + c[MITRAL_LOSS] * abs(q_mv)) * q_mv
    lost_av = (c[AORTIC_VALVE_RESISTANCE] + c[AORTIC_VALVE_LOSS] * abs(q_av)) * q_av
    lost_tv = (c[TRICUSPID_RESISTANCE] + c[TRICUSPID_LOSS] * abs(q_tv)) * q_tv
    lost_pv = (c[PULMONARY_VALVE_RESISTANCE] + c[PULMONARY_VALVE_LOSS] * abs(q_pv)) * q_pv
    dq_av = valve[1] * (av - lost_av) * inv[AORTIC_VALVE_INERTANCE]
    dq_pv = valve[3] * (pv - lost_pv) * inv[PULMONARY_VALVE_INERTANCE]
    return (
        pv_la - la_lv,
        la_lv - q_av,
        sv_ra - q_tv,
        q_tv - q_pv,
        q_av - sa_sv,
        sa_sv - sv_ra,
        q_pv - pa_pv,
        pa_pv - pv_la,
        valve[0] * (mv - lost_mv) * inv[MITRAL_INERTANCE],
        dq_av,
        valve[2] * (tv - lost_tv) * inv[TRICUSPID_INERTANCE],
        dq_pv,
        mv,
        av,
        tv,
        pv,
        p_ao,
        p_pul,
        p_la,
        slope * (q_av - sa_sv) + r_ao * dq_av,
        (q_pv - pa_pv) * inv[PULMONARY_COMPLIANCE] + r_pul * dq_pv,
    )


@njit(cache=True, nogil=True, error_model="numpy")
def _rates_once(y: Numbers, e: Numbers, valve: Numbers, c: Floats, inv: Floats) -> Numbers:
    """`_rates` as a call: where it is rare, another copy only costs compilation."""
    return _rates(y, e, valve, c, inv)


@njit(cache=True, nogil=True, error_model="numpy")
def _inverses(c: Floats, inv: Floats) -> None:
    """Write 1 / c to inv, and 1 / ((1 - κ) R) in the place of R."""
    for j in range(N_CONSTANTS):
        inv[j] = 1.0 / c[j] if c[j] != 0.0 else 0.0
    inv[AORTIC_RESISTANCE] /= 1.0 - c[CHARACTERISTIC_SHARE]


@njit(cache=True, nogil=True, error_model="numpy")
def _timing(c: Floats, w: Floats) -> None:
    """Write what `_activations` needs: times and compression of LV and RV, the shape's peak."""
    w[0], w[1] = _relaxation(c[LV_TIME_TO_EMAX], c[HEART_PERIOD])
    w[2], w[3] = _relaxation(c[RV_TIME_TO_EMAX], c[HEART_PERIOD])
    y = _hill_peak(c[HILL_RISE], c[HILL_FALL], c[HILL_RATIO])
    w[4], w[5] = c[HILL_RISE] * math.log(y), c[HILL_FALL] * math.log(y / c[HILL_RATIO])
    a, b = math.exp(w[4]), math.exp(w[5])
    w[6] = a / ((1.0 + a) * (1.0 + b))


@njit(cache=True, nogil=True, error_model="numpy")
def _activations(t: float, w: Floats, c: Floats) -> tuple[float, float, float]:
    """Activation of LV, RV and atria at time t of the beat."""
    e_lv = _ventricle(t, w[0], w[1], w, c)
    e_rv = _ventricle(t, w[2], w[3], w, c)
    return e_lv, e_rv, _atrium(t, c)


@njit(cache=True, nogil=True, error_model="numpy")
def _add(y: Numbers, h: float, k: Numbers) -> Numbers:
    """State y + h k."""
    return (
        y[0] + h * k[0],
        y[1] + h * k[1],
        y[2] + h * k[2],
        y[3] + h * k[3],
        y[4] + h * k[4],
        y[5] + h * k[5],
        y[6] + h * k[6],
        y[7] + h * k[7],
        y[8] + h * k[8],
        y[9] + h * k[9],
        y[10] + h * k[10],
        y[11] + h * k[11],
    )


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _step(
    dt: float,
    y: Numbers,
    k: Numbers,
    mid: Numbers,
    end: Numbers,
    valve: Numbers,
    c: Floats,
    inv: Floats,
) -> tuple[Numbers, Numbers]:
    """One RK4 step from y with rates k; activations half-way and at the end of the step.

    Returns the new state and its rates.
    """
    k2 = _rates(_add(y, 0.5 * dt, k), mid, valve, c, inv)
    k3 = _rates(_add(y, 0.5 * dt, k2), mid, valve, c, inv)
    k4 = _rates(_add(y, dt, k3), end, valve, c, inv)
    outer = _add(_add(y, dt / 6.0, k), dt / 6.0, k4)
    y1 = _add(_add(outer, dt / 3.0, k2), dt / 3.0, k3)
    return y1, _rates(y1, end, valve, c, inv)


@njit(cache=True, nogil=True, error_model="numpy")
def _signal(v: int, valve: Numbers, y: Numbers, k: Numbers) -> float:
    """What is negative until valve v switches: minus the flow if open, the drop if closed."""
    if v == 0:
        return -y[Q_MV] if valve[0] != 0.0 else k[DROP]
    if v == 1:
        return -y[Q_AV] if valve[1] != 0.0 else k[DROP + 1]
    if v == 2:
        return -y[Q_TV] if valve[2] != 0.0 else k[DROP + 2]
    return -y[Q_PV] if valve[3] != 0.0 else k[DROP + 3]


@njit(cache=True, nogil=True, error_model="numpy")
def _switches(valve: Numbers, y: Numbers, k: Numbers) -> bool:
    """Whether any valve has passed its event."""
    return (
        (-y[Q_MV] if valve[0] != 0.0 else k[DROP]) > 0.0
        or (-y[Q_AV] if valve[1] != 0.0 else k[DROP + 1]) > 0.0
        or (-y[Q_TV] if valve[2] != 0.0 else k[DROP + 2]) > 0.0
        or (-y[Q_PV] if valve[3] != 0.0 else k[DROP + 3]) > 0.0
    )


@njit(cache=True, nogil=True, error_model="numpy")
def _hermite_peak(p0: float, d0: float, p1: float, d1: float, dt: float) -> float:
    """Largest pressure in a step, from values and rates at its ends (cubic Hermite)."""
    if d0 <= 0.0 or d1 >= 0.0:
        return max(p0, p1)
    x = d0 / (d0 - d1)
    rest = 1.0 - x
    inner = rest * rest * ((1.0 + 2.0 * x) * p0 + x * dt * d0)
    inner += x * x * ((3.0 - 2.0 * x) * p1 - rest * dt * d1)
    return max(inner, p0, p1)


@njit(cache=True, nogil=True, error_model="numpy")
def _observe(
    dt: float, k0: Numbers, y1: Numbers, k1: Numbers, aortic_valve: float, out: Floats
) -> None:
    """Gather the outputs over one accepted step."""
    out[EDV] = max(out[EDV], y1[LV])
    out[ESV] = min(out[ESV], y1[LV])
    out[RV_EDV] = max(out[RV_EDV], y1[RV])
    out[RV_ESV] = min(out[RV_ESV], y1[RV])
    out[MAP] += 0.5 * dt * (k0[P_AO] + k1[P_AO])
    out[MPAP] += 0.5 * dt * (k0[P_PUL] + k1[P_PUL])
    out[MLAP] += 0.5 * dt * (k0[P_LA] + k1[P_LA])
    top = _hermite_peak(k0[P_AO], k0[DP_AO], k1[P_AO], k1[DP_AO], dt)
    out[PSAP] = max(out[PSAP], top)
    bottom = -_hermite_peak(-k0[P_AO], -k0[DP_AO], -k1[P_AO], -k1[DP_AO], dt)
    out[EDAP] = min(out[EDAP], bottom)
    top = _hermite_peak(k0[P_PUL], k0[DP_PUL], k1[P_PUL], k1[DP_PUL], dt)
    out[SPAP] = max(out[SPAP], top)
    bottom = -_hermite_peak(-k0[P_PUL], -k0[DP_PUL], -k1[P_PUL], -k1[DP_PUL], dt)
    out[DPAP] = min(out[DPAP], bottom)
    out[ET] += dt * aortic_valve


@njit(cache=True, nogil=True, error_model="numpy")
def _observe_start(y: Numbers, k: Numbers, out: Floats) -> None:
    """Set what `FURTHER_OUTPUTS` are at the start of the beat."""
    out[MRAP] = out[LV_DPDT] = out[RV_DPDT] = 0.0
    out[LVEDP] = k[P_LA] - k[DROP]
    out[LA_MAX] = out[LA_MIN] = y[LA]
    out[RA_MAX] = out[RA_MIN] = y[RA]


@njit(cache=True, nogil=True, error_model="numpy")
def _observe_further(
    t: float,
    dt: float,
    k0: Numbers,
    y1: Numbers,
    k1: Numbers,
    valve: Numbers,
    w: Floats,
    c: Floats,
    inv: Floats,
    out: Floats,
) -> None:
    """Gather `FURTHER_OUTPUTS` over one accepted step, which ends at time t."""
    p_lv, p_rv = k1[P_LA] - k1[DROP], k1[P_PUL] + k1[DROP + 3]
    p_ra = p_rv + k1[DROP + 2]
    p_ra_before = k0[P_PUL] + k0[DROP + 3] + k0[DROP + 2]
    out[MRAP] += 0.5 * dt * (p_ra_before + p_ra)
    out[LA_MAX] = max(out[LA_MAX], y1[LA])
    out[LA_MIN] = min(out[LA_MIN], y1[LA])
    out[RA_MAX] = max(out[RA_MAX], y1[RA])
    out[RA_MIN] = min(out[RA_MIN], y1[RA])
    # slopes from before: a valve that opens at t bends the curve there
    before = _activations(t - SLOPE_STEP, w, c)
    k = _rates_once(_add(y1, -SLOPE_STEP, k1), before, valve, c, inv)
    out[LV_DPDT] = max(out[LV_DPDT], (p_lv - k[P_LA] + k[DROP]) / SLOPE_STEP)
    out[RV_DPDT] = max(out[RV_DPDT], (p_rv - k[P_PUL] - k[DROP + 3]) / SLOPE_STEP)


@njit(cache=True, nogil=True, error_model="numpy")
def _root(a: float, fa: float, b: float, fb: float, c: float, fc: float) -> float:
    """Root of the inverse parabola through three points; a and c bracket it."""
    if fa != fb and fb != fc:
        x = a * fb * fc / ((fa - fb) * (fa - fc)) + b * fa * fc / ((fb - fa) * (fb - fc))
        x += c * fa * fb / ((fc - fa) * (fc - fb))
        if a < x < c:
            return x
    return 0.5 * (a + c)


@njit(cache=True, nogil=True, error_model="numpy")
def _first_switch(
    dt: float, valve: Numbers, y: Numbers, k: Numbers, y1: Numbers, k1: Numbers
) -> tuple[int, float]:
    """Valve that switches first within a trial step, and when, by linear interpolation."""
    first, tau = -1, 2.0 * dt
    for v in range(4):
        late = _signal(v, valve, y1, k1)
        if late > 0.0:
            early = min(_signal(v, valve, y, k), 0.0)
            if early / (early - late) * dt < tau:
                first, tau = v, early / (early - late) * dt
    return first, tau


@njit(cache=True, nogil=True, error_model="numpy")
def _switch(v: int, y: Numbers, valve: Numbers) -> tuple[Numbers, Numbers]:
    """State with flow 0 through valve v, and the valves with v switched."""
    y = (
        y[0],
        y[1],
        y[2],
        y[3],
        y[4],
        y[5],
        y[6],
        y[7],
        0.0 if v == 0 else y[8],
        0.0 if v == 1 else y[9],
        0.0 if v == 2 else y[10],
        0.0 if v == 3 else y[11],
    )
    valve = (
        1.0 - valve[0] if v == 0 else valve[0],
        1.0 - valve[1] if v == 1 else valve[1],
        1.0 - valve[2] if v == 2 else valve[2],
        1.0 - valve[3] if v == 3 else valve[3],
    )
    return y, valve


@njit(cache=True, nogil=True, error_model="numpy")
def _record(t: float, y: Numbers, k: Numbers, c: Floats, inv: Floats, row: Floats) -> None:
    """Write time, states and pressures to one row of a curve, see `CURVES`."""
    row[0] = t
    for i in range(N_STATES):
        row[1 + i] = y[i]
    p_lv, p_rv = k[P_LA] - k[DROP], k[P_PUL] + k[DROP + 3]
    row[13], row[14] = k[P_LA], p_lv
    row[15], row[16] = p_rv + k[DROP + 2], p_rv
    row[17] = k[P_AO] - c[CHARACTERISTIC_SHARE] * c[AORTIC_RESISTANCE] * y[Q_AV]
    row[18] = y[SV] * inv[VENOUS_COMPLIANCE]
    row[19] = y[PA] * inv[PULMONARY_COMPLIANCE]
    row[20] = y[PV] * inv[PULMONARY_VENOUS_COMPLIANCE]
    row[21], row[22] = k[P_AO], k[P_PUL]


@njit(cache=True, nogil=True, error_model="numpy")
def _beat(
    n: int,
    start: Floats,
    table: Floats,
    w: Floats,
    c: Floats,
    inv: Floats,
    out: Floats,
    curve: Floats,
    stop: Floats,
) -> None:
    """One beat of n steps from start to stop; gather outputs, and a curve where it has rows."""
    dt = c[HEART_PERIOD] / n
    y: Numbers = (
        start[0],
        start[1],
        start[2],
        start[3],
        start[4],
        start[5],
        start[6],
        start[7],
        max(start[8], 0.0),
        max(start[9], 0.0),
        max(start[10], 0.0),
        max(start[11], 0.0),
    )
    end = (table[0, 0], table[0, 1], table[0, 2])
    k = _rates_once(y, end, (0.0, 0.0, 0.0, 0.0), c, inv)
    valve: Numbers = (
        1.0 if y[Q_MV] > 0.0 or k[DROP] > 0.0 else 0.0,
        1.0 if y[Q_AV] > 0.0 or k[DROP + 1] > 0.0 else 0.0,
        1.0 if y[Q_TV] > 0.0 or k[DROP + 2] > 0.0 else 0.0,
        1.0 if y[Q_PV] > 0.0 or k[DROP + 3] > 0.0 else 0.0,
    )
    k = _rates_once(y, end, valve, c, inv)
    out[EDV] = out[ESV] = y[LV]
    out[RV_EDV] = out[RV_ESV] = y[RV]
    out[PSAP] = out[EDAP] = k[P_AO]
    out[SPAP] = out[DPAP] = k[P_PUL]
    out[MAP] = out[MPAP] = out[MLAP] = out[ET] = 0.0
    recorded, further = curve.shape[0] > 0, out.shape[0] > N_OUTPUTS
    if further:
        _observe_start(y, k, out)
    if recorded:
        _record(0.0, y, k, c, inv, curve[0])
    i, switches, t, left, tau = 0, 0, 0.0, dt, dt
    first, attempt = -1, 0  # valve whose event is being located, and trials for it
    low = f_low = high = f_high = small = 0.0
    mid = (table[1, 0], table[1, 1], table[1, 2])
    end = (table[2, 0], table[2, 1], table[2, 2])
    while i < n:
        y1, k1 = _step(tau, y, k, mid, end, valve, c, inv)
        if first < 0 and (switches == MAX_SWITCHES or not _switches(valve, y1, k1)):
            # the grid point is reached
            _observe(tau, k, y1, k1, valve[1], out)
            if further:
                _observe_further((i + 1) * dt, tau, k, y1, k1, valve, w, c, inv, out)
            y, k = y1, k1
            i += 1
            if recorded:
                _record(i * dt, y, k, c, inv, curve[i])
            if i < n:
                j = 2 * i + 1
                mid = (table[j, 0], table[j, 1], table[j, 2])
                end = (table[j + 1, 0], table[j + 1, 1], table[j + 1, 2])
            switches, t, left, tau = 0, i * dt, dt, dt
            continue
        if first < 0:
            # a valve switches on the way: bracket the event
            first, tau = _first_switch(left, valve, y, k, y1, k1)
            low, f_low = 0.0, min(_signal(first, valve, y, k), 0.0)
            high, f_high = left, _signal(first, valve, y1, k1)
            small, attempt = EVENT_TOLERANCE * (f_high - f_low) / left, 0
        else:
            f = _signal(first, valve, y1, k1)
            attempt += 1
            if abs(f) < small or attempt == MAX_TRIALS:
                # the event is located: take the step up to it, then try the rest
                _observe(tau, k, y1, k1, valve[1], out)
                if further:
                    _observe_further(t + tau, tau, k, y1, k1, valve, w, c, inv, out)
                y, valve = _switch(first, y1, valve)
                k = _rates_once(y, end, valve, c, inv)
                first, switches, t, left = -1, switches + 1, t + tau, left - tau
                tau = left
                mid = _activations(t + 0.5 * left, w, c)
                j = 2 * i + 2
                end = (table[j, 0], table[j, 1], table[j, 2])
                continue
            guess = _root(low, f_low, tau, f, high, f_high)
            if f < 0.0:
                low, f_low = tau, f
            else:
                high, f_high = tau, f
            tau = guess if low < guess < high else 0.5 * (low + high)
        mid, end = _activations(t + 0.5 * tau, w, c), _activations(t + tau, w, c)
    for i in range(N_STATES):
        stop[i] = y[i]
    out[MAP] /= c[HEART_PERIOD]
    out[MPAP] /= c[HEART_PERIOD]
    out[MLAP] /= c[HEART_PERIOD]
    out[ET] *= 1000.0
    if further:
        out[MRAP] /= c[HEART_PERIOD]


@njit(cache=True, nogil=True, error_model="numpy")
def _tabulate(n: int, changed: int, w: Floats, c: Floats, table: Floats) -> None:
    """Fill the activations at the 2n + 1 stage times; only those that changed (2 all, 1 LV)."""
    _timing(c, w)
    dt = c[HEART_PERIOD] / n
    for j in range(2 * n + 1):
        t = 0.5 * dt * j
        if changed == 2:
            table[j, 1] = _ventricle(t, w[2], w[3], w, c)
            table[j, 2] = _atrium(t, c)
        table[j, 0] = _ventricle(t, w[0], w[1], w, c)


@njit(cache=True, nogil=True, error_model="numpy")
def _mix(m: int, df: Floats, dg: Floats, f: Floats, a: Floats, b: Floats, x: Floats) -> None:
    """Anderson mixing: subtract from x (= G) the combination of dg whose df is nearest to f."""
    for i in range(m):
        for j in range(i + 1):
            total = 0.0
            for q in range(N_STATES):
                total += df[i, q] * df[j, q]
            a[i, j] = total
        total = 0.0
        for q in range(N_STATES):
            total += df[i, q] * f[q]
        b[i] = total
    trace = 0.0
    for i in range(m):
        trace += a[i, i]
    for i in range(m):  # Cholesky factor in place, with a ridge against dependent columns
        a[i, i] += 1e-12 * trace
        for j in range(i + 1):
            total = a[i, j]
            for q in range(j):
                total -= a[i, q] * a[j, q]
            if i == j:
                a[i, i] = math.sqrt(max(total, 1e-300))
            else:
                a[i, j] = total / a[j, j]
        total = b[i]
        for q in range(i):
            total -= a[i, q] * b[q]
        b[i] = total / a[i, i]
    for i in range(m - 1, -1, -1):
        total = b[i]
        for q in range(i + 1, m):
            total -= a[q, i] * b[q]
        b[i] = total / a[i, i]
        for q in range(N_STATES):
            x[q] -= b[i] * dg[i, q]


@njit(cache=True, nogil=True, error_model="numpy")
def initial_states(constants: Floats) -> Floats:
    """States to start from: systemic arteries filled, the rest shared by diastolic compliance.

    The periodic state depends on the total volume only; a good share saves beats.

    Parameters
    ----------
    constants : ndarray, shape (n, N_CONSTANTS)

    Returns
    -------
    ndarray, shape (n, 12)
        Volumes in mL; flows are zero.
    """
    states = np.zeros((constants.shape[0], N_STATES))
    for i in range(constants.shape[0]):
        c, y = constants[i], states[i]
        y[LA], y[LV] = c[LA_DEAD_VOLUME], c[LV_DEAD_VOLUME]
        y[RA], y[RV] = c[RA_DEAD_VOLUME], c[RV_DEAD_VOLUME]
        total = c[INITIAL_VOLUME] + c[REFERENCE_VOLUME]
        y[SA] = min(80.0 * c[AORTIC_COMPLIANCE], 0.35 * (total - y[LV]))
        left = 1.0 / c[LA_EMIN] + 1.0 / c[LV_EMIN] + c[PULMONARY_VENOUS_COMPLIANCE]
        right = 1.0 / c[RA_EMIN] + 1.0 / c[RV_EMIN] + c[VENOUS_COMPLIANCE]
        stressed = total - y[LA] - y[LV] - y[RA] - y[RV] - y[SA]
        p = stressed / (left + 1.6 * c[PULMONARY_COMPLIANCE] + 0.6 * right)
        y[LA] += p / c[LA_EMIN]
        y[LV] += p / c[LV_EMIN]
        y[RA] += 0.6 * p / c[RA_EMIN]
        y[RV] += 0.6 * p / c[RV_EMIN]
        y[SV] = 0.6 * p * c[VENOUS_COMPLIANCE]
        y[PA] = 1.6 * p * c[PULMONARY_COMPLIANCE]
        y[PV] = p * c[PULMONARY_VENOUS_COMPLIANCE]
    return states


@njit(cache=True, nogil=True, error_model="numpy")
def simulate(
    constants: Floats, initial: Floats, time_step: float, tolerance: float, max_beats: int
) -> tuple[Floats, Integers, Integers, Floats]:
    """Run each row to its periodic state.

    Parameters
    ----------
    constants : ndarray, shape (n, N_CONSTANTS)
        In the order and units of `TABLE`.
    initial : ndarray, shape (n, 12)
        States to start from.
    time_step : float
        Longest time step in s; the explicit method is stable below about 0.011 s.
    tolerance : float
        Largest change of a volume over a periodic beat, mL.
    max_beats : int
        At least 1.

    Returns
    -------
    outputs : ndarray, shape (n, N_OUTPUTS)
        Of the last beat, see `OUTPUTS`.
    status : ndarray of int64, shape (n,)
        Bit field.
    beats : ndarray of int64, shape (n,)
        Beats that were computed.
    start : ndarray, shape (n, 12)
        State at the start of the last beat.
    """
    n_rows = constants.shape[0]
    outputs = np.empty((n_rows, N_OUTPUTS))
    status = np.zeros(n_rows, np.int64)
    beats = np.zeros(n_rows, np.int64)
    start = np.empty((n_rows, N_STATES))

    longest = 1
    for i in range(n_rows):
        longest = max(longest, _n_steps(constants[i], time_step))
    table = np.empty((2 * longest + 1, 3))
    w, inv, y = np.empty(7), np.empty(N_CONSTANTS), np.empty(N_STATES)
    no_curve = np.empty((0, 0))
    f, f_old, g_old = np.empty(N_STATES), np.empty(N_STATES), np.empty(N_STATES)
    df, dg = np.empty((DEPTH, N_STATES)), np.empty((DEPTH, N_STATES))
    a, b = np.empty((DEPTH, DEPTH)), np.empty(DEPTH)

    for i in range(n_rows):
        c, out, x = constants[i], outputs[i], start[i]
        n = _n_steps(c, time_step)
        changed = 2 if i == 0 else 0
        for j in range(N_TIMING):
            if i > 0 and c[j] != constants[i - 1, j]:
                changed = 2
        if i > 0 and changed == 0 and c[LV_TIME_TO_EMAX] != constants[i - 1, LV_TIME_TO_EMAX]:
            changed = 1
        if changed > 0:
            _tabulate(n, changed, w, c, table)
        _inverses(c, inv)

        for q in range(N_STATES):
            x[q] = initial[i, q]
        converged = finite = False
        while beats[i] < max_beats:
            _beat(n, x, table, w, c, inv, out, no_curve, y)
            beats[i] += 1
            residual, finite = 0.0, True
            for q in range(N_STATES):
                f[q] = y[q] - x[q]
                finite = finite and math.isfinite(y[q])
                if q < N_VOLUMES:
                    residual = max(residual, abs(f[q]))
                else:
                    f[q] *= FLOW_WEIGHT
            converged = finite and residual < tolerance
            if converged or not finite or beats[i] == max_beats:
                break
            # the first beat only warms up; the history starts with the second
            m = min(beats[i] - 2, DEPTH)
            if m > 0:
                slot = (beats[i] - 3) % DEPTH
                for q in range(N_STATES):
                    df[slot, q] = f[q] - f_old[q]
                    dg[slot, q] = y[q] - g_old[q]
            for q in range(N_STATES):
                f_old[q] = f[q]
                g_old[q] = x[q] = y[q]
            if m > 0:
                _mix(m, df, dg, f, a, b, x)
                usable = x[SA] >= 0.0
                for q in range(N_STATES):
                    usable = usable and math.isfinite(x[q])
                    if not usable:
                        break
                if not usable:
                    for q in range(N_STATES):
                        x[q] = y[q]
                for v in range(4):
                    x[Q_MV + v] = max(x[Q_MV + v], 0.0)

        flags = 0
        stressed = c[INITIAL_VOLUME] + c[REFERENCE_VOLUME] - c[LV_DEAD_VOLUME]
        stressed -= c[RV_DEAD_VOLUME] + c[LA_DEAD_VOLUME] + c[RA_DEAD_VOLUME]
        if stressed <= 0.0:
            flags |= NO_STRESSED_VOLUME
        if out[MAP] < 20.0 or out[EDV] - out[ESV] < 10.0:
            flags |= LOW_OUTPUT
        if out[ESV] < 0.0:
            flags |= NEGATIVE_VOLUME
        if out[ET] >= 900.0 * c[HEART_PERIOD]:
            flags |= AORTIC_ALWAYS_OPEN
        if out[ET] == 0.0:
            flags |= AORTIC_NEVER_OPENS
        if not converged:
            flags |= NOT_CONVERGED
        if not finite:
            flags |= NON_FINITE
        if c[LV_TIME_TO_EMAX] > 0.8 * c[HEART_PERIOD]:
            flags |= TMAX_CLAMPED
        status[i] = flags
    return outputs, status, beats, start


@njit(cache=True, nogil=True, error_model="numpy")
def beat(c: Floats, start: Floats, time_step: float) -> tuple[Floats, Floats, Floats]:
    """One beat of one row from a given state.

    Parameters
    ----------
    c : ndarray, shape (N_CONSTANTS,)
    start : ndarray, shape (12,)
    time_step : float
        Longest time step in s.

    Returns
    -------
    outputs : ndarray, shape (N_OUTPUTS,)
    end : ndarray, shape (12,)
        State one beat later.
    curve : ndarray, shape (n_steps + 1, len(CURVES))
        Time, states and pressures, see `CURVES`.
    """
    n = _n_steps(c, time_step)
    table, w, inv = np.empty((2 * n + 1, 3)), np.empty(7), np.empty(N_CONSTANTS)
    _tabulate(n, 2, w, c, table)
    _inverses(c, inv)
    out, curve = np.empty(N_OUTPUTS), np.empty((n + 1, len(CURVES)))
    end = np.empty(N_STATES)
    _beat(n, start, table, w, c, inv, out, curve, end)
    return out, end, curve


@njit(cache=True, nogil=True, error_model="numpy")
def examine(constants: Floats, start: Floats, time_step: float) -> Floats:
    """Further outputs of the beat of each row from a given state.

    Parameters
    ----------
    constants : ndarray, shape (n, N_CONSTANTS)
    start : ndarray, shape (n, 12)
        States at the start of the beat, e.g. of `simulate`.
    time_step : float
        Longest time step in s.

    Returns
    -------
    ndarray, shape (n, N_FURTHER)
        See `FURTHER_OUTPUTS`.
    """
    n_rows = constants.shape[0]
    outputs = np.empty((n_rows, N_FURTHER))
    w, inv, end = np.empty(7), np.empty(N_CONSTANTS), np.empty(N_STATES)
    out, no_curve = np.empty(N_OUTPUTS + N_FURTHER), np.empty((0, 0))
    for i in range(n_rows):
        c = constants[i]
        n = _n_steps(c, time_step)
        table = np.empty((2 * n + 1, 3))
        _tabulate(n, 2, w, c, table)
        _inverses(c, inv)
        _beat(n, start[i], table, w, c, inv, out, no_curve, end)
        outputs[i] = out[N_OUTPUTS:]
    return outputs
