"""Make the synthetic cohort; run as a module, rewrite its files.

``python -m vitolab.models.electrophysiology.generate`` writes the same files again and prints
their checksums, which `vitolab.models.electrophysiology.frozen` and ``truth`` compare when they
load them.

No inverse crime: measurements come from a richer model than the one that is personalised. Its mesh
is finer and connected to three rings; fibre angles, the ratio of speeds across and along fibres,
root sites and their delays differ from patient to patient; speeds vary over the wall, one patient
in five has a scar; the action potential has an upstroke; torso and electrodes are the patient's
own; both features are read from the sampled ECG, with noise. What crosses over to the personalised
model is the anatomy with errors of segmentation and registration, and the two measurements.

The three areas of earliest activation follow Durrer et al. (1970). Their exact places and all other
settings are our own, with the orders of magnitude of healthy and failing myocardium: dimensions,
speeds, bundle branch and fascicular blocks, scars, torsos, and errors of reading of a few ms and
degrees. Nobody is dropped or picked by an outcome.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from scipy.spatial import cKDTree

from vitolab.files import stream
from vitolab.kernels import activation as kernel
from vitolab.models.electrophysiology.anatomy import LV_ENDO, RV_ENDO, Anatomy
from vitolab.models.electrophysiology.graph import connect
from vitolab.models.electrophysiology.hearts import SHAPE, in_torso
from vitolab.models.electrophysiology.leadfield import (
    LEADS,
    POSITIONS,
    Leads,
    electrical_axis,
    orient,
    prepare,
)
from vitolab.models.electrophysiology.mesh import generate as generate_mesh
from vitolab.models.electrophysiology.shapes import Shape
from vitolab.models.electrophysiology.torso import superellipsoid
from vitolab.models.frozen import write_frozen
from vitolab.problem import FloatArray, IntArray

SEED = 0
#: Patients of each group, and how many of a group are for scouting.
GROUPS = {"normal": 22, "dcm": 24, "lbbb": 14, "rbbb": 8, "hcm": 8, "rv": 7}
SCOUTING = {"normal": 2, "dcm": 2, "lbbb": 1, "rbbb": 1, "hcm": 1, "rv": 1}
#: Fascicular blocks, spread over patients of the groups without another block.
FASCICULAR = ("anterior", "anterior", "anterior", "posterior", "posterior")

TRUTH_SPACING, TRUTH_RINGS = 2.6, 3  # mm
MODEL_SPACING = 3.8
UPSTROKE, SAMPLING, AFTER = 4.0, 0.5, 40.0  # ms

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
FIELD_SPREAD, FIELD_LENGTH, FIELD_WAVES = 0.15, 25.0, 64  # log-normal; mm
SCAR_SHARE, SCAR_SHARE_OTHERS = 0.35, 0.12
SCAR_RADIUS, SCAR_SLOWING = (14.0, 26.0), (2.5, 6.0)  # mm
TURN_SPREAD, TORSO_SPREAD, ELECTRODE_SPREAD = 14.0, 0.04, 12.0  # degrees, share, mm
SITE_SPREAD = 5.0  # mm

# Registration and segmentation errors of the personalised anatomy: degrees, share, mm
TURN_ERROR, AXES_ERROR, POSITION_ERROR = 14.0, 0.05, 7.0  # 12 mm in all three directions together
CLEARANCE = 22.0  # mm between heart and electrodes; a place that is nearer is drawn again
# Of the measurements: ms and degrees, and what they are rounded to
DURATION_NOISE, DURATION_STEP, AXIS_NOISE, AXIS_STEP = 4.0, 2.0, 4.0, 1.0

# Earliest activation of the LV: angle about the long axis from mid-septum (towards the anterior
# wall negative) in degrees, and depth below the base as a share of the length
LV_SITES = {"septal": (0.0, 0.45), "anterior": (-50.0, 0.30), "posterior": (50.0, 0.60)}


@dataclass(frozen=True)
class Truth:
    """What one synthetic patient is made of beside its shape; lengths mm, times ms, angles °.

    Attributes
    ----------
    group, block : str
        Group of `GROUPS`; fascicle that does not conduct, or ``none``.
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
        One of `GROUPS`.

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
        One of `GROUPS`.
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


def _roots(
    rng: np.random.Generator, anatomy: Anatomy, shape: Shape, truth: Truth
) -> tuple[IntArray, FloatArray]:
    """Nodes and times of earliest activation."""
    points, times, surfaces = [], [], []
    for site in truth.lv_sites.split("+") if truth.lv_sites != "none" else []:
        angle, depth = LV_SITES[site]
        turn = np.deg2rad(angle)
        radius = shape.lv_radius * np.sqrt(max(1.0 - depth**2, 0.0))
        points.append([-radius * np.cos(turn), radius * np.sin(turn), -depth * shape.lv_length])
        times.append(abs(rng.normal(3.0, 3.0)))
        surfaces.append(LV_ENDO)
    septum = -(0.7 * shape.lv_radius + shape.lv_wall)
    wall = shape.rv_offset - 0.8 * shape.rv_radius_x
    for place in ([septum, 0.0, -0.7 * shape.lv_length], [wall, 0.0, -0.35 * shape.lv_length])[
        : truth.rv_sites
    ]:
        points.append(place)
        times.append(max(rng.normal(5.0, 4.0), 0.0))
        surfaces.append(RV_ENDO)
    nodes = []
    for point, surface in zip(points, surfaces, strict=True):
        on = np.flatnonzero(anatomy.surface == surface)
        moved = np.array(point) + rng.normal(0.0, SITE_SPREAD, 3)
        nodes.append(int(on[np.argmin(((anatomy.nodes[on] - moved) ** 2).sum(axis=1))]))
    return np.array(nodes), np.array(times)


def _slowing(
    rng: np.random.Generator, anatomy: Anatomy, truth: Truth
) -> tuple[FloatArray, IntArray]:
    """Slowing of each node, and the tetrahedra that emit a signal."""
    waves = rng.normal(0.0, 1.0 / FIELD_LENGTH, (FIELD_WAVES, 3))
    phase = rng.uniform(0.0, 2.0 * np.pi, FIELD_WAVES)
    wave = np.cos(anatomy.nodes @ waves.T + phase).sum(axis=1) * np.sqrt(2.0 / FIELD_WAVES)
    slowing = np.exp(FIELD_SPREAD * wave)
    wall = np.flatnonzero(~anatomy.right)
    centre = anatomy.nodes[rng.choice(wall)]
    scarred = np.linalg.norm(anatomy.nodes - centre, axis=1) < truth.scar_radius
    slowing[scarred] *= truth.scar_slowing
    return slowing, anatomy.tets[~scarred[anatomy.tets].all(axis=1)]


def measure(rng: np.random.Generator, shape: Shape, truth: Truth) -> tuple[float, float]:
    """Run the richer model.

    Parameters
    ----------
    rng : Generator
        Of mesh, slowing, scar, root sites, torso and electrodes.
    shape : Shape
    truth : Truth

    Returns
    -------
    qrs_duration : float
        ms, before noise.
    electrical_axis : float
        Degrees in (-180, 180], before noise.
    """
    mesh_seed = int(rng.integers(2**31))
    angles = (truth.helix_endo, truth.helix_epi)
    anatomy = generate_mesh(shape, TRUTH_SPACING, mesh_seed, angles)
    slowing, emitting = _slowing(rng, anatomy, truth)
    graph = connect(
        anatomy, truth.ratio, rings=TRUTH_RINGS, distance=shape.distance, factor=slowing
    )
    roots, times = _roots(rng, anatomy, shape, truth)
    turn = orient(truth.azimuth, truth.elevation, truth.roll)
    nodes = in_torso(anatomy, turn, np.zeros(3))
    near = True
    while near:
        scale = rng.normal(1.0, TORSO_SPREAD, 3)
        torso = superellipsoid(half_axes=tuple(np.array([175.0, 115.0, 330.0]) * scale))
        leads = prepare(POSITIONS + rng.normal(0.0, ELECTRODE_SPREAD, POSITIONS.shape), torso)
        near = _is_near(nodes, leads)
    lead = leads.weights(nodes, emitting)
    tau = kernel.activate(
        graph.start,
        graph.neighbour,
        graph.length,
        graph.speed_class,
        roots,
        times.astype(np.float32),
        np.array([truth.v_myo, truth.v_lv, truth.v_rv]),
    ).astype(np.float64)
    reached = tau < kernel.UNREACHED
    tau -= tau[reached].min()
    n_samples = int((tau[reached].max() + AFTER) / SAMPLING) + 1
    signal = kernel.ecg(
        tau[reached], np.ascontiguousarray(lead[:, reached]), SAMPLING, n_samples, UPSTROKE
    )
    area = signal.sum(axis=1) * SAMPLING
    axis = electrical_axis(area[LEADS.index("I")], area[LEADS.index("aVF")])
    return float(kernel.qrs_duration(signal, SAMPLING)), float(axis)


def _is_near(nodes: FloatArray, leads: Leads) -> bool:
    """Whether the heart is too near an electrode, or outside the torso."""
    nearest = cKDTree(nodes).query(leads.electrodes)[0].min()
    assert leads.torso is not None
    return bool(nearest < CLEARANCE or leads.torso.outside(nodes).any())


def make(seed: int, name: str, group: str, block: str) -> tuple[list[str], list[str]]:
    """Make one patient; it depends on the arguments alone.

    Parameters
    ----------
    seed : int
    name : str
        Such as ``E01``.
    group : str
        One of `GROUPS`.
    block : {"none", "anterior", "posterior"}
        Fascicle that does not conduct.

    Returns
    -------
    measured : list of str
        Row of the cohort's file after name and split: measurements and personalised anatomy.
    made : list of str
        Row of the truth's file after the name.
    """
    rng = stream("electrophysiology cohort", seed, name)
    shape = draw_shape(rng, group)
    truth = draw_truth(rng, group, block)
    duration, axis = measure(rng, shape, truth)
    duration_read = DURATION_STEP * round(rng.normal(duration, DURATION_NOISE) / DURATION_STEP)
    axis_read = AXIS_STEP * round(rng.normal(axis, AXIS_NOISE) / AXIS_STEP)
    axis_read = 180.0 - (180.0 - axis_read) % 360.0

    segmented = ("lv_radius", "lv_length", "lv_wall", "rv_radius_x", "rv_radius_y", "rv_wall")
    seen = replace(
        shape,
        bump=0.0,
        bump_angle=0.0,
        **{
            field: getattr(shape, field) * (1.0 + rng.normal(0.0, AXES_ERROR))
            for field in segmented
        },
    )
    seen = replace(seen, rv_length=0.88 * seen.lv_length)
    turns = [
        angle + rng.normal(0.0, TURN_ERROR)
        for angle in (truth.azimuth, truth.elevation, truth.roll)
    ]
    shifts = rng.normal(0.0, POSITION_ERROR, 3)
    placed = [*(f"{value:.2f}" for value in [*turns, *shifts]), str(rng.integers(2**31))]
    anatomy = ["normal", *(f"{getattr(seen, field):.4f}" for field in SHAPE), *placed]
    measured = [f"{duration_read:.0f}", f"{axis_read:.0f}", *anatomy, f"{MODEL_SPACING:g}"]
    made = [
        f"{value:.6g}" if isinstance(value, float) else str(value)
        for value in asdict(truth).values()
    ]
    exact = [f"{duration:.3f}", f"{axis:.3f}"]
    return measured, [*made, *exact, *(f"{getattr(shape, field):.4f}" for field in SHAPE)]


def plan(seed: int) -> list[tuple[str, str, str]]:
    """Tell who belongs to which group and split.

    Parameters
    ----------
    seed : int

    Returns
    -------
    list of (str, str, str)
        Group, block and split (``scouting`` or ``evaluation``) of each patient, in order.
    """
    rng = stream("electrophysiology cohort", "plan", seed)
    groups = [group for group, n in GROUPS.items() for _ in range(n)]
    groups = [groups[i] for i in rng.permutation(len(groups))]
    free = [i for i, group in enumerate(groups) if group not in ("lbbb", "rbbb")]
    blocks = ["none"] * len(groups)
    for i, block in zip(rng.choice(free, len(FASCICULAR), replace=False), FASCICULAR, strict=True):
        blocks[i] = block
    left = dict(SCOUTING)
    splits = ["evaluation"] * len(groups)
    for i in rng.permutation(len(groups)):
        if left[groups[i]] > 0:
            left[groups[i]] -= 1
            splits[i] = "scouting"
    return list(zip(groups, blocks, splits, strict=True))


def generate(
    seed: int = SEED, n_jobs: int = 1, only: str | None = None
) -> dict[str, list[list[str]]]:
    """Rows of the cohort's files, header first, by file name.

    The same seed gives the same patients; across machines the numbers agree to rounding.

    Parameters
    ----------
    seed : int
    n_jobs : int
        Patients at the same time.
    only : {"scouting", "evaluation"}, optional
        One part of the cohort.

    Returns
    -------
    mapping of str to list of list of str
        ``cohort.csv`` and ``truth.csv``.
    """
    planned = plan(seed)
    names = [f"E{i + 1:02d}" for i in range(len(planned))]
    chosen = [
        (name, *row)
        for name, row in zip(names, planned, strict=True)
        if only is None or row[2] == only
    ]
    made = Parallel(n_jobs=n_jobs)(
        delayed(make)(seed, name, group, block) for name, group, block, _ in chosen
    )
    turns = ("azimuth", "elevation", "roll", "offset_x", "offset_y", "offset_z")
    data = ["anatomy", *SHAPE, *turns, "mesh_seed", "spacing"]
    cohort = [["patient", "split", "qrs_duration", "electrical_axis", *data]]
    drawn = [field.name for field in fields(Truth)]
    truth = [["patient", *drawn, "qrs_duration", "electrical_axis", *SHAPE]]
    for (name, _, _, split), (measured, behind) in zip(chosen, made, strict=True):
        cohort.append([name, split, *measured])
        truth.append([name, *behind])
    return {"cohort.csv": cohort, "truth.csv": truth}


def main() -> None:
    """Write the files beside this module and print their checksums."""
    for name, rows in generate(n_jobs=-1).items():
        found = write_frozen(Path(__file__).with_name(name), rows)
        print(f"{name}: {len(rows) - 1} rows, SHA-256 {found}")


if __name__ == "__main__":
    main()
