"""The edges of a bundle that shares links, compiled: the equations of `progress`."""

from __future__ import annotations

import numpy as np

from simulator.compiled import compiled
from simulator.fabric import FloatArray, IntArray

LEAST_WEIGHT = 1e-6  # of an edge that waits


@compiled
def advance(moved: FloatArray, speed: FloatArray, seconds: float, total: float) -> FloatArray:
    """Bytes each edge will have moved, not held back by those before it in the ring; none beyond `total`."""
    after = np.empty_like(moved)
    for e in range(len(moved)):
        after[e] = min(moved[e] + speed[e] * seconds, total)
    return after


@compiled
def hold_back(after: FloatArray, moved: FloatArray, speed: FloatArray, chunk: float) -> None:
    """Edges cannot send what they have not received: whole chunks, of which a part is always under way.

    Args:
        after: bytes each edge would have moved by itself, changed in place.
        moved: bytes each edge has moved so far: it does not go back.
        speed: bytes/s of each edge.
        chunk: bytes.
    """
    n, slowest = len(after), speed.min()
    reach = after.copy()
    for e in range(1, 2 * n):  # two turns: round the whole ring from wherever the slowest is
        reach[e % n] = min(reach[e % n], reach[(e - 1) % n] + chunk)
    for e in range(n):
        under_way = 0.5 * (1.0 + slowest / speed[e]) * chunk
        after[e] = max(min(after[e], reach[e - 1] + chunk - under_way), moved[e])


@compiled
def chance_of(share: FloatArray, who: IntArray, n: int, level: float) -> float:
    """The chance that all n links leave `level` or more; rows of `share`: idle, busy, chance of idle.

    The edges of one ring are there at the same times: links with one `who` are idle together, as far as their
    chances allow. Others are independent.
    """
    chance = 1.0
    for i in range(n):
        least, first = 1.0, True
        for j in range(n):
            if j == i or (who[j] == who[i] and who[i] >= 0):
                first = first and j >= i
                if share[1, j] < level:
                    least = min(least, share[2, j] if share[0, j] >= level else 0.0)
        if first:
            chance *= least
    return chance


@compiled
def mean_least(share: FloatArray, who: IntArray, n: int, most: float) -> float:
    """Mean of the least of `most` and of n links' shares: the sum over levels of rise times chance."""
    mean, reached = 0.0, 0.0
    while reached < most:
        level = most
        for i in range(n):
            for state in range(2):
                if reached < share[state, i] < level:
                    level = share[state, i]
        chance = chance_of(share, who, n, level)
        if chance == 0.0:
            break
        mean += (level - reached) * chance
        reached = level
    return mean


@compiled
def rates(
    rate: FloatArray,
    alone: FloatArray,
    hops: IntArray,
    place: IntArray,
    states: FloatArray,
    who: IntArray,
) -> None:
    """Bytes/s of each edge while it sends, in the mean over the states of its links, shape (edges,).

    Args:
        rate: the result.
        alone: what an edge has at the most.
        hops: links of each edge, as places in the bundle's list, shape (edges, hops).
        place: where each of these links stands in the crowd, -1 if nobody else uses it, shape (links + 1,).
        states: mean, idle and busy of the crowd, shape (3, k).
        who: of the crowd, shape (k,).
    """
    width = hops.shape[1]
    share, there = np.empty((3, width)), np.empty(width, np.int64)
    for e in range(len(rate)):
        most, n = alone[e], 0
        for h in range(width):
            k = place[hops[e, h]]
            if k < 0:
                continue
            mean, idle, busy = states[0, k], states[1, k], states[2, k]
            if idle > busy:
                share[0, n], share[1, n], share[2, n] = idle, busy, (mean - busy) / (idle - busy)
                there[n] = who[k]
                n += 1
            else:
                most = min(most, mean)
        rate[e] = mean_least(share, there, n, most)


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
