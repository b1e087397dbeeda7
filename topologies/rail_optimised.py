"""One network of leaves per NIC number, joined by spines and by the hosts themselves."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from simulator.fabric import IntArray
from topologies.attach import attach_ports
from topologies.leaf_spine import MOST_SWITCHES, uplinks
from topologies.links import Impossible, LinkSpec, within_bounds
from topologies.regular import MOST_HOSTS, Regular, Site
from topologies.routing import Attachment, Between, Trips


class RailOptimised(Regular):
    r"""Groups of h hosts; NIC r of a group's hosts on the group's leaf of rail r; all leaves to all S spines.

              [spine0]  [spine1]  ...                 every leaf to every spine
               /  |  \    |
        [group0/rail0]  [group0/rail1]   [group1/rail0] ...
          |        \      /        |
          |         \    /         |
        h0 NIC 0    h0 NIC 1    h1 NIC 1

    R rails (NICs of a host), G = ceil(n / h) groups: R G leaves, S spines (none for one group),
    2 n R + 2 R G S directed links. Paths: 2 links in a group, 4 between groups by S ways. All traffic stays
    on the rail of the receiving device's NIC: the sender's hub reaches every NIC, as NCCL's PXN does over
    NVLink, so that a spine never leads from rail to rail. With NICs of bandwidth B, oversubscription o >= 1,
    an even number of full groups: bisection n R B / (2 o).

    Attributes:
        hosts: n.
        hosts_per_group: h, host ports of a leaf; by default 32, or all hosts where they are fewer.
        spines: S; by default what `oversubscription` makes it.
        oversubscription: host bandwidth into a leaf over bandwidth to the spines; by default 1.
        uplink: cable from leaf to spine; by default `link`.

    >>> rails = RailOptimised(hosts=8, hosts_per_group=4, link={"bandwidth": "400 Gbit/s", "latency": "4 us"},
    ...                       host={"kind": "nvswitch", "devices": {"count": 8}, "nics": 8,
    ...                             "nvlink": {"bandwidth": "450 GB/s", "latency": "1 us"}})
    >>> fabric = rails.build()
    >>> fabric.links == 2 * 8 * 8 + 2 * 8 * 8 + 2 * (8 * 2) * 4
    True
    """

    kind: Literal["rail_optimised"] = "rail_optimised"
    routing: Literal["shortest", "ecmp"] = "shortest"
    hosts: int = Field(ge=1, le=MOST_HOSTS)
    hosts_per_group: int | None = Field(default=None, ge=1, le=MOST_HOSTS)
    spines: int | None = Field(default=None, ge=1, le=MOST_SWITCHES)
    oversubscription: float | None = Field(default=None, gt=0)
    uplink: LinkSpec | None = None

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        if self.spines is not None and self.oversubscription is not None:
            raise Impossible(
                f"spines: {self.spines} and oversubscription: {self.oversubscription:g}",
                "one of the two",
                at=("spines",),
            )
        return self

    @property
    def host_count(self) -> int:
        """Number of hosts."""
        return self.hosts

    @property
    def per_group(self) -> int:
        """Hosts of a full group."""
        return self.hosts_per_group or min(32, self.hosts)

    def lay(self, site: Site) -> Between:
        """Leaves group by group, rail by rail; spines; cables."""
        wiring, nics = site.wiring, site.interior.nics
        rails, groups = int(nics.max()), ceil(self.hosts / self.per_group)
        spines = self.spines or uplinks(self.per_group, self.link, self.uplink, self.oversubscription)
        spines = spines if groups > 1 else 0
        within_bounds(len(wiring.names) + rails * groups + spines, wiring.links + 2 * rails * groups * spines)
        names = [f"group{g}/rail{r}" for g in range(groups) for r in range(rails)]
        leaves = wiring.place(names, "switch")
        spine = wiring.place([f"spine{s}" for s in range(spines)], "switch")
        group = np.minimum(np.arange(len(nics)) // self.per_group, groups - 1)
        rail = np.arange(int(nics.sum())) - np.repeat(np.cumsum(nics) - nics, nics)
        ports = attach_ports(site, leaves[np.repeat(group, nics) * rails + rail], self.link)
        a, b = np.broadcast_arrays(leaves[:, None], spine[None, :])
        rise = wiring.cable(a, b, self.uplink or self.link).reshape(groups, rails, spines)
        return OnRails(ports, nics, group, rise)


@dataclass(frozen=True)
class OnRails:
    """Along the rail of the receiving NIC.

    Attributes:
        nics: of each host.
        group: of each host.
        rise: link leaf -> spine, shape (groups, rails, spines).
    """

    ports: Attachment
    nics: IntArray
    group: IntArray
    rise: IntArray

    def links(self, trips: Trips) -> IntArray:
        """Two or four links a row."""
        rail = np.minimum(trips.dst_nic, self.nics[trips.src] - 1)
        out = self.ports.up[trips.src] + 2 * rail
        into = self.ports.up[trips.dst] + 2 * rail + 1
        here, there = self.group[trips.src], self.group[trips.dst]
        apart = here != there
        if not apart.any():
            return np.stack([out, into], axis=1)
        spine = trips.word % self.rise.shape[2]
        up = np.where(apart, self.rise[here, rail, spine], -1)
        down = np.where(apart, self.rise[there, rail, spine] + 1, -1)
        return np.stack([out, up, down, into], axis=1)
