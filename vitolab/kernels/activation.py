"""Activation times on a graph of the heart, and the ECG that follows from them.

An edge costs its effective length divided by the conduction speed of its class; the activation
time τ of a node is the cost of the cheapest path from a root, plus the root's own time
(Wallman et al. 2012). Membrane potentials rise from -70 to +30 mV at τ, so that with weights w
of a lead (mV per mV, Σ w = 0) the ECG is φ(t) = 100 mV Σ w [t ≥ τ], and the net area of the QRS
is ∫ φ dt = -100 mV Σ w τ.

Lengths are in mm, speeds in mm/s, times in ms. A graph is `start` int64 (n + 1,), `neighbour`
int32 (e,), `length` float32 (e,) and `speed_class` uint8 (e,), 0 to 2; both directions of each
edge are stored.

Cheapest paths come from a circular queue of buckets (Dial 1969; Denardo and Fox 1979): a node
waits in the bucket of its time and is scanned again should its time improve after a scan. Rounded
addition is monotone, so the times are the same bits for any order of the scans, hence for any
width of the buckets and for the binary heap that takes over where a cost exceeds the queue.

Indices are unsigned: for signed ones numba adds a test for counting from the end, which doubles
the cost of scanning an edge.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Times = NDArray[np.float32]

OUTPUTS = (
    "qrs_robust",  # ms from the first activation until 99.5 % of the volume is active
    "qrs_span",  # ms from the first to the last activation
    "area_i",  # mV ms, net area of lead I
    "area_avf",  # mV ms, net area of lead aVF
    "area_scale",  # mV ms, the two areas if nothing cancelled
    "unreached",  # share of the volume that is never activated
)
N_OUTPUTS = len(OUTPUTS)
QRS_ROBUST, QRS_SPAN, AREA_I, AREA_AVF, AREA_SCALE, UNREACHED_SHARE = range(N_OUTPUTS)

UNREACHED = np.float32(1e30)  # time of a node that no path reaches
DEPOLARIZATION = 100.0  # mV, from -70 to +30
ACTIVE_SHARE = 0.995  # of the volume, at the end of the robust QRS
WIDTH = 2.0  # ms, of a bucket; 0.5 to 4 are equally fast
N_BUCKETS = 1024  # a power of two
N_BINS = 256  # of times, in search of a quantile


@njit(cache=True, nogil=True, error_model="numpy")
def _queue(
    start: Any,
    neighbour: Any,
    length: Times,
    speed_class: Any,
    slowness: Times,
    roots: Any,
    root_times: Times,
    width: float,
    tau: Times,
    rings: Any,
) -> bool:
    """Fill tau with the queue of buckets; false if a time lies beyond the queue.

    Nodes of a bucket form a ring through entry n + bucket of rings (2, n + N_BUCKETS), scratch for
    what comes after and before each; a node that does not wait is a ring of its own.
    """
    one, n = np.uintp(1), np.uintp(tau.shape[0])
    n_buckets, mask = np.uintp(N_BUCKETS), np.uintp(N_BUCKETS - 1)
    after, before = rings[0], rings[1]
    for k in range(rings.shape[1]):
        after[k] = before[k] = k
    per_width = np.float32(1.0 / width)
    tau[:] = UNREACHED
    if roots.shape[0] == 0:
        return True
    first = root_times[0]
    for r in range(1, roots.shape[0]):
        first = min(first, root_times[r])
    for r in range(roots.shape[0]):
        i, t = np.uintp(roots[r]), root_times[r]
        bucket = np.uintp(np.int64((t - first) * per_width))
        if bucket >= n_buckets:
            return False
        if t < tau[i]:
            tau[i] = t
            left, right = before[i], after[i]
            after[left], before[right] = right, left
            ring = n + bucket
            last = before[ring]
            after[last], before[i], after[i], before[ring] = i, last, ring, i

    current, empty = np.uintp(0), 0
    while empty < N_BUCKETS:
        head = n + (current & mask)
        node = after[head]
        if node == head:
            current += one
            empty += 1
            continue
        empty = 0
        right = after[node]
        after[head], before[right] = right, head
        after[node] = before[node] = node
        t = tau[node]
        for e in range(start[node], start[np.uintp(node) + one]):
            i = np.uintp(neighbour[e])
            new = t + length[e] * slowness[speed_class[e]]
            if new < tau[i]:
                tau[i] = new
                bucket = np.uintp(np.int64((new - first) * per_width))
                if bucket - current >= n_buckets:
                    return False
                left, right = before[i], after[i]
                after[left], before[right] = right, left
                ring = n + (bucket & mask)
                last = before[ring]
                after[last], before[i], after[i], before[ring] = i, last, ring, i
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def _push(key: Times, node: Any, size: int, t: Any, i: Any) -> int:
    """Add an entry to a binary heap; its new size."""
    at = size
    while at > 0:
        parent = (at - 1) >> 1
        if key[parent] <= t:
            break
        key[at], node[at] = key[parent], node[parent]
        at = parent
    key[at], node[at] = t, i
    return size + 1


@njit(cache=True, nogil=True, error_model="numpy")
def _pop(key: Times, node: Any, size: int) -> int:
    """Remove the first entry of a binary heap; its new size."""
    size -= 1
    t, i, at = key[size], node[size], 0
    while True:
        child = 2 * at + 1
        if child + 1 < size and key[child + 1] < key[child]:
            child += 1
        if child >= size or t <= key[child]:
            break
        key[at], node[at] = key[child], node[child]
        at = child
    key[at], node[at] = t, i
    return size


@njit(cache=True, nogil=True, error_model="numpy")
def _heap(
    start: Any,
    neighbour: Any,
    length: Times,
    speed_class: Any,
    slowness: Times,
    roots: Any,
    root_times: Times,
    tau: Times,
) -> None:
    """Fill tau with a binary heap in which outdated entries stay."""
    capacity = neighbour.shape[0] + roots.shape[0]
    key, node = np.empty(capacity, np.float32), np.empty(capacity, np.int64)
    size = 0
    tau[:] = UNREACHED
    for r in range(roots.shape[0]):
        if root_times[r] < tau[roots[r]]:
            tau[roots[r]] = root_times[r]
            size = _push(key, node, size, root_times[r], roots[r])
    while size > 0:
        t, i = key[0], node[0]
        size = _pop(key, node, size)
        if t > tau[i]:
            continue
        for e in range(start[i], start[i + 1]):
            j = neighbour[e]
            new = t + length[e] * slowness[speed_class[e]]
            if new < tau[j]:
                tau[j] = new
                size = _push(key, node, size, new, j)


@njit(cache=True, nogil=True, error_model="numpy")
def _solve(
    start: Any,
    neighbour: Any,
    length: Times,
    speed_class: Any,
    roots: Any,
    root_times: Floats,
    speeds: Floats,
    width: float,
    tau: Times,
    rings: Any,
) -> None:
    """Fill tau for one set of speeds."""
    slowness = np.empty(3, np.float32)  # ms/mm
    for c in range(3):
        slowness[c] = 1000.0 / speeds[c] if speeds[c] > 0.0 else math.inf
    times = root_times.astype(np.float32)
    if not _queue(
        start.view(np.uint64),
        neighbour.view(np.uint32),
        length,
        speed_class,
        slowness,
        roots,
        times,
        width,
        tau,
        rings,
    ):
        _heap(start, neighbour, length, speed_class, slowness, roots, times, tau)


@njit(cache=True, nogil=True, error_model="numpy")
def activate(
    start: Any,
    neighbour: Any,
    length: Times,
    speed_class: Any,
    roots: Any,
    root_times: Floats,
    speeds: Floats,
    width: float = WIDTH,
) -> Times:
    """Activation times for one set of speeds.

    Parameters
    ----------
    start, neighbour, length, speed_class : ndarray
        The graph.
    roots : ndarray of int, shape (r,)
        Nodes where activation starts.
    root_times : ndarray, shape (r,)
        ms.
    speeds : ndarray, shape (3,)
        Conduction speed of each class, mm/s; a class with a speed not above 0 does not conduct.
    width : float
        Of a bucket, ms; has no influence on the result.

    Returns
    -------
    ndarray of float32, shape (n,)
        ms; `UNREACHED` where no path leads.
    """
    n = start.shape[0] - 1
    tau, rings = np.empty(n, np.float32), np.empty((2, n + N_BUCKETS), np.uint32)
    _solve(start, neighbour, length, speed_class, roots, root_times, speeds, width, tau, rings)
    return tau


@njit(cache=True, nogil=True, error_model="numpy")
def _quantile(times: Floats, volume: Floats, n: int, late: float) -> float:
    """Earliest time that all but `late` of the volume precedes or shares; overwrites both arrays.

    Sorts the first n times into bins between their extremes, goes on with those of the bin that
    holds the quantile, and ends when all that are left are equal.
    """
    bins = np.empty(N_BINS)
    later = 0.0
    while True:
        low = high = times[0]
        for i in range(1, n):
            low, high = min(low, times[i]), max(high, times[i])
        if low == high:
            return float(low)
        per_bin = (N_BINS - 1) / (high - low)
        bins[:] = 0.0
        for i in range(n):
            bins[np.uintp(np.int64((times[i] - low) * per_bin))] += volume[i]
        wanted = N_BINS - 1
        while wanted > 0 and later + bins[wanted] <= late:
            later += bins[wanted]
            wanted -= 1
        m = 0
        for i in range(n):
            if np.int64((times[i] - low) * per_bin) == wanted:
                times[m], volume[m] = times[i], volume[i]
                m += 1
        n = m


@njit(cache=True, nogil=True, error_model="numpy")
def _features(
    tau: Times,
    volume: Floats,
    w_i: Floats,
    w_avf: Floats,
    times: Floats,
    volumes: Floats,
    out: Floats,
) -> None:
    """Fill one row of `OUTPUTS`; times and volumes (n,) are scratch."""
    total = reached = 0.0
    first, last, n = math.inf, -math.inf, 0
    for i in range(tau.shape[0]):
        total += volume[i]
        if tau[i] < UNREACHED:
            times[n], volumes[n] = tau[i], volume[i]
            reached += volume[i]
            first, last = min(first, times[n]), max(last, times[n])
            n += 1
    area_i = area_avf = scale = 0.0
    for i in range(tau.shape[0]):
        t = tau[i] - first if tau[i] < UNREACHED else 0.0
        area_i += w_i[i] * t
        area_avf += w_avf[i] * t
        scale += (abs(w_i[i]) + abs(w_avf[i])) * t
    late = (1.0 - ACTIVE_SHARE + 1e-12) * reached
    out[QRS_ROBUST] = _quantile(times, volumes, n, late) - first if n > 0 else math.nan
    out[QRS_SPAN] = last - first if n > 0 else math.nan
    out[AREA_I] = -DEPOLARIZATION * area_i
    out[AREA_AVF] = -DEPOLARIZATION * area_avf
    out[AREA_SCALE] = DEPOLARIZATION * scale
    out[UNREACHED_SHARE] = 1.0 - reached / total


@njit(cache=True, nogil=True, error_model="numpy")
def simulate(
    start: Any,
    neighbour: Any,
    length: Times,
    speed_class: Any,
    roots: Any,
    root_times: Floats,
    volume: Floats,
    w_i: Floats,
    w_avf: Floats,
    speeds: Floats,
) -> Floats:
    """Durations and net areas of the QRS for each row of speeds.

    Parameters
    ----------
    start, neighbour, length, speed_class, roots, root_times : ndarray
        See `activate`.
    volume : ndarray, shape (n,)
        Share of each node in the myocardium, any unit.
    w_i, w_avf : ndarray, shape (n,)
        Weights of leads I and aVF, mV per mV.
    speeds : ndarray, shape (k, 3)
        mm/s.

    Returns
    -------
    ndarray, shape (k, 6)
        See `OUTPUTS`; nodes that are not reached count in the last column only.
    """
    n = start.shape[0] - 1
    outputs = np.empty((speeds.shape[0], N_OUTPUTS))
    tau, rings = np.empty(n, np.float32), np.empty((2, n + N_BUCKETS), np.uint32)
    times, volumes = np.empty(n), np.empty(n)
    for r in range(speeds.shape[0]):
        v = speeds[r]
        _solve(start, neighbour, length, speed_class, roots, root_times, v, WIDTH, tau, rings)
        _features(tau, volume, w_i, w_avf, times, volumes, outputs[r])
    return outputs


@njit(cache=True, nogil=True, error_model="numpy")
def ecg(
    tau: Times | Floats, weights: Floats, dt: float, n_samples: int, upstroke: float = 0.0
) -> Floats:
    """Leads sampled at 0, dt, 2 dt and so on.

    The action potential rises linearly from τ on, over `upstroke` but at least over one sample.
    The rise is the difference of two ramps, which are exact at the samples.

    Parameters
    ----------
    tau : ndarray of float32, shape (n,)
        Activation times in ms, at least 0; nodes that are not reached stay at rest.
    weights : ndarray, shape (n_leads, n)
        mV per mV of membrane potential.
    dt : float
        ms.
    n_samples : int
        Of each lead.
    upstroke : float
        ms.

    Returns
    -------
    ndarray, shape (n_leads, n_samples)
        mV; 0 before the activation and, if a lead's weights sum to 0, after it.
    """
    n_leads, n = weights.shape
    ramps = upstroke > dt
    rises = np.zeros((n_leads, 2, n_samples + 1))  # whole steps, and the part lost within a sample
    at, share = np.empty(n, np.uint32), np.empty(n)
    for end in range(2 if ramps else 1):
        height = DEPOLARIZATION
        if ramps:
            height *= (1.0 - 2.0 * end) * dt / upstroke
        for i in range(n):
            x = max((np.float64(tau[i]) + end * upstroke) / dt + 1.0, 0.0)
            if not x < n_samples:
                x = np.float64(n_samples)
            at[i] = np.uint32(x)
            share[i] = x - at[i]
        for lead in range(n_leads):
            whole, lost, w = rises[lead, 0], rises[lead, 1], weights[lead]
            for i in range(n):
                k, rise = np.uintp(at[i]), height * w[i]
                whole[k] += rise
                lost[k] += rise * share[i]
    out = np.empty((n_leads, n_samples))
    for lead in range(n_leads):
        total = 0.0
        for sample in range(n_samples):
            total += rises[lead, 0, sample]
            out[lead, sample] = total - rises[lead, 1, sample]
        if ramps:
            for sample in range(1, n_samples):
                out[lead, sample] += out[lead, sample - 1]
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def qrs_duration(ecg: Floats, dt: float, threshold: float = 0.05, smoothing: float = 5.0) -> float:
    """Time between the first and last crossing of a share of the largest signal.

    The signal is the root mean square over leads, averaged over a moving window. It is 0 outside
    the samples and linear between them.

    Parameters
    ----------
    ecg : ndarray, shape (n_leads, n_samples)
        mV.
    dt : float
        ms.
    threshold : float
        Share of the largest signal, in (0, 1).
    smoothing : float
        Length of the window in ms, rounded to samples.

    Returns
    -------
    float
        ms; NaN for a flat ECG.
    """
    n_leads, n_samples = ecg.shape
    window = max(1, int(smoothing / dt + 0.5))
    signal = np.zeros(n_samples + window + 1)  # one zero before, one after
    for k in range(n_samples):
        total = 0.0
        for lead in range(n_leads):
            total += ecg[lead, k] * ecg[lead, k]
        for j in range(k + 1, k + 1 + window):
            signal[j] += math.sqrt(total / n_leads)
    level = 0.0
    for k in range(signal.shape[0]):
        level = max(level, threshold * signal[k])
    if not level > 0.0:
        return math.nan
    first, last = 1, signal.shape[0] - 2
    while signal[first] < level:
        first += 1
    while signal[last] < level:
        last -= 1
    early = (signal[first] - level) / (signal[first] - signal[first - 1])
    late = (signal[last] - level) / (signal[last] - signal[last + 1])
    duration: float = (last - first + early + late) * dt
    return duration
