"""Drawings: every node and cable is in them once, few enough marks, apart from one another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from topologies import Topology
from topologies.cost import Cables
from topologies.picture import MOST_MARKS, picture

ADAPTER: TypeAdapter[Any] = TypeAdapter(Topology)
LINK = {"bandwidth": "100 Gbit/s", "latency": "1 us"}
KINDS = ("star", "ring", "full_mesh", "torus", "leaf_spine", "fat_tree", "rail_optimised", "dragonfly",
         "jellyfish", "sites", "hypercube")  # fmt: skip


def drawn(kind: str, hosts: int, **more: Any) -> tuple[Any, Any]:
    topology = ADAPTER.validate_python({"kind": kind, "hosts": hosts, "link": LINK, **more})
    fabric = topology.build()
    return picture(topology, fabric), fabric


def check(shown: Any, fabric: Any) -> None:
    names = [name for mark in shown.marks for name in mark.names]
    wanted = [
        name for name, kind in zip(fabric.node_names, fabric.node_kinds, strict=True) if kind != "device"
    ]
    assert sorted(names) == sorted(wanted)
    cables = len(Cables.of(fabric).link)
    assert sum(line.cables for line in shown.lines) + sum(mark.inside for mark in shown.marks) == cables
    assert sum(shown.cables.values()) == cables
    kind_of = dict(zip(fabric.node_names, fabric.node_kinds, strict=True))
    assert all({kind_of[name] for name in mark.names} == {mark.kind} for mark in shown.marks)
    places = np.array([(mark.x, mark.y) for mark in shown.marks])
    assert np.isfinite(places).all()
    assert len(np.unique(places.round(6), axis=0)) == len(places)
    for line in shown.lines:
        assert line.ends[0] != line.ends[1]


@pytest.mark.parametrize("hosts", [4, 16, 64, 1024])
@pytest.mark.parametrize("kind", KINDS)
def test_all_is_drawn_once_in_few_marks(kind, hosts):
    shown, fabric = drawn(kind, hosts)
    check(shown, fabric)
    assert len(shown.marks) <= MOST_MARKS + 8
    assert len(shown.lines) <= 12 * MOST_MARKS
    if hosts == 4:
        assert all(len(mark.names) == 1 for mark in shown.marks)


@settings(max_examples=60, deadline=None)
@given(kind=st.sampled_from(sorted(set(KINDS) - {"hypercube"})), hosts=st.integers(1, 400))
def test_any_size_is_drawn(kind, hosts):
    more = {"sites": 1} if kind == "sites" and hosts < 2 else {}
    check(*drawn(kind, hosts, **more))


def test_trees_are_drawn_in_tiers_and_merged_pod_by_pod():
    shown, _ = drawn("fat_tree", 1024)
    tiers: dict[float, list[Any]] = {}
    for mark in shown.marks:
        tiers.setdefault(mark.y, []).append(mark)
    assert [len(tiers[level]) for level in (0, 1, 2, 3)] == [16, 16, 16, 1]
    assert [mark.label for mark in tiers[1]][:2] == ["pod0/edge0 … pod0/edge7", "pod1/edge0 … pod1/edge7"]
    for line in shown.lines:
        low, high = (shown.marks[end] for end in line.ends)
        assert abs(high.y - low.y) == 1


def test_grids_are_grids_and_rings_circles():
    shown, _ = drawn("torus", 16, dims=[4, 4])
    assert {(round(mark.x), round(-mark.y)) for mark in shown.marks} == {
        (x, y) for x in range(4) for y in range(4)
    }
    bent = [line for line in shown.lines if line.bend]
    assert len(bent) == 8
    shown, _ = drawn("ring", 12)
    assert [mark.x**2 + mark.y**2 for mark in shown.marks] == pytest.approx([1.0] * 12)


def test_unlike_hosts_are_told_apart():
    host = {"kind": "pcie_tree", "devices": {"profile": "v100_16gb_sxm", "count": 4}}
    shown, _ = drawn("star", 3, unlike=[{"hosts": [1], "host": host}])
    assert [mark.devices for mark in shown.marks[:3]] == [
        ("cpu", "xeon_6226r", 1),
        ("gpu", "v100_16gb_sxm", 4),
        ("cpu", "xeon_6226r", 1),
    ]
