"""From node to node: out of the sender's box, between hosts, into the receiver's box; all rows at once.

Regular topologies find the part between hosts by index arithmetic on a *word* per row. Among m equal-cost
ways at a hop the next digit of the word in base m decides. The word is

* `shortest`: the receiver's port number (d-mod-k, the static routing of fat trees: traffic to different hosts
  spreads over the spines, traffic to one host always takes one way down);
* `ecmp`: a hash of (src, dst, seed), as a switch hashes a flow's addresses;
* `valiant` (where a topology offers it): the same hash, which also picks an intermediate stop.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from simulator.fabric import IntArray, Router
from topologies.hashing import hashed
from topologies.interior import Interior

Routing = Literal["shortest", "ecmp", "dimension_order", "valiant"]


@dataclass(frozen=True)
class Trips:
    """Rows that travel between different hosts, columns of shape (n,).

    Attributes:
        src, dst: host numbers.
        src_nic, dst_nic: which NIC they leave and enter by.
        word: its digits choose among equal-cost ways.
    """

    src: IntArray
    dst: IntArray
    src_nic: IntArray
    dst_nic: IntArray
    word: IntArray

    def rows(self, which: NDArray[np.bool_]) -> Trips:
        """Some of the rows."""
        columns = (self.src, self.dst, self.src_nic, self.dst_nic, self.word)
        return Trips(*(column[which] for column in columns))

    def over(self, src: IntArray, dst: IntArray) -> Trips:
        """The same rows between other hosts."""
        return replace(self, src=src, dst=dst)


class Between(Protocol):
    """The network between hosts, as a topology knows it."""

    def links(self, trips: Trips) -> IntArray:
        """Link ids from hub to hub, shape (n, hops), -1 where a row needs no link there."""
        ...


def where_moving(between: Between, trips: Trips) -> IntArray:
    """`between.links` for the rows whose src and dst differ, -1 in the others."""
    moves = trips.src != trips.dst
    if moves.all():
        return between.links(trips)
    links = between.links(trips.rows(moves))
    rows = np.full((len(moves), links.shape[1]), -1, dtype=np.int64)
    rows[moves] = links
    return rows


@dataclass(frozen=True)
class Attachment:
    """Hosts cabled to switches: NIC j of host h by link `up[h] + 2 j`, back by the next link.

    Attributes:
        up: first link host -> switch, per host.
    """

    up: IntArray

    def out(self, trips: Trips) -> IntArray:
        """Links out of the sending hosts, shape (n,)."""
        return self.up[trips.src] + 2 * trips.src_nic

    def into(self, trips: Trips) -> IntArray:
        """Links into the receiving hosts, shape (n,)."""
        return self.up[trips.dst] + 2 * trips.dst_nic + 1


@dataclass(frozen=True)
class HostRouter:
    """Routes between hubs and devices; `Between` does the network part.

    Attributes:
        interior: where hubs and devices lie; node ids beyond are switches.
        between: the network.
        beyond: any router of the whole fabric, for calls that name a switch as an end.
        ecmp: seed of the hash, or None for `shortest`.
    """

    interior: Interior
    between: Between
    beyond: Router
    ecmp: int | None = None

    def paths(self, src: IntArray, dst: IntArray) -> IntArray:
        """Link ids in path order, shape (n, hops); rows padded with -1 at the end; src = dst gives all -1."""
        src, dst = np.asarray(src, dtype=np.int64), np.asarray(dst, dtype=np.int64)
        inside = self.interior
        if len(src) and max(src.max(), dst.max()) >= len(inside.host):
            return self.beyond.paths(src, dst)
        moves = src != dst
        away = inside.host[src] != inside.host[dst]
        columns = [np.where(moves, inside.up[src], -1)[:, None]]
        if away.any():
            columns.append(self._network(src, dst, away))
        down = inside.up[dst]
        columns.append(np.where(moves & (down >= 0), down ^ 1, -1)[:, None])
        paths = np.hstack(columns)
        self._take_mesh(paths, src, dst, moves & ~away)
        return packed(paths)

    def _network(self, src: IntArray, dst: IntArray, away: NDArray[np.bool_]) -> IntArray:
        if away.all():
            return self.between.links(self._trips(src, dst))
        links = self.between.links(self._trips(src[away], dst[away]))
        rows = np.full((len(src), links.shape[1]), -1, dtype=np.int64)
        rows[away] = links
        return rows

    def _trips(self, src: IntArray, dst: IntArray) -> Trips:
        inside = self.interior
        here, there = inside.host[src], inside.host[dst]
        # A hub belongs to no NIC: it spreads its traffic by the other end's number.
        out, into = inside.nic[src], inside.nic[dst]
        out = np.where(out < 0, there % inside.nics[here], out)
        into = np.where(into < 0, here % inside.nics[there], into)
        if self.ecmp is None:
            first_port = np.cumsum(inside.nics) - inside.nics
            word = first_port[there] + into
        else:
            word = hashed(src, dst, self.ecmp)
        return Trips(here, there, out, into, word)

    def _take_mesh(self, paths: IntArray, src: IntArray, dst: IntArray, near: NDArray[np.bool_]) -> None:
        """Puts the pair's own NVLink in place of the way over the hub."""
        inside = self.interior
        direct = (
            near & (inside.mesh[inside.host[src]] >= 0) & (inside.index[src] >= 0) & (inside.index[dst] >= 0)
        )
        if not direct.any():
            return
        host, i, j = inside.host[src[direct]], inside.index[src[direct]], inside.index[dst[direct]]
        low, high = np.minimum(i, j), np.maximum(i, j)
        pair = low * inside.count[host] - low * (low + 1) // 2 + high - low - 1
        paths[direct] = -1
        paths[direct, 0] = inside.mesh[host] + 2 * pair + (i > j)


def packed(paths: IntArray) -> IntArray:
    """The same rows with their -1 moved to the end and columns of -1 alone dropped."""
    used = paths >= 0
    kept = used.any(axis=0)
    if not kept.all():
        paths, used = paths[:, kept], used[:, kept]
    if (used[:, 1:] <= used[:, :-1]).all():
        return paths
    rows = np.full_like(paths, -1)
    column = np.cumsum(used, axis=1) - 1
    row = np.broadcast_to(np.arange(len(paths))[:, None], paths.shape)
    rows[row[used], column[used]] = paths[used]
    return rows[:, : int(used.sum(axis=1).max(initial=0))]
