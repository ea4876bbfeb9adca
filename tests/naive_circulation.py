"""Slow, obvious oracle of the circulation: written from the equations, solved by scipy."""

from __future__ import annotations

import math

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import minimize_scalar

from vitolab.kernels import circulation as kernel

VALVES = ("mitral", "aortic_valve", "tricuspid", "pulmonary_valve")


def constants(theta, heart_rate, **others):
    """One row for (V_init mL, Emax mmHg/mL, R g/(cm⁴ s), C 1e-3 cm⁴ s²/g, V0 mL, t_max ms)."""
    row = kernel.DEFAULTS.copy()
    volume, emax, resistance, compliance, v0, t_max = theta
    values = {
        "heart_period": 60 / heart_rate,
        "initial_volume": volume,
        "lv_emax": emax,
        "aortic_resistance": resistance / 1333.22,
        "aortic_compliance": compliance * 1.33322,
        "lv_dead_volume": v0,
        "lv_time_to_emax": t_max / 1000,
    }
    for name, value in (values | others).items():
        row[kernel.NAMES.index(name)] = value
    return row


def shape(rise, fall, ratio):
    """Double-Hill curve with maximum 1 at s = 1; its peak is found by search."""

    def raw(y):
        return y**rise / (1 + y**rise) / (1 + (y / ratio) ** fall)

    peak = minimize_scalar(lambda y: -raw(y), bounds=(0.01, 3), options={"xatol": 1e-12}).x
    return lambda s: raw(peak * s) / raw(peak) if 0 < s <= 2 else 0.0


def ventricle(t, t_max, period, hill):
    t_max = min(t_max, 0.8 * period)
    s = t / t_max
    if s > 1:
        s = 1 + (s - 1) * max(1, 0.5 * t_max / (0.95 * period - t_max))
    return hill(s)


def atrium(t, c):
    period = c["heart_period"]
    up, down = c["atrial_contraction"] * period, c["atrial_relaxation"] * period
    tau = (t - c["atrial_onset"] * period) % period
    if tau < up:
        return 0.5 * (1 - math.cos(math.pi * tau / up))
    if tau < up + down:
        return 0.5 * (1 + math.cos(math.pi * (tau - up) / down))
    return 0.0


def pressures(t, y, c, hill):
    """Pressures of the eight compartments and at the roots of aorta and pulmonary artery."""
    la, lv, ra, rv, sa, sv, pa, pv, _, q_av, _, q_pv = y[:12]
    e_lv = ventricle(t, c["lv_time_to_emax"], c["heart_period"], hill)
    e_rv = ventricle(t, c["rv_time_to_emax"], c["heart_period"], hill)
    e_at = atrium(t, c)

    def chamber(name, volume, e):
        elastance = c[f"{name}_emin"] + (c[f"{name}_emax"] - c[f"{name}_emin"]) * e
        return elastance * (volume - c[f"{name}_dead_volume"]) + c[f"{name}_pressure_offset"]

    p_lv = chamber("lv", lv, e_lv)
    k, x = c["lv_stiffening"], lv - c["lv_dead_volume"]
    if k:
        p_lv += (1 - e_lv) * c["lv_emin"] * ((math.exp(k * x) - 1) / k - x)
    p_lv = (p_lv - c["lv_pressure_offset"]) * (1 - c["lv_source"] * q_av) + c["lv_pressure_offset"]
    w = sa / c["aortic_compliance"]
    p_sa = w + c["aortic_stiffening"] * (w - 90) ** 2 / 180
    p_pa = pa / c["pulmonary_compliance"]
    return {
        "la": chamber("la", la, e_at),
        "lv": p_lv,
        "ra": chamber("ra", ra, e_at),
        "rv": chamber("rv", rv, e_rv),
        "sa": p_sa,
        "sv": sv / c["venous_compliance"],
        "pa": p_pa,
        "pv": pv / c["pulmonary_venous_compliance"],
        "ao": p_sa + c["characteristic_share"] * c["aortic_resistance"] * q_av,
        "pul": p_pa + c["pulmonary_characteristic_resistance"] * q_pv,
    }


def drops(p):
    return [p["la"] - p["lv"], p["lv"] - p["ao"], p["ra"] - p["rv"], p["rv"] - p["pul"]]


def rates(t, y, valve_open, c, hill):
    """Rates of the twelve states, then aortic, pulmonary and left-atrial pressure to integrate."""
    p = pressures(t, y, c, hill)
    q_mv, q_av, q_tv, q_pv = y[8:12]
    q_s = (p["sa"] - p["sv"]) / ((1 - c["characteristic_share"]) * c["aortic_resistance"])
    q_sv = (p["sv"] - p["ra"]) / c["venous_resistance"]
    q_p = (p["pa"] - p["pv"]) / c["pulmonary_resistance"]
    q_v = (p["pv"] - p["la"]) / c["pulmonary_venous_resistance"]
    q_mv = q_mv - c["mitral_leak"] * max(p["lv"] - p["la"], 0)
    volumes = [q_v - q_mv, q_mv - q_av, q_sv - q_tv, q_tv - q_pv]
    volumes += [q_av - q_s, q_s - q_sv, q_pv - q_p, q_p - q_v]
    flows = []
    for name, is_open, drop, q in zip(VALVES, valve_open, drops(p), y[8:12], strict=True):
        lost = c[f"{name}_resistance"] * q + c[f"{name}_loss"] * abs(q) * q
        flows.append((drop - lost) / c[f"{name}_inertance"] if is_open else 0.0)
    return [*volumes, *flows, p["ao"], p["pul"], p["la"]]


def beat(row, start, rtol=1e-10, atol=1e-9, max_step=4e-3):
    """Outputs of one beat and its end state; valves switch at events of the solver."""
    c = dict(zip(kernel.NAMES, row, strict=True))
    hill = shape(c["hill_rise"], c["hill_fall"], c["hill_ratio"])
    period = c["heart_period"]
    y = np.append(start, np.zeros(3))
    valve_open = [
        q > 0 or d > 0 for q, d in zip(y[8:12], drops(pressures(0, y, c, hill)), strict=True)
    ]
    t, ejection, states, aortic, pulmonary = 0.0, 0.0, [y], [], []
    while t < period:
        events = []
        for v in range(4):
            if valve_open[v]:

                def event(t, y, v=v):
                    return y[8 + v]

                event.direction = -1
            else:

                def event(t, y, v=v):
                    return drops(pressures(t, y, c, hill))[v]

                event.direction = 1
            event.terminal = True
            events.append(event)
        solution = solve_ivp(
            lambda t, y, o=tuple(valve_open): rates(t, y, o, c, hill),
            (t, period),
            y,
            method="DOP853",
            rtol=rtol,
            atol=atol,
            max_step=max_step,
            events=events,
            dense_output=True,
        )
        end = solution.t[-1]
        for at in np.linspace(t, end, max(2, int((end - t) / 2e-4))):
            state = solution.sol(at)
            p = pressures(at, state, c, hill)
            states.append(state)
            aortic.append(p["ao"])
            pulmonary.append(p["pul"])
        ejection += (end - t) * valve_open[1]
        t, y = end, solution.y[:, -1].copy()
        for v in range(4):
            if len(solution.t_events[v]):
                valve_open[v] = not valve_open[v]
                y[8 + v] = 0.0
    volumes = np.array(states)
    return np.array(
        [
            volumes[:, 1].max(),
            volumes[:, 1].min(),
            y[12] / period,
            max(aortic),
            min(aortic),
            1000 * ejection,
            volumes[:, 3].max(),
            volumes[:, 3].min(),
            y[13] / period,
            max(pulmonary),
            min(pulmonary),
            y[14] / period,
        ]
    ), y[:12]
