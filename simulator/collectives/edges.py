"""The edges of a bundle that shares links, compiled: the equations of `progress`."""

from __future__ import annotations

import numpy as np

from simulator.compiled import compiled
from simulator.fabric import FloatArray, IntArray

LEAST_WEIGHT = 1e-6  # of an edge that waits


@compiled
def hold_back(moved: FloatArray, chunk: float, total: float, coupled: bool) -> None:
    """No edge is more than a chunk ahead of the one before (two turns of the ring), none beyond the end."""
    n = len(moved)
    if coupled:
        for e in range(1, 2 * n):
            moved[e % n] = min(moved[e % n], moved[(e - 1) % n] + chunk)
    for e in range(n):
        moved[e] = min(moved[e], total)


@compiled
def mean_least(idle: FloatArray, busy: FloatArray, q: FloatArray, n: int, most: float) -> float:
    """Mean of the least of `most` and n shares, each idle[i] with probability q[i], else busy[i].

    The distribution is taken apart from the top: E = sum over thresholds of dt prod P(share >= t).
    """
    mean, reached = 0.0, 0.0
    while True:
        above, chance = most, 1.0
        for i in range(n):  # the next threshold, and the chance that all shares reach it
            if reached < busy[i] < above:
                above = busy[i]
            if reached < idle[i] < above:
                above = idle[i]
        for i in range(n):
            if busy[i] < above:
                chance *= q[i] if idle[i] >= above else 0.0
        mean += (above - reached) * chance
        if chance == 0.0 or above == most:
            return mean
        reached = above


@compiled
def rates(
    rate: FloatArray,
    alone: FloatArray,
    hops: IntArray,
    place: IntArray,
    mean: FloatArray,
    idle: FloatArray,
    busy: FloatArray,
) -> None:
    """Bytes/s of each edge while it sends, in the mean over the states of its links, shape (edges,).

    Args:
        rate: the result.
        alone: what an edge has at the most.
        hops: links of each edge, as places in the bundle's list, shape (edges, hops).
        place: where each of these links stands in the crowd, -1 if nobody else uses it, shape (links + 1,).
        mean: of the crowd.
        idle: of the crowd.
        busy: of the crowd.
    """
    width = hops.shape[1]
    high, low, chance = np.empty(width), np.empty(width), np.empty(width)
    for e in range(len(rate)):
        most, n = alone[e], 0
        for h in range(width):
            k = place[hops[e, h]]
            if k < 0:
                continue
            if idle[k] > busy[k]:
                high[n], low[n] = idle[k], busy[k]
                chance[n] = (mean[k] - busy[k]) / (idle[k] - busy[k])
                n += 1
            else:
                most = min(most, mean[k])
        rate[e] = mean_least(high, low, chance, n, most)


@compiled
def weigh(
    total: FloatArray, speed: FloatArray, hops: IntArray, places: IntArray, weights: FloatArray
) -> None:
    """Load on each of the crowd's links (`places` in the bundle's list) of edges at these speeds."""
    total[:] = 0.0
    for e in range(len(speed)):
        for h in range(hops.shape[1]):
            total[hops[e, h]] += speed[e]
    for k in range(len(places)):
        weights[k] = max(total[places[k]], LEAST_WEIGHT)
