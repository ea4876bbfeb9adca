"""Lead fields: what the membrane potential of each node adds to each lead of the ECG.

With sources -sigma_i grad Vm in the muscle (Gima and Rudy 2002) the potential at a point y of an
infinite homogeneous medium is

    phi(y) = -c / (4 pi) sum_T |T| grad Vm . grad 1 / |x_T - y|,    c = sigma_i / sigma_o,

over tetrahedra T with centroids x_T and linear Vm: a weighted sum of nodal Vm whose weights add up
to 0. An insulated homogeneous torso adds the potential that its surface reflects, found from

    phi(y) = 2 phi_inf(y) + 1 / (2 pi) sum_k Omega_k(y) phi_k

with one phi_k per surface triangle and the solid angle Omega_k of the triangle seen from y
(Barnard, Duck and Lynn 1967); its adjoint, solved once for the electrodes, turns each lead into a
sum of phi_inf over points of the surface. That sum is all a heart needs, so it serves every heart
in the same torso.

The conductivity ratio only scales the ECG: duration and axis do not depend on it. Its value is our
own: an action potential of 100 mV leaves a front of 40 mV, and a normal heart has 1 mV (peak to
peak) in lead I and 1 to 3.5 mV in V1 to V6 on the torso, and a quarter to a half of that in an
infinite medium, which has no surface to raise it.

Torso frame: LPS, x to the patient's left, y to the back, z to the head; origin at the centre of
the myocardium; mm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from vitolab.models.electrophysiology.anatomy import tet_volumes
from vitolab.models.electrophysiology.torso import Torso
from vitolab.problem import FloatArray, IntArray

ELECTRODES = ("RA", "LA", "LL", "V1", "V2", "V3", "V4", "V5", "V6")
LEADS = ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")
POSITIONS: FloatArray = np.array(
    [
        (-185.0, 0.0, 165.0),
        (165.0, 0.0, 170.0),
        (150.0, 20.0, -230.0),
        (-50.0, -100.0, 5.0),
        (0.0, -105.0, 5.0),
        (50.0, -112.0, -15.0),
        (95.0, -105.0, -25.0),
        (130.0, -75.0, -22.0),
        (165.0, 10.0, -22.0),
    ]
)
APEX = (0.72, -0.52, -0.46)  # from the base to the apex, torso frame
RIGHT = (-0.62, -0.75, -0.10)  # from the LV to the RV, torso frame
CONDUCTIVITY_RATIO = 0.4  # of the muscle (sigma_i) to what surrounds it (sigma_o)
CLEARANCE = 20.0  # mm between an electrode and the myocardium
_CHUNK = 2048  # tetrahedra at a time: 20 MB against 1,280 triangles

# Rows LEADS, columns ELECTRODES
_LEAD_MATRIX: FloatArray = np.zeros((len(LEADS), len(ELECTRODES)))
_LEAD_MATRIX[:6, :3] = [
    (-1, 1, 0),
    (-1, 0, 1),
    (0, -1, 1),
    (1, -0.5, -0.5),
    (-0.5, 1, -0.5),
    (-0.5, -0.5, 1),
]
_LEAD_MATRIX[6:, :3] = -1.0 / 3.0
_LEAD_MATRIX[6:, 3:] = np.eye(6)


def orient(azimuth: float = 0.0, elevation: float = 0.0, roll: float = 0.0) -> FloatArray:
    """Rotation from the heart frame to the torso frame.

    Parameters
    ----------
    azimuth : float
        Degrees about the axis to the head, the apex from the left to the back.
    elevation : float
        Degrees by which the apex rises towards the head.
    roll : float
        Degrees about the long axis, right-handed from apex to base.

    Returns
    -------
    ndarray, shape (3, 3)
        Columns: axes of the heart frame in the torso frame.
    """
    z = -np.array(APEX) / np.linalg.norm(APEX)
    x = -np.array(RIGHT)
    x -= (x @ z) * z
    x /= np.linalg.norm(x)
    head = np.array([0.0, 0.0, 1.0])
    level = np.cross(-z, head)
    level /= np.linalg.norm(level)
    turns = ((azimuth, head), (elevation, level), (roll, z))
    rotation = np.column_stack([x, np.cross(z, x), z])
    for degrees, axis in reversed(turns):
        rotation = Rotation.from_rotvec(np.deg2rad(degrees) * axis).as_matrix() @ rotation
    result: FloatArray = rotation
    return result


@dataclass(frozen=True)
class Leads:
    """Leads as sums of potentials in an infinite medium, for any heart.

    Attributes
    ----------
    electrodes : ndarray, shape (9, 3)
        In the order of `ELECTRODES`, torso frame, mm.
    points : ndarray, shape (p, 3)
        Where the potential of an infinite medium counts.
    factors : ndarray, shape (12, p)
        How much it adds to each of `LEADS`.
    torso : Torso or None
    """

    electrodes: FloatArray
    points: FloatArray
    factors: FloatArray
    torso: Torso | None = None

    def weights(self, nodes: FloatArray, tets: IntArray) -> FloatArray:
        """Lead potential per membrane potential of each node.

        Parameters
        ----------
        nodes : ndarray, shape (n, 3)
            Torso frame, mm.
        tets : ndarray of int, shape (m, 4)

        Returns
        -------
        ndarray, shape (12, n)
            mV per mV, in the order of `LEADS`; the sum over the nodes is 0.

        Raises
        ------
        ValueError
            If a node is outside the torso or within `CLEARANCE` of an electrode.
        """
        distance = cKDTree(nodes).query(self.electrodes)[0]
        k = int(np.argmin(distance))
        if not distance[k] >= CLEARANCE:
            raise ValueError(
                f"electrode {ELECTRODES[k]} is {distance[k]:.1f} mm from the heart, expected at "
                f"least {CLEARANCE:g} mm"
            )
        if self.torso is not None and (beyond := self.torso.outside(nodes)).any():
            raise ValueError(
                f"{beyond.sum()} of {len(nodes)} nodes are outside the torso, expected none"
            )
        # sum_k f_k (x - y_k) / r_k³ needs 1 / r³ only: x (f . r⁻³) - (f y) . r⁻³
        moments = np.concatenate(
            [self.factors[:, None, :], self.factors[:, None, :] * self.points.T], axis=1
        ).reshape(-1, len(self.points))
        square = (self.points**2).sum(axis=1)[:, None]
        weights = np.zeros((len(LEADS), len(nodes)))
        for first in range(0, len(tets), _CHUNK):
            part = tets[first : first + _CHUNK]
            x = nodes[part].mean(axis=1)
            r2 = square + (x**2).sum(axis=1) - 2.0 * self.points @ x.T
            sums = (moments @ (1.0 / (r2 * np.sqrt(r2)))).reshape(len(LEADS), 4, -1)
            field = sums[:, 1:] - sums[:, :1] * x.T  # grad of the sum of f / r, (12, 3, part)
            scaled = _scaled_gradients(nodes, part)
            for corner in range(4):
                share = np.einsum("ldm,md->lm", field, scaled[:, corner])
                for lead, values in enumerate(share):
                    weights[lead] += np.bincount(
                        part[:, corner], weights=values, minlength=len(nodes)
                    )
        result: FloatArray = -CONDUCTIVITY_RATIO / (4.0 * np.pi) * weights
        return result


def prepare(electrodes: ArrayLike = POSITIONS, torso: Torso | None = None) -> Leads:
    """Lead field of electrodes in an infinite medium or on a torso, for all hearts in it.

    Parameters
    ----------
    electrodes : array_like, shape (9, 3)
        In the order of `ELECTRODES`, torso frame, mm; moved onto the torso if there is one.
    torso : Torso, optional

    Returns
    -------
    Leads

    Raises
    ------
    ValueError
        If the electrodes have another shape.
    """
    electrodes = np.array(electrodes, dtype=np.float64)
    if electrodes.shape != POSITIONS.shape:
        raise ValueError(f"electrodes have shape {electrodes.shape}, expected {POSITIONS.shape}")
    if torso is None:
        return Leads(electrodes, electrodes, _LEAD_MATRIX)
    electrodes, points, reflected = _reflect(torso, electrodes)
    return Leads(electrodes, points, _LEAD_MATRIX @ reflected, torso)


def electrical_axis(area_i: ArrayLike, area_avf: ArrayLike) -> FloatArray:
    """Frontal electrical axis from the net QRS areas of leads I and aVF.

    Parameters
    ----------
    area_i, area_avf : array_like, shape (...)
        In the same unit.

    Returns
    -------
    ndarray, shape (...)
        Degrees in (-180, 180], 0 to the patient's left, 90 to the feet.
    """
    axis = np.degrees(np.arctan2(2.0 * np.asarray(area_avf), np.sqrt(3.0) * np.asarray(area_i)))
    result: FloatArray = np.where(axis == -180.0, 180.0, axis)
    return result


def _scaled_gradients(nodes: FloatArray, tets: IntArray) -> FloatArray:
    """Volume times the gradient of the four linear shape functions, shape (m, 4, 3)."""
    a, b, c, d = nodes[tets].transpose(1, 0, 2)
    scaled = np.stack(
        [
            np.cross(d - b, c - b),
            np.cross(c - a, d - a),
            np.cross(d - a, b - a),
            np.cross(b - a, c - a),
        ],
        axis=1,
    )
    sign: FloatArray = np.sign(tet_volumes(nodes, tets))
    result: FloatArray = scaled * sign[:, None, None] / 6.0
    return result


def _reflect(torso: Torso, electrodes: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Electrodes on the torso, points and factors of the potential in an infinite medium.

    The potential at the electrodes is ``factors @ phi_inf(points)`` up to a common constant.
    """
    centres = torso.centroids
    n = len(centres)
    electrodes, own = torso.nearest(electrodes)
    inner = electrodes + 1e-3 * (centres[own] - electrodes)  # off edges, where angles jump
    points = np.concatenate([centres, inner])
    seen = torso.solid_angles(points) / (2.0 * np.pi)
    seen[np.arange(len(points)), np.concatenate([np.arange(n), own])] = 0.0
    # Deflation: a constant solves the homogeneous equation; fix the mean over the triangles at 0
    matrix = np.eye(n) - seen[:n] + 1.0 / n
    through = np.linalg.solve(matrix.T, seen[n:].T).T
    return electrodes, points, 2.0 * np.hstack([through, np.eye(len(electrodes))])
