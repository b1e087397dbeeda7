"""All hosts around one switch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import Field

from simulator.fabric import IntArray
from topologies.attach import attach
from topologies.regular import MOST_HOSTS, Regular, Site
from topologies.routing import Attachment, Between, Trips


class Star(Regular):
    r"""n hosts, each with its NICs on one non-blocking switch `s0`.

        h0   h1   h2   h3
          \   |    |   /
           [    s0    ]

    Between hosts every path is two links. With one NIC a host of bandwidth B: 2n directed links, one switch,
    bisection floor(n/2) B, diameter 2 hops.

    >>> star = Star(hosts=4, link={"bandwidth": "25 Gbit/s", "latency": "2 us", "efficiency": 0.92})
    >>> fabric = star.build()
    >>> fabric.links, fabric.node_names
    (8, ('h0', 'h1', 'h2', 'h3', 's0'))
    """

    kind: Literal["star"] = "star"
    routing: Literal["shortest", "ecmp"] = "shortest"
    hosts: int = Field(ge=1, le=MOST_HOSTS)

    @property
    def host_count(self) -> int:
        """Number of hosts."""
        return self.hosts

    def lay(self, site: Site) -> Between:
        """One switch, all NICs on it."""
        switch = site.wiring.place(["s0"], "switch")
        return OverOneSwitch(attach(site, np.repeat(switch, len(site.interior.hubs)), self.link))


@dataclass(frozen=True)
class OverOneSwitch:
    """Up to the switch and down again."""

    ports: Attachment

    def links(self, trips: Trips) -> IntArray:
        """Two links a row."""
        return np.stack([self.ports.out(trips), self.ports.into(trips)], axis=1)
