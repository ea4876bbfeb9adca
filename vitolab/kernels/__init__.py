"""Compiled inner loops: arrays in, arrays out; each file stands alone."""
