"""Coordinates of the continuous agent: those of all methods with continuous steps."""

from vitolab.scale import Scale as Scale
