"""Inner loops of the kernel density estimate: its roughness, and its compression.

Points are given in coordinates in which their covariance, or the kernels', is the identity.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def roughness(points: NDArray[np.float64], pilot: float) -> float:
    """Estimate of the integral of (Δp)², from all pairs of points, equal ones included.

    The mean over pairs of Δ²φ, where φ is the normal density of covariance pilot² I and,
    with m = |δ|² / pilot² and d dimensions, Δ²φ = φ ((d - m)² + 2 (d - 2m)) / pilot⁴.
    Equal to the integral for the kernel density of covariance pilot² I / 2, hence positive.
    points (n, d).
    """
    n, d = points.shape
    total = 0.0
    for i in range(n):
        for j in range(i):
            m = 0.0
            for k in range(d):
                difference = points[i, k] - points[j, k]
                m += difference * difference
            m /= pilot * pilot
            total += math.exp(-0.5 * m) * ((d - m) * (d - m) + 2.0 * (d - 2.0 * m))
    total = 2.0 * total + n * d * (d + 2.0)
    mean: float = total / (n * n) * (2.0 * math.pi) ** (-0.5 * d) * pilot ** (-d - 4.0)
    return mean


@njit(cache=True, nogil=True)
def _cholesky(a: Any) -> Any:
    """Lower triangular factor of a positive definite matrix, and the inverse of the factor."""
    d = a.shape[0]
    factor = np.zeros((d, d))
    for i in range(d):
        for j in range(i + 1):
            value = a[i, j]
            for k in range(j):
                value -= factor[i, k] * factor[j, k]
            factor[i, j] = math.sqrt(value) if i == j else value / factor[j, j]
    inverse = np.zeros((d, d))
    for j in range(d):
        inverse[j, j] = 1.0 / factor[j, j]
        for i in range(j + 1, d):
            value = 0.0
            for k in range(j, i):
                value -= factor[i, k] * inverse[k, j]
            inverse[i, j] = value / factor[i, i]
    return factor, inverse


@njit(cache=True, nogil=True)
def _unlike(kernels: float, log_gaussian: float) -> float:
    """(√p - √q)² / (p + q) = 1 - 1 / cosh(log(p / q) / 2), without underflow."""
    if kernels == 0.0:
        return 1.0
    t = math.exp(-0.5 * abs(math.log(kernels) - log_gaussian))
    return 1.0 - 2.0 * t / (1.0 + t * t)


@njit(cache=True, nogil=True)
def hellinger(points: NDArray[np.float64]) -> float:
    """Unscented Hellinger distance of unit kernels on the points to their one Gaussian.

    The Gaussian has the mean and covariance of the kernel density p. The distance
    D² = ½ ∫ (√p - √q)² is summed over the sigma points of ½ (p + q), each of which weighs
    w (√p - √q)² / (p + q); densities leave out the common factor (2π)^(-d/2). 0 ≤ D ≤ 1.
    points (n, d).
    """
    n, d = points.shape
    centre = max(0.0, 3.0 - d)
    reach = math.sqrt(d + centre)
    weight = 0.5 / (d + centre)
    weight_centre = centre / (d + centre)

    mean = np.zeros(d)
    for i in range(n):
        for k in range(d):
            mean[k] += points[i, k] / n
    covariance = np.eye(d)
    for i in range(n):
        for k in range(d):
            for j in range(k + 1):
                covariance[k, j] += (points[i, k] - mean[k]) * (points[i, j] - mean[j]) / n
    factor, inverse = _cholesky(covariance)
    log_peak = 0.0
    for k in range(d):
        log_peak -= math.log(factor[k, k])

    # Kernel density at each kernel's sigma points: columns are -, + along each axis, then the
    # centre. A pair adds equally to opposite points of its two kernels. Pairs that add less
    # than e^-40 of the kernel's own share are passed over.
    own = math.exp(-0.5 * reach * reach)
    value = np.full((n, 2 * d + 1), own)
    value[:, 2 * d] = 1.0
    delta = np.empty(d)
    for i in range(n):
        for j in range(i):
            square = 0.0
            for k in range(d):
                delta[k] = points[i, k] - points[j, k]
                square += delta[k] * delta[k]
            if square - 2.0 * reach * math.sqrt(square) > 80.0:
                continue
            base = math.exp(-0.5 * square)
            value[i, 2 * d] += base
            value[j, 2 * d] += base
            base *= own
            for k in range(d):
                tilt = math.exp(reach * delta[k])
                towards = base * tilt
                away = base / tilt
                value[i, 2 * k] += towards
                value[j, 2 * k + 1] += towards
                value[i, 2 * k + 1] += away
                value[j, 2 * k] += away

    # the sigma points half weigh on the kernels ...
    total = 0.0
    standard = np.empty(d)
    for i in range(n):
        square = 0.0
        for k in range(d):
            standard[k] = 0.0
            for j in range(k + 1):
                standard[k] += inverse[k, j] * (points[i, j] - mean[j])
            square += standard[k] * standard[k]
        for k in range(d):
            along = 0.0
            length = 0.0
            for j in range(k, d):
                along += standard[j] * inverse[j, k]
                length += inverse[j, k] * inverse[j, k]
            along *= reach
            length *= reach * reach
            log_minus = log_peak - 0.5 * (square - 2.0 * along + length)
            log_plus = log_peak - 0.5 * (square + 2.0 * along + length)
            total += weight * _unlike(value[i, 2 * k] / n, log_minus)
            total += weight * _unlike(value[i, 2 * k + 1] / n, log_plus)
        if centre > 0.0:
            total += weight_centre * _unlike(value[i, 2 * d] / n, log_peak - 0.5 * square)
    total /= n

    # ... and half on the Gaussian
    for column in range(2 * d + 1):
        if column == 2 * d and centre == 0.0:
            continue
        sign = 0.0 if column == 2 * d else (reach if column % 2 else -reach)
        k = min(column // 2, d - 1)
        kernels = 0.0
        for i in range(n):
            square = 0.0
            for j in range(d):
                difference = points[i, j] - mean[j] - sign * factor[j, k]
                square += difference * difference
            kernels += math.exp(-0.5 * square)
        share = weight_centre if column == 2 * d else weight
        total += share * _unlike(kernels / n, log_peak - 0.5 * sign * sign)
    return math.sqrt(max(0.0, 0.5 * total))


@njit(cache=True, nogil=True)
def _halve(points: Any) -> Any:
    """Split points in two by k-means that starts along the axis of largest variance: bool (n,).

    Of variances equal to 1e-6, as in a whitened cloud, the first axis.
    """
    n, d = points.shape
    centre = np.zeros((2, d))
    size = np.zeros(2)
    for i in range(n):
        for k in range(d):
            centre[0, k] += points[i, k] / n
    axis = 0
    largest = 0.0
    for k in range(d):
        variance = 0.0
        for i in range(n):
            variance += (points[i, k] - centre[0, k]) ** 2
        if variance > largest * (1.0 + 1e-6):
            largest = variance
            axis = k
    side = points[:, axis] > centre[0, axis]
    # each round lowers the sum of squares; the bound only guards against ties by round-off
    for _ in range(100):
        centre[:] = 0.0
        size[:] = 0.0
        for i in range(n):
            s = 1 if side[i] else 0
            size[s] += 1.0
            for k in range(d):
                centre[s, k] += points[i, k]
        for s in range(2):
            for k in range(d):
                centre[s, k] /= max(size[s], 1.0)
        moved = side.copy()
        for i in range(n):
            gain = 0.0
            for k in range(d):
                gain += (points[i, k] - centre[0, k]) ** 2 - (points[i, k] - centre[1, k]) ** 2
            moved[i] = gain > 0.0
        if (moved == side).all() or moved.all() or not moved.any():
            break
        side = moved
    return side


@njit(cache=True, nogil=True)
def compress(points: NDArray[np.float64], threshold: float) -> NDArray[np.int64]:
    """Group unit kernels so that one Gaussian may stand for each group: label (n,).

    From the top: a set whose Hellinger distance to its one Gaussian is below the threshold is
    a group, any other is split in two. points (n, d).
    """
    n = points.shape[0]
    order = np.arange(n)
    label = np.empty(n, dtype=np.int64)
    # at most n sets wait at a time: they are disjoint and not empty
    first = np.empty(n + 1, dtype=np.int64)
    last = np.empty(n + 1, dtype=np.int64)
    first[0] = 0
    last[0] = n
    waiting = 1
    groups = 0
    while waiting > 0:
        waiting -= 1
        start = first[waiting]
        stop = last[waiting]
        members = order[start:stop].copy()
        chosen = points[members]
        if stop - start == 1 or hellinger(chosen) < threshold:
            label[members] = groups
            groups += 1
            continue
        side = _halve(chosen)
        middle = start
        for i in range(stop - start):
            if not side[i]:
                order[middle] = members[i]
                middle += 1
        if middle in (start, stop):  # nothing to split by: points equal to round-off
            label[members] = groups
            groups += 1
            continue
        at = middle
        for i in range(stop - start):
            if side[i]:
                order[at] = members[i]
                at += 1
        first[waiting] = middle
        last[waiting] = stop
        first[waiting + 1] = start
        last[waiting + 1] = middle
        waiting += 2
    return label
