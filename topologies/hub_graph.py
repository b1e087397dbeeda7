"""The network without the insides of the hosts: hubs, switches, and how much goes between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.fabric import Fabric, FloatArray, IntArray

DENSE = 1500
"""Nodes up to which all eigenvalues are found."""


@dataclass(frozen=True)
class HubGraph:
    """Nodes are numbered hosts first, then switches; parallel links are one with the sum of their bandwidths.

    Attributes:
        hosts: the first so many nodes are hubs.
        tail, head, capacity: of the links, by rising (tail, head); bytes/s.
    """

    nodes: int
    hosts: int
    tail: IntArray
    head: IntArray
    capacity: FloatArray

    @classmethod
    def of(cls, fabric: Fabric) -> HubGraph:
        """That of a fabric."""
        number = np.full(len(fabric.node_names), -1, dtype=np.int64)
        number[fabric.hosts] = np.arange(len(fabric.hosts))
        switches = np.flatnonzero(np.array(fabric.node_kinds) == "switch")
        number[switches] = len(fabric.hosts) + np.arange(len(switches))
        nodes = len(fabric.hosts) + len(switches)
        tail, head = number[fabric.tail], number[fabric.head]
        kept = (tail >= 0) & (head >= 0)
        pairs, which = np.unique(tail[kept] * nodes + head[kept], return_inverse=True)
        capacity = np.bincount(which, fabric.bandwidth[kept], minlength=len(pairs)).astype(np.float64)
        return cls(nodes, len(fabric.hosts), pairs // nodes, pairs % nodes, capacity)

    def classes(self) -> IntArray:
        """Hosts that are alike (the same cables to the same nodes) get one number, shape (hosts,)."""
        around: list[list[tuple[int, int, float]]] = [[] for _ in range(self.hosts)]
        rows = zip(self.tail.tolist(), self.head.tolist(), self.capacity.tolist(), strict=True)
        for tail, head, capacity in rows:
            if tail < self.hosts:
                around[tail].append((0, head, capacity))
            if head < self.hosts:
                around[head].append((1, tail, capacity))
        seen: dict[tuple[tuple[int, int, float], ...], int] = {}
        return np.array([seen.setdefault(tuple(sorted(a)), len(seen)) for a in around], dtype=np.int64)

    def walk(self) -> Any:
        """Metropolis walk: 1 / (1 + the larger degree) to each neighbour; a sparse matrix (nodes, nodes)."""
        from scipy.sparse import csr_array, diags_array

        low, high = np.minimum(self.tail, self.head), np.maximum(self.tail, self.head)
        pairs = np.unique(low * self.nodes + high)
        a, b = pairs // self.nodes, pairs % self.nodes
        degree = np.bincount(np.concatenate([a, b]), minlength=self.nodes)
        weight = 1.0 / (1 + np.maximum(degree[a], degree[b]))
        ends = (np.concatenate([a, b]), np.concatenate([b, a]))
        edges = csr_array((np.tile(weight, 2), ends), shape=(self.nodes, self.nodes))
        return csr_array(edges + diags_array(1.0 - np.asarray(edges.sum(axis=1)).ravel()))
