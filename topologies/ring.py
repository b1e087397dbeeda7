"""Hosts in a circle."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from topologies.grid import lay_grid
from topologies.regular import MOST_HOSTS, Regular, Site
from topologies.routing import Between


class Ring(Regular):
    r"""n hosts, each cabled to the next, the last to the first; no switch.

        h0 --- h1 --- h2
         \            /
          h5 -- h4 -- h3

    The shorter way round (a tie of even n by the word's last bit, see `routing.py`). Cables n (1 for n = 2, 0
    for n = 1), links 2n. With cables of bandwidth B: bisection 2B, diameter floor(n/2) hops.

    >>> ring = Ring(hosts=6, link={"bandwidth": "50 GB/s", "latency": "500 ns"})
    >>> fabric = ring.build()
    >>> path = fabric.router.paths(fabric.hosts[1:2], fabric.hosts[4:5])[0]
    >>> fabric.links, [fabric.link_names[link] for link in path]
    (12, ['h1->h2', 'h2->h3', 'h3->h4'])
    """

    kind: Literal["ring"] = "ring"
    routing: Literal["shortest", "ecmp", "valiant"] = "shortest"
    hosts: int = Field(ge=1, le=MOST_HOSTS)

    @property
    def host_count(self) -> int:
        """Number of hosts."""
        return self.hosts

    def lay(self, site: Site) -> Between:
        """A grid of one axis, joined."""
        return lay_grid(site, (self.hosts,), (True,), self.link, self.routing)
