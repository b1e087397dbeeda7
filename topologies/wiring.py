"""Collects nodes and cables as arrays and freezes them into a `Fabric`.

A cable is two links with neighbouring numbers: `l` one way (even), `l + 1` the way back: `l ^ 1` turns round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from simulator.fabric import Device, Fabric, FloatArray, IntArray, Router
from topologies.links import Wire, payload, within_bounds


@dataclass
class Wiring:
    """A fabric under construction.

    Attributes:
        names, kinds: per node, as in `Fabric`.
        links: directed links laid so far.
    """

    names: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    links: int = 0
    _ends: list[tuple[IntArray, IntArray]] = field(default_factory=list)
    _rates: list[tuple[FloatArray, FloatArray, FloatArray]] = field(default_factory=list)

    def place(self, names: Sequence[str], kind: str) -> IntArray:
        """Adds nodes of one kind (host, device, switch); their ids, shape (names,)."""
        first = len(self.names)
        within_bounds(first + len(names), self.links)
        self.names.extend(names)
        self.kinds.extend([kind] * len(names))
        return np.arange(first, len(self.names), dtype=np.int64)

    def cable(self, a: IntArray, b: IntArray, wire: Wire) -> IntArray:
        """Lays a full-duplex cable from each `a[i]` to `b[i]`; ids of the links there, shape of `a`."""
        ends = np.stack([a.ravel(), b.ravel()], axis=1)
        first = self.arcs(ends.ravel(), ends[:, ::-1].ravel(), wire)[0] if ends.size else 0
        return (first + 2 * np.arange(a.size, dtype=np.int64)).reshape(a.shape)

    def arcs(self, tail: IntArray, head: IntArray, wire: Wire) -> IntArray:
        """Lays single directed links; their ids, shape of `tail`."""
        first, count = self.links, len(tail)
        within_bounds(len(self.names), first + count)
        self._ends.append((tail, head))
        rates = (payload(wire), float(wire.latency), float(wire.bandwidth))
        self._rates.append((np.full(count, rates[0]), np.full(count, rates[1]), np.full(count, rates[2])))
        self.links += count
        return np.arange(first, self.links, dtype=np.int64)

    def ends(self) -> tuple[IntArray, IntArray]:
        """Tail and head of each link so far, shape (links,)."""
        ends = [np.concatenate(column).astype(np.int64) for column in zip(*self._ends, strict=True)]
        tail, head = ends or (np.empty(0, np.int64), np.empty(0, np.int64))
        return tail, head

    def fabric(self, hosts: IntArray, devices: Sequence[Device], router: Router) -> Fabric:
        """The frozen result."""
        tail, head = self.ends()
        rates = [np.concatenate(column) for column in zip(*self._rates, strict=True)]
        bandwidth, latency, line_rate = rates or (np.empty(0), np.empty(0), np.empty(0))
        names, kinds = tuple(self.names), tuple(self.kinds)
        return Fabric(
            names, kinds, tail, head, bandwidth, latency, hosts, tuple(devices), router, line_rate=line_rate
        )
