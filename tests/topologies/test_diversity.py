"""Path diversity against formulas and networkx."""

from __future__ import annotations

from math import factorial

import networkx as nx
import numpy as np
import pytest

from topologies import (
    Dragonfly,
    FatTree,
    FullMesh,
    Hypercube,
    Jellyfish,
    LeafSpine,
    RailOptimised,
    Ring,
    Sites,
    Star,
    Torus,
)
from topologies.convert import to_networkx
from topologies.diversity import diversity

LINK = {"bandwidth": "1 GB/s", "latency": "1 us"}
FOUR_NICS = {"kind": "pcie_tree", "devices": {"count": 4}, "nics": 4}
SMALL = {
    "star": Star(hosts=5, link=LINK),
    "ring": Ring(hosts=7, link=LINK),
    "mesh": FullMesh(hosts=6, link=LINK),
    "grid": Torus(dims=(3, 4), wrap=False, link=LINK),
    "torus": Torus(dims=(4, 4), link=LINK),
    "cube": Hypercube(hosts=16, link=LINK),
    "leaf-spine": LeafSpine(hosts=9, hosts_per_leaf=3, spines=2, link=LINK),
    "tree": FatTree(k=4, link=LINK),
    "rails": RailOptimised(hosts=4, hosts_per_group=2, spines=2, link=LINK, host=FOUR_NICS),
    "fly": Dragonfly(p=1, a=3, h=1, link=LINK),
    "fish": Jellyfish(hosts=8, switches=8, degree=3, link=LINK),
    "sites": Sites(hosts=6, sites=3, link=LINK),
}


@pytest.mark.parametrize("name", SMALL)
def test_paths_are_those_of_networkx(name):
    fabric = SMALL[name].build()
    graph = nx.DiGraph()
    for a, b in ((a, b) for a, b, _ in to_networkx(fabric).edges(keys=True)):
        if "device" in (fabric.node_kinds[fabric.node_names.index(end)] for end in (a, b)):
            continue
        graph.add_edge(a, b, capacity=graph[a][b]["capacity"] + 1 if graph.has_edge(a, b) else 1)
    hosts = [fabric.node_names[hub] for hub in fabric.hosts]
    counted = []
    for a in hosts:
        for b in hosts:
            if a != b:
                ways = nx.all_shortest_paths(graph, a, b)
                counted.append(
                    sum(np.prod([graph[x][y]["capacity"] for x, y in nx.utils.pairwise(w)]) for w in ways)
                )
    found = diversity(fabric)
    assert found.shortest_mean == pytest.approx(np.mean(counted), rel=1e-12)
    assert found.shortest_least == min(counted)
    switches = sorted({b for a in hosts for b in graph.successors(a) if b not in hosts})
    ends = switches or hosts
    flows = [nx.maximum_flow_value(graph, a, b) for a in ends for b in ends if a != b]
    assert found.disjoint_least == (min(flows) if flows else None)


def test_formulas():
    assert diversity(FatTree(k=8, link=LINK).build()).disjoint_least == 4
    tree = diversity(FatTree(k=8, link=LINK).build())
    pairs = {1: 3, 4: 12, 16: 112}  # ways: hosts reached from one, of 128
    assert tree.shortest_mean == pytest.approx(sum(w * n for w, n in pairs.items()) / 127, rel=1e-12)
    cube = diversity(Hypercube(hosts=64, link=LINK).build())
    ways = sum(factorial(h) * factorial(6) // (factorial(h) * factorial(6 - h)) for h in range(1, 7)) / 63
    assert (cube.shortest_mean, cube.disjoint_mean) == (pytest.approx(ways, rel=1e-12), 6)
    assert diversity(Torus(dims=(8, 8, 8), link=LINK).build()).disjoint_mean == 6
    spines = diversity(LeafSpine(hosts=64, hosts_per_leaf=16, spines=5, link=LINK).build())
    assert spines.shortest_mean == pytest.approx((15 * 1 + 48 * 5) / 63, rel=1e-12)
    assert (spines.disjoint_least, spines.disjoint_mean) == (5, 5)


def test_one_host_has_no_paths():
    assert set(vars(diversity(Star(hosts=1, link=LINK).build())).values()) == {None}


def test_a_large_network_is_sampled_quickly():
    found = diversity(Torus(dims=(16, 16, 16), link=LINK).build())
    assert found.disjoint_least == 6
    assert found.shortest_least == 1
