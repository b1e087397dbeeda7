"""Hosts at the points of a grid, cabled to their neighbours along each axis: rings, tori, hypercubes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from simulator.fabric import IntArray
from topologies.direct import Valiant, lanes, parallel, with_servers
from topologies.links import LinkSpec, within_bounds
from topologies.regular import Site
from topologies.routing import Between, Routing, Trips


@dataclass(frozen=True)
class Grid:
    """A grid of `dims` points; host numbers run along the last axis first.

    Attributes:
        closed: per axis, whether its ends are joined (needs three points).
        ahead: per axis and host, first link to the next point (-1: an open end).
        turn: start with the axis that the word says, instead of the first (`ecmp`).
    """

    dims: tuple[int, ...]
    closed: tuple[bool, ...]
    ahead: tuple[IntArray, ...]
    turn: bool = False

    def links(self, trips: Trips) -> IntArray:
        """One axis after the other, each the shorter way round."""
        axes = list(range(len(self.dims)))
        if not self.turn:
            return self._along(axes, trips)
        start = trips.word % len(axes)
        rest = trips.word // len(axes)
        parts = [
            (
                start == axis,
                self._along(axes[axis:] + axes[:axis], _with_word(trips, rest).rows(start == axis)),
            )
            for axis in axes
        ]
        rows = np.full((len(trips.src), max(part.shape[1] for _, part in parts)), -1, dtype=np.int64)
        for which, part in parts:
            rows[which, : part.shape[1]] = part
        return rows

    def _along(self, axes: list[int], trips: Trips) -> IntArray:
        at, columns = trips.src, [np.empty((len(trips.src), 0), dtype=np.int64)]
        for axis in axes:
            at, part = self._walk(axis, at, trips)
            columns.append(part)
        return np.hstack(columns)

    def _walk(self, axis: int, at: IntArray, trips: Trips) -> tuple[IntArray, IntArray]:
        """From `at` to the destination's coordinate on one axis; where that ends, and its links."""
        size, stride = self.dims[axis], prod(self.dims[axis + 1 :])
        here, there = at // stride % size, trips.dst // stride % size
        forward, steps = self._heading(axis, here, there, trips.word)
        base = at - here * stride
        links = np.full((len(at), int(steps.max(initial=0))), -1, dtype=np.int64)
        step = np.where(forward, 1, -1)
        for hop in range(links.shape[1]):
            # The cable between two points belongs to the one behind.
            behind = base + (here + np.where(forward, hop * step, (hop + 1) * step)) % size * stride
            link = self.ahead[axis][behind] + np.where(forward, 0, 1) + 2 * trips.src_nic
            links[:, hop] = np.where(hop < steps, link, -1)
        return base + there * stride, links

    def _heading(
        self, axis: int, here: IntArray, there: IntArray, word: IntArray
    ) -> tuple[NDArray[np.bool_], IntArray]:
        """Whether to go towards higher numbers, and how many steps; a tie by the word's last bit."""
        if not self.closed[axis]:
            return there > here, np.abs(there - here)
        size = self.dims[axis]
        ahead = (there - here) % size
        back = (here - there) % size
        forward = (ahead < back) | ((ahead == back) & (word % 2 == 0))
        return forward, np.where(forward, ahead, back)


def _with_word(trips: Trips, word: IntArray) -> Trips:
    return Trips(trips.src, trips.dst, trips.src_nic, trips.dst_nic, word)


def lay_grid(
    site: Site, dims: tuple[int, ...], closed: tuple[bool, ...], link: LinkSpec, routing: Routing
) -> Between:
    """Cables of a grid, axis by axis; `closed` where an axis is joined at its ends."""
    count, hosts = lanes(site), site.hosts
    within_bounds(len(site.wiring.names), site.wiring.links + 2 * count * len(dims) * len(hosts))
    joined = tuple(ring and size > 2 for ring, size in zip(closed, dims, strict=True))
    ahead = []
    for axis, size in enumerate(dims):
        stride = prod(dims[axis + 1 :])
        here = hosts // stride % size
        begins = hosts if joined[axis] else hosts[here + 1 < size]
        ends = begins + ((begins // stride % size + 1) % size - begins // stride % size) * stride
        links = np.full(len(hosts), -1, dtype=np.int64)
        links[begins] = parallel(site, begins, ends, link, count)
        ahead.append(links)
    grid: Between = Grid(dims, joined, tuple(ahead), turn=routing == "ecmp")
    if routing == "valiant":
        grid = Valiant(grid, len(hosts))
    return with_servers(site, grid, link)
