"""Shapes to draw, and what is drawn of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest


@pytest.fixture(scope="module")
def ball() -> dict[str, np.ndarray]:
    """A ball of 30 mm, as a fan of tetrahedra about its centre."""
    from scipy.spatial import ConvexHull

    i = np.arange(400) + 0.5
    up, turn = 1 - 2 * i / 400, np.pi * (1 + 5**0.5) * i
    flat = np.sqrt(1 - up**2)
    surface = 30.0 * np.stack([flat * np.cos(turn), flat * np.sin(turn), up], axis=1)
    nodes = np.vstack([surface, np.zeros(3)])
    faces = ConvexHull(surface).simplices
    outward = np.linalg.det(nodes[faces]) > 0
    faces = np.where(outward[:, None], faces, faces[:, ::-1])
    tets = np.column_stack([np.full(len(faces), 400), faces])
    return {"nodes": nodes, "tets": tets, "tau": 40.0 + nodes[:, 0], "faces": faces}


def elements(figure: Any, kind: type) -> list[Any]:
    return [item for item in figure.traverse(lambda x: x, [kind]) if type(item) is kind]


def ventricle(n: int = 3000) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {
        "tau": rng.uniform(0, 120, n),
        "apex_base": rng.uniform(0, 1, n),
        "rotation": rng.uniform(-np.pi, np.pi, n),
        "right": rng.uniform(size=n) < 0.3,
        "volume": rng.uniform(0.5, 2, n),
    }
