"""The physical network as arrays: nodes, directed links, places for workers, and the router that finds paths.

Builders in `topologies` make a `Fabric`; the engine reads nothing else. A full-duplex cable is two links.
Bandwidths are payload bytes/s (line rate times the link's efficiency); latencies are seconds, one way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


class Router(Protocol):
    """Finds the links between nodes."""

    def paths(self, src: IntArray, dst: IntArray) -> IntArray:
        """Link ids in path order, shape (n, hops); rows padded with -1 at the end; src = dst gives all -1."""
        ...


@dataclass(frozen=True, slots=True)
class Device:
    """A place for a worker: one GPU, or one processor of a `cpu_only` host."""

    node: int
    host: int
    index: int
    profile: str
    kind: str  # the device class of the scenario: `class: gpu`


@dataclass(frozen=True)
class Fabric:
    """Nodes and directed links, frozen.

    Attributes:
        node_names, node_kinds: per node; kinds are host, device, switch.
        tail, head: per link, the node it leaves and the node it enters, shape (links,).
        bandwidth: payload bytes/s, shape (links,).
        latency: seconds one way, shape (links,).
        hosts: node ids of the hosts' hubs, in host order.
        devices: in host-major order (host 0's devices first).
        router: finds paths between any two nodes.
        line_rate: bytes/s of each link before its efficiency, for what it costs, shape (links,); None: not
            known.
    """

    node_names: tuple[str, ...]
    node_kinds: tuple[str, ...]
    tail: IntArray
    head: IntArray
    bandwidth: FloatArray
    latency: FloatArray
    hosts: IntArray
    devices: tuple[Device, ...]
    router: Router
    line_rate: FloatArray | None = None

    @property
    def links(self) -> int:
        """Number of directed links."""
        return len(self.tail)

    @cached_property
    def link_names(self) -> tuple[str, ...]:
        """`src->dst` by node name; parallel links get `#1`, `#2` behind."""
        seen: dict[tuple[int, int], int] = {}
        names = []
        for pair in zip(self.tail.tolist(), self.head.tolist(), strict=True):
            again = seen[pair] = seen.get(pair, -1) + 1
            name = f"{self.node_names[pair[0]]}->{self.node_names[pair[1]]}"
            names.append(f"{name}#{again}" if again else name)
        return tuple(names)

    def path_latency(self, paths: IntArray) -> FloatArray:
        """Sum of latencies along each row of `paths`, shape (n,), in hop order."""
        total: FloatArray = np.where(paths >= 0, self.latency[paths], 0.0).sum(axis=1)
        return total

    def path_bandwidth(self, paths: IntArray) -> FloatArray:
        """Least bandwidth along each row, inf for an empty path, shape (n,)."""
        least: FloatArray = np.where(paths >= 0, self.bandwidth[paths], np.inf).min(axis=1, initial=np.inf)
        return least
