"""Hosts at the corners of a cube of any dimension."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from topologies.grid import lay_grid
from topologies.links import Impossible
from topologies.regular import MOST_HOSTS, Regular, Site
from topologies.routing import Between, Routing


class Hypercube(Regular):
    r"""n = 2^d hosts; two are cabled where their numbers differ in one bit; no switch.

          h6 ----- h7
         / |      / |        d = 3
        h4 ----- h5 |
        |  h2 ---|- h3
        | /      | /
        h0 ----- h1

    Cables n d / 2, links n d. With cables of bandwidth B: bisection n B / 2, diameter d hops. `shortest`
    corrects the highest differing bit first (dimension order); `ecmp` begins with the bit that the hash says.

    >>> cube = Hypercube(hosts=16, link={"bandwidth": "50 GB/s", "latency": "1 us"})
    >>> cube.build().links == 16 * 4
    True
    """

    kind: Literal["hypercube"] = "hypercube"
    routing: Routing = "shortest"
    hosts: int = Field(ge=1, le=MOST_HOSTS)

    @field_validator("hosts")
    @classmethod
    def _power_of_two(cls, hosts: int) -> int:
        if hosts & (hosts - 1):
            below = 1 << (hosts.bit_length() - 1)
            raise Impossible(f"hosts: {hosts}", "a power of two", f"{below} or {2 * below}")
        return hosts

    @property
    def host_count(self) -> int:
        """Number of hosts."""
        return self.hosts

    def lay(self, site: Site) -> Between:
        """A grid of d axes of two points."""
        axes = max(self.hosts.bit_length() - 1, 1)
        dims = (2,) * axes if self.hosts > 1 else (1,)
        return lay_grid(site, dims, (False,) * axes, self.link, self.routing)
