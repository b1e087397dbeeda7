"""Several sites over a wide-area network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from simulator.fabric import IntArray
from simulator.units import Quantity
from topologies.attach import attach
from topologies.links import Impossible, LinkSpec
from topologies.regular import MOST_HOSTS, Regular, Site
from topologies.routing import Attachment, Between, Trips

DEFAULT_WAN = LinkSpec(bandwidth=Quantity(1e9 / 8), latency=Quantity(20e-3))
"""1 Gbit/s, 20 ms: two links make 40 ms one way."""


class Sites(Regular):
    r"""Stars of hosts, each star's switch with one cable into the wide-area network.

        h0   h1          h2   h3
          \ /              \ /
        [site0]  --wan--  [site1]         [wan] in the middle, each site's switch on it

    Host i of n sits at site floor(i s / n) of s. Paths: 2 links in a site, 4 between sites. Directed links 2
    a NIC and 2 s. With wan cables of bandwidth W below what a site's hosts send: bisection floor(s / 2) W for
    equal sites, even s.

    Attributes:
        hosts: n, over all sites.
        sites: s.
        link: host to its site's switch.
        wan: a site's cable into the wide-area network; its latency counts twice between sites.

    >>> far = Sites(hosts=4, sites=2, link={"bandwidth": "10 Gbit/s", "latency": "5 us"})
    >>> fabric = far.build()
    >>> path = fabric.router.paths(fabric.hosts[:1], fabric.hosts[3:])
    >>> [fabric.link_names[link] for link in path[0]]
    ['h0->site0', 'site0->wan', 'wan->site1', 'site1->h3']
    """

    kind: Literal["sites"] = "sites"
    routing: Literal["shortest", "ecmp"] = "shortest"
    hosts: int = Field(ge=1, le=MOST_HOSTS)
    sites: int = Field(default=2, ge=1, le=10_000)
    wan: LinkSpec = DEFAULT_WAN

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        if self.sites > self.hosts:
            raise Impossible(
                f"sites: {self.sites}", f"at most one for each of hosts: {self.hosts}", at=("sites",)
            )
        return self

    @property
    def host_count(self) -> int:
        """Number of hosts."""
        return self.hosts

    def lay(self, site: Site) -> Between:
        """Switches of the sites, their hosts, the wide-area network."""
        switches = site.wiring.place([f"site{i}" for i in range(self.sites)], "switch")
        wan = site.wiring.place(["wan"], "switch")
        own = np.arange(self.hosts) * self.sites // self.hosts
        seat = np.concatenate([own, np.zeros(site.extra, dtype=np.int64)])
        ports = attach(site, switches[seat], self.link)
        return OverWan(ports, seat, site.wiring.cable(switches, np.repeat(wan, self.sites), self.wan))


@dataclass(frozen=True)
class OverWan:
    """Up to the site's switch, over the wide-area network if need be, down.

    Attributes:
        seat: site of each host; a server added is at site 0.
        out: link site -> wan, per site.
    """

    ports: Attachment
    seat: IntArray
    out: IntArray

    def links(self, trips: Trips) -> IntArray:
        """Two or four links a row."""
        here, there = self.seat[trips.src], self.seat[trips.dst]
        apart = here != there
        up = np.where(apart, self.out[here], -1)
        down = np.where(apart, self.out[there] + 1, -1)
        return np.stack([self.ports.out(trips), up, down, self.ports.into(trips)], axis=1)
