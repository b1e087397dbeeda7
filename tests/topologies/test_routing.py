"""ECMP and static spreading; speed of the routers; parallel cables of graphs."""

from __future__ import annotations

import time

import numpy as np
import pytest

from topologies import FatTree, Graph, LeafSpine, Torus
from topologies.hashing import hashed

LINK = {"bandwidth": "100 Gbit/s", "latency": "1 us"}


def load(fabric, src, dst):
    paths = fabric.router.paths(src, dst)
    return np.bincount(paths[paths >= 0], minlength=fabric.links)


def test_hash_is_pinned():
    src, dst = np.array([0, 1, 123456]), np.array([1, 0, 7])
    assert hashed(src, dst, 0)[:2].tolist() == [1700482428262628912, 2482289063980384216]
    again = hashed(src, dst, 2**64 - 1)
    assert (again == hashed(src, dst, -1)).all()
    assert (again >= 0).all()


def test_ecmp_depends_on_the_seed_and_spreads():
    tree = FatTree(k=8, link=LINK, routing="ecmp")
    hosts = tree.build().hosts
    src, dst = np.repeat(hosts, len(hosts)), np.tile(hosts, len(hosts))
    first, again, other = (tree.build(seed=s).router.paths(src, dst) for s in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()
    fabric = tree.build(seed=1)
    carried = load(fabric, src, dst)
    core = np.array(["core" in name for name in fabric.link_names])
    assert carried[core].min() > 0.6 * carried[core].mean()
    assert carried[core].max() < 1.5 * carried[core].mean()


def test_static_routing_spreads_a_permutation_without_collision():
    """d-mod-k: every host sends to the one half the tree away, and no link has two flows."""
    fabric = FatTree(k=8, link=LINK).build()
    dst = np.roll(fabric.hosts, len(fabric.hosts) // 2)
    assert load(fabric, fabric.hosts, dst).max() == 1
    tiers = LeafSpine(hosts=64, hosts_per_leaf=8, link=LINK).build()
    assert load(tiers, tiers.hosts, np.roll(tiers.hosts, 8)).max() == 1


def test_valiant_relieves_an_adverse_pattern():
    """Tornado: everyone sends almost half round each ring of the torus."""
    far = {}
    for routing in ("dimension_order", "valiant"):
        fabric = Torus(dims=(8, 8), link=LINK, routing=routing).build()
        row, column = fabric.hosts // 8, fabric.hosts % 8
        carried = load(fabric, fabric.hosts, row * 8 + (column + 3) % 8)
        far[routing] = (carried > 0).sum()
    assert far["valiant"] > 2 * far["dimension_order"]


def test_paths_of_16384_ranks_take_milliseconds():
    """A guard, far above the 5 ms measured on an idle 2-core machine."""
    began = time.perf_counter()
    fabric = FatTree(k=42, link=LINK, routing="ecmp").build()
    built = time.perf_counter() - began
    assert len(fabric.hosts) == 18_522
    assert built < 3.0
    ranks = np.random.default_rng(0).permutation(fabric.hosts)[:16_384]
    took = []
    for _ in range(5):
        began = time.perf_counter()
        paths = fabric.router.paths(ranks, np.roll(ranks, -1))
        took.append(time.perf_counter() - began)
    assert paths.shape == (16_384, 6)
    assert min(took) < 0.05


@pytest.mark.parametrize("routing", ["shortest", "ecmp"])
def test_parallel_cables_of_a_graph(routing):
    nodes = [{"name": f"h{i}", "kind": "host"} for i in range(2)] + [{"name": "s", "kind": "switch"}]
    links = [{"between": [f"h{i}", "s"], **LINK} for i in (0, 0, 1, 1)]
    used = set()
    for seed in range(20):
        fabric = Graph(nodes=nodes, links=links, routing=routing).build(seed=seed)
        path = fabric.router.paths(np.array([0]), np.array([1]))[0]
        used.add(tuple(fabric.link_names[link] for link in path))
    assert len(used) == (1 if routing == "shortest" else 4)
    assert routing == "ecmp" or used == {("h0->s", "s->h1")}


def test_a_directed_graph():
    nodes = [{"name": name, "kind": "host"} for name in "abc"]
    links = [{"between": pair, "directed": True, **LINK} for pair in (["a", "b"], ["b", "c"], ["c", "a"])]
    fabric = Graph(nodes=nodes, links=links).build()
    path = fabric.router.paths(np.array([1]), np.array([0]))[0]
    assert [fabric.link_names[link] for link in path] == ["b->c", "c->a"]
