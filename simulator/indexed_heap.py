"""A binary heap of row numbers whose keys may change, compiled.

`heap` holds row numbers, `key` their keys, `place` where in the heap each row is (-1: not
there); n is the length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

from simulator.share_tables import Rows

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile with numba at the first call; the machine code is kept on disk between runs."""
    return cast(Callable[P, R], numba.njit(cache=True, error_model="numpy")(function))


@compiled
def rise(heap: Rows, key: Rows, place: Rows, i: int) -> None:
    """Move the row at place i towards the top as far as its key allows."""
    row = heap[i]
    while i > 0:
        parent = (i - 1) >> 1
        if key[heap[parent]] <= key[row]:
            break
        heap[i] = heap[parent]
        place[heap[i]] = i
        i = parent
    heap[i] = row
    place[row] = i


@compiled
def sink(heap: Rows, key: Rows, place: Rows, i: int, n: int) -> None:
    """Move the row at place i towards the bottom as far as its key demands."""
    row = heap[i]
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        if child + 1 < n and key[heap[child + 1]] < key[heap[child]]:
            child += 1
        if key[heap[child]] >= key[row]:
            break
        heap[i] = heap[child]
        place[heap[i]] = i
        i = child
    heap[i] = row
    place[row] = i


@compiled
def put(heap: Rows, key: Rows, place: Rows, row: int, n: int) -> int:
    """Add a row, or move it to where its new key belongs; -> the new length."""
    i = place[row]
    if i < 0:
        i = n
        heap[i] = row
        n += 1
    rise(heap, key, place, i)
    sink(heap, key, place, place[row], n)
    return n


@compiled
def take(heap: Rows, key: Rows, place: Rows, row: int, n: int) -> int:
    """Remove a row; -> the new length."""
    i = place[row]
    place[row] = -1
    n -= 1
    last = heap[n]
    if last != row:
        heap[i] = last
        place[last] = i
        rise(heap, key, place, i)
        sink(heap, key, place, place[last], n)
    return n
