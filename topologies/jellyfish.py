"""Switches joined at random, each to equally many others."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from simulator.fabric import IntArray
from simulator.streams import Draws
from topologies.attach import attach
from topologies.leaf_spine import MOST_SWITCHES
from topologies.links import Impossible, LinkSpec, within_bounds
from topologies.regular import MOST_HOSTS, Regular, Site
from topologies.routing import Attachment, Between, Trips
from topologies.search import SearchRouter, hop_counts

_ATTEMPTS = 100


class Jellyfish(Regular):
    r"""m switches, each with p hosts and r cables to other switches: a random r-regular graph.

        h0 h1    h2 h3
         \ /      \ /
         [s0]----[s1]
          |  \  / |
          |   \/  |       m = 4, r = 3, p = 2
          |   /\  |
         [s2]----[s3]

    Directed links: m r between switches and 2 a NIC. The drawing depends on `seed` alone. Routes are
    shortest ones of the graph.

    Attributes:
        hosts: n.
        hosts_per_switch: p; by default 4, or what `switches` makes it.
        switches: m; by default ceil(n / p), at least r + 1, and even where r is odd.
        degree: r, below m; m r is even. By default 2 p NICs, or m - 1 where there are fewer.
        uplink: cable between switches; by default `link`.
        seed: of the drawing.

    Reference: A. Singla, C.-Y. Hong, L. Popa, P. B. Godfrey, Jellyfish: networking data centers randomly,
    NSDI 2012.

    >>> link = {"bandwidth": "100 Gbit/s", "latency": "1 us"}
    >>> Jellyfish(hosts=40, switches=20, degree=4, link=link).build().links == 20 * 4 + 2 * 40
    True
    """

    kind: Literal["jellyfish"] = "jellyfish"
    routing: Literal["shortest", "ecmp"] = "shortest"
    hosts: int = Field(ge=1, le=MOST_HOSTS)
    hosts_per_switch: int | None = Field(default=None, ge=1, le=MOST_HOSTS)
    switches: int | None = Field(default=None, ge=1, le=MOST_SWITCHES)
    degree: int | None = Field(default=None, ge=1, le=1024)
    uplink: LinkSpec | None = None
    seed: int = Field(default=0, ge=0, lt=2**63)

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        m, r = self.switch_count, self.ports
        if m * self.per_switch < self.hosts:
            raise Impossible(
                f"{m} switches of {self.per_switch} hosts", f"room for hosts: {self.hosts}", at=("switches",)
            )
        if m > 1 and (r >= m or (m * r) % 2 or (r == 1 and m > 2)):
            raise Impossible(
                f"degree: {r} for {m} switches",
                "a degree below the number of switches, an even product of both, and a connected graph",
                at=("degree",) if self.degree is not None else ("switches",),
            )
        return self

    @property
    def host_count(self) -> int:
        """Number of hosts."""
        return self.hosts

    @property
    def per_switch(self) -> int:
        """Hosts of a full switch."""
        if self.hosts_per_switch is not None:
            return self.hosts_per_switch
        return min(4, self.hosts) if self.switches is None else ceil(self.hosts / self.switches)

    @property
    def switch_count(self) -> int:
        """Number of switches."""
        if self.switches is not None:
            return self.switches
        degree = self.degree or 0
        count = max(ceil(self.hosts / self.per_switch), degree + 1)
        return count + (count * degree) % 2

    @property
    def ports(self) -> int:
        """The degree in force."""
        m = self.switch_count
        if self.degree is not None:
            return self.degree
        degree = max(0, min(2 * self.per_switch * self.host.nics, m - 1))
        return degree - (m * degree) % 2

    def lay(self, site: Site) -> Between:
        """Switches, hosts, and the random graph."""
        m, wiring = self.switch_count, site.wiring
        within_bounds(len(wiring.names) + m, wiring.links + m * self.ports)
        switches = wiring.place([f"s{i}" for i in range(m)], "switch")
        seat = np.minimum(np.arange(len(site.interior.hubs)) // self.per_switch, m - 1)
        ports = attach(site, switches[seat], self.link)
        a, b = random_regular(m, self.ports, self.seed) if m > 1 else (switches[:0], switches[:0])
        cables = wiring.cable(switches[a], switches[b], self.uplink or self.link)
        ends = np.stack([a, b], axis=1)
        search = SearchRouter(m, ends.ravel(), ends[:, ::-1].ravel(), 0 if self.routing == "ecmp" else None)
        return OverGraph(ports, seat, search, int(cables[0]) if len(cables) else 0)


@dataclass(frozen=True)
class OverGraph:
    """Up, through the graph of switches, down.

    Attributes:
        seat: switch number of each host.
        search: routes between switch numbers; its link i is link `first + i` of the fabric.
        first: see there.
    """

    ports: Attachment
    seat: IntArray
    search: SearchRouter
    first: int

    def links(self, trips: Trips) -> IntArray:
        """Two links and the hops between the switches."""
        word = trips.word if self.search.ecmp is not None else np.zeros_like(trips.word)
        inside = self.search.walk(self.seat[trips.src], self.seat[trips.dst], word)
        inside = np.where(inside >= 0, inside + self.first, -1)
        return np.hstack([self.ports.out(trips)[:, None], inside, self.ports.into(trips)[:, None]])


def random_regular(n: int, degree: int, seed: int) -> tuple[IntArray, IntArray]:
    """Edges of a random connected graph without loops or repeats, every node of that degree.

    Stubs are paired at random; an edge that is a loop or a repeat changes ends with a random other one until
    none is left (near, not exactly, uniform).

    Returns:
        Ends of the n degree / 2 edges, sorted, a < b.
    """
    draws = Draws(seed)
    for attempt in range(_ATTEMPTS):
        # A dense graph is drawn as what it lacks of the complete one: there the swaps always find room.
        drawn = min(degree, n - 1 - degree)
        stubs = np.repeat(np.arange(n, dtype=np.int64), drawn)
        pairs = stubs[draws.permutation("jellyfish", attempt, len(stubs))].reshape(-1, 2)
        mended = _mend(pairs, draws, attempt)
        pairs = pairs if drawn == degree else _complement(n, pairs)
        if mended and _connected(n, pairs):
            order = np.lexsort((pairs[:, 1], pairs[:, 0]))
            return pairs[order, 0], pairs[order, 1]
    raise Impossible(
        f"no connected graph of {n} switches of degree {degree}",
        "a larger one or another seed",
        at=("degree",),
    )


def _complement(n: int, pairs: IntArray) -> IntArray:
    absent = np.ones((n, n), dtype=np.bool_)
    absent[pairs[:, 0], pairs[:, 1]] = False
    return np.argwhere(np.triu(absent, 1)).astype(np.int64)


def _mend(pairs: IntArray, draws: Draws, attempt: int) -> bool:
    """Swaps ends until no edge is a loop or a repeat; False if that does not come about."""
    count: dict[tuple[int, int], int] = {}
    edges = [_key(a, b) for a, b in pairs.tolist()]
    for edge in edges:
        count[edge] = count.get(edge, 0) + 1
    bad = [i for i, (a, b) in enumerate(edges) if a == b or count[a, b] > 1]
    for swap in range(200 * len(pairs) if bad else 0):
        i = bad[-1]
        (a, b), j = edges[i], draws.choice(f"jellyfish/{attempt}", 0, swap, len(edges))
        if a != b and count[a, b] == 1:
            bad.pop()
            if not bad:
                break
            continue
        c, d = edges[j]
        new = _key(a, c), _key(b, d)
        if i == j or a == c or b == d or new[0] == new[1] or count.get(new[0], 0) or count.get(new[1], 0):
            continue
        for old in (edges[i], edges[j]):
            count[old] -= 1
        edges[i], edges[j] = new
        for edge in new:
            count[edge] = 1
    pairs[:] = np.array(edges, dtype=np.int64).reshape(-1, 2)
    return all(a != b and count[a, b] == 1 for a, b in edges)


def _key(a: int, b: int) -> tuple[int, int]:
    return (a, b) if a <= b else (b, a)


def _connected(n: int, pairs: IntArray) -> bool:
    both = np.concatenate([pairs, pairs[:, ::-1]])
    return bool((hop_counts(n, both[:, 0], both[:, 1], [0]) >= 0).all())
