"""Two tiers of switches."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from simulator.fabric import IntArray
from topologies.attach import attach
from topologies.links import Impossible, LinkSpec, payload, within_bounds
from topologies.regular import MOST_HOSTS, Regular, Site
from topologies.routing import Attachment, Between, Trips

MOST_SWITCHES = 100_000
"""Leaves or spines of one topology."""


class LeafSpine(Regular):
    r"""L leaves of h hosts, each leaf cabled to all S spines.

           [spine0]   [spine1]
             |   \ \ / /   |
             |   / / \ \   |
           [leaf0]    [leaf1]
            /   \      /   \
           h0   h1    h2   h3

    Host i sits on leaf i // h. Paths: 2 links on one leaf, 4 between leaves, by one of S equal ways.
    With one NIC a host and bandwidth B everywhere: 2 (n + L S) directed links, L + S switches, bisection
    min(n / 2, L S / 2) B (even L, full leaves), oversubscription h / S.

    Attributes:
        hosts: n.
        hosts_per_leaf: h; by default 16, or what `leaves` makes it.
        leaves: L; by default ceil(n / h).
        spines: S; by default what `oversubscription` makes it.
        oversubscription: host bandwidth into a leaf over bandwidth to the spines; by default 1.
        uplink: cable from leaf to spine; by default `link`.

    Reference: M. Al-Fares, A. Loukissas, A. Vahdat, SIGCOMM 2008, section 2 (two-tier form).

    >>> link = {"bandwidth": "100 Gbit/s", "latency": "1 us"}
    >>> tiers = LeafSpine(hosts=8, hosts_per_leaf=4, oversubscription=2, link=link)
    >>> fabric = tiers.build()
    >>> fabric.links == 2 * (8 + 2 * 2), fabric.node_names[8:]
    (True, ('leaf0', 'leaf1', 'spine0', 'spine1'))
    """

    kind: Literal["leaf_spine"] = "leaf_spine"
    routing: Literal["shortest", "ecmp"] = "shortest"
    hosts: int = Field(ge=1, le=MOST_HOSTS)
    hosts_per_leaf: int | None = Field(default=None, ge=1, le=MOST_HOSTS)
    leaves: int | None = Field(default=None, ge=1, le=MOST_SWITCHES)
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
        if self.leaf_count * self.per_leaf < self.hosts:
            raise Impossible(
                f"{self.leaf_count} leaves of {self.per_leaf} hosts",
                f"room for hosts: {self.hosts}",
                at=("leaves",),
            )
        return self

    @property
    def host_count(self) -> int:
        """Number of hosts."""
        return self.hosts

    @property
    def per_leaf(self) -> int:
        """Hosts of a full leaf."""
        if self.hosts_per_leaf is not None:
            return self.hosts_per_leaf
        return min(16, self.hosts) if self.leaves is None else ceil(self.hosts / self.leaves)

    @property
    def leaf_count(self) -> int:
        """Number of leaves."""
        return ceil(self.hosts / self.per_leaf) if self.leaves is None else self.leaves

    def lay(self, site: Site) -> Between:
        """Leaves, spines, and each leaf to each spine."""
        hosts = len(site.interior.hubs)
        leaf = np.minimum(np.arange(hosts) // self.per_leaf, self.leaf_count - 1)
        spines = self.spines or uplinks(
            self.per_leaf * int(site.interior.nics.max()), self.link, self.uplink, self.oversubscription
        )
        return lay_tiers(site, leaf, self.leaf_count, spines, self.link, self.uplink or self.link)


def uplinks(ports: int, link: LinkSpec, uplink: LinkSpec | None, oversubscription: float | None) -> int:
    """Cables a leaf of that many host ports needs upwards, for an oversubscription (1 where None)."""
    wanted = ports * payload(link) / (payload(uplink or link) * (oversubscription or 1.0))
    return max(1, ceil(wanted * (1 - 1e-12)))


def lay_tiers(site: Site, leaf: IntArray, leaves: int, spines: int, link: LinkSpec, up: LinkSpec) -> Between:
    """Hosts on the leaves of their numbers, shape (hosts,), and a full mesh of leaves and spines."""
    wiring = site.wiring
    within_bounds(len(wiring.names) + leaves + spines, wiring.links + 2 * leaves * spines)
    leaf_nodes = wiring.place([f"leaf{i}" for i in range(leaves)], "switch")
    spine_nodes = wiring.place([f"spine{i}" for i in range(spines)], "switch")
    ports = attach(site, leaf_nodes[leaf], link)
    a, b = np.broadcast_arrays(leaf_nodes[:, None], spine_nodes[None, :])
    return OverSpines(ports, leaf, wiring.cable(a, b, up))


@dataclass(frozen=True)
class OverSpines:
    """Up to the leaf, over a spine if the other leaf is another, down.

    Attributes:
        leaf: of each host.
        rise: link leaf -> spine, shape (leaves, spines).
    """

    ports: Attachment
    leaf: IntArray
    rise: IntArray

    def links(self, trips: Trips) -> IntArray:
        """Two or four links a row."""
        here, there = self.leaf[trips.src], self.leaf[trips.dst]
        spine = trips.word % self.rise.shape[1]
        apart = here != there
        up = np.where(apart, self.rise[here, spine], -1)
        down = np.where(apart, self.rise[there, spine] + 1, -1)
        return np.stack([self.ports.out(trips), up, down, self.ports.into(trips)], axis=1)
