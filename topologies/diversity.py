"""Path diversity: in how many ways hosts reach one another.

*Shortest paths* are counted between hosts, parallel cables apart: what ECMP could use. *Disjoint paths* share
no link, whatever their length; they are counted between the switches that hosts hang on (between hosts where
there are no switches), since a host with one NIC has only one way out. Large networks are sampled, evenly by
number.

    fat tree of k ports    1, k/2 or (k/2)^2 shortest; k/2 disjoint
    leaf-spine             1 or S shortest, S disjoint (S spines)
    hypercube              h! shortest between corners h apart; d disjoint (d axes)
    torus of d axes        multinomials shortest; 2d disjoint (axes longer than two)

Reference: M. Besta et al., FatPaths, SC 2020, section 4, uses both measures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.fabric import Fabric, FloatArray, IntArray
from topologies.hub_graph import HubGraph

MOST_SOURCES = 64
"""Hosts from which shortest paths are counted."""
MOST_PAIRS = 256
"""Pairs between which disjoint paths are counted."""


@dataclass(frozen=True)
class Diversity:
    """Numbers of paths; of one host: all None.

    Attributes:
        shortest_mean, shortest_least: shortest paths between two hosts, over all pairs.
        disjoint_mean, disjoint_least: paths without a common link, over pairs of different places.
    """

    shortest_mean: float | None
    shortest_least: int | None
    disjoint_mean: float | None
    disjoint_least: int | None


def diversity(fabric: Fabric) -> Diversity:
    """Path diversity of a network."""
    net = HubGraph.of(fabric)
    if net.hosts < 2:
        return Diversity(None, None, None, None)
    cables = _cables(fabric, net)
    counted = shortest_paths(net, cables)
    disjoint = disjoint_paths(net, cables)
    return Diversity(
        float(counted.mean()),
        round(float(counted.min())),
        float(disjoint.mean()) if len(disjoint) else None,
        int(disjoint.min()) if len(disjoint) else None,
    )


def _cables(fabric: Fabric, net: HubGraph) -> IntArray:
    """Parallel links of each link of `net`, shape (links,)."""
    number = np.full(len(fabric.node_names), -1, dtype=np.int64)
    number[fabric.hosts] = np.arange(net.hosts)
    switches = np.flatnonzero(np.array(fabric.node_kinds) == "switch")
    number[switches] = net.hosts + np.arange(len(switches))
    tail, head = number[fabric.tail], number[fabric.head]
    kept = (tail >= 0) & (head >= 0)
    counts: IntArray = np.unique(tail[kept] * net.nodes + head[kept], return_counts=True)[1]
    return counts


def _evenly(count: int, most: int) -> IntArray:
    chosen: IntArray = np.arange(count) if count <= most else np.arange(most) * count // most
    return chosen


def shortest_paths(net: HubGraph, cables: IntArray) -> FloatArray:
    """Numbers of shortest paths from some hosts to all others, shape (pairs,)."""
    from scipy.sparse import csr_array

    into = csr_array((cables.astype(float), (net.head, net.tail)), shape=(net.nodes, net.nodes))
    found = []
    for source in _evenly(net.hosts, MOST_SOURCES).tolist():
        ways, seen = np.zeros(net.nodes), np.zeros(net.nodes, dtype=np.bool_)
        ways[source], seen[source] = 1.0, True
        front: FloatArray = ways.copy()
        while front.any():
            front = np.asarray(into @ front)
            front[seen] = 0.0
            ways += front
            seen |= front > 0
        found.append(np.delete(ways[: net.hosts], source))
    return np.concatenate(found)


def places(net: HubGraph) -> IntArray:
    """Where hosts are joined to the network: their switches, or themselves if they have none, rising."""
    switches = net.head[(net.tail < net.hosts) & (net.head >= net.hosts)]
    return np.unique(switches) if len(switches) else np.arange(net.hosts)


def disjoint_paths(net: HubGraph, cables: IntArray) -> FloatArray:
    """Numbers of paths without a common link between some pairs of places, shape (pairs,).

    The pairs are those of the first place with the others (whose least is that of all pairs, as long as all
    others are looked at, in a network with every link's way back), and neighbours in number.
    """
    ends = places(net)
    if len(ends) < 2:
        return np.zeros(0)
    others = ends[1:][_evenly(len(ends) - 1, MOST_PAIRS // 2)]
    begins = ends[_evenly(len(ends) - 1, MOST_PAIRS // 2)]
    pairs = [(int(ends[0]), int(other)) for other in others]
    pairs += [
        (int(a), int(b))
        for a, b in zip(begins, np.roll(ends, -1)[np.searchsorted(ends, begins)], strict=True)
    ]
    graph = _graph(net, cables)
    return np.array([_most_flow(graph, *pair) for pair in dict.fromkeys(pairs)], dtype=float)


def _graph(net: HubGraph, cables: IntArray) -> Any:
    from scipy.sparse import csr_array

    return csr_array((cables.astype(np.int32), (net.tail, net.head)), shape=(net.nodes, net.nodes))


def _most_flow(graph: Any, source: int, sink: int) -> int:
    from scipy.sparse.csgraph import maximum_flow

    return int(maximum_flow(graph, source, sink).flow_value)
