"""What a synthetic patient is made of, drawn at random: shape, speeds, fibres, blocks, scar."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vitolab.models.electrophysiology.shapes import Shape

# Mean and SD of the LV short radius, length and wall, clipped (mm)
DIMENSIONS = {
    "normal": ((25, 2.5, 20, 31), (76, 5, 64, 88), (9.8, 1.0, 7.5, 12)),
    "dcm": ((31, 3.5, 26, 40), (86, 6, 74, 100), (8.7, 1.0, 6.5, 11)),
    "hcm": ((20, 2.0, 16, 24), (70, 5, 60, 82), (14, 2.0, 11, 19)),
}
FORM = {"normal": "normal", "rbbb": "normal", "rv": "normal", "dcm": "dcm", "lbbb": "dcm"}
MYOCARDIUM = {"dcm": 400.0, "lbbb": 400.0}  # mean speed, mm/s; elsewhere
MEAN_SPEED, SPEED_SPREAD, SPEED_RANGE = 470.0, 90.0, (280.0, 800.0)
ENDOCARDIUM, BLOCKED, ENDO_SPREAD, ENDO_RANGE = 1700.0, 950.0, 0.35, (600.0, 4800.0)
RATIO, RATIO_SPREAD, RATIO_RANGE = 0.48, 0.07, (0.3, 0.65)
HELIX, HELIX_SPREAD = 60.0, 9.0  # degrees
SCAR_SHARE, SCAR_SHARE_OTHERS = 0.35, 0.12
SCAR_RADIUS, SCAR_SLOWING = (14.0, 26.0), (2.5, 6.0)  # mm
TURN_SPREAD = 14.0  # degrees

# Earliest activation of the LV: angle about the long axis from mid-septum (towards the anterior
# wall negative) in degrees, and depth below the base as a share of the length
LV_SITES = {"septal": (0.0, 0.45), "anterior": (-50.0, 0.30), "posterior": (50.0, 0.60)}


@dataclass(frozen=True)
class Truth:
    """What one synthetic patient is made of beside its shape; lengths mm, times ms, angles °.

    Attributes
    ----------
    group, block : str
        Group, such as ``dcm``; fascicle that does not conduct, or ``none``.
    v_myo, v_lv, v_rv : float
        Speeds, mm/s.
    ratio : float
        Cross-fibre to fibre speed.
    helix_endo, helix_epi : float
    azimuth, elevation, roll : float
    scar_radius, scar_slowing : float
        Radius 0: no scar.
    lv_sites : str
        Sites of earliest activation, joined by ``+``; ``none`` if the bundle branch is blocked.
    rv_sites : int
    """

    group: str
    block: str
    v_myo: float
    v_lv: float
    v_rv: float
    ratio: float
    helix_endo: float
    helix_epi: float
    azimuth: float
    elevation: float
    roll: float
    scar_radius: float
    scar_slowing: float
    lv_sites: str
    rv_sites: int


def _clipped(
    rng: np.random.Generator, mean: float, spread: float, low: float, high: float
) -> float:
    """Draw from a clipped normal distribution."""
    return float(np.clip(rng.normal(mean, spread), low, high))


def draw_shape(rng: np.random.Generator, group: str) -> Shape:
    """Draw the shape of a heart.

    Parameters
    ----------
    rng : Generator
    group : str
        Such as ``dcm``.

    Returns
    -------
    Shape
    """
    radius, length, wall = (_clipped(rng, *row) for row in DIMENSIONS[FORM.get(group, group)])
    wide = 1.25 if group == "rv" else 1.0
    return Shape(
        lv_radius=radius,
        lv_radius_ratio=_clipped(rng, 1.0, 0.05, 0.85, 1.15),
        lv_length=length,
        lv_wall=wall,
        septal_thickening=_clipped(rng, 0.15, 0.1, 0.0, 0.4) if group == "hcm" else 0.0,
        bump=_clipped(rng, 0.0, 0.05, -0.12, 0.12),
        bump_angle=float(rng.uniform(-np.pi, np.pi)),
        rv_radius_x=wide * (0.9 * radius + 9.0 + _clipped(rng, 0.0, 2.0, -5.0, 5.0)),
        rv_radius_y=wide * (0.9 * radius + 7.0 + _clipped(rng, 0.0, 2.0, -5.0, 5.0)),
        rv_length=0.88 * length,
        rv_wall=_clipped(rng, 4.0, 0.5, 3.2, 5.5),
        rv_offset=-(0.85 * radius + 0.5 * wall + 0.8),
    )


def draw_truth(rng: np.random.Generator, group: str, block: str) -> Truth:
    """Draw what a patient is made of beside its shape.

    Parameters
    ----------
    rng : Generator
    group : str
        Such as ``dcm``.
    block : {"none", "anterior", "posterior"}
        Fascicle that does not conduct.

    Returns
    -------
    Truth
    """
    endo = {
        side: float(
            np.clip(median * rng.lognormal(0.0, ENDO_SPREAD), *ENDO_RANGE),
        )
        for side, median in (
            ("lv", BLOCKED if group == "lbbb" else ENDOCARDIUM),
            ("rv", BLOCKED if group == "rbbb" else ENDOCARDIUM),
        )
    }
    sites = list(LV_SITES)
    if group == "lbbb":
        chosen = []
    elif block != "none":
        chosen = [site for site in sites if site != block]
    else:
        others = [sites[1 + int(i)] for i in rng.permutation(2)]
        chosen = ["septal", *others[: int(rng.integers(0, 3))]]
    scarred = rng.random() < (SCAR_SHARE if group in ("dcm", "lbbb") else SCAR_SHARE_OTHERS)
    return Truth(
        group=group,
        block=block,
        v_myo=_clipped(rng, MYOCARDIUM.get(group, MEAN_SPEED), SPEED_SPREAD, *SPEED_RANGE),
        v_lv=endo["lv"],
        v_rv=endo["rv"],
        ratio=_clipped(rng, RATIO, RATIO_SPREAD, *RATIO_RANGE),
        helix_endo=float(rng.normal(HELIX, HELIX_SPREAD)),
        helix_epi=float(rng.normal(-HELIX, HELIX_SPREAD)),
        azimuth=float(rng.normal(0.0, TURN_SPREAD)),
        elevation=float(rng.normal(0.0, TURN_SPREAD)),
        roll=float(rng.normal(0.0, TURN_SPREAD)),
        scar_radius=float(rng.uniform(*SCAR_RADIUS)) if scarred else 0.0,
        scar_slowing=float(rng.uniform(*SCAR_SLOWING)),
        lv_sites="+".join(chosen) or "none",
        rv_sites=0 if group == "rbbb" else int(rng.integers(1, 3)),
    )
