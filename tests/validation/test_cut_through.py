"""One message on networks of one and of three dimensions: the cut-through times of a chunk-level peer.

Case 1: 1 MiB from host 1 to host 4, links of 50 GiB/s and 500 ns: 19,531.25 ns of bandwidth and 500 ns a hop.
Its other mode stores and forwards whole messages hop by hop; a fluid network never does.
"""

from __future__ import annotations

import pytest

from simulator.clock import Clock
from simulator.network import Network
from topologies.full_mesh import FullMesh
from topologies.graph import Graph
from topologies.links import LinkSpec
from topologies.regular import Regular
from topologies.ring import Ring
from topologies.star import Star

LINK = LinkSpec(bandwidth="50 GiB/s", latency="500 ns")


@pytest.mark.parametrize(
    ("topology", "hops", "published_ns"),
    [
        (Ring(kind="ring", hosts=16, link=LINK), 3, 21_031),
        (FullMesh(kind="full_mesh", hosts=16, link=LINK), 1, 20_031),
        (Star(kind="star", hosts=16, link=LINK), 2, 20_531),
    ],
)
def test_one_message(topology: Regular, hops: int, published_ns: int) -> None:
    fabric, clock = topology.build(), Clock()
    message = Network(clock, fabric).message(int(fabric.hosts[1]), int(fabric.hosts[4]), 2**20)
    clock.run()
    assert message.arrived.value == pytest.approx(hops * 500e-9 + 19_531.25e-9, rel=1e-12)
    assert int(message.arrived.value * 1e9) == published_ns


def three_dimensional() -> Graph:
    """Ring of 2, full mesh of 8, switch of 4 at once: 64 hosts, each in one group of every dimension."""
    hosts = [(i, j, k) for i in range(2) for j in range(8) for k in range(4)]
    links = [
        {"between": [f"h{i}{j}{k}", other], "bandwidth": f"{rate} GiB/s", "latency": f"{latency} ns"}
        for i, j, k in hosts
        for other, rate, latency in [
            *([(f"h1{j}{k}", 200, 50)] if i == 0 else []),
            *((f"h{i}{j2}{k}", 100, 500) for j2 in range(j + 1, 8)),
            (f"s{i}{j}", 50, 2000),
        ]
    ]
    nodes = [
        {"name": f"h{i}{j}{k}", "kind": "host", "devices": {"profile": "a100", "count": 1}}
        for i, j, k in hosts
    ]
    switches = [{"name": f"s{i}{j}", "kind": "switch"} for i in range(2) for j in range(8)]
    return Graph.model_validate({"kind": "graph", "nodes": nodes + switches, "links": links})


@pytest.mark.parametrize(("to", "published_ns"), [("h100", 4_932), ("h010", 10_265), ("h001", 23_531)])
def test_one_message_along_each_of_three_dimensions(to: str, published_ns: int) -> None:
    """Case 3: the peer's time in its congestion-unaware mode."""
    fabric, clock = three_dimensional().build(), Clock()
    names = [fabric.node_names[hub] for hub in fabric.hosts.tolist()]
    src, dst = (int(fabric.hosts[names.index(name)]) for name in ("h000", to))
    message = Network(clock, fabric).message(src, dst, 2**20)
    clock.run()
    assert int(message.arrived.value * 1e9) == published_ns
