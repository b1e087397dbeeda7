"""A cable between every two hosts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import Field

from simulator.fabric import IntArray
from topologies.direct import Valiant, lanes, parallel
from topologies.links import within_bounds
from topologies.regular import MOST_HOSTS, Regular, Site
from topologies.routing import Between, Trips


class FullMesh(Regular):
    r"""n hosts, each cabled to each; no switch.

        h0 --- h1
        | \   / |
        |   X   |
        | /   \ |
        h2 --- h3

    Every path is one link (two over a third host with `valiant`). Links n (n - 1). With cables of bandwidth
    B: bisection floor(n/2) ceil(n/2) B, diameter 1. A server added is one more corner of the mesh.

    >>> mesh = FullMesh(hosts=8, link={"bandwidth": "50 GB/s", "latency": "500 ns"})
    >>> mesh.build().links
    56
    """

    kind: Literal["full_mesh"] = "full_mesh"
    routing: Literal["shortest", "ecmp", "valiant"] = "shortest"
    hosts: int = Field(ge=1, le=MOST_HOSTS)

    @property
    def host_count(self) -> int:
        """Number of hosts."""
        return self.hosts

    def lay(self, site: Site) -> Between:
        """A cable (or `nics` of them) for every pair."""
        count, hubs = lanes(site), site.interior.hubs
        within_bounds(len(site.wiring.names), site.wiring.links + count * len(hubs) * (len(hubs) - 1))
        site.interior.nics[:] = count
        i, j = np.triu_indices(len(hubs), 1)
        first = parallel(site, hubs[i], hubs[j], self.link, count)
        mesh: Between = Pairs(len(hubs), count, int(first[0]) if len(first) else 0)
        return Valiant(mesh, len(hubs)) if self.routing == "valiant" else mesh


@dataclass(frozen=True)
class Pairs:
    """The pair's own cable.

    Attributes:
        hosts: n.
        lanes: parallel cables of a pair.
        first: link of pair (0, 1); pairs (i, j), i < j, follow in lexical order.
    """

    hosts: int
    lanes: int
    first: int

    def links(self, trips: Trips) -> IntArray:
        """One link a row."""
        low, high = np.minimum(trips.src, trips.dst), np.maximum(trips.src, trips.dst)
        pair = low * self.hosts - low * (low + 1) // 2 + high - low - 1
        link: IntArray = self.first + 2 * (pair * self.lanes + trips.src_nic) + (trips.src > trips.dst)
        return link[:, None]
