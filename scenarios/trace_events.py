"""Events of Chrome trace JSON as text, and lanes: tracks whose slices never overlap."""

from __future__ import annotations

import heapq
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.result import Coded, Column

IntArray = NDArray[np.int64]

NETWORK = 1  # process ids: the network, the servers, then the hosts
SERVERS = 2
HOSTS = 10
LANE = 10_000_000  # thread ids: rank + 1 of a worker or server; its lane k lies k * LANE further


def ns(seconds: Any) -> IntArray:
    """Times in whole nanoseconds, shape as given."""
    return np.rint(np.asarray(seconds, dtype=float) * 1e9).astype(np.int64)


def us(time_ns: int) -> str:
    """A time as the format wants it: microseconds.

    >>> us(1_234_567)
    '1234.567'
    """
    return f"{time_ns // 1000}.{time_ns % 1000:03d}"


def named(kind: str, pid: int, tid: int, name: str) -> str:
    """Gives a process (`process_name`) or thread (`thread_name`) its name."""
    return f'{{"ph":"M","pid":{pid},"tid":{tid},"name":"{kind}","args":{{"name":{json.dumps(name)}}}}}'


def whole(pid: int, tid: int, begin: int, end: int, name: str, category: str, details: str) -> str:
    """A slice; `name` and `category` are JSON already, `details` the inside of a JSON object."""
    return (
        f'{{"ph":"X","pid":{pid},"tid":{tid},"ts":{us(begin)},"dur":{us(end - begin)},"name":{name},'
        f'"cat":{category},"args":{{{details}}}}}'
    )


def arrow(
    number: int, name: str, source: tuple[int, int], target: tuple[int, int], begin: int, end: int
) -> str:
    """A flow from a thread (pid, tid) to another."""
    head = f'"cat":"message","id":{number},"name":{name}'
    finish = max(begin, end - 1)  # a nanosecond before the end: within the slice that ends with the message
    return (
        f'{{"ph":"s",{head},"pid":{source[0]},"tid":{source[1]},"ts":{us(begin)}}},\n'
        f'{{"ph":"f","bp":"e",{head},"pid":{target[0]},"tid":{target[1]},"ts":{us(finish)}}}'
    )


def texts(column: Column) -> list[str]:
    """A column written out."""
    return [str(value) for value in (column.texts() if isinstance(column, Coded) else column).tolist()]


def labels(column: Column, rows: IntArray) -> list[str]:
    """Some rows of a column as JSON texts."""
    coded = column if isinstance(column, Coded) else Coded.of(str(name) for name in column)
    names = [json.dumps(name) for name in coded.names]
    return [names[code] for code in coded.codes[rows].tolist()]


def lanes_beside(group: IntArray, begin: IntArray, end: IntArray, hidden: NDArray[np.bool_]) -> IntArray:
    """A lane for each slice so that slices of one lane never overlap; rows sorted by group, then begin.

    Lane 0 is the group's own thread; hidden slices and those that would overlap go to lanes 1, 2 ...
    """
    lanes = np.zeros(len(group), dtype=np.int64)
    shown = np.flatnonzero(~hidden)
    one, ends = group[shown], np.unique(end[shown])
    offset = one * (len(ends) + 1)  # ends by rank, so that a group's largest never reaches the next group's
    latest = np.maximum.accumulate(np.searchsorted(ends, end[shown]) + offset)
    begun = np.searchsorted(ends, begin[shown], side="right") + offset
    clash = (one[1:] == one[:-1]) & (latest[:-1] >= begun[1:])
    aside = np.sort(np.concatenate([np.flatnonzero(hidden), shown[1:][clash]]))
    lanes[aside] = 1 + greedy_lanes(*(column[aside].tolist() for column in (group, begin, end)))
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
