"""The common bench: every kind of topology, the same checks. A new kind adds its line to `EXAMPLES`."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from topologies import Topology
from topologies.convert import to_networkx

LINK = {"bandwidth": "100 Gbit/s", "latency": "1 us"}
WIDE = {"bandwidth": "200 Gbit/s", "latency": "3 us"}
NVLINK = {"bandwidth": "300 GB/s", "latency": "500 ns"}

# name -> (file mapping, hosts, switches, directed links between hubs and switches), formulas by hand
EXAMPLES: dict[str, tuple[dict[str, Any], int, int, int]] = {
    "star": ({"kind": "star", "hosts": 5}, 5, 1, 2 * 5),
    "ring": ({"kind": "ring", "hosts": 8}, 8, 0, 2 * 8),
    "ring of two": ({"kind": "ring", "hosts": 2}, 2, 0, 2),
    "full mesh": ({"kind": "full_mesh", "hosts": 6}, 6, 0, 6 * 5),
    "torus": ({"kind": "torus", "dims": [3, 4, 2]}, 24, 0, 2 * (24 + 24 + 12)),
    "mesh": ({"kind": "torus", "dims": [3, 4], "wrap": False}, 12, 0, 2 * (2 * 4 + 3 * 3)),
    "hypercube": ({"kind": "hypercube", "hosts": 16}, 16, 0, 16 * 4),
    "leaf-spine": ({"kind": "leaf_spine", "hosts": 12, "hosts_per_leaf": 4}, 12, 3 + 4, 2 * (12 + 3 * 4)),
    "leaf-spine 2:1": (
        {"kind": "leaf_spine", "hosts": 8, "leaves": 2, "oversubscription": 2, "uplink": WIDE},
        8,
        2 + 1,
        2 * (8 + 2 * 1),
    ),
    "fat tree": ({"kind": "fat_tree", "k": 4}, 16, 20, 4**3 + 2 * 16),
    "fat tree 2:1": ({"kind": "fat_tree", "hosts": 30, "oversubscription": 2}, 30, 20, 4**3 + 2 * 30),
    "rails": (
        {"kind": "rail_optimised", "hosts": 8, "hosts_per_group": 4, "oversubscription": 2},
        8,
        2 + 2,
        2 * (8 + 2 * 2),
    ),
    "dragonfly": ({"kind": "dragonfly", "p": 2, "a": 4, "h": 2}, 72, 36, 9 * 4 * 3 + 9 * 8 + 2 * 72),
    "jellyfish": (
        {"kind": "jellyfish", "hosts": 20, "switches": 10, "degree": 3},
        20,
        10,
        10 * 3 + 2 * 20,
    ),
    "sites": ({"kind": "sites", "hosts": 7, "sites": 3, "wan": WIDE}, 7, 4, 2 * 7 + 2 * 3),
}
ROUTINGS = {
    "ring": ("valiant",),
    "full mesh": ("valiant",),
    "torus": ("dimension_order", "valiant"),
    "mesh": ("dimension_order", "valiant"),
    "hypercube": ("dimension_order", "valiant"),
    "dragonfly": ("valiant",),
}
HOSTS: dict[str, dict[str, Any]] = {
    "cpu_only": {"kind": "cpu_only"},
    "pcie_tree": {"kind": "pcie_tree", "devices": {"count": 4}, "nics": 2},
    "nvlink_mesh": {"kind": "nvlink_mesh", "devices": {"count": 4}, "nvlink": NVLINK},
    "nvswitch": {"kind": "nvswitch", "devices": {"count": 8}, "nvlink": NVLINK, "nics": 4},
}
ADAPTER: TypeAdapter[Any] = TypeAdapter(Topology)


ROOMY: dict[str, dict[str, Any]] = {  # enough ports for hosts of four NICs
    "fat tree": {"k": 8, "hosts": 16},
    "dragonfly": {"p": 4},
}


def furnished(name: str, host: str, **more: Any) -> Any:
    """The example with hosts of that kind."""
    return topology(name, host=HOSTS[host], **ROOMY.get(name, {}), **more)


def topology(name: str, **more: Any) -> Any:
    """The example's spec, with more keys."""
    mapping = EXAMPLES[name][0]
    return ADAPTER.validate_python({**mapping, "link": LINK, **more})


CASES = [(name, "shortest") for name in EXAMPLES] + [(name, "ecmp") for name in EXAMPLES]
CASES += [(name, routing) for name, routings in ROUTINGS.items() for routing in routings]


def all_pairs(ends):
    src, dst = np.meshgrid(ends, ends, indexing="ij")
    return src.ravel(), dst.ravel()


def check_paths(fabric, src, dst, paths, simple=True):
    """Connected, from the right start to the right end, over no node twice."""
    assert paths.shape[0] == len(src)
    for a, b, path in zip(src.tolist(), dst.tolist(), paths, strict=True):
        links = path[path >= 0]
        assert (path[len(links) :] == -1).all()
        nodes = [a, *fabric.head[links].tolist()]
        assert nodes[:-1] == fabric.tail[links].tolist()
        assert nodes[-1] == b
        if simple:
            assert len(set(nodes)) == len(nodes)


@pytest.mark.parametrize("name", EXAMPLES)
def test_counts_are_the_formulas(name):
    _, hosts, switches, links = EXAMPLES[name]
    fabric = topology(name).build()
    assert len(fabric.hosts) == hosts
    assert fabric.node_kinds.count("switch") == switches
    assert fabric.links == links
    assert len(set(fabric.node_names)) == len(fabric.node_names)
    assert len(set(fabric.link_names)) == fabric.links


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_link_has_its_way_back(name):
    fabric = furnished(name, "pcie_tree").build()
    back = np.arange(fabric.links) ^ 1
    assert (fabric.tail[back] == fabric.head).all()
    assert (fabric.bandwidth[back] == fabric.bandwidth).all()
    assert (fabric.latency[back] == fabric.latency).all()


@pytest.mark.parametrize(("name", "routing"), CASES)
def test_routes_between_all_hosts(name, routing):
    fabric = topology(name, routing=routing).build(extra_hosts=1, seed=3)
    src, dst = all_pairs(fabric.hosts)
    paths = fabric.router.paths(src, dst)
    check_paths(fabric, src, dst, paths, simple=routing != "valiant")
    hops = (paths >= 0).sum(axis=1)
    least = dict(nx.all_pairs_shortest_path_length(to_networkx(fabric)))
    names = fabric.node_names
    shortest = np.array([least[names[a]][names[b]] for a, b in zip(src, dst, strict=True)])
    if routing == "valiant":
        assert hops.max() <= 2 * shortest.max()
    elif name == "dragonfly":  # minimal routing keeps to local, global, local
        assert ((hops >= shortest) & (hops <= 5)).all()
    else:
        assert (hops == shortest).all()


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_routes_between_devices_and_hubs(name, host):
    fabric = furnished(name, host).build(extra_hosts=1)
    ends = np.unique(np.array([*(d.node for d in fabric.devices), *fabric.hosts]))
    rng = np.random.default_rng(1)
    src, dst = rng.choice(ends, 300), rng.choice(ends, 300)
    check_paths(fabric, src, dst, fabric.router.paths(src, dst))


@pytest.mark.parametrize("name", EXAMPLES)
def test_routes_are_the_same_one_at_a_time(name):
    fabric = furnished(name, "nvswitch", routing="ecmp").build(seed=11)
    nodes = np.array([d.node for d in fabric.devices])
    src, dst = nodes, np.roll(nodes[::-1], 5)
    together = fabric.router.paths(src, dst)
    for i in range(0, len(src), 7):
        alone = fabric.router.paths(src[i : i + 1], dst[i : i + 1])[0]
        assert alone[alone >= 0].tolist() == together[i][together[i] >= 0].tolist()


@pytest.mark.parametrize("name", EXAMPLES)
def test_switches_may_be_ends_too(name):
    fabric = topology(name).build()
    every = np.arange(len(fabric.node_names))
    src, dst = every, np.roll(every, 1)
    check_paths(fabric, src, dst, fabric.router.paths(src, dst))


@pytest.mark.parametrize("name", EXAMPLES)
def test_file_form_round_trip(name):
    spec = furnished(name, "nvlink_mesh")
    again = ADAPTER.validate_python(ADAPTER.dump_python(spec, mode="json"))
    assert again == spec
    assert again.build().link_names == spec.build().link_names


@pytest.mark.parametrize("name", EXAMPLES)
def test_hosts_alone_describe_each_kind(name):
    kind = EXAMPLES[name][0]["kind"]
    spec = ADAPTER.validate_python(
        {"kind": kind, "hosts": 16, "link": {"bandwidth": "1 GB/s", "latency": "0 s"}}
    )
    fabric = spec.build()
    assert len(fabric.hosts) == 16
    src, dst = all_pairs(fabric.hosts)
    check_paths(fabric, src, dst, fabric.router.paths(src, dst))


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(sorted({mapping["kind"] for mapping, *_ in EXAMPLES.values()} - {"hypercube"})),
    hosts=st.integers(2, 70),
    nics=st.integers(1, 3),
    routing=st.sampled_from(["shortest", "ecmp"]),
    seed=st.integers(0, 2**64 - 1),
)
def test_any_size_routes(kind, hosts, nics, routing, seed):
    host = {"kind": "pcie_tree", "devices": {"count": 3}, "nics": nics}
    link = {"bandwidth": "1 GB/s", "latency": "0 s"}
    spec = ADAPTER.validate_python(
        {"kind": kind, "hosts": hosts, "link": link, "routing": routing, "host": host}
    )
    fabric = spec.build(seed=seed, extra_hosts=1)
    nodes = np.array([*(d.node for d in fabric.devices), fabric.hosts[-1]])
    dst = np.random.default_rng(hosts).permutation(nodes)
    check_paths(fabric, nodes, dst, fabric.router.paths(nodes, dst))
