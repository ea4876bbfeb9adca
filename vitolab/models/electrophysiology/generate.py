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

from dataclasses import asdict, fields, replace
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from scipy.spatial import cKDTree

from vitolab.files import stream
from vitolab.kernels import activation as kernel
from vitolab.models.electrophysiology.anatomy import LV_ENDO, RV_ENDO, Anatomy
from vitolab.models.electrophysiology.draws import LV_SITES, Truth, draw_shape, draw_truth
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

FIELD_SPREAD, FIELD_LENGTH, FIELD_WAVES = 0.15, 25.0, 64  # log-normal; mm
TORSO_SPREAD, ELECTRODE_SPREAD = 0.04, 12.0  # share, mm
SITE_SPREAD = 5.0  # mm

# Registration and segmentation errors of the personalised anatomy: degrees, share, mm
TURN_ERROR, AXES_ERROR, POSITION_ERROR = 14.0, 0.05, 7.0  # 12 mm in all three directions together
CLEARANCE = 22.0  # mm between heart and electrodes; a place that is nearer is drawn again
# Of the measurements: ms and degrees, and what they are rounded to
DURATION_NOISE, DURATION_STEP, AXIS_NOISE, AXIS_STEP = 4.0, 2.0, 4.0, 1.0


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
