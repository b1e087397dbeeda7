"""What networks cost: counts of parts by hand, prices between those listed, networks of one cost."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.errors import InputError
from topologies import (
    Dragonfly,
    FatTree,
    FullMesh,
    Graph,
    Hypercube,
    LeafSpine,
    RailOptimised,
    Ring,
    Sites,
    Star,
    Torus,
)
from topologies.cost import Cables, Cost, PriceFactors, cost_of, factor_at_cost, widened
from topologies.links import Impossible
from topologies.prices import DEFAULT, Prices, load, names, read_prices

LINK = {"bandwidth": "100 Gbit/s", "latency": "1 us", "efficiency": 0.9}
WIDE = {"bandwidth": "400 Gbit/s", "latency": "2 us"}
NONE = PriceFactors()
BOX = {
    "kind": "nvswitch",
    "devices": {"count": 8},
    "nics": 4,
    "nvlink": {"bandwidth": "1 GB/s", "latency": "0 s"},
}


def flat(**prices: float) -> Prices:
    """A list in which a part has one price at any speed."""
    sourced = {"source": "made up", "date": "2026-01-01"}
    curves = {
        part: {**sourced, "usd": (("1 kbit/s", price), ("1000 Tbit/s", price))}
        for part, price in {"switch_port": 1, "nic": 10, "copper": 100, "optics": 1000, **prices}.items()
    }
    hub = {kind: {**sourced, "usd": 1e5, "usd_per_device": 1e6} for kind in ("cpu_only", "nvswitch")}
    leased = {**sourced, "usd_per_gbit_s": 1.0}
    return Prices.model_validate({"name": "flat", **curves, "leased": leased, "hub": hub})


def parts(topology) -> tuple[float, ...]:
    """Switch ports, NICs, copper and optical cables."""
    cost = cost_of(topology, topology.build(), flat())
    return cost.switch_port, cost.nic / 10, cost.copper / 100, cost.optics / 1000


@pytest.mark.parametrize(
    ("topology", "counts"),
    [
        (Star(hosts=5, link=LINK), (5, 5, 5, 0)),
        (Ring(hosts=8, link=LINK), (0, 16, 8, 0)),
        (Torus(dims=(4, 4, 4), link=LINK), (0, 6 * 64, 3 * 64, 0)),
        (Hypercube(hosts=16, link=LINK), (0, 16 * 4, 16 * 2, 0)),
        (LeafSpine(hosts=12, hosts_per_leaf=4, spines=3, link=LINK), (12 + 2 * 9, 12, 12, 9)),
        (FatTree(k=4, link=LINK), (16 + 2 * 32, 16, 16, 32)),
        (Dragonfly(p=2, a=4, h=2, link=LINK), (72 + 2 * (54 + 36), 72, 72, 54 + 36)),
        (RailOptimised(hosts=4, hosts_per_group=2, spines=2, link=LINK, host=BOX), (16 + 2 * 16, 16, 16, 16)),
    ],
    ids=lambda value: getattr(value, "kind", None),
)
def test_parts_are_counted(topology, counts):
    assert parts(topology) == pytest.approx(counts, rel=1e-12)


def test_hubs_of_a_mixed_cluster():
    mixed = Star(hosts=5, link=LINK, unlike=[{"hosts": [1, 3], "host": BOX}])
    assert cost_of(mixed, mixed.build(), flat()).hub == 5e5 + (3 + 2 * 8) * 1e6


def test_a_line_too_long_to_own_is_leased():
    far = Sites(hosts=4, sites=2, link=LINK, wan={"bandwidth": "8 Gbit/s", "latency": "5 ms"})
    cost = cost_of(far, far.build(), flat())
    assert (cost.leased, cost.switch_port, cost.optics) == (16, 4, 0)


def test_prices_are_by_line_rate_not_by_payload():
    star = Star(hosts=2, link=LINK)
    cost = cost_of(star, star.build(), load(DEFAULT))
    listed = dict(load(DEFAULT).nic.usd)
    assert cost.nic == pytest.approx(2 * listed[12.5e9], rel=1e-12)


def test_one_way_and_parallel_cables_count_each():
    wire = {"bandwidth": "1 GB/s", "latency": "1 us"}
    nodes = [{"name": "a", "kind": "host"}, {"name": "b", "kind": "host"}]
    graph = Graph(
        nodes=nodes,
        links=[
            {"between": ["a", "b"], **wire},
            {"between": ["a", "b"], **wire},
            {"between": ["b", "a"], "directed": True, **wire},
        ],
    )
    assert len(Cables.of(graph.build()).link) == 3


def test_prices_between_those_listed():
    nic = load(DEFAULT).nic
    speeds, prices = np.array(nic.usd).T
    assert nic.at(speeds) == pytest.approx(prices, rel=1e-12)
    for (slow, cheap), (fast, dear) in pairwise(nic.usd):
        assert nic.at(np.array([(slow * fast) ** 0.5])) == pytest.approx((cheap * dear) ** 0.5, rel=1e-12)
    assert nic.at(np.array([speeds[0] / 100, speeds[-1] * 3])) == pytest.approx([prices[0], 3 * prices[-1]])


@given(st.lists(st.floats(1e5, 1e13), min_size=2, max_size=20))
def test_prices_never_fall_with_speed(rates):
    for name in names():
        listed = load(name)
        for part in (listed.switch_port, listed.nic, listed.copper, listed.optics, listed.leased):
            assert (np.diff(part.at(np.sort(np.array(rates)))) >= -1e-9).all()


@pytest.mark.parametrize("name", names())
def test_shipped_lists_say_where_each_price_comes_from(name):
    listed = load(name)
    assert listed.name == name
    for part in (
        listed.switch_port,
        listed.nic,
        listed.copper,
        listed.optics,
        listed.leased,
        *listed.hub.values(),
    ):
        assert part.source
        assert part.date[:2] == "20"


def test_totals_with_a_part_dearer_or_cheaper():
    cost = Cost(switch_port=10, nic=20, copper=30, optics=40, leased=0, hub=0)
    assert cost.total == 100
    assert cost.varied() == (80, 140)
    assert cost.times(PriceFactors(optics=2, nic=0.5)).total == 10 + 10 + 30 + 80


@pytest.mark.parametrize(
    "factors", [NONE, PriceFactors(optics=2), PriceFactors(nic=0.5, switch_port=2)], ids=repr
)
@pytest.mark.parametrize(
    "topology",
    [FatTree(k=4, link=LINK), LeafSpine(hosts=32, link=LINK, uplink=WIDE), Torus(dims=(4, 4), link=LINK)],
    ids=lambda topology: topology.kind,
)
def test_a_network_of_a_given_cost(topology, factors):
    listed, fabric = load(DEFAULT), topology.build()
    factor = factor_at_cost(topology, fabric, listed, 50_000, factors)
    wide = widened(fabric, factor)
    assert cost_of(topology, wide, listed).times(factors).total == pytest.approx(50_000, rel=1e-9)
    assert wide.bandwidth == pytest.approx(fabric.bandwidth * factor, rel=1e-12)
    dearer = factor_at_cost(topology, fabric, listed, 60_000, factors)
    assert dearer > factor


def test_the_inside_of_hosts_is_not_scaled():
    box = {"kind": "pcie_tree", "devices": {"count": 2}, "bus": {"bandwidth": "12 GB/s", "latency": "0 s"}}
    fabric = Star(hosts=2, link=LINK, host=box).build()
    wide = widened(fabric, 3.0)
    device = np.array([kind == "device" for kind in fabric.node_kinds])
    inside = device[fabric.tail] | device[fabric.head]
    assert (wide.bandwidth[inside] == fabric.bandwidth[inside]).all()
    assert wide.bandwidth[~inside] == pytest.approx(3 * fabric.bandwidth[~inside])


def test_a_cost_that_cannot_be():
    star = Star(hosts=100, link=LINK)
    with pytest.raises(Impossible, match="found a budget of 100 USD, expected at least"):
        factor_at_cost(star, star.build(), load(DEFAULT), 100, NONE)
    alone = FullMesh(hosts=1, link=LINK)
    with pytest.raises(Impossible, match="expected at most 0 USD"):
        factor_at_cost(alone, alone.build(), load(DEFAULT), 1e9, NONE)


def test_wrong_price_lists_are_told(tmp_path):
    with pytest.raises(InputError, match="did you mean 'ethernet_2026'"):
        load("ethernet_2025")
    text = (names() and open_list(DEFAULT)).replace("[10 Gbit/s, 120]", "[10 Gbit/s, 20]")
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match=rf"{file}:\d+:\d+: prices\.nic: .*expected both rising"):
        read_prices(file)
    file.write_text(open_list(DEFAULT).replace("source: memory", "sauce: memory", 1))
    with pytest.raises(InputError, match=r"did you mean 'source'"):
        load(str(file))


def open_list(name: str) -> str:
    from topologies.prices import path_of

    return path_of(name).read_text(encoding="utf-8")


def test_a_hub_without_a_price():
    bare = load(DEFAULT).model_copy(update={"hub": {}})
    star = Star(hosts=2, link=LINK)
    with pytest.raises(Impossible, match="no price of a cpu_only hub"):
        cost_of(star, star.build(), bare)
