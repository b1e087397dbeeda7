"""The timeline of a run as Chrome trace JSON: open `trace.json.gz` in ui.perfetto.dev.

Hosts are processes and workers their threads; a span is a slice; overlapped spans lie on threads of their own
below the worker. Messages between two are flow arrows, collectives slices of the process `network`, and each
busy link a counter of its utilisation there. Times in the file are microseconds, to whole nanoseconds.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scenarios.trace_events import (
    HOSTS,
    LANE,
    NETWORK,
    IntArray,
    labels,
    lanes_beside,
    named,
    ns,
    texts,
    whole,
)
from scenarios.trace_network import Messages, counters
from simulator.result import Coded, Column, Columns, Result

#: A trace holds at most about this many spans; larger runs are sampled, and the trace says so.
MAX_SPANS = 200_000
#: Workers that are kept at least when a run is sampled.
MIN_WORKERS = 16


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
    end = ns(spans["end_s"])
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
        yield from Messages.of(result.transfers, hosts, sample.workers, sample.until_ns).events()
        if result.loads is not None and result.links is not None:
            yield from counters(result, sample.until_ns)


def _host_numbers(column: Column) -> IntArray:
    coded = column if isinstance(column, Coded) else Coded.of(str(name) for name in column)
    return HOSTS + np.asarray(coded.codes, dtype=np.int64)


def _names(workers: Columns, hosts: IntArray, sample: Sample) -> Iterator[str]:
    yield named("process_name", NETWORK, 0, f"network ({sample.note})" if sample.note else "network")
    host_names, devices = texts(workers["host"]), texts(workers["device"])
    seen: set[int] = set()
    for rank in sample.workers.tolist():
        pid = int(hosts[rank])
        if pid not in seen:
            seen.add(pid)
            yield named("process_name", pid, 0, host_names[rank])
        yield named("thread_name", pid, rank + 1, f"worker {rank} (device {devices[rank]})")


def _slices(spans: Columns, hosts: IntArray, sample: Sample) -> Iterator[str]:
    worker = np.asarray(spans["worker"], dtype=np.int64)
    begin, end = ns(spans["start_s"]), ns(spans["end_s"])
    keep = np.flatnonzero(np.isin(worker, sample.workers) & (end <= sample.until_ns))
    keep = keep[np.lexsort((-end[keep], begin[keep], worker[keep]))]
    worker, begin, end = worker[keep], begin[keep], end[keep]
    lanes = lanes_beside(worker, begin, end, np.asarray(spans["hidden"], dtype=bool)[keep])
    for rank, lane in sorted(set(zip(worker[lanes > 0].tolist(), lanes[lanes > 0].tolist(), strict=True))):
        yield named(
            "thread_name", int(hosts[rank]), rank + 1 + lane * LANE, f"worker {rank} overlapped {lane}"
        )
    steps, sizes = (np.asarray(spans[name])[keep].tolist() for name in ("step", "size_bytes"))
    rows = zip(
        hosts[worker].tolist(), (worker + 1 + lanes * LANE).tolist(), begin.tolist(), end.tolist(),
        labels(spans["name"], keep), labels(spans["kind"], keep), steps, sizes, strict=True,
    )  # fmt: skip
    for pid, tid, start, stop, name, kind, step, size in rows:
        yield whole(pid, tid, start, stop, name, kind, f'"step":{step},"bytes":{size:.0f}')
