"""The tables of the circulation model: parameters, objectives, units, and the setups made of them.

Units are the paper's outside and mmHg, mL, s inside (1 mmHg = 1333.22 dyn/cm²). The paper prints
aortic compliance in 10⁹ cm⁴ s²/g; its default 1.4 with the default resistance of 1100 g/(cm⁴ s)
gives a diastolic time constant R C near the human 1 to 2 s only as 1.4e-3 cm⁴ s²/g (1.54 s), so
the unit here is 1e-3 cm⁴ s²/g and the numbers stay as printed.

The setups 2p to 6p are the paper's. 9p and 12p take its six parameters and objectives and the
first three or all six of `FURTHER_PARAMETERS` and `FURTHER_OBJECTIVES`, what MRI of the right
ventricle and a right-heart catheter measure. 20p adds `LAB_PARAMETERS` and `LAB_OBJECTIVES`: the
atria, the mitral and the pulmonary valve and the aortic root, with what catheters in both
ventricles and in the right atrium and images of the atria measure. Every setup contains the smaller
ones. Nothing of the further tables is the paper's, whose authors report failure above ten
parameters; domains, tolerances and order are our own.

Order, and so the three of 9p: right-ventricular maximum elastance, pulmonary resistance and
pulmonary compliance with end-systolic volume, mean and diastolic pressure, the counterparts of
what the paper's setups have on the left. Of all ways to take three of six parameters with three of
six measurements they, with either right-ventricular volume, leave the least identifiable direction
the least bad: the 10 % quantile of the smallest singular value of `vitolab.identifiability` is the
largest, over the defaults and 48 random points within the measured ranges, at the heart rates of
the scouting patients.

Over a periodic beat both ventricles eject the same volume, so that of the twelve objectives of 12p
only eleven are independent: one singular value is zero at every point, and one combination of the
twelve parameters, near most points little but the minimum RV elastance, cannot be found from them.
As on the left, times to maximum elastance above 0.8 of the beat are one and the same model.

20p frees the leak of the mitral valve. What the left ventricle ejects more than the right then
returns to the left atrium, so that the twenty objectives are independent; a regurgitant volume
among them would not be. The eight parameters were chosen among 19 constants, the eight objectives
among 15 outputs: from four random choices, single exchanges raised the 10 % quantile of the
smallest singular value over 40 random patients of the cohort's distribution, at best to 0.27.

What the measurements determine: `least-squares` from the defaults solves all 48 evaluation
patients, and at these answers 16 to 18 of the 20 singular values are at least one tolerance per
width of the domain. The two to four combinations below are left open. In the median over the
patients 0.8 of the mitral leak and 0.7 of the resistance of the pulmonary valve lie in them; in
some patients also the mitral valve, the root of the aorta, the pulmonary compliance or the minimum
RV elastance.
"""

from __future__ import annotations

from vitolab.problem import Objective, Parameter

MMHG = 1333.22  # dyn/cm²
HEART_RATE_RANGE = (30.0, 200.0)  # beats per minute

# Table wbc_params of the paper; the step is 0.5 % of the range.
PAPER_PARAMETERS = (
    Parameter("initial_volume", "Initial volume", "mL", 200, 1000, 400, 4),
    Parameter("lv_emax", "LV maximum elastance", "mmHg/mL", 0.2, 5, 2.4, 0.024),
    Parameter("aortic_resistance", "Aortic resistance", "g/(cm⁴ s)", 500, 2500, 1100, 10),
    Parameter("aortic_compliance", "Aortic compliance", "1e-3 cm⁴ s²/g", 0.5, 6, 1.4, 0.0275),
    Parameter("lv_dead_volume", "LV dead volume", "mL", -50, 500, 10, 2.75),
    Parameter("time_to_emax", "Time to maximum elastance", "ms", 100, 600, 300, 2.5),
)
# Table wbc_objectives of the paper
PAPER_OBJECTIVES = (
    Objective("lv_edv", "End-diastolic LV volume", "mL", 20),
    Objective("lv_esv", "End-systolic LV volume", "mL", 20),
    Objective("aortic_mean", "Mean aortic pressure", "mmHg", 10),
    Objective("aortic_systolic", "Peak-systolic aortic pressure", "mmHg", 10),
    Objective("aortic_diastolic", "End-diastolic aortic pressure", "mmHg", 10),
    Objective("ejection_time", "Ejection time", "ms", 50),
)
# The step is 0.5 % of the range, as in the paper's table wbc_params. Defaults are the constants of
# the kernel; the domains are 0.03 to 0.6 mmHg s/mL for the resistance, 1 to 12 mL/mmHg for the
# compliance.
FURTHER_PARAMETERS = (
    Parameter("rv_emax", "RV maximum elastance", "mmHg/mL", 0.15, 2, 0.6, 0.00925),
    Parameter(
        "pulmonary_resistance", "Pulmonary resistance", "g/(cm⁴ s)", 40, 800, 0.095 * MMHG, 3.8
    ),
    Parameter(
        *("pulmonary_compliance", "Pulmonary compliance", "1e-3 cm⁴ s²/g"),
        *(0.75, 9, 4.0 / (1e-3 * MMHG), 0.04125),
    ),
    Parameter("rv_time_to_emax", "RV time to maximum elastance", "ms", 100, 600, 300, 2.5),
    Parameter("lv_emin", "LV minimum elastance", "mmHg/mL", 0.015, 0.15, 0.04, 0.000675),
    Parameter("rv_emin", "RV minimum elastance", "mmHg/mL", 0.015, 0.15, 0.05, 0.000675),
)
FURTHER_OBJECTIVES = (
    Objective("rv_esv", "End-systolic RV volume", "mL", 20),
    Objective("pulmonary_mean", "Mean pulmonary arterial pressure", "mmHg", 5),
    Objective("pulmonary_diastolic", "End-diastolic pulmonary arterial pressure", "mmHg", 5),
    Objective("rv_edv", "End-diastolic RV volume", "mL", 20),
    Objective("pulmonary_systolic", "Peak-systolic pulmonary arterial pressure", "mmHg", 5),
    Objective("la_mean", "Mean left-atrial (wedge) pressure", "mmHg", 4),
)
# Defaults are the constants of the kernel. The characteristic resistance ends at 0.12 mmHg s/mL: a
# little beyond, the longest time step that `model.Numerics` allows is unstable.
LAB_PARAMETERS = (
    Parameter("la_emin", "LA minimum elastance", "mmHg/mL", 0.03, 0.4, 0.12, 0.00185),
    Parameter("la_active_elastance", "LA active elastance", "mmHg/mL", 0, 0.6, 0.13, 0.003),
    Parameter("ra_emin", "RA minimum elastance", "mmHg/mL", 0.02, 0.3, 0.08, 0.0014),
    Parameter("ra_active_elastance", "RA active elastance", "mmHg/mL", 0, 0.5, 0.12, 0.0025),
    Parameter("mitral_leak", "Mitral leak conductance", "mL/(mmHg s)", 0, 1, 0, 0.005),
    Parameter(
        *("mitral_resistance", "Mitral valve resistance", "g/(cm⁴ s)"),
        *(2, 60, 0.0075 * MMHG, 0.29),
    ),
    Parameter(
        *("pulmonary_valve_resistance", "Pulmonary valve resistance", "g/(cm⁴ s)"),
        *(2, 60, 0.0075 * MMHG, 0.29),
    ),
    Parameter(
        *("aortic_characteristic_resistance", "Aortic characteristic resistance", "g/(cm⁴ s)"),
        *(10, 160, 66, 0.75),
    ),
)
LAB_OBJECTIVES = (
    Objective("ra_mean", "Mean right-atrial pressure", "mmHg", 4),
    Objective("lv_edp", "End-diastolic LV pressure", "mmHg", 4),
    Objective("lv_dpdt", "Steepest rise of LV pressure", "mmHg/s", 150),
    Objective("rv_dpdt", "Steepest rise of RV pressure", "mmHg/s", 50),
    Objective("la_volume_max", "Largest LA volume", "mL", 15),
    Objective("la_volume_min", "Smallest LA volume", "mL", 15),
    Objective("ra_volume_max", "Largest RA volume", "mL", 15),
    Objective("ra_volume_min", "Smallest RA volume", "mL", 15),
)
PARAMETERS = PAPER_PARAMETERS + FURTHER_PARAMETERS + LAB_PARAMETERS
OBJECTIVES = PAPER_OBJECTIVES + FURTHER_OBJECTIVES + LAB_OBJECTIVES
# each takes the first of both tables
SETUPS = {"2p": 2, "3p": 3, "5p": 5, "6p": 6, "9p": 9, "12p": 12, "20p": 20}

# Kernel constant behind each parameter, and the factor from the paper's unit to the kernel's. The
# pulmonary resistance is the total; the kernel's is what follows the root of the artery. Active
# elastance is what contraction adds to the minimum; the kernel takes the maximum. The
# characteristic resistance is part of the aortic resistance; the kernel takes the share.
CONSTANTS = {
    "initial_volume": ("initial_volume", 1.0),
    "lv_emax": ("lv_emax", 1.0),
    "aortic_resistance": ("aortic_resistance", 1.0 / MMHG),
    "aortic_compliance": ("aortic_compliance", 1e-3 * MMHG),
    "lv_dead_volume": ("lv_dead_volume", 1.0),
    "time_to_emax": ("lv_time_to_emax", 1e-3),
    "rv_emax": ("rv_emax", 1.0),
    "pulmonary_resistance": ("pulmonary_resistance", 1.0 / MMHG),
    "pulmonary_compliance": ("pulmonary_compliance", 1e-3 * MMHG),
    "rv_time_to_emax": ("rv_time_to_emax", 1e-3),
    "lv_emin": ("lv_emin", 1.0),
    "rv_emin": ("rv_emin", 1.0),
    "la_emin": ("la_emin", 1.0),
    "la_active_elastance": ("la_emax", 1.0),
    "ra_emin": ("ra_emin", 1.0),
    "ra_active_elastance": ("ra_emax", 1.0),
    "mitral_leak": ("mitral_leak", 1.0),
    "mitral_resistance": ("mitral_resistance", 1.0 / MMHG),
    "pulmonary_valve_resistance": ("pulmonary_valve_resistance", 1.0 / MMHG),
    "aortic_characteristic_resistance": ("characteristic_share", 1.0 / MMHG),
}
