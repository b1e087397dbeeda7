"""Metrics against formulas, networkx and brute force."""

from __future__ import annotations

from itertools import combinations
from math import cos, inf, pi

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topologies import (
    Dragonfly,
    FatTree,
    FullMesh,
    Graph,
    Hypercube,
    Jellyfish,
    LeafSpine,
    RailOptimised,
    Ring,
    Sites,
    Star,
    Torus,
)
from topologies.bisection import bisection
from topologies.convert import to_networkx
from topologies.metrics import diameter, metrics, oversubscription, spectral_gap

LINK = {"bandwidth": "1 GB/s", "latency": "1 us"}
B = 1e9
FOUR_NICS = {"kind": "pcie_tree", "devices": {"count": 4}, "nics": 4}
SMALL = {
    "star": Star(hosts=5, link=LINK),
    "ring": Ring(hosts=7, link=LINK),
    "mesh": FullMesh(hosts=6, link=LINK),
    "open grid": Torus(dims=(2, 4), wrap=False, link=LINK),
    "cube": Hypercube(hosts=8, link=LINK),
    "leaf-spine": LeafSpine(hosts=8, hosts_per_leaf=3, spines=2, link=LINK),
    "rails": RailOptimised(hosts=6, hosts_per_group=2, spines=1, link=LINK, host=FOUR_NICS),
    "fish": Jellyfish(hosts=8, switches=6, degree=3, link=LINK),
    "sites": Sites(hosts=6, sites=3, wan={"bandwidth": "700 MB/s", "latency": "1 ms"}, link=LINK),
}


@pytest.mark.parametrize(
    ("spec", "value", "exact", "hops"),
    [
        (Star(hosts=1001, link=LINK), 500 * B, True, 2),
        (Ring(hosts=8, link=LINK), 2 * B, True, 4),
        (Ring(hosts=100, link=LINK), 2 * B, False, 50),
        (FullMesh(hosts=9, link=LINK), 4 * 5 * B, True, 1),
        (Torus(dims=(4, 8, 2), link=LINK), 2 * 64 / 8 * B, False, 2 + 4 + 1),
        (Hypercube(hosts=64, link=LINK), 32 * B, False, 6),
        (LeafSpine(hosts=64, hosts_per_leaf=16, oversubscription=2, link=LINK), 16 * B, False, 4),
        (FatTree(k=4, link=LINK), 4**3 / 8 * B, True, 6),
        (FatTree(k=8, link=LINK), 8**3 / 8 * B, False, 6),
        (
            RailOptimised(hosts=16, hosts_per_group=4, oversubscription=2, link=LINK, host=FOUR_NICS),
            16 * 4 / (2 * 2) * B,
            True,
            4,
        ),
        (Sites(hosts=8, sites=2, link=LINK), 0.125 * B, True, 4),
    ],
    ids=lambda value: getattr(value, "kind", None),
)
def test_the_formulas_of_the_docstrings(spec, value, exact, hops):
    fabric = spec.build()
    assert bisection(fabric) == (pytest.approx(value, rel=1e-12), exact)
    assert diameter(fabric) == hops


@pytest.mark.parametrize("name", SMALL)
def test_bisection_is_the_least_cut_of_all_halves(name):
    fabric = SMALL[name].build()
    graph = nx.DiGraph()
    for a, b, data in to_networkx(fabric).edges(data=True):
        old = graph[a][b]["capacity"] if graph.has_edge(a, b) else 0.0
        graph.add_edge(a, b, capacity=old + data["bandwidth"])
    names = [fabric.node_names[hub] for hub in fabric.hosts]
    least = inf
    for half in combinations(names, len(names) // 2):
        joined = graph.copy()
        joined.add_edges_from(("source", host) for host in half)
        joined.add_edges_from((host, "sink") for host in names if host not in half)
        least = min(least, nx.maximum_flow_value(joined, "source", "sink"))
    assert bisection(fabric) == (pytest.approx(least, rel=1e-12), True)


@pytest.mark.parametrize("name", SMALL)
def test_diameter_is_networkx(name):
    fabric = SMALL[name].build()
    lengths = dict(nx.all_pairs_shortest_path_length(to_networkx(fabric)))
    names = [fabric.node_names[hub] for hub in fabric.hosts]
    assert diameter(fabric) == max(lengths[a][b] for a in names for b in names)


@pytest.mark.parametrize("name", SMALL)
def test_spectral_gap_is_that_of_the_metropolis_walk(name):
    fabric = SMALL[name].build()
    hubs = [n for n, kind in to_networkx(fabric).nodes(data="kind") if kind != "device"]
    graph = nx.Graph(to_networkx(fabric).subgraph(hubs))
    walk = np.zeros((len(hubs), len(hubs)))
    for a, b in graph.edges:
        i, j = hubs.index(a), hubs.index(b)
        walk[i, j] = walk[j, i] = 1 / (1 + max(graph.degree[a], graph.degree[b]))
    walk += np.diag(1 - walk.sum(axis=0))
    values = np.sort(np.abs(np.linalg.eigvalsh(walk)))
    assert spectral_gap(fabric) == pytest.approx(1 - values[-2], abs=1e-12)


def test_spectral_gap_of_a_large_torus_by_sparse_eigenvalues():
    fabric = Torus(dims=(40, 40), link=LINK).build()
    assert spectral_gap(fabric) == pytest.approx(1 - (3 + 2 * cos(2 * pi / 40)) / 5, rel=1e-6)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), rates=st.lists(st.floats(0.01, 100), min_size=12, max_size=12))
def test_bisection_of_graphs_with_any_bandwidths(seed, rates):
    drawn = nx.gnm_random_graph(5, 9, seed=seed)
    if not nx.is_connected(drawn):
        drawn.add_edges_from((0, i) for i in range(1, 5))
    links = [
        {"between": [f"n{a}", f"n{b}"], "bandwidth": f"{rate} GB/s", "latency": "1 us"}
        for (a, b), rate in zip(drawn.edges, rates + rates, strict=False)
    ]
    nodes = [{"name": f"n{i}", "kind": "host" if i < 4 else "switch"} for i in range(5)]
    fabric = Graph(nodes=nodes, links=links).build()
    rate_of = dict(zip(drawn.edges, (float(r) * B for r in rates + rates), strict=False))

    def crossing(side):
        return sum(rate for (a, b), rate in rate_of.items() if (a in side) != (b in side))

    halves = [set(half) for half in combinations(range(4), 2)]
    least = min(min(crossing(half), crossing(half | {4})) for half in halves)
    assert bisection(fabric)[0] == pytest.approx(least, rel=1e-6)


def test_oversubscription():
    assert oversubscription(Star(hosts=6, link=LINK).build()) == 1
    assert oversubscription(FatTree(k=4, oversubscription=2, link=LINK).build()) == 2
    tiers = LeafSpine(hosts=32, hosts_per_leaf=8, oversubscription=4, link=LINK).build()
    assert oversubscription(tiers) == 4


def test_all_of_them_by_the_names_of_the_contract():
    shown = metrics(Dragonfly(hosts=10, link=LINK).build()).as_json()
    counts = {"hosts", "devices", "switches", "links"}
    wanted = {"bisection_bytes_per_s", "diameter_hops", "oversubscription", "cost_usd", "spectral_gap"}
    assert counts | wanted <= set(shown)
    alone = metrics(Star(hosts=1, link=LINK).build())
    assert (alone.bisection_bytes_per_s, alone.oversubscription, alone.diameter_hops) == (None, None, 0)
