"""Server interiors: which links, how fast, which NIC; mixed clusters."""

from __future__ import annotations

import numpy as np
import pytest

from topologies import FatTree, RailOptimised, Ring, Star
from topologies.links import Impossible, LinkSpec

LINK = {"bandwidth": "100 Gbit/s", "latency": "1 us"}
NVLINK = LinkSpec(bandwidth="300 GB/s", latency="500 ns")


def star(host, **keys):
    return Star(hosts=3, link=LINK, host=host, **keys)


def names_between(fabric, a, b):
    ends = [fabric.node_names.index(name) for name in (a, b)]
    path = fabric.router.paths(np.array(ends[:1]), np.array(ends[1:]))[0]
    return [fabric.link_names[link] for link in path if link >= 0]


def test_processors_sit_on_the_hub():
    fabric = star({"kind": "cpu_only", "devices": {"count": 2}}).build()
    assert fabric.links == 6
    assert [(d.node, d.host, d.index, d.profile, d.kind) for d in fabric.devices][2:4] == [
        (1, 1, 0, "xeon_6226r", "cpu"),
        (1, 1, 1, "xeon_6226r", "cpu"),
    ]
    same = fabric.router.paths(np.array([1]), np.array([1]))
    assert (same == -1).all()


def test_nvswitch_takes_the_profiles_nvlink():
    host = {"kind": "nvswitch", "devices": {"count": 8, "profile": "a100_80gb_sxm"}}
    fabric = star(host).build({"a100_80gb_sxm": NVLINK}.get)
    assert (fabric.bandwidth[: 2 * 24] == 300e9).all()
    assert names_between(fabric, "h0/gpu1", "h0/gpu6") == ["h0/gpu1->h0", "h0->h0/gpu6"]
    with pytest.raises(Impossible, match="without `nvlink`"):
        star(host).build()


def test_mesh_pairs_share_the_profiles_nvlink():
    host = {"kind": "nvlink_mesh", "devices": {"count": 4}}
    fabric = star(host).build(lambda _: NVLINK)
    assert names_between(fabric, "h1/gpu3", "h1/gpu1") == ["h1/gpu3->h1/gpu1"]
    link = fabric.link_names.index("h1/gpu3->h1/gpu1")
    assert fabric.bandwidth[link] == 100e9
    assert names_between(fabric, "h1/gpu3", "h2/gpu0") == ["h1/gpu3->h1", "h1->s0", "s0->h2", "h2->h2/gpu0"]
    given = star({**host, "nvlink": {"bandwidth": "50 GB/s", "latency": "1 us"}}).build()
    assert given.bandwidth[given.link_names.index("h0/gpu0->h0/gpu1")] == 50e9


def test_each_device_has_its_nic():
    host = {"kind": "pcie_tree", "devices": {"count": 4}, "nics": 2}
    fabric = star(host).build()
    used = [names_between(fabric, f"h0/gpu{i}", "h1/gpu0")[1] for i in range(4)]
    assert used == ["h0->s0", "h0->s0", "h0->s0#1", "h0->s0#1"]
    landed = [names_between(fabric, "h1/gpu0", f"h0/gpu{i}")[2] for i in range(4)]
    assert landed == ["s0->h0", "s0->h0", "s0->h0#1", "s0->h0#1"]


def test_a_ring_of_hosts_has_parallel_cables():
    host = {"kind": "pcie_tree", "devices": {"count": 2}, "nics": 2}
    fabric = Ring(hosts=4, link=LINK, host=host).build()
    assert fabric.links == 2 * 8 + 2 * 2 * 4
    assert names_between(fabric, "h0/gpu1", "h2/gpu0")[1:3] == ["h0->h1#1", "h1->h2#1"]


def test_rails_go_by_the_receivers_nic():
    host = {"kind": "pcie_tree", "devices": {"count": 4}, "nics": 4}
    fabric = RailOptimised(hosts=8, hosts_per_group=4, link=LINK, host=host).build(extra_hosts=1)
    there = names_between(fabric, "h0/gpu0", "h3/gpu2")
    assert there == ["h0/gpu0->h0", "h0->group0/rail2", "group0/rail2->h3", "h3->h3/gpu2"]
    far = names_between(fabric, "h0/gpu0", "h4/gpu2")
    assert far[1] == "h0->group0/rail2"
    assert far[2].startswith("group0/rail2->spine")
    assert names_between(fabric, "server", "h0/gpu3")[-2:] == ["group0/rail0->h0", "h0->h0/gpu3"]


def test_unlike_hosts():
    gpu = {"kind": "pcie_tree", "devices": {"count": 4}, "nics": 2}
    fabric = star({"kind": "cpu_only"}, unlike=[{"hosts": [1], "host": gpu}]).build()
    assert [d.host for d in fabric.devices] == [0, 1, 1, 1, 1, 2]
    assert [d.kind for d in fabric.devices] == ["cpu", *["gpu"] * 4, "cpu"]
    assert fabric.links == 2 * (4 + 1 + 2 + 1)
    assert names_between(fabric, "h1/gpu3", "h2") == ["h1/gpu3->h1", "h1->s0#1", "s0->h2"]
    with pytest.raises(Impossible, match="found host 3, expected numbers below 3"):
        star({"kind": "cpu_only"}, unlike=[{"hosts": [3], "host": gpu}]).build()
    with pytest.raises(Impossible, match="equal `nics`"):
        Ring(hosts=3, link=LINK, unlike=[{"hosts": [1], "host": gpu}]).build()


def test_a_host_of_no_device_is_a_place_for_a_server():
    empty = {"kind": "pcie_tree", "devices": {"count": 0}}
    fabric = star({"kind": "cpu_only"}, unlike=[{"hosts": [2], "host": empty}]).build()
    assert len(fabric.devices) == 2


def test_nics_count_as_ports_of_a_fat_tree():
    host = {"kind": "pcie_tree", "devices": {"count": 8}, "nics": 8}
    tree = FatTree(hosts=512, oversubscription=2, link=LINK, host=host)
    assert tree.ports == 24
    fabric = tree.build()
    edge = fabric.node_names.index("pod0/edge0")
    down = np.isin(fabric.head, fabric.hosts) & (fabric.tail == edge)
    assert down.sum() == 24
