"""What cannot be is refused with a sentence: found, expected."""

from __future__ import annotations

import time

import pytest
from pydantic import TypeAdapter, ValidationError

from topologies import Topology
from topologies.links import Impossible

LINK = {"bandwidth": "1 GB/s", "latency": "1 us"}
ADAPTER = TypeAdapter(Topology)
NODES = [{"name": "a", "kind": "host"}, {"name": "b", "kind": "host"}, {"name": "s", "kind": "switch"}]


def cables(*pairs):
    return [{"between": list(pair), **LINK} for pair in pairs]


@pytest.mark.parametrize(
    ("mapping", "sentence"),
    [
        ({"kind": "star", "hosts": 0}, "greater than or equal to 1"),
        ({"kind": "star", "hosts": 10**9}, "less than or equal to"),
        ({"kind": "star", "hosts": 4, "routing": "valiant"}, "'shortest' or 'ecmp'"),
        ({"kind": "fat_tree", "k": 5}, "found k: 5, expected an even number"),
        ({"kind": "fat_tree", "k": 4, "hosts": 17}, "expected at most 16 with k = 4"),
        ({"kind": "fat_tree"}, "neither `hosts` nor `k`"),
        ({"kind": "fat_tree", "k": 4, "oversubscription": 1.3}, "a whole number, at least 1"),
        ({"kind": "fat_tree", "hosts": 400_000, "oversubscription": 0.01}, "a k up to 256"),
        ({"kind": "hypercube", "hosts": 12}, "a power of two"),
        ({"kind": "torus", "dims": [3, 4], "hosts": 13}, "the product of dims, 12"),
        ({"kind": "torus", "dims": [1000, 1000]}, "at most 500,000"),
        ({"kind": "torus", "dims": [3, 4], "wrap": [True]}, "one for each of 2 axes"),
        ({"kind": "torus"}, "neither `hosts` nor `dims`"),
        ({"kind": "leaf_spine", "hosts": 9, "leaves": 2, "hosts_per_leaf": 4}, "room for hosts: 9"),
        ({"kind": "leaf_spine", "hosts": 9, "spines": 2, "oversubscription": 2}, "one of the two"),
        ({"kind": "rail_optimised", "hosts": 9, "spines": 2, "oversubscription": 2}, "one of the two"),
        ({"kind": "dragonfly", "p": 2, "a": 4}, "all of p, a and h"),
        ({"kind": "dragonfly"}, "neither `hosts` nor p, a and h"),
        ({"kind": "dragonfly", "p": 1, "a": 2, "h": 1, "hosts": 9}, "at most 6 with p = 1, a = 2, h = 1"),
        ({"kind": "jellyfish", "hosts": 9, "switches": 3, "degree": 3}, "a degree below the number"),
        ({"kind": "jellyfish", "hosts": 9, "switches": 5, "degree": 3}, "an even product"),
        ({"kind": "sites", "hosts": 2, "sites": 3}, "at most one for each of hosts: 2"),
        ({"kind": "moebius", "hosts": 2}, "'star', 'ring'"),
        ({"kind": "star", "hosts": 2, "host": {"kind": "mainframe"}}, "'pcie_tree', 'nvlink_mesh'"),
        ({"kind": "star", "hosts": 2, "leaves": 2}, "Extra inputs are not permitted"),
    ],
    ids=lambda value: " ".join(map(str, value.values())) if isinstance(value, dict) else None,
)
def test_regular_ones(mapping, sentence):
    with pytest.raises(ValidationError) as caught:
        ADAPTER.validate_python({"link": LINK, **mapping})
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("nodes", "links", "sentence"),
    [
        (NODES, cables("as", "cs"), "found c, which is no node, expected one of a, b, s"),
        (NODES, cables("as"), "found no way from a to b, expected a connected graph"),
        (NODES, [*cables("as"), {**cables("sb")[0], "directed": True}], "found no way to a from b"),
        (NODES, cables("as", "aa"), "a twice, expected two nodes"),
        ([*NODES, NODES[0]], cables("as"), "two nodes named a"),
        (NODES[2:], [], "no node of kind host"),
        ([{"name": "a b", "kind": "host"}], [], "pattern"),
        ([{"name": "a", "kind": "host", "devices": {}, "host": {"kind": "cpu_only"}}], [], "one of the two"),
        ([{"name": "a", "kind": "host", "host": {"kind": "cpu_only", "nics": 2}}], [], "as many links drawn"),
    ],
)
def test_graphs(nodes, links, sentence):
    with pytest.raises(ValidationError) as caught:
        ADAPTER.validate_python({"kind": "graph", "nodes": nodes, "links": links})
    assert sentence in str(caught.value)


def test_a_graph_needs_a_drawn_place_for_a_server():
    graph = ADAPTER.validate_python({"kind": "graph", "nodes": NODES, "links": cables("as", "bs")})
    with pytest.raises(Impossible, match=r"draw \{name: server"):
        graph.build(extra_hosts=1)
    server = {"name": "server", "kind": "host", "devices": {"count": 0}}
    mapping = {
        "kind": "graph",
        "nodes": [*NODES, server],
        "links": [*cables("as", "bs"), *cables(("s", "server"))],
    }
    assert len(ADAPTER.validate_python(mapping).build(extra_hosts=1).hosts) == 3


@pytest.mark.parametrize(
    "mapping",
    [
        {"kind": "full_mesh", "hosts": 2000},
        {"kind": "full_mesh", "hosts": 500_000},
        {"kind": "leaf_spine", "hosts": 500_000, "hosts_per_leaf": 5, "spines": 100_000},
        {"kind": "star", "hosts": 500_000, "host": {"kind": "pcie_tree", "devices": {"count": 1024}}},
        {"kind": "star", "hosts": 500_000, "host": {"kind": "cpu_only", "nics": 64}},
        {
            "kind": "star",
            "hosts": 20,
            "host": {"kind": "nvlink_mesh", "devices": {"count": 1024}, "nvlink": LINK},
        },
        {"kind": "dragonfly", "p": 1, "a": 1024, "h": 1024, "hosts": 4},
        {"kind": "torus", "dims": [2] * 16, "host": {"kind": "cpu_only", "nics": 64}},
    ],
    ids=lambda mapping: f"{mapping['kind']} {mapping.get('hosts', '')}",
)
def test_too_large_is_refused_at_once(mapping):
    spec = ADAPTER.validate_python({"link": LINK, **mapping})
    began = time.perf_counter()
    with pytest.raises(Impossible, match="at most 1,000,000 nodes and 2,000,000 directed links"):
        spec.build()
    assert time.perf_counter() - began < 3.0
