"""Where the parts of a network lie in a drawing, and what is drawn as one where there are too many.

Trees are drawn in tiers, hosts below; rings and meshes as circles; grids as grids, axes beyond the third side
by side; dragonflies as a circle of circles. A *mark* stands for one host or switch, or for several that are
cabled alike or lie side by side. A *line* stands for all cables of one speed between two marks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from simulator.fabric import Fabric, FloatArray, IntArray
from topologies.cost import Cables
from topologies.layouts import Layout, circle, dragonfly, grid, tiers
from topologies.torus import Torus

if TYPE_CHECKING:
    from topologies import AnyTopology

MOST_MARKS = 72
"""Marks of a drawing, about; more are merged."""


@dataclass(frozen=True)
class Mark:
    """A host or switch, or several, in a drawing.

    Attributes:
        kind: `host` or `switch`.
        names: of the nodes it stands for, in order.
        x, y: its place.
        devices: what the hosts hold, as (device class, profile, devices a host); None for switches.
        inside: cables between the nodes it stands for.
    """

    kind: str
    names: tuple[str, ...]
    x: float
    y: float
    devices: tuple[str, str, int] | None
    inside: int

    @property
    def label(self) -> str:
        """A name, or the first and last of several."""
        if len(self.names) == 1:
            return self.names[0]
        return f"{self.names[0]} … {self.names[-1]}"


@dataclass(frozen=True)
class Line:
    """Cables of one speed between two marks.

    Attributes:
        ends: numbers of the marks.
        cables: how many.
        rate: line rate of each, bytes/s.
        latency: of each, seconds one way.
        bend: how far it bows out, in units of the drawing; 0: straight.
    """

    ends: tuple[int, int]
    cables: int
    rate: float
    latency: float
    bend: float


@dataclass(frozen=True)
class Picture:
    """A drawing.

    Attributes:
        marks, lines: what is drawn.
        cables: line rate (bytes/s) and latency -> number of cables, those within marks too.
        round: whether both axes have one scale.
    """

    marks: Sequence[Mark]
    lines: Sequence[Line]
    cables: Mapping[tuple[float, float], int]
    round: bool


def picture(topology: AnyTopology, fabric: Fabric, most: int = MOST_MARKS) -> Picture:
    """The drawing of a fabric built from `topology`, with about `most` marks."""
    net = _Net.of(fabric)
    layout = _layout(topology, net, most)
    cables = Counter(zip(net.rate.tolist(), net.latency.tolist(), strict=True))
    return Picture(_marks(fabric, net, layout), _lines(net, layout), cables, layout.round)


@dataclass(frozen=True)
class _Net:
    """Hosts (numbered first) and switches, and the cables between them, shape (cables,)."""

    nodes: IntArray
    hosts: int
    a: IntArray
    b: IntArray
    rate: FloatArray
    latency: FloatArray

    @classmethod
    def of(cls, fabric: Fabric) -> _Net:
        switches = np.flatnonzero(np.array(fabric.node_kinds) == "switch")
        nodes = np.concatenate([fabric.hosts, switches])
        number = np.full(len(fabric.node_names), -1, dtype=np.int64)
        number[nodes] = np.arange(len(nodes))
        cables = Cables.of(fabric)
        a, b = number[fabric.tail[cables.link]], number[fabric.head[cables.link]]
        return cls(nodes, len(fabric.hosts), a, b, cables.rate, fabric.latency[cables.link])


def _layout(topology: AnyTopology, net: _Net, most: int) -> Layout:
    count = len(net.nodes)
    if topology.kind == "hypercube" and topology.hosts > 1:
        return grid((2,) * (topology.hosts.bit_length() - 1), False, most)
    if isinstance(topology, Torus) and len(topology.sides) > 1:
        wrap = topology.wrap if isinstance(topology.wrap, bool) else all(topology.wrap)
        return grid(topology.sides, wrap, most)
    if topology.kind == "dragonfly":
        groups, routers = topology.shape[1] * topology.shape[2] + 1, topology.shape[1]
        return dragonfly(groups, routers, net.hosts, net.a, net.b, most)
    if topology.kind == "full_mesh":
        return circle(count, net.hosts, net.a, net.b, min(most, 24))
    if topology.kind == "jellyfish" or count == net.hosts:
        return circle(count, net.hosts, net.a, net.b, most if count <= most else most // 2)
    return tiers(count, net.hosts, net.a, net.b, most)


def _marks(fabric: Fabric, net: _Net, layout: Layout) -> list[Mark]:
    members: list[list[int]] = [[] for _ in layout.x]
    for node, group in enumerate(layout.group.tolist()):
        members[group].append(node)
    inside = np.bincount(
        layout.group[net.a][layout.group[net.a] == layout.group[net.b]], minlength=len(members)
    )
    devices = _devices(fabric)
    marks = []
    for group, nodes in enumerate(members):
        host = nodes[0] < net.hosts
        names = tuple(fabric.node_names[net.nodes[node]] for node in nodes)
        held = devices.get(nodes[0]) if host else None
        place = (float(layout.x[group]), float(layout.y[group]))
        marks.append(Mark("host" if host else "switch", names, *place, held, int(inside[group])))
    return marks


def _devices(fabric: Fabric) -> dict[int, tuple[str, str, int]]:
    """Class, profile and number of the devices of each host that has some."""
    found: dict[int, tuple[str, str, int]] = {}
    for device in fabric.devices:
        count = found[device.host][2] + 1 if device.host in found else 1
        found[device.host] = (device.kind, device.profile, count)
    return found


def _lines(net: _Net, layout: Layout) -> list[Line]:
    low = np.minimum(layout.group[net.a], layout.group[net.b])
    high = np.maximum(layout.group[net.a], layout.group[net.b])
    between = low != high
    keys = np.stack([low, high, net.rate, net.latency], axis=1)[between]
    if not len(keys):
        return []
    rows, counts = np.unique(keys, axis=0, return_counts=True)
    bend: Callable[[int, int], float] = layout.bend or (lambda a, b: 0.0)
    return [
        Line((int(a), int(b)), int(count), float(rate), float(latency), bend(int(a), int(b)))
        for (a, b, rate, latency), count in zip(rows.tolist(), counts.tolist(), strict=True)
    ]
