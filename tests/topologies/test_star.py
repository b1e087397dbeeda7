"""The star and four_by_four: counts, names, ends of routes, latency, payload bandwidth."""

from __future__ import annotations

import numpy as np
import pytest

from topologies.links import Impossible
from topologies.placement import Placement
from topologies.star import Star

LINK = {"bandwidth": "25 Gbit/s", "latency": "2 us", "efficiency": 0.92}
PCIE = {
    "kind": "pcie_tree",
    "devices": {"profile": "p100_sxm2", "count": 4, "class": "gpu"},
    "bus": {"bandwidth": "12 GB/s", "latency": "1 us"},
}


def test_single_hosts_are_two_links_apart():
    fabric = Star(hosts=4, link=LINK).build()
    (path,) = fabric.router.paths(fabric.hosts[:1], fabric.hosts[3:])
    assert [fabric.link_names[link] for link in path] == ["h0->s0", "s0->h3"]
    assert fabric.path_latency(path[None]) == pytest.approx(4e-6)
    assert fabric.path_bandwidth(path[None]) == 25e9 / 8 * 0.92


def test_devices_share_their_hosts_nic():
    fabric = Star(hosts=4, link=LINK, host=PCIE).build()
    assert len(fabric.devices) == 16
    assert fabric.links == 2 * (16 + 4)
    nodes = np.array([device.node for device in fabric.devices])
    path = fabric.router.paths(nodes[3:4], nodes[4:5])[0]
    names = [fabric.link_names[link] for link in path]
    assert names == ["h0/gpu3->h0", "h0->s0", "s0->h1", "h1->h1/gpu0"]
    inside = fabric.router.paths(nodes[:1], nodes[1:2])[0]
    assert [fabric.link_names[link] for link in inside] == ["h0/gpu0->h0", "h0->h0/gpu1"]


def test_a_server_of_its_own_is_one_more_link():
    placement = Placement(workers=4)
    fabric = Star(hosts=4, link=LINK).build(extra_hosts=placement.extra_hosts)
    assert fabric.links == 10
    assert fabric.node_names[placement.server_node(fabric)] == "server"
    assert len(placement.place(fabric)) == 4


@pytest.mark.parametrize(
    ("order", "first"), [("host_major", [0, 1, 2, 3, 4]), ("device_major", [0, 4, 8, 12, 1])]
)
def test_orders(order, first):
    fabric = Star(hosts=4, link=LINK, host=PCIE).build()
    assert Placement(order=order).place(fabric)[:5].tolist() == first


def test_one_worker_per_host_and_too_many_workers():
    fabric = Star(hosts=4, link=LINK, host=PCIE).build()
    assert Placement(per="host").place(fabric).tolist() == [0, 4, 8, 12]
    with pytest.raises(Impossible, match="found 17 workers, expected at most 16, one per device"):
        Placement(workers=17).place(fabric)
    with pytest.raises(Impossible, match="expected own or a host's name"):
        Placement(server="h9").server_node(fabric)
