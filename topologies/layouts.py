"""Layouts of a drawing: which nodes are one mark, and where the marks lie. Hosts are numbered first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, pi, prod

import numpy as np

from simulator.fabric import FloatArray, IntArray

LINES_A_MARK = 6
"""Lines of a drawing in tiers, over its marks, about."""


@dataclass(frozen=True)
class Layout:
    """Marks and their places.

    Attributes:
        group: mark of each node, shape (nodes,).
        x, y: of each mark; y grows upwards.
        round: whether both axes have one scale.
        bend: how far the line between two marks bows out.
    """

    group: IntArray
    x: FloatArray
    y: FloatArray
    round: bool = False
    bend: Callable[[int, int], float] | None = None


def _renumbered(keys: IntArray) -> IntArray:
    """Groups numbered in the order of their first members."""
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return np.asarray(rank[inverse.ravel()])


def _blocks(count: int, most: int) -> IntArray:
    """0 .. count - 1 in at most `most` even runs."""
    runs = min(count, most)
    return np.arange(count) * runs // max(count, 1)


# tiers


def tiers(count: int, hosts: int, a: IntArray, b: IntArray, most: int) -> Layout:
    """Hosts below, switches by their distance from hosts above them."""
    tier = _distance(count, hosts, a, b)
    group = _merged(tier, a, b, most)
    level = np.zeros(group.max() + 1, dtype=np.int64)
    level[group] = tier
    x = _spread(level, group[a], group[b])
    return Layout(group, x, level.astype(float))


def _distance(count: int, hosts: int, a: IntArray, b: IntArray) -> IntArray:
    far = np.full(count, -1, dtype=np.int64)
    far[:hosts] = 0
    for distance in range(1, count):
        near = np.concatenate([b[far[a] == distance - 1], a[far[b] == distance - 1]])
        near = near[far[near] < 0]
        if not len(near):
            break
        far[near] = distance
    return far


def _merged(tier: IntArray, a: IntArray, b: IntArray, most: int) -> IntArray:
    """Groups of nodes of a tier that are alike, of the fewest kinds that make few enough marks and lines.

    Hosts on the same switches are alike, and switches above the same ones. Then, tier by tier from below,
    switches below the same ones go together, in runs.
    """
    levels = int(tier.max()) + 1
    group = np.arange(len(tier))
    while _too_many(group, a, b, most):
        before = group.max()
        group = _alike(group, tier, a, b, upwards=True, level=0)
        for level in range(1, levels):
            if _too_many(group, a, b, most):
                group = _alike(group, tier, a, b, upwards=False, level=level)
        for level in range(1, levels):
            if group.max() == before and _too_many(group, a, b, most):
                group = _alike(group, tier, a, b, upwards=True, level=level, runs=most // (levels + 1))
        if group.max() == before:
            break
    if group.max() + 1 > most:
        for level in range(levels):
            group = _in_runs(group, tier == level, most // levels)
    return _renumbered(group)


def _too_many(group: IntArray, a: IntArray, b: IntArray, most: int) -> bool:
    lines = len(np.unique(group[a] * len(group) + group[b]))
    return bool(group.max() + 1 > most or lines > LINES_A_MARK * most)


def _alike(
    group: IntArray, tier: IntArray, a: IntArray, b: IntArray, *, upwards: bool, level: int, runs: int = 1
) -> IntArray:
    """Groups of one tier with the same neighbours above (or below) are one, or a few of a tier's `runs`."""
    around: list[set[int]] = [set() for _ in range(int(group.max()) + 1)]
    high = np.zeros(len(around), dtype=np.int64)
    high[group] = tier
    for one, other in zip(group[a].tolist(), group[b].tolist(), strict=True):
        for here, there in ((one, other), (other, one)):
            if high[here] == level and (high[there] > level) == upwards and high[there] != level:
                around[here].add(there)
    alike: dict[frozenset[int], list[int]] = {}
    for here, neighbours in enumerate(around):
        if neighbours:
            alike.setdefault(frozenset(neighbours), []).append(here)
    count = max(sum(map(len, alike.values())), 1)
    number = np.arange(len(around))
    for members in alike.values():
        kept = min(max(runs * len(members) // count, 1), len(members))
        block = _blocks(len(members), kept)
        first = np.searchsorted(block, np.arange(kept))
        number[members] = np.array(members)[first[block]]
    return _renumbered(number[group])


def _in_runs(group: IntArray, which: IntArray, most: int) -> IntArray:
    """The groups of some nodes, merged in even runs to at most `most`."""
    own = np.unique(group[which])
    run = own[np.searchsorted(_blocks(len(own), most), np.arange(min(len(own), most)))]
    to = group.copy()
    to[which] = run[_blocks(len(own), most)[np.searchsorted(own, group[which])]]
    return _renumbered(to)


def _spread(level: IntArray, a: IntArray, b: IntArray) -> FloatArray:
    """Places along each tier: hosts evenly, switches above the middle of what hangs on them."""
    x = np.zeros(len(level))
    for tier in range(int(level.max()) + 1):
        own = np.flatnonzero(level == tier)
        wanted = np.arange(len(own), dtype=float) if not tier else _middles(own, level, x, a, b)
        order = np.argsort(wanted, kind="stable")
        even = (np.arange(len(own)) + 0.5) / len(own)
        close = len(own) > 1 and np.diff(np.sort(wanted)).min() < 0.5 / len(own)
        if not tier or close:
            x[own[order]] = even
        else:
            x[own] = wanted
    return x


def _middles(own: IntArray, level: IntArray, x: FloatArray, a: IntArray, b: IntArray) -> FloatArray:
    ends = np.concatenate([a, b]), np.concatenate([b, a])
    below = level[ends[1]] < level[ends[0]]
    total = np.bincount(ends[0][below], x[ends[1][below]], minlength=len(level))
    count = np.bincount(ends[0][below], minlength=len(level))
    return np.asarray(total[own] / np.maximum(count[own], 1))


# circles


def circle(count: int, hosts: int, a: IntArray, b: IntArray, most: int) -> Layout:
    """Switches (hosts where there are none) on a circle, hosts of a switch outside it, side by side."""
    core = count - hosts if count > hosts else hosts
    run = _blocks(core, min(core, most if count == hosts else max(most // 3, 8)))
    runs = int(run.max()) + 1
    if count == hosts:
        angle = _angles(runs)
        return Layout(run, np.sin(angle), np.cos(angle), round=True)
    seat = run[_switch_of(hosts, a, b) - hosts]
    single = count <= most
    outer = np.arange(hosts) if single else _renumbered(seat)
    group = np.concatenate([outer, outer.max() + 1 + run])
    inner = _angles(runs)
    place = np.zeros(int(outer.max()) + 1)
    for one in range(runs):
        here = np.unique(outer[seat == one])
        offsets = (np.arange(len(here)) - (len(here) - 1) / 2) * 2 * pi / runs / max(len(here), 1)
        place[here] = inner[one] + offsets
    x = np.concatenate([1.35 * np.sin(place), np.sin(inner)])
    y = np.concatenate([1.35 * np.cos(place), np.cos(inner)])
    return Layout(group, x, y, round=True)


def _angles(count: int) -> FloatArray:
    return np.arange(count) * 2 * pi / max(count, 1)


def _switch_of(hosts: int, a: IntArray, b: IntArray) -> IntArray:
    """The first switch each host hangs on."""
    found = np.zeros(hosts, dtype=np.int64)
    for one, other in ((a, b), (b, a)):
        up = (one < hosts) & (other >= hosts)
        found[one[up][::-1]] = other[up][::-1]
    return found


def dragonfly(groups: int, routers: int, hosts: int, a: IntArray, b: IntArray, most: int) -> Layout:
    """A circle of groups, each a circle of routers; hosts beside their routers, or one mark a group."""
    switch = _switch_of(hosts, a, b) - hosts
    every = np.arange(groups * routers)
    whole = groups * routers * 2 > 2 * most  # a group is one mark
    runs = _blocks(groups, max(most // 2, 8))
    mark = runs[every // routers] if whole else every
    seat = mark[switch]
    outer = _renumbered(seat)
    group = np.concatenate([outer, outer.max() + 1 + mark])
    count = int(mark.max()) + 1
    centre = _angles(count if whole else groups)
    if whole:
        x, y = np.sin(centre), np.cos(centre)
    else:
        own = _angles(routers)
        size = min(0.64 * pi / groups, 0.3)
        x = (np.sin(centre)[:, None] + size * np.sin(centre[:, None] + own)).ravel()
        y = (np.cos(centre)[:, None] + size * np.cos(centre[:, None] + own)).ravel()
    holder = np.zeros(int(outer.max()) + 1, dtype=np.int64)
    holder[outer] = seat
    middle_x, middle_y = (np.sin(centre), np.cos(centre)) if not whole else (0 * x, 0 * y)
    base = holder // routers if not whole else holder
    away_x, away_y = x[holder] - middle_x[base], y[holder] - middle_y[base]
    scale = 0.45 if not whole else 0.3
    return Layout(
        group,
        np.concatenate([x[holder] + scale * away_x, x]),
        np.concatenate([y[holder] + scale * away_y, y]),
        round=True,
    )


# grids


def grid(dims: Sequence[int], joined: bool, most: int) -> Layout:
    """Points of a grid; neighbouring points are one mark where there are too many."""
    counts = list(dims)
    while prod(counts) > most and max(counts) > 1:
        longest = max(range(len(counts)), key=lambda axis: counts[axis])
        counts[longest] = ceil(counts[longest] / 2)
    points = np.stack(np.unravel_index(np.arange(prod(dims)), tuple(dims)))
    blocks = np.stack([axis * count // size for axis, count, size in zip(points, counts, dims, strict=True)])
    own = np.ravel_multi_index(tuple(blocks), tuple(counts))
    places = np.stack(np.unravel_index(np.arange(prod(counts)), tuple(counts)))
    right, up = _steps(counts)
    x = (places * right[:, None]).sum(axis=0)
    y = (places * up[:, None]).sum(axis=0)

    def bend(one: int, other: int) -> float:
        far = max(abs(x[one] - x[other]), abs(y[one] - y[other]))
        apart = bool(np.abs(places[:, one] - places[:, other]).max() > 1)
        return 0.09 * float(far) ** 0.5 if joined and apart else 0.0

    return Layout(own.astype(np.int64), x, y, round=True, bend=bend)


def _steps(counts: Sequence[int]) -> tuple[FloatArray, FloatArray]:
    """How far one step along each axis goes to the right and up; the last axis runs to the right."""
    right, up = np.zeros(len(counts)), np.zeros(len(counts))
    width, height = 0.0, 0.0
    for turn, axis in enumerate(reversed(range(len(counts)))):
        if turn == 0:
            right[axis], width = 1.0, counts[axis] - 1.0
        elif turn == 1:
            up[axis], height = -1.0, counts[axis] - 1.0
        elif turn == 2:  # in depth
            right[axis], up[axis] = 0.9 / counts[axis], 0.55 / counts[axis]
            if counts[axis] == 2:
                right[axis], up[axis] = 0.42, 0.34
            width, height = width + right[axis] * (counts[axis] - 1), height + up[axis] * (counts[axis] - 1)
        elif turn % 2:
            right[axis] = width + 1.4
            width += right[axis] * (counts[axis] - 1)
        else:
            up[axis] = -(height + 1.4)
            height += -up[axis] * (counts[axis] - 1)
    return right, up
