"""What a network can do, in a few numbers: bisection, diameter, oversubscription, spectral gap, paths."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import inf
from typing import Any

import numpy as np

from simulator.fabric import Fabric
from topologies.bisection import bisection
from topologies.diversity import diversity
from topologies.hub_graph import DENSE, HubGraph


@dataclass(frozen=True)
class Metrics:
    """The answer of `topology show`.

    Attributes:
        hosts, devices, switches, links: counts; links are directed, those inside the hosts too.
        bisection_bytes_per_s: least capacity, one way, between two halves of the hosts; None for one host.
        bisection_exact: whether all halves were tried; otherwise the value is an upper bound.
        diameter_hops: most links between two hosts.
        oversubscription: what half of the hosts can send over the bisection: 1 = full bisection.
        cost_usd: to buy (`cost.py`); None without prices.
        spectral_gap: of the Metropolis walk on hubs and switches; 1 minus its second largest |eigenvalue|.
        shortest_paths_mean, shortest_paths_least: between two hosts (`diversity.py`); None for one host.
        disjoint_paths_mean, disjoint_paths_least: without a common link, between the switches of hosts (or
            hosts without switches); None for one such place.
    """

    hosts: int
    devices: int
    switches: int
    links: int
    bisection_bytes_per_s: float | None
    bisection_exact: bool
    diameter_hops: int
    oversubscription: float | None
    cost_usd: float | None
    spectral_gap: float
    shortest_paths_mean: float | None
    shortest_paths_least: int | None
    disjoint_paths_mean: float | None
    disjoint_paths_least: int | None

    def as_json(self) -> dict[str, Any]:
        """Its fields by name."""
        return asdict(self)


def metrics(fabric: Fabric, cost_usd: float | None = None) -> Metrics:
    """All of them; what it costs, as given."""
    value, exact = bisection(fabric)
    paths = diversity(fabric)
    return Metrics(
        hosts=len(fabric.hosts),
        devices=len(fabric.devices),
        switches=fabric.node_kinds.count("switch"),
        links=fabric.links,
        bisection_bytes_per_s=None if value == inf else value,
        bisection_exact=exact,
        diameter_hops=diameter(fabric),
        oversubscription=None if value == inf else oversubscription(fabric, value),
        cost_usd=cost_usd,
        spectral_gap=spectral_gap(fabric),
        shortest_paths_mean=paths.shortest_mean,
        shortest_paths_least=paths.shortest_least,
        disjoint_paths_mean=paths.disjoint_mean,
        disjoint_paths_least=paths.disjoint_least,
    )


def oversubscription(fabric: Fabric, bisection_bytes_per_s: float | None = None) -> float:
    """What half of the hosts can send, over the bisection; not below 1 for any network of switches."""
    value = bisection(fabric)[0] if bisection_bytes_per_s is None else bisection_bytes_per_s
    net = HubGraph.of(fabric)
    sent = float(net.capacity[net.tail < net.hosts].sum())
    return sent * (net.hosts // 2) / net.hosts / value


def diameter(fabric: Fabric) -> int:
    """Most links on a shortest path between two hosts' hubs."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    net = HubGraph.of(fabric)
    one_of_each = np.unique(net.classes(), return_index=True)[1]  # hosts alike are equally far from all
    graph = csr_array((np.ones(len(net.tail)), (net.tail, net.head)), shape=(net.nodes, net.nodes))
    most = 0
    for start in one_of_each.tolist():
        order, before = breadth_first_order(graph, start)
        far = int(order[order < net.hosts][-1])
        hops = 0
        while far != start:
            far, hops = int(before[far]), hops + 1
        most = max(most, hops)
    return most


def spectral_gap(fabric: Fabric) -> float:
    """1 - second largest |eigenvalue| of the Metropolis walk on hubs and switches."""
    net = HubGraph.of(fabric)
    if net.nodes < 2:
        return 1.0
    walk = net.walk()
    if net.nodes <= DENSE:
        return 1.0 - float(np.abs(np.sort(np.linalg.eigvalsh(walk.toarray()))[:-1]).max())
    from scipy.sparse.linalg import eigsh

    start = np.random.default_rng(0).random(net.nodes)
    high = np.sort(eigsh(walk, k=2, which="LA", v0=start, return_eigenvectors=False))[0]
    low = eigsh(walk, k=1, which="SA", v0=start, return_eigenvectors=False)[0]
    return 1.0 - float(max(abs(high), abs(low)))
