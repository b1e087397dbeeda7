"""One message on three networks: the cut-through times of astra-network-analytical (cases.md 1).

1 MiB from host 1 to host 4, links of 50 GiB/s and 500 ns: 19,531.25 ns of bandwidth and 500 ns a hop. (Its
other mode stores and forwards whole messages hop by hop; a fluid network never does.)
"""

from __future__ import annotations

import pytest

from simulator.clock import Clock
from simulator.network import Network
from topologies.full_mesh import FullMesh
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
