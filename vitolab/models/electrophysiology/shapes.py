"""Idealised ventricles: truncated ellipsoids as signed distances.

Heart frame as in `vitolab.models.electrophysiology.anatomy`: z along the long axis, base plane at
z = 0, endocardial apex of the LV at z = -lv_length, RV at -x. All lengths in mm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from vitolab.problem import FloatArray

Distance = Callable[[FloatArray], FloatArray]

TRUNCATION = 0.2  # depth of the ellipsoids' centres below the base, share of the LV length
APICAL_WALL = 0.7  # apical share of the LV wall


@dataclass(frozen=True)
class Shape:
    """Two ventricles made of four truncated ellipsoids.

    The left ventricle lies between its cavity and its epicardium. The right ventricle is the
    shell between two ellipsoids outside the left ventricle, so the septum belongs to the left.

    Attributes
    ----------
    lv_radius : float
        Endocardial radius along x at the widest place.
    lv_radius_ratio : float
        Radius along y over radius along x.
    lv_length : float
        From the base to the endocardial apex.
    lv_wall : float
        Thickness of the LV wall; the apex has 0.7 of it.
    septal_thickening : float
        Share of the wall by which the septum is thicker, and the free wall thinner, at the base.
    bump, bump_angle : float
        Share of the wall and phase (radians) of a second harmonic of the wall's thickness.
    rv_radius_x, rv_radius_y : float
        Endocardial radii.
    rv_length : float, optional
        From the base to the endocardial apex, by default 0.88 of the LV length.
    rv_wall : float
        Thickness of the free wall.
    rv_offset : float
        Position of the centre along x.

    Raises
    ------
    ValueError
        If a length is not positive, a wall vanishes, or the RV has no cavity beside the LV.
    """

    lv_radius: float = 24.0
    lv_radius_ratio: float = 1.0
    lv_length: float = 70.0
    lv_wall: float = 10.0
    septal_thickening: float = 0.0
    bump: float = 0.0
    bump_angle: float = 0.0
    rv_radius_x: float = 32.0
    rv_radius_y: float = 30.0
    rv_length: float | None = None
    rv_wall: float = 4.0
    rv_offset: float = -26.0

    def __post_init__(self) -> None:
        for name in (
            "lv_radius",
            "lv_radius_ratio",
            "lv_length",
            "lv_wall",
            "rv_radius_x",
            "rv_radius_y",
            "rv_wall",
        ):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0.0):
                raise ValueError(f"shape: {name} is {value}, expected a positive number")
        if not self._rv_length > TRUNCATION * self.lv_length:
            raise ValueError(
                f"shape: rv_length is {self._rv_length:g} mm, expected more than "
                f"{TRUNCATION * self.lv_length:g}"
            )
        if not abs(self.septal_thickening) + abs(self.bump) < 0.9:
            raise ValueError(
                f"shape: septal_thickening and bump are {self.septal_thickening} and {self.bump}, "
                "expected less than 0.9 together"
            )
        if not self.rv_offset - self.rv_radius_x < -(self.lv_radius + self.lv_wall):
            raise ValueError(
                f"shape: the right ventricle ends at x = {self.rv_offset - self.rv_radius_x:g} mm, "
                f"expected beyond the left one's {-(self.lv_radius + self.lv_wall):g}"
            )

    @property
    def _rv_length(self) -> float:
        return 0.88 * self.lv_length if self.rv_length is None else self.rv_length

    @property
    def ellipsoids(self) -> dict[str, tuple[FloatArray, FloatArray]]:
        """Centre and radii, mm, of each surface by name, before the LV wall's variation."""
        depth = TRUNCATION * self.lv_length
        left = np.array([0.0, 0.0, -depth])
        right = np.array([self.rv_offset, 0.0, -depth])
        lv = np.array(
            [self.lv_radius, self.lv_radius * self.lv_radius_ratio, self.lv_length - depth]
        )
        rv = np.array([self.rv_radius_x, self.rv_radius_y, self._rv_length - depth])
        return {
            "lv_endo": (left, lv),
            "lv_epi": (left, lv + self.lv_wall * np.array([1.0, 1.0, APICAL_WALL])),
            "rv_endo": (right, rv),
            "rv_epi": (right, rv + self.rv_wall),
        }

    def surface(self, name: str, points: FloatArray) -> FloatArray:
        """Signed distance to one ellipsoid, negative inside, exact to first order nearby.

        Parameters
        ----------
        name : {"lv_endo", "lv_epi", "rv_endo", "rv_epi"}
        points : ndarray, shape (k, 3)
            Heart frame, mm.

        Returns
        -------
        ndarray, shape (k,)
            mm.
        """
        centre, radii = self.ellipsoids[name]
        p = (points - centre) / radii
        q = p / radii
        k0 = np.sqrt(np.einsum("ij,ij->i", p, p)) + 1e-9
        k1 = np.sqrt(np.einsum("ij,ij->i", q, q)) + 1e-9 / radii.min()
        distance: FloatArray = k0 * (k0 - 1.0) / k1
        if name == "lv_epi" and (self.septal_thickening or self.bump):
            angle = np.arctan2(points[:, 1], -points[:, 0])
            share = self.septal_thickening * np.cos(angle) + self.bump * np.sin(
                2.0 * angle + self.bump_angle
            )
            height = np.clip(1.0 + points[:, 2] / self.lv_length, 0.0, 1.0)
            distance -= self.lv_wall * share * height
        return distance

    def wall(self, points: FloatArray) -> FloatArray:
        """Signed distance to the myocardium continued above the base.

        Parameters
        ----------
        points : ndarray, shape (k, 3)
            Heart frame, mm.

        Returns
        -------
        ndarray, shape (k,)
            mm.
        """
        epi = self.surface("lv_epi", points)
        hull = np.minimum(epi, self.surface("rv_epi", points))
        cavity = np.minimum(epi, -self.surface("rv_endo", points))
        return np.maximum(np.maximum(hull, cavity), -self.surface("lv_endo", points))

    def distance(self, points: FloatArray) -> FloatArray:
        """Signed distance to the myocardium, negative inside.

        Parameters
        ----------
        points : ndarray, shape (k, 3)
            Heart frame, mm.

        Returns
        -------
        ndarray, shape (k,)
            mm; good near the surfaces, rough far from them.
        """
        return np.maximum(self.wall(points), points[:, 2])


PRESETS = {
    "normal": Shape(),
    "dilated": Shape(
        lv_radius=33.0,
        lv_length=88.0,
        lv_wall=8.5,
        rv_radius_x=36.0,
        rv_radius_y=34.0,
        rv_length=78.0,
        rv_offset=-34.0,
    ),
    "hypertrophic": Shape(
        lv_radius=19.0, lv_length=66.0, lv_wall=15.0, septal_thickening=0.25, rv_offset=-25.0
    ),
    "dilated-rv": Shape(rv_radius_x=42.0, rv_radius_y=38.0, rv_length=70.0, rv_offset=-28.0),
}


def gradient(distance: Distance, points: FloatArray, step: float = 1e-3) -> FloatArray:
    """Gradient of a distance by central differences.

    Parameters
    ----------
    distance : callable
        Signed distance of points, mm.
    points : ndarray, shape (k, 3)
        mm.
    step : float
        Of the differences, mm.

    Returns
    -------
    ndarray, shape (k, 3)
        mm per mm: of length 1 for an exact distance.
    """
    slopes = np.empty_like(points)
    for axis in range(3):
        shift = np.zeros(3)
        shift[axis] = step
        slopes[:, axis] = (distance(points + shift) - distance(points - shift)) / (2.0 * step)
    return slopes
