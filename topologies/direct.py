"""Topologies without switches: hosts cabled to hosts, a host passes on what is not for it.

There `nics` is the number of parallel cables between neighbours (a host with two neighbours and `nics: 1` has
two cables); a device's NIC number picks the cable all along the way. A server added hangs on host 0 by one
cable.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.fabric import IntArray
from topologies.links import Impossible, LinkSpec
from topologies.regular import Site
from topologies.routing import Between, Trips, where_moving


def lanes(site: Site) -> int:
    """Parallel cables between neighbours.

    Raises:
        Impossible: hosts with unequal `nics`.
    """
    counts = np.unique(site.interior.nics[: len(site.hosts)])
    if len(counts) > 1:
        raise Impossible(
            f"hosts with {' and '.join(map(str, counts))} NICs",
            "equal `nics` in all hosts of a topology that cables hosts to hosts",
        )
    return int(counts[0])


def parallel(site: Site, a: IntArray, b: IntArray, link: LinkSpec, count: int) -> IntArray:
    """`count` cables from each a to b: first link of each, the next cables by + 2; shape of `a`."""
    return site.wiring.cable(np.repeat(a, count), np.repeat(b, count), link)[::count]


def with_servers(site: Site, between: Between, link: LinkSpec) -> Between:
    """The same network with the servers added hung on host 0."""
    if not site.extra:
        return between
    servers = site.servers
    return Gated(between, len(site.hosts), site.wiring.cable(servers, np.zeros_like(servers), link))


@dataclass(frozen=True)
class Gated:
    """Servers behind host 0.

    Attributes:
        hosts: hosts of the inner network; higher numbers are servers.
        up: link server -> host 0.
    """

    inner: Between
    hosts: int
    up: IntArray

    def links(self, trips: Trips) -> IntArray:
        """Out of the server, through the inner network, into the server."""
        leaving, entering = trips.src >= self.hosts, trips.dst >= self.hosts
        inner = trips.over(np.where(leaving, 0, trips.src), np.where(entering, 0, trips.dst))
        out = np.where(leaving, self.up[np.maximum(trips.src - self.hosts, 0)], -1)
        into = np.where(entering, self.up[np.maximum(trips.dst - self.hosts, 0)] + 1, -1)
        return np.hstack([out[:, None], where_moving(self.inner, inner), into[:, None]])


@dataclass(frozen=True)
class Valiant:
    """To a host drawn by the hash, from there to the end: twice the hops, evenly spread load.

    Reference: L. G. Valiant, A scheme for fast parallel communication, SIAM J. Comput. 11 (1982).
    """

    inner: Between
    hosts: int

    def links(self, trips: Trips) -> IntArray:
        """Two legs by the inner network's way."""
        stop = trips.word % self.hosts
        first = where_moving(self.inner, trips.over(trips.src, stop))
        return np.hstack([first, where_moving(self.inner, trips.over(stop, trips.dst))])
