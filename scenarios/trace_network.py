"""The network in a trace: collectives and servers' messages as slices, messages as arrows, link counters."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scenarios.trace_events import (
    LANE,
    NETWORK,
    SERVERS,
    IntArray,
    arrow,
    greedy_lanes,
    labels,
    named,
    ns,
    texts,
    us,
    whole,
)
from simulator.result import Columns, Result

#: A trace holds at most this many transfers and counts of links.
MAX_TRANSFERS = 20_000
MAX_COUNTS = 50_000
#: Links that get a counter, the busiest first.
MAX_LINKS = 32


@dataclass(frozen=True)
class Messages:
    """The transfers that a trace shows, in order of their begin.

    Attributes:
        table: all transfers of the run.
        rows: those shown, row numbers of the table.
        begin, end: nanoseconds, of all transfers.
        src, dst: as in the table, of all transfers.
        hosts: process id of each worker's host.
    """

    table: Columns
    rows: IntArray
    begin: IntArray
    end: IntArray
    src: IntArray
    dst: IntArray
    hosts: IntArray

    @classmethod
    def of(cls, table: Columns, hosts: IntArray, shown: IntArray, until: int) -> Messages:
        """Those that begin first, between shown workers and servers, or of many."""
        begin, end = ns(table["begin_s"]), ns(table["end_s"])
        src, dst = (np.asarray(table[name], dtype=np.int64) for name in ("src", "dst"))
        known = np.append(shown, np.unique(np.maximum(src, dst)[np.maximum(src, dst) >= len(hosts)]))
        rows = np.flatnonzero((end <= until) & ((src < 0) | (np.isin(src, known) & np.isin(dst, known))))
        rows = rows[np.argsort(begin[rows], kind="stable")][:MAX_TRANSFERS]
        return cls(table, rows, begin, end, src, dst, hosts)

    def events(self) -> Iterator[str]:
        """Slices and arrows."""
        src, dst = self.src[self.rows], self.dst[self.rows]
        workers = len(self.hosts)
        yield from self._collectives(self.rows[src < 0])
        server = np.where(dst >= workers, dst, np.where(src >= workers, src, -1))
        lanes = yield from self._servers(self.rows[server >= 0], server[server >= 0] - workers)
        direct = self.rows[(src >= 0) & (dst >= 0) & (src != dst)]
        for row, name in zip(direct.tolist(), labels(self.table["name"], direct), strict=True):
            ends = [self._track(int(one), lanes.get(row, 0)) for one in (self.src[row], self.dst[row])]
            yield arrow(row, name, ends[0], ends[1], int(self.begin[row]), int(self.end[row]))

    def _track(self, rank: int, lane: int) -> tuple[int, int]:
        """Process and thread of a worker, or of a server in the lane of this message."""
        if rank < len(self.hosts):
            return int(self.hosts[rank]), rank + 1
        return SERVERS, lane

    def _collectives(self, rows: IntArray) -> Iterator[str]:
        lanes = greedy_lanes([0] * len(rows), self.begin[rows].tolist(), self.end[rows].tolist())
        for lane in sorted(set(lanes.tolist())):
            yield named("thread_name", NETWORK, lane + 1, f"collectives {lane + 1}")
        yield from self._slices(rows, NETWORK, lanes + 1)

    def _servers(self, rows: IntArray, server: IntArray) -> Generator[str, None, dict[int, int]]:
        """Slices of the servers' messages; returns the thread of each, by row."""
        if not len(rows):
            return {}
        yield named("process_name", SERVERS, 0, "servers: messages")
        order = np.lexsort((self.begin[rows], server))
        rows, server = rows[order], server[order]
        lanes = greedy_lanes(server.tolist(), self.begin[rows].tolist(), self.end[rows].tolist())
        tids = server + 1 + lanes * LANE
        for tid, number in sorted(set(zip(tids.tolist(), server.tolist(), strict=True))):
            yield named("thread_name", SERVERS, tid, f"server {number} messages {tid // LANE + 1}")
        yield from self._slices(rows, SERVERS, tids)
        return dict(zip(rows.tolist(), tids.tolist(), strict=True))

    def _slices(self, rows: IntArray, pid: int, tids: IntArray) -> Iterator[str]:
        sizes = np.asarray(self.table["bytes"])[rows].tolist()
        names = labels(self.table["name"], rows)
        for row, tid, name, size in zip(rows.tolist(), tids.tolist(), names, sizes, strict=True):
            begin, end = int(self.begin[row]), int(self.end[row])
            yield whole(pid, tid, begin, end, name, '"network"', f'"bytes":{size:.0f}')


def counters(result: Result, until: int) -> Iterator[str]:
    """Utilisation of the busiest links in percent, as steps.

    Each transfer counts at its mean rate, so the sum of several that share a link in turn can pass what the
    link carries; it is cut at 100 there.
    """
    assert result.links is not None
    total = np.asarray(result.links["bytes"], dtype=float)
    busiest = np.argsort(-total, kind="stable")[:MAX_LINKS]
    names = texts(result.links["link"])
    for link in busiest[total[busiest] > 0].tolist():
        name = json.dumps(f"{names[link]} %")
        times, shares = utilisation(result, link)
        keep = np.flatnonzero(times <= until)[: MAX_COUNTS // MAX_LINKS]
        for time, share in zip(times[keep].tolist(), shares[keep].tolist(), strict=True):
            value = f'"args":{{"value":{min(100.0, 100 * share):.4g}}}'
            yield f'{{"ph":"C","pid":{NETWORK},"tid":0,"ts":{us(time)},"name":{name},{value}}}'


def utilisation(result: Result, link: int) -> tuple[IntArray, NDArray[np.float64]]:
    """When a link's utilisation changes (ns), and to what share of its bandwidth."""
    assert result.transfers is not None
    assert result.links is not None
    assert result.loads is not None
    rows = np.asarray(result.loads["link"]) == link
    transfer = np.asarray(result.loads["transfer"])[rows]
    begin, end = ns(result.transfers["begin_s"])[transfer], ns(result.transfers["end_s"])[transfer]
    moving = end > begin
    bandwidth = float(np.asarray(result.links["bandwidth_bytes_per_s"])[link])
    rate = (
        np.asarray(result.loads["bytes"], dtype=float)[rows][moving] / (end - begin)[moving] * 1e9 / bandwidth
    )
    times = np.concatenate([begin[moving], end[moving]])
    changes = np.concatenate([rate, -rate])
    instants, where = np.unique(times, return_inverse=True)
    level = np.cumsum(np.bincount(where, weights=changes, minlength=len(instants)))
    return instants, np.where(np.abs(level) < 1e-9, 0.0, level)
