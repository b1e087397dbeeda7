"""Groups of routers, every two routers of a group and every two groups joined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from simulator.fabric import IntArray
from topologies.attach import attach
from topologies.links import Impossible, LinkSpec, within_bounds
from topologies.regular import MOST_HOSTS, Regular, Site
from topologies.routing import Attachment, Between, Trips


class Dragonfly(Regular):
    r"""g = a h + 1 groups of a routers; a router has p host ports, a - 1 local and h global cables.

        group 0                       group 1
        [r0]---[r1]                   [r0]---[r1]          a = 2, h = 1: 3 groups
         |  \___/ |  a - 1 local       |      |
        hosts    (h global)---------(h global)             one global cable between any two groups

    Room for p a (a h + 1) host ports; host i sits on router i // floor(p / NICs), routers numbered group by
    group. Directed links: g a (a - 1) local, g (g - 1) global, 2 a NIC. Global cable q = 0 .. a h - 1 of
    group i (on its router q // h) leads to group i + q + 1 (mod g), whose cable a h - 1 - q it is.
    `shortest` goes local, global, local: at most 3 links between routers, one way only (over a third group
    there may be a way of two global links; minimal routing does not take it), 5 from host to host. `valiant`
    goes over a router of a third group.

    Attributes:
        hosts: how many; by default all there is room for.
        p, a, h: see above; by default balanced, a = 2p = 2h, and the least that holds `hosts`.
        local: cable between routers of a group; by default `link`.
        wide: cable between groups; by default `link`.

    Reference: J. Kim, W. J. Dally, S. Scott, D. Abts, Technology-driven, highly-scalable dragonfly topology,
    ISCA 2008.

    >>> fly = Dragonfly(p=2, a=4, h=2, link={"bandwidth": "100 Gbit/s", "latency": "1 us"})
    >>> fabric = fly.build()
    >>> fly.host_count == 2 * 4 * 9, fabric.links == 9 * 4 * 3 + 9 * 8 + 2 * 72
    (True, True)
    """

    kind: Literal["dragonfly"] = "dragonfly"
    routing: Literal["shortest", "ecmp", "valiant"] = "shortest"
    hosts: int | None = Field(default=None, ge=1, le=MOST_HOSTS)
    p: int | None = Field(default=None, ge=1, le=1024)
    a: int | None = Field(default=None, ge=1, le=1024)
    h: int | None = Field(default=None, ge=1, le=1024)
    local: LinkSpec | None = None
    wide: LinkSpec | None = None

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        given = [name for name in ("p", "a", "h") if getattr(self, name) is not None]
        if given and len(given) < 3:
            raise Impossible(
                f"only {' and '.join(given)}", "all of p, a and h, or none of them", at=(given[0],)
            )
        if self.host_count > self._room(*self.shape):
            p, a, h = self.shape
            raise Impossible(
                f"hosts: {self.host_count}",
                f"at most {self._room(p, a, h)} with p = {p}, a = {a}, h = {h}",
                at=("hosts",),
            )
        if not self._room(*self.shape):
            raise Impossible(f"p: {self.p}", f"at least {self._nics()}, the NICs of a host", at=("p",))
        return self

    def _nics(self) -> int:
        return max([self.host.nics, *(entry.host.nics for entry in self.unlike)])

    def _room(self, p: int, a: int, h: int) -> int:
        return p // self._nics() * a * (a * h + 1)

    @property
    def shape(self) -> tuple[int, int, int]:
        """The (p, a, h) in force."""
        if self.p is not None and self.a is not None and self.h is not None:
            return self.p, self.a, self.h
        if self.hosts is None:
            raise Impossible("neither `hosts` nor p, a and h", "one of the two")
        h = 1
        while self._room(h, 2 * h, h) < self.hosts:
            h += 1
        return h, 2 * h, h

    @property
    def host_count(self) -> int:
        """Number of hosts."""
        return self._room(*self.shape) if self.hosts is None else self.hosts

    def lay(self, site: Site) -> Between:
        """Routers, local meshes, the global cables."""
        p, a, h = self.shape
        groups, wiring = a * h + 1, site.wiring
        links = groups * a * (a - 1) + groups * (groups - 1)
        within_bounds(len(wiring.names) + groups * a, wiring.links + links)
        names = [f"group{g}/router{r}" for g in range(groups) for r in range(a)]
        routers = wiring.place(names, "switch").reshape(groups, a)
        seat = np.minimum(np.arange(len(site.interior.hubs)) // (p // self._nics()), routers.size - 1)
        ports = attach(site, routers.ravel()[seat], self.link)
        i, j = np.triu_indices(a, 1)
        near = np.full((groups, a, a), -1, dtype=np.int64)
        near[:, i, j] = wiring.cable(routers[:, i], routers[:, j], self.local or self.link)
        near[:, j, i] = near[:, i, j] + 1
        far = _lay_global(site, routers, h, self.wide or self.link)
        fly = OverGroups(ports, seat, near, far, h)
        return OverThirdGroup(fly) if self.routing == "valiant" else fly


def _lay_global(site: Site, routers: IntArray, h: int, wire: LinkSpec) -> IntArray:
    """One cable for every two groups; links from group to group, shape (groups, groups)."""
    groups = len(routers)
    i, j = np.triu_indices(groups, 1)
    out, back = j - i - 1, i - j - 1 + groups
    links = np.full((groups, groups), -1, dtype=np.int64)
    links[i, j] = site.wiring.cable(routers[i, out // h], routers[j, back // h], wire)
    links[j, i] = links[i, j] + 1
    return links


@dataclass(frozen=True)
class OverGroups:
    """Local, global, local.

    Attributes:
        router: of each host, numbered through all groups.
        near: link between routers of a group, shape (groups, routers, routers).
        far: link between groups, shape (groups, groups).
        h: global cables of a router.
    """

    ports: Attachment
    router: IntArray
    near: IntArray
    far: IntArray
    h: int

    def links(self, trips: Trips) -> IntArray:
        """Two to five links a row."""
        inside = self.leap(self.router[trips.src], self.router[trips.dst])
        return np.hstack([self.ports.out(trips)[:, None], inside, self.ports.into(trips)[:, None]])

    def leap(self, here: IntArray, there: IntArray) -> IntArray:
        """Links between routers, shape (n, 3)."""
        size, groups = self.near.shape[1], len(self.far)
        group, other = here // size, there // size
        apart = group != other
        gate = np.where(apart, (other - group - 1) % groups // self.h, there % size)
        gate_there = np.where(apart, (group - other - 1) % groups // self.h, there % size)
        first = self.near[group, here % size, gate]
        return np.stack(
            [first, self.far[group, other], np.where(apart, self.near[other, gate_there, there % size], -1)],
            axis=1,
        )


@dataclass(frozen=True)
class OverThirdGroup:
    """To the receiving router over a router of a group drawn by the hash."""

    fly: OverGroups

    def links(self, trips: Trips) -> IntArray:
        """Two to eight links a row; inside one group as `shortest`."""
        fly = self.fly
        here, there = fly.router[trips.src], fly.router[trips.dst]
        size = fly.near.shape[1]
        stop = trips.word % (len(fly.far) * size)
        stop = np.where(here // size == there // size, here, stop)
        first = fly.leap(here, stop)
        out, into = fly.ports.out(trips)[:, None], fly.ports.into(trips)[:, None]
        return np.hstack([out, first, fly.leap(stop, there), into])
