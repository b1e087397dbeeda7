"""The k-ary fat tree: three tiers of equal switches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from simulator.fabric import IntArray
from topologies.attach import attach
from topologies.links import Impossible, within_bounds
from topologies.regular import MOST_HOSTS, Regular, Site
from topologies.routing import Attachment, Between, Trips

MOST_PORTS = 256
"""Largest k."""


class FatTree(Regular):
    r"""k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 cores, o k/2 host ports an edge switch.

        core0    core1     core2    core3         agg a of every pod: cores a k/2 .. a k/2 + k/2 - 1
          |   \  /  |       ...
        pod0/agg0   pod0/agg1        pod1/...     k = 4, o = 1
          |     \  /    |
        pod0/edge0  pod0/edge1                    every edge switch to every agg switch of its pod
          /  \        /  \
        h0   h1     h2   h3

    Host i sits on edge switch i // h, with h = floor(o k/2 / NICs) hosts an edge switch. Paths: 2 links on
    one edge switch, 4 in a pod by k/2 ways, 6 between pods by (k/2)^2 ways.
    Room for k^2 h / 2 hosts (k^3 / 4 with one NIC and o = 1). 5 k^2 / 4 switches, k^3 directed links between
    switches and 2 a NIC. With one NIC, full and of bandwidth B: bisection k^3 B / 8, diameter 6.

    Attributes:
        hosts: how many; by default all there is room for.
        k: ports of a core or aggregation switch, even; by default the least that holds `hosts`.
        oversubscription: o, host ports over uplinks of an edge switch; o k/2 is a whole number.

    Reference: M. Al-Fares, A. Loukissas, A. Vahdat, A scalable, commodity data center network architecture,
    SIGCOMM 2008.

    >>> tree = FatTree(k=4, link={"bandwidth": "100 Gbit/s", "latency": "1 us"})
    >>> fabric = tree.build()
    >>> tree.host_count == 4**3 // 4, fabric.links == 4**3 + 2 * 16, len(fabric.node_names) == 16 + 5 * 4
    (True, True, True)
    """

    kind: Literal["fat_tree"] = "fat_tree"
    routing: Literal["shortest", "ecmp"] = "shortest"
    hosts: int | None = Field(default=None, ge=1, le=MOST_HOSTS)
    k: int | None = Field(default=None, ge=2, le=MOST_PORTS)
    oversubscription: float = Field(default=1.0, ge=1 / MOST_PORTS, le=MOST_PORTS)

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        if self.k is not None and self.k % 2:
            raise Impossible(f"k: {self.k}", "an even number", "half of a switch's ports lead up", at=("k",))
        if not self._per_edge(self.ports):
            raise Impossible(
                f"{self.oversubscription * self.ports / 2:g} host ports (oversubscription k/2) an edge",
                f"a whole number, at least {self._nics()} (the NICs of a host)",
                at=("oversubscription",) if "oversubscription" in self.model_fields_set else ("k",),
            )
        if self.host_count > self._room(self.ports):
            raise Impossible(
                f"hosts: {self.host_count}",
                f"at most {self._room(self.ports)} with k = {self.ports}",
                "without `k` the least that holds them is taken",
                at=("hosts",),
            )
        return self

    def _nics(self) -> int:
        return max([self.host.nics, *(entry.host.nics for entry in self.unlike)])

    def _per_edge(self, k: int) -> int:
        """Hosts of a full edge switch; 0 where such a tree cannot be."""
        ports = self.oversubscription * k / 2
        whole = round(ports)
        return whole // self._nics() if abs(ports - whole) <= 1e-9 * ports else 0

    def _room(self, k: int) -> int:
        return k * k // 2 * self._per_edge(k)

    @property
    def ports(self) -> int:
        """The k in force."""
        if self.k is not None:
            return self.k
        if self.hosts is None:
            raise Impossible("neither `hosts` nor `k`", "one of the two")
        for k in range(2, MOST_PORTS + 1, 2):
            if self._room(k) >= self.hosts:
                return k
        raise Impossible(
            f"hosts: {self.hosts} with oversubscription {self.oversubscription:g}",
            f"what a k up to {MOST_PORTS} with a whole number of host ports (oversubscription k/2) can hold",
            at=("hosts",),
        )

    @property
    def host_count(self) -> int:
        """Number of hosts."""
        return self._room(self.ports) if self.hosts is None else self.hosts

    def lay(self, site: Site) -> Between:
        """Edge, aggregation and core switches."""
        k, half, wiring = self.ports, self.ports // 2, site.wiring
        within_bounds(len(wiring.names) + 5 * k * k // 4, wiring.links + k**3)
        edge = wiring.place([f"pod{p}/edge{i}" for p in range(k) for i in range(half)], "switch")
        agg = wiring.place([f"pod{p}/agg{i}" for p in range(k) for i in range(half)], "switch")
        core = wiring.place([f"core{i}" for i in range(half * half)], "switch")
        # A server added takes the next free port, or one more on the last edge switch.
        seat = np.minimum(np.arange(len(site.interior.hubs)) // self._per_edge(k), len(edge) - 1)
        ports = attach(site, edge[seat], self.link)
        agg, edge = agg.reshape(k, half), edge.reshape(k, half)
        a, b = np.broadcast_arrays(edge[:, :, None], agg[:, None, :])
        rise = wiring.cable(a, b, self.link).reshape(k * half, half)
        a, b = np.broadcast_arrays(agg[:, :, None], core.reshape(1, half, half))
        return OverCores(ports, seat, rise, wiring.cable(a, b, self.link))


@dataclass(frozen=True)
class OverCores:
    """Up as far as needed, down again.

    Attributes:
        edge: edge switch of each host, numbered through all pods.
        rise: link edge -> agg, shape (edges, k/2).
        top: link agg -> core, shape (pods, aggs of a pod, cores of an agg).
    """

    ports: Attachment
    edge: IntArray
    rise: IntArray
    top: IntArray

    def links(self, trips: Trips) -> IntArray:
        """Two, four or six links a row."""
        half = self.rise.shape[1]
        here, there = self.edge[trips.src], self.edge[trips.dst]
        pod, pod_there = here // half, there // half
        agg, core = trips.word % half, trips.word // half % half
        apart, far = here != there, pod != pod_there
        columns = [
            self.ports.out(trips),
            np.where(apart, self.rise[here, agg], -1),
            np.where(far, self.top[pod, agg, core], -1),
            np.where(far, self.top[pod_there, agg, core] + 1, -1),
            np.where(apart, self.rise[there, agg] + 1, -1),
            self.ports.into(trips),
        ]
        return np.stack(columns, axis=1)
