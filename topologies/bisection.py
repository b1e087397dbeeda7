"""Bisection: the least capacity between two halves of the hosts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.fabric import Fabric, FloatArray, IntArray
from topologies.hub_graph import DENSE, HubGraph

BoolArray = NDArray[np.bool_]
MOST_SPLITS = 1200
"""Splits of the hosts tried for an exact bisection."""
_MOST_CLASSES = 13  # of hosts alike: more have more splits than that
_MOST_CUTS = 40  # tried where there are too many splits
_MOST_WORK = 1_000_000  # links times cuts, about
_CAPACITY = 2**30  # scipy's flows are 32-bit


def bisection(fabric: Fabric) -> tuple[float, bool]:
    """Least capacity in bytes/s, one way, between two halves of the hosts, and whether that is exact.

    A half has floor(n/2) hosts; the switches fall where they cost least (a minimum cut). Exact where hosts
    alike leave at most `MOST_SPLITS` different halves; else an upper bound: the least over halves by host
    order, by its strides (the axes of grids) and by the slowest mode of the network. One host: inf.
    """
    net = HubGraph.of(fabric)
    if net.hosts < 2:
        return inf, True
    classes = net.classes()
    exact, halves = False, list[BoolArray]()
    if classes.max() < _MOST_CLASSES:
        halves = list(islice(_splits(classes, net.hosts // 2), MOST_SPLITS + 1))
        exact = len(halves) <= MOST_SPLITS
    if not exact:
        halves = list(islice(_likely_halves(net), max(3, min(_MOST_CUTS, _MOST_WORK // len(net.tail)))))
    both_ways = halves if _symmetric(net) else [*halves, *(~half for half in halves)]
    return min(cut(net, half) for half in both_ways), exact


def _symmetric(net: HubGraph) -> bool:
    back = np.lexsort((net.tail, net.head))
    return bool(
        (net.tail == net.head[back]).all()
        and (net.head == net.tail[back]).all()
        and (net.capacity == net.capacity[back]).all()
    )


def _splits(classes: IntArray, size: int) -> Iterator[BoolArray]:
    """Every way to take `size` hosts, those alike being taken in order."""
    order = np.argsort(classes, kind="stable")
    counts = np.bincount(classes)
    starts = np.cumsum(counts) - counts
    behind = np.cumsum(counts[::-1])[::-1] - counts  # hosts in later classes

    def taken(of: int, left: int) -> Iterator[list[int]]:
        if of == len(counts):
            yield []
            return
        for number in range(max(0, left - int(behind[of])), min(int(counts[of]), left) + 1):
            for rest in taken(of + 1, left - number):
                yield [number, *rest]

    for numbers in taken(0, size):
        half = np.zeros(len(classes), dtype=np.bool_)
        for start, number in zip(starts.tolist(), numbers, strict=True):
            half[order[start : start + number]] = True
        yield half


def _likely_halves(net: HubGraph) -> Iterator[BoolArray]:
    hosts = np.arange(net.hosts)
    yield _lower_half(_slow_mode(net)[: net.hosts])
    for stride in (d for d in range(1, net.hosts + 1) if net.hosts % d == 0):
        for size in (d for d in range(2, net.hosts // stride + 1) if net.hosts % (stride * d) == 0):
            yield _lower_half(hosts // stride % size)


def _lower_half(key: NDArray[Any]) -> BoolArray:
    half = np.zeros(len(key), dtype=np.bool_)
    half[np.argsort(key, kind="stable")[: len(key) // 2]] = True
    return half


def cut(net: HubGraph, half: BoolArray) -> float:
    """Least capacity, bytes/s, of links whose removal parts the hosts in `half` from the others."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow

    source, sink = net.nodes, net.nodes + 1
    host = np.arange(net.hosts)
    out = np.bincount(net.tail, net.capacity, minlength=net.nodes)[: net.hosts]
    into = np.bincount(net.head, net.capacity, minlength=net.nodes)[: net.hosts]
    tail = np.concatenate([net.tail, np.full(half.sum(), source), host[~half]])
    head = np.concatenate([net.head, host[half], np.full((~half).sum(), sink)])
    capacity = np.concatenate([net.capacity, out[half], into[~half]])
    size = (net.nodes + 2, net.nodes + 2)
    whole = csr_array((_as_integers(capacity), (tail, head)), shape=size)
    flow = maximum_flow(whole, source, sink).flow
    left = csr_array(whole - flow)
    left.data = np.maximum(left.data, 0)
    left.eliminate_zeros()
    side = np.zeros(net.nodes + 2, dtype=np.bool_)
    side[breadth_first_order(left, source, return_predecessors=False)] = True
    return float(capacity[side[tail] & ~side[head]].sum())


def _as_integers(capacity: FloatArray) -> NDArray[np.int32]:
    """Capacities in their least one where they are its multiples, else in a unit fine enough."""
    units = capacity / capacity.min()
    if np.abs(units - np.round(units)).max() > 1e-9 or units.sum() > _CAPACITY:
        units = capacity * (_CAPACITY / capacity.sum())
    whole: NDArray[np.int32] = np.round(units).astype(np.int32)
    return whole


def _slow_mode(net: HubGraph) -> FloatArray:
    """The mode of the walk that dies out last, shape (nodes,): its halves are loosely joined."""
    walk = net.walk()
    if net.nodes <= DENSE:
        vectors: FloatArray = np.linalg.eigh(walk.toarray())[1]
        return vectors[:, -2]
    from scipy.sparse.linalg import eigsh

    start = np.random.default_rng(0).random(net.nodes)
    values, modes = eigsh(walk, k=2, which="LA", v0=start)
    slow: FloatArray = modes[:, np.argmin(values)]
    return slow
