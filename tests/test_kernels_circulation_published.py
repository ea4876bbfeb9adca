"""The circulation kernel against published beats."""

from __future__ import annotations

import naive_circulation as naive
import numpy as np
import pandas as pd
import pytest

from vitolab.kernels import circulation as kernel

DEFAULT = (400, 2.4, 1100, 1.4, 10, 300)


def simulate(rows, time_step=5e-3, tolerance=1e-2, max_beats=200, initial=None):
    rows = np.atleast_2d(rows)
    initial = kernel.initial_states(rows) if initial is None else initial
    return kernel.simulate(rows, initial, time_step, tolerance, max_beats)


def curve(row, **kwargs):
    start = simulate(row, **kwargs)[3][0]
    table = kernel.beat(row, start, kwargs.get("time_step", 5e-3))[2]
    return {name: table[:, i] for i, name in enumerate(kernel.CURVES)}


def compared(table, rows, names):
    """Largest difference of curves to columns of a published beat, by the phase of the beat."""
    c = curve(rows[0], time_step=rows[1], tolerance=1e-6, max_beats=400)
    phase = table.t.to_numpy() % c["time"][-1]
    return {
        name: np.interp(phase, c["time"], c[name]) - table[column].to_numpy()
        for name, column in names.items()
    }


def test_published_single_ventricle_beat_is_a_limit_of_the_model(reference_data):
    # One LV with double-Hill elastance, diode valves and two compliances. The chain from veins to
    # left atrium shares the venous compliance; its resistances and all inertances go to zero.
    table = pd.read_csv(reference_data / "bjordalsbakke_lv_windkessel_reference.csv")
    listed = pd.read_csv(reference_data / "circulation_reference_parameters.csv")
    p = listed[listed.model == "bjordalsbakke"].set_index("parameter").value
    volume = np.mean(table.LV_V + p.C_sa * table.Csa_p + p.C_sv * table.Csv_p)
    peak = 1.4138276  # of the double Hill, in units of its first time constant
    shared = p.C_sv / 6
    names = {
        "lv_volume": "LV_V",
        "lv_pressure": "LV_p",
        "sa_pressure": "Csa_p",
        "sv_pressure": "Csv_p",
    }

    def differences(small, inertance, time_step):
        values = {
            f"{room}_{kind}": 1 / shared for room in ("rv", "la", "ra") for kind in ("emin", "emax")
        }
        values |= {f"{room}_dead_volume": 0.0 for room in ("lv", "rv", "la", "ra")}
        values |= {
            "heart_period": p.period,
            "lv_time_to_emax": peak * p.LV_tau1_fraction_of_period * p.period,
            "hill_rise": p.LV_n1,
            "hill_fall": p.LV_n2,
            "hill_ratio": p.LV_tau2_fraction_of_period / p.LV_tau1_fraction_of_period,
            "lv_emin": p.LV_Emin,
            "lv_emax": p.LV_Emax,
            "aortic_resistance": p.R_s,
            "characteristic_share": 0.0,
            "aortic_compliance": p.C_sa,
            "venous_compliance": shared,
            "pulmonary_compliance": shared,
            "pulmonary_venous_compliance": shared,
            "venous_resistance": small,
            "pulmonary_characteristic_resistance": 0.0,
            "pulmonary_resistance": small,
            "pulmonary_venous_resistance": small,
            "mitral_resistance": p.R_mv,
            "aortic_valve_resistance": p.Z_ao,
            "tricuspid_resistance": small,
            "pulmonary_valve_resistance": small,
            "mitral_inertance": inertance * p.R_mv,
            "aortic_valve_inertance": inertance * p.Z_ao,
            "tricuspid_inertance": inertance * small,
            "pulmonary_valve_inertance": inertance * small,
            "initial_volume": 0.0,
            "reference_volume": volume,
        }
        row = naive.constants(DEFAULT, 75, **values)
        found = compared(table, (row, time_step), names)
        return {name: np.abs(values).max() for name, values in found.items()}

    far = differences(2e-4, 1e-4, 1e-4)
    near = differences(2e-5, 3e-5, 2e-5)
    assert near["lv_volume"] < 0.15  # mL, of a stroke volume of 62
    assert max(near["lv_pressure"], near["sa_pressure"], near["sv_pressure"]) < 0.03  # mmHg
    assert near["lv_volume"] < 0.2 * far["lv_volume"]


def test_published_four_chamber_beat_is_met_but_for_its_aortic_sinus(reference_data):
    # Cosine elastances and orifice valves Q = CQ √Δp (a Bernoulli loss 1/CQ², inertance to zero).
    # The published model has two compliances and an inertance in each arterial tree, ours one
    # compliance: that moves pressure during ejection, little else. Its chambers carry an offset
    # of 1 mmHg, the atria as well: p_la - Emin (V - V0) is 1.00 in the data, mitral valve closed.
    table = pd.read_csv(reference_data / "shi_hose_simple_reference.csv")
    listed = pd.read_csv(reference_data / "circulation_reference_parameters.csv")
    p = listed[listed.model == "shi_hose"].set_index("parameter").value
    volume = np.mean(
        table.LV_V + table.RV_V + table.LA_V + table.RA_V
        + p.Csas * table.SAS_S_p + p.Csat * table.SAT_S_p + p.Csvn * table.SVN_C_p
        + p.Cpas * table.PAS_S_p + p.Cpat * table.PAT_S_p + p.Cpvn * table.PVN_C_p
    )  # fmt: skip
    values = {
        f"{room}_{ours}": p[f"{room.upper()}_{theirs}"]
        for room in ("lv", "rv", "la", "ra")
        for ours, theirs in (("emin", "Emin"), ("emax", "Emax"), ("dead_volume", "v0"))
    }
    values |= {f"{room}_pressure_offset": 1.0 for room in ("lv", "rv", "la", "ra")}
    inertance = {f"{valve}_inertance": 1e-6 for valve in naive.VALVES}
    resistance = {f"{valve}_resistance": 0.0 for valve in naive.VALVES}
    orifice = (p.CQ_MV, p.CQ_AV, p.CQ_TV, p.CQ_PV)
    values |= {f"{v}_loss": 1 / cq**2 for v, cq in zip(naive.VALVES, orifice, strict=True)}
    values |= {
        "heart_period": p.period,
        "cosine_shape": 1.0,
        "lv_time_to_emax": p.LV_tau_es,  # relaxation ends at 1.5 t_max, LV_tau_ed
        "rv_time_to_emax": p.LV_tau_es,
        "atrial_onset": p.atria_tau_pwb / p.period,
        "atrial_contraction": p.atria_tau_pww / 2 / p.period,
        "atrial_relaxation": p.atria_tau_pww / 2 / p.period,
        "aortic_resistance": p.Rsas + p.Rsat + p.Rsar + p.Rscp,
        "characteristic_share": 0.0,
        "aortic_compliance": p.Csas + p.Csat,
        "venous_resistance": p.Rsvn,
        "venous_compliance": p.Csvn,
        "pulmonary_characteristic_resistance": 0.0,
        "pulmonary_resistance": p.Rpas + p.Rpat + p.Rpar + p.Rpcp,
        "pulmonary_compliance": p.Cpas + p.Cpat,
        "pulmonary_venous_resistance": p.Rpvn,
        "pulmonary_venous_compliance": p.Cpvn,
        "initial_volume": 0.0,
        "reference_volume": volume,
    }
    row = naive.constants(DEFAULT, 60, **(values | inertance | resistance))
    names = {
        "lv_volume": "LV_V",
        "rv_volume": "RV_V",
        "la_volume": "LA_V",
        "ra_volume": "RA_V",
        "sv_pressure": "SVN_C_p",
        "pv_pressure": "PVN_C_p",
        "sa_pressure": "SAS_S_p",
        "pa_pressure": "PAS_S_p",
    }
    difference = compared(table, (row, 1e-4), names)
    worst = {name: np.abs(values).max() for name, values in difference.items()}
    assert max(worst["la_volume"], worst["ra_volume"]) < 0.25  # mL
    assert max(worst["sv_pressure"], worst["pv_pressure"]) < 0.03  # mmHg
    assert max(worst["lv_volume"], worst["rv_volume"]) < 4.0  # mL, while ejecting
    filling = table.t.to_numpy() % 1.0 > 0.45
    assert np.abs(difference["lv_volume"][filling]).max() < 0.3
    assert np.abs(difference["rv_volume"][filling]).max() < 0.3
    assert abs(difference["sa_pressure"].mean()) < 0.3  # mmHg
    outputs = simulate(row, time_step=1e-4, tolerance=1e-6)[0][0]
    assert outputs[kernel.EDV] == pytest.approx(table.LV_V.max(), abs=0.3)
    assert outputs[kernel.ESV] == pytest.approx(table.LV_V.min(), abs=0.3)
    assert outputs[kernel.PSAP] == pytest.approx(table.SAS_S_p.max(), abs=0.5)
    assert outputs[kernel.EDAP] == pytest.approx(table.SAS_S_p.min(), abs=0.5)
