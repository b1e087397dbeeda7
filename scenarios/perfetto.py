"""The timeline of a run as Chrome trace JSON: open `trace.json.gz` in ui.perfetto.dev.

Hosts are processes and workers their threads; a span is a slice; overlapped spans lie on threads of their own
below the worker. Messages between two are flow arrows, collectives slices of the process `network`, and each
busy link a counter of its utilisation there. Times in the file are microseconds, to whole nanoseconds.
"""

from __future__ import annotations

import gzip
import heapq
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.result import Coded, Column, Columns, Result

#: A trace holds at most about this many events of each sort; larger runs are sampled, and the trace says so.
MAX_SPANS = 200_000
MAX_TRANSFERS = 20_000
MAX_COUNTS = 50_000
#: Links that get a counter, the busiest first.
MAX_LINKS = 32
#: Workers that are kept at least when a run is sampled.
MIN_WORKERS = 16

NETWORK = 1  # process ids: the network, the servers, then the hosts
SERVERS = 2
HOSTS = 10
LANE = 10_000_000  # thread ids: the worker's rank + 1; its lane k of overlapped spans k * LANE further

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Sample:
    """Which part of a run the trace shows."""

    workers: IntArray
    until_ns: int
    note: str


def write_trace(result: Result, path: Path, title: str = "") -> None:
    """Write the trace of a run with recorded spans.

    Raises:
        ValueError: the run has no spans or no workers.
    """
    if result.spans is None or result.workers is None:
        raise ValueError("a trace needs the spans and the workers of a run")
    sample = choose(result.spans, np.asarray(result.workers["waiting_fraction"], dtype=float))
    facts = json.dumps({"title": title, "shows": sample.note or "everything"})
    head = f'{{"displayTimeUnit":"ms","otherData":{facts},"traceEvents":[\n'
    text = head + ",\n".join(_events(result, sample)) + "\n]}\n"
    path.write_bytes(gzip.compress(text.encode(), compresslevel=3, mtime=0))  # the same run, the same bytes


def choose(spans: Columns, waiting: NDArray[np.float64]) -> Sample:
    """All workers and all times if few enough; else workers at even distances, else a first part of the run.

    The workers that wait most and least are always among them.

    Args:
        spans: the spans of the run.
        waiting: share of its time that each worker waits, shape (workers,).
    """
    workers, total = len(waiting), len(spans["start_s"])
    end = _ns(spans["end_s"])
    last = int(end.max(initial=0))
    if total <= MAX_SPANS:
        return Sample(np.arange(workers), last, "")
    keep = max(min(MIN_WORKERS, workers), int(workers * MAX_SPANS / total) - 2)
    even = np.linspace(0, workers - 1, keep).astype(np.int64)
    chosen = np.unique(np.append(even, [waiting.argmax(), waiting.argmin()]))
    ends = np.sort(end[np.isin(np.asarray(spans["worker"]), chosen)])
    until = last if len(ends) <= MAX_SPANS else int(ends[MAX_SPANS])
    note = f"{len(chosen)} of {workers} workers" if len(chosen) < workers else "all workers"
    return Sample(chosen, until, f"sampled: {note}, the first {until / 1e9:g} s of {last / 1e9:g} s")


def _events(result: Result, sample: Sample) -> Iterator[str]:
    assert result.spans is not None
    assert result.workers is not None
    hosts = _host_numbers(result.workers["host"])
    if sample.note:
        note = json.dumps(f"This trace is {sample.note}")
        yield f'{{"ph":"i","s":"g","pid":{NETWORK},"tid":0,"ts":0,"name":{note}}}'
    yield from _names(result.workers, hosts, sample)
    yield from _slices(result.spans, hosts, sample)
    if result.transfers is not None:
        yield from _transfers(result.transfers, hosts, sample)
        if result.loads is not None and result.links is not None:
            yield from _counters(result, sample)


def _host_numbers(column: Column) -> IntArray:
    coded = column if isinstance(column, Coded) else Coded.of(str(name) for name in column)
    return HOSTS + np.asarray(coded.codes, dtype=np.int64)


def _named(kind: str, pid: int, tid: int, name: str) -> str:
    return f'{{"ph":"M","pid":{pid},"tid":{tid},"name":"{kind}","args":{{"name":{json.dumps(name)}}}}}'


def _names(workers: Columns, hosts: IntArray, sample: Sample) -> Iterator[str]:
    yield _named("process_name", NETWORK, 0, f"network ({sample.note})" if sample.note else "network")
    texts = _texts(workers["host"])
    seen: set[int] = set()
    for rank in sample.workers.tolist():
        pid = int(hosts[rank])
        if pid not in seen:
            seen.add(pid)
            yield _named("process_name", pid, 0, texts[rank])
        yield _named(
            "thread_name", pid, rank + 1, f"worker {rank} (device {_texts(workers['device'])[rank]})"
        )


def _texts(column: Column) -> list[str]:
    return [str(value) for value in (column.texts() if isinstance(column, Coded) else column).tolist()]


def _ns(seconds: Any) -> IntArray:
    return np.rint(np.asarray(seconds, dtype=float) * 1e9).astype(np.int64)


def _us(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"


def _slices(spans: Columns, hosts: IntArray, sample: Sample) -> Iterator[str]:
    worker = np.asarray(spans["worker"], dtype=np.int64)
    begin, end = _ns(spans["start_s"]), _ns(spans["end_s"])
    keep = np.flatnonzero(np.isin(worker, sample.workers) & (end <= sample.until_ns))
    keep = keep[np.lexsort((-end[keep], begin[keep], worker[keep]))]
    worker, begin, end = worker[keep], begin[keep], end[keep]
    lanes = _lanes(worker, begin, end, np.asarray(spans["hidden"])[keep])
    yield from _lane_names(worker, hosts, lanes)
    labels, kinds = _labels(spans["name"], keep), _labels(spans["kind"], keep)
    rows = zip(
        hosts[worker].tolist(), (worker + 1 + lanes * LANE).tolist(), begin.tolist(), end.tolist(), labels,
        kinds, np.asarray(spans["step"])[keep].tolist(), np.asarray(spans["size_bytes"])[keep].tolist(),
        strict=True,
    )  # fmt: skip
    for pid, tid, start, stop, name, kind, step, size in rows:
        yield (
            f'{{"ph":"X","pid":{pid},"tid":{tid},"ts":{_us(start)},"dur":{_us(stop - start)},"name":{name},'
            f'"cat":{kind},"args":{{"kind":{kind},"step":{step},"bytes":{size:.0f}}}}}'
        )


def _labels(column: Column, keep: IntArray) -> list[str]:
    coded = column if isinstance(column, Coded) else Coded.of(str(name) for name in column)
    names = [json.dumps(name) for name in coded.names]
    return [names[code] for code in coded.codes[keep].tolist()]


def _lanes(group: IntArray, begin: IntArray, end: IntArray, hidden: NDArray[np.bool_]) -> IntArray:
    """A lane for each slice so that slices of one lane never overlap; rows sorted by group, then begin.

    Lane 0 is the worker's own thread; hidden slices and those that would overlap go to lanes 1, 2 ...
    """
    lanes = np.zeros(len(group), dtype=np.int64)
    shown = np.flatnonzero(~hidden)
    one, ends = group[shown], np.unique(end[shown])
    offset = one * (len(ends) + 1)  # ends by rank, so that a group's largest never reaches the next group's
    latest = np.maximum.accumulate(np.searchsorted(ends, end[shown]) + offset)
    begun = np.searchsorted(ends, begin[shown], side="right") + offset
    clash = (one[1:] == one[:-1]) & (latest[:-1] >= begun[1:])
    aside = np.concatenate([np.flatnonzero(hidden), shown[1:][clash]])
    lanes[np.sort(aside)] = 1 + greedy_lanes(
        *(column[np.sort(aside)].tolist() for column in (group, begin, end))
    )
    return lanes


def greedy_lanes(group: list[int], begin: list[int], end: list[int]) -> IntArray:
    """The lowest lane that is free at each begin, within each group; rows sorted by group, then begin.

    >>> greedy_lanes([0, 0, 0, 1], [0, 5, 10, 0], [10, 12, 20, 3]).tolist()
    [0, 1, 0, 0]
    """
    lanes = np.zeros(len(group), dtype=np.int64)
    busy: list[tuple[int, int]] = []
    free: list[int] = []
    current, opened = None, 0
    for row, (one, start, stop) in enumerate(zip(group, begin, end, strict=True)):
        if one != current:
            current, opened, busy, free = one, 0, [], []
        while busy and busy[0][0] <= start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if not free:
            heapq.heappush(free, opened)
            opened += 1
        lanes[row] = heapq.heappop(free)
        heapq.heappush(busy, (stop, int(lanes[row])))
    return lanes


def _lane_names(worker: IntArray, hosts: IntArray, lanes: IntArray) -> Iterator[str]:
    for rank, lane in sorted(set(zip(worker[lanes > 0].tolist(), lanes[lanes > 0].tolist(), strict=True))):
        yield _named(
            "thread_name", int(hosts[rank]), rank + 1 + lane * LANE, f"worker {rank} overlapped {lane}"
        )


def _transfers(transfers: Columns, hosts: IntArray, sample: Sample) -> Iterator[str]:
    begin, end = _ns(transfers["begin_s"]), _ns(transfers["end_s"])
    src, dst = np.asarray(transfers["src"]), np.asarray(transfers["dst"])
    workers = len(hosts)
    shown = np.isin(src, sample.workers) | np.isin(dst, sample.workers) | (src < 0)
    keep = np.flatnonzero(shown & (end <= sample.until_ns))
    keep = keep[np.argsort(begin[keep], kind="stable")][:MAX_TRANSFERS]
    server = np.where(dst[keep] >= workers, dst[keep], np.where(src[keep] >= workers, src[keep], -1))
    yield from _network_slices(transfers, keep[(src[keep] < 0)], begin, end)
    yield from _server_slices(transfers, keep[server >= 0], server[server >= 0], begin, end, workers)
    direct = keep[(src[keep] >= 0) & (dst[keep] >= 0) & (server < 0) & (src[keep] != dst[keep])]
    both = direct[np.isin(src[direct], sample.workers) & np.isin(dst[direct], sample.workers)]
    names = _labels(transfers["name"], both)
    for row, name in zip(both.tolist(), names, strict=True):
        a, b = int(src[row]), int(dst[row])
        yield _arrow(
            row, name, (int(hosts[a]), a + 1), (int(hosts[b]), b + 1), int(begin[row]), int(end[row])
        )


def _arrow(
    number: int, name: str, source: tuple[int, int], target: tuple[int, int], begin: int, end: int
) -> str:
    head = f'"cat":"message","id":{number},"name":{name}'
    finish = max(begin, end - 1)  # a nanosecond before the end: within the slice that ends with the message
    return (
        f'{{"ph":"s",{head},"pid":{source[0]},"tid":{source[1]},"ts":{_us(begin)}}},\n'
        f'{{"ph":"f","bp":"e",{head},"pid":{target[0]},"tid":{target[1]},"ts":{_us(finish)}}}'
    )


def _network_slices(transfers: Columns, keep: IntArray, begin: IntArray, end: IntArray) -> Iterator[str]:
    lanes = greedy_lanes([0] * len(keep), begin[keep].tolist(), end[keep].tolist())
    for lane in sorted(set(lanes.tolist())):
        yield _named("thread_name", NETWORK, lane + 1, f"collectives {lane + 1}")
    yield from _plain_slices(transfers, keep, begin, end, NETWORK, lanes + 1)


def _plain_slices(
    transfers: Columns, keep: IntArray, begin: IntArray, end: IntArray, pid: int, tids: IntArray
) -> Iterator[str]:
    sizes = np.asarray(transfers["bytes"])[keep].tolist()
    rows = zip(keep.tolist(), tids.tolist(), _labels(transfers["name"], keep), sizes, strict=True)
    for row, tid, name, size in rows:
        start, length = _us(int(begin[row])), _us(int(end[row] - begin[row]))
        yield (
            f'{{"ph":"X","pid":{pid},"tid":{tid},"ts":{start},"dur":{length},"name":{name},'
            f'"cat":"network","args":{{"bytes":{size:.0f}}}}}'
        )


def _server_slices(
    transfers: Columns, keep: IntArray, server: IntArray, begin: IntArray, end: IntArray, workers: int
) -> Iterator[str]:
    if not len(keep):
        return
    yield _named("process_name", SERVERS, 0, "servers: messages")
    order = np.lexsort((begin[keep], server))
    keep, server = keep[order], server[order]
    lanes = greedy_lanes(server.tolist(), begin[keep].tolist(), end[keep].tolist())
    tids = server - workers + 1 + lanes * LANE
    for tid, number in sorted(set(zip(tids.tolist(), (server - workers).tolist(), strict=True))):
        yield _named("thread_name", SERVERS, tid, f"server {number} messages {tid // LANE + 1}")
    yield from _plain_slices(transfers, keep, begin, end, SERVERS, tids)


def _counters(result: Result, sample: Sample) -> Iterator[str]:
    """Utilisation of the busiest links in percent, as steps: each transfer at its even rate."""
    assert result.links is not None
    assert result.loads is not None
    total = np.asarray(result.links["bytes"], dtype=float)
    busiest = np.argsort(-total, kind="stable")[:MAX_LINKS]
    names = _texts(result.links["link"])
    for link in busiest[total[busiest] > 0].tolist():
        name = json.dumps(f"{names[link]} %")
        times, shares = utilisation(result, link)
        keep = np.flatnonzero(times <= sample.until_ns)[: MAX_COUNTS // MAX_LINKS]
        for time, share in zip(times[keep].tolist(), shares[keep].tolist(), strict=True):
            value = f'"args":{{"value":{100 * share:.4g}}}'
            yield f'{{"ph":"C","pid":{NETWORK},"tid":0,"ts":{_us(time)},"name":{name},{value}}}'


def utilisation(result: Result, link: int) -> tuple[IntArray, NDArray[np.float64]]:
    """When a link's utilisation changes (ns), and to what share of its bandwidth."""
    assert result.transfers is not None
    assert result.links is not None
    assert result.loads is not None
    rows = np.asarray(result.loads["link"]) == link
    transfer = np.asarray(result.loads["transfer"])[rows]
    begin, end = _ns(result.transfers["begin_s"])[transfer], _ns(result.transfers["end_s"])[transfer]
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
