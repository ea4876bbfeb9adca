"""Hearts written to files, read, and compared."""

from __future__ import annotations

import warnings
from functools import lru_cache

import meshio
import numpy as np
import pytest

from vitolab.models.electrophysiology.anatomy import boundary
from vitolab.models.electrophysiology.importer import load_anatomy
from vitolab.models.electrophysiology.mesh import generate
from vitolab.models.electrophysiology.shapes import PRESETS


@lru_cache
def heart(spacing=6.0):
    return generate(PRESETS["dilated"], spacing)


@lru_cache
def triangles():
    """Boundary of the heart."""
    return boundary(heart().tets)


def sheet(tag):
    """Triangles of one surface of the heart; the base for None."""
    a = heart()
    of_base = a.base[triangles()].all(axis=1)
    own = of_base if tag is None else ~of_base & (a.surface[triangles()] == tag).all(axis=1)
    return triangles()[own]


def write(path, points=None, tets=None, cells=(), at_cells=None, **at_points):
    """Write a mesh, by default that of the heart with its tags and fibres."""
    a = heart()
    points = a.nodes if points is None else points
    tets = a.tets if tets is None else tets
    given = {"surface": a.surface, "fibres": a.fibres, **at_points}
    given = {name: values for name, values in given.items() if values is not None}
    blocks = [("tetra", tets), *cells]
    meshio.Mesh(points, blocks, point_data=given, cell_data=at_cells).write(path)
    return path


def load(path, **options):
    """Load a heart that needs no repair: a warning fails the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        return load_anatomy(path, **options)


def repaired(path, said, **options):
    """Load a heart whose repair is announced."""
    with pytest.warns(UserWarning, match=said) as caught:
        found = load_anatomy(path, **options)
    assert len(caught) == 1
    return found


def refusal(path, **options):
    """Sentence with which a file is refused; it names the file and stays on one line."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        with pytest.raises(ValueError, match=r"expected|accept") as caught:
            load_anatomy(path, **options)
    sentence = str(caught.value)
    assert sentence.startswith(f"{path}: ")
    assert "\n" not in sentence
    return sentence


def angles(one, other):
    """Degrees between directions without sign."""
    return np.degrees(np.arccos(np.clip(np.abs((one * other).sum(axis=1)), 0.0, 1.0)))
