"""Lays the inside of all hosts at once, and remembers where it lies for the router."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from simulator.fabric import Device, IntArray
from simulator.units import Quantity
from topologies.links import Impossible, LinkSpec, Wire, payload, within_bounds
from topologies.server import CpuOnly, Host, NvlinkMesh, NvSwitch
from topologies.wiring import Wiring

NvlinkOf = Callable[[str], Wire | None]
"""The NVLink of a device profile by name (a device's total, bytes/s each way), None where it has none."""


def no_nvlink(profile: str) -> Wire | None:
    """For callers that know no profiles: every `nvlink` must then be given in the file."""
    return None


@dataclass
class Interior:
    """Where things lie inside the hosts, per node (hubs and devices, in node order) or per host.

    Attributes:
        hubs: node ids of the hubs, shape (hosts,); they are nodes 0 .. hosts - 1.
        nics: per host, shape (hosts,).
        host, index: per node, the host it belongs to, and its number among the host's devices (-1: the hub).
        nic: per node, the NIC a device uses (-1: the hub, which spreads its traffic).
        up: per node, the link device -> hub (-1: the hub). The way back is `up ^ 1`.
        mesh: per host, first link of its pairwise NVLinks (-1: none).
        count: per host, number of devices.
        devices: host-major.
    """

    hubs: IntArray
    nics: IntArray
    host: IntArray
    index: IntArray
    nic: IntArray
    up: IntArray
    mesh: IntArray
    count: IntArray
    devices: list[Device] = field(default_factory=list)


@dataclass(frozen=True)
class Group:
    """Hosts `first` .. `first + hosts - 1`, all built alike."""

    spec: Host
    first: int
    hosts: int

    @property
    def count(self) -> int:
        """Devices of each host."""
        return self.spec.devices.count

    @property
    def nodes(self) -> int:
        """Nodes besides the hubs."""
        return 0 if isinstance(self.spec, CpuOnly) else self.hosts * self.count

    @property
    def links(self) -> int:
        """Directed links inside these hosts."""
        pairs = self.count * (self.count - 1) if isinstance(self.spec, NvlinkMesh) else 0
        return 2 * self.nodes + self.hosts * pairs


def furnish(wiring: Wiring, names: Sequence[str], groups: Sequence[Group], nvlink: NvlinkOf) -> Interior:
    """Adds all hubs (named `names`), then all devices and the links inside the hosts.

    Args:
        wiring: still empty.
        names: of the hosts; those beyond the last group have one NIC and no device (parameter servers).
        groups: contiguous, in host order.
        nvlink: NVLink by profile name.
    """
    nics = sum(2 * g.hosts * g.spec.nics for g in groups)
    within_bounds(len(names) + sum(g.nodes for g in groups), nics + sum(g.links for g in groups))
    hubs = wiring.place(names, "host")
    none = np.full(len(names), -1, dtype=np.int64)
    interior = Interior(hubs, none + 2, hubs.copy(), none, none, none, none.copy(), none + 1)
    for group in groups:
        own = slice(group.first, group.first + group.hosts)
        interior.nics[own], interior.count[own] = group.spec.nics, group.count
        _furnish_group(wiring, interior, group, nvlink)
    return interior


def _furnish_group(wiring: Wiring, interior: Interior, group: Group, nvlink: NvlinkOf) -> None:
    hosts = np.repeat(np.arange(group.first, group.first + group.hosts, dtype=np.int64), group.count)
    index = np.tile(np.arange(group.count, dtype=np.int64), group.hosts)
    nodes = hosts
    if not isinstance(group.spec, CpuOnly):
        label = group.spec.devices.device_class
        names = [f"{wiring.names[h]}/{label}{i}" for h, i in zip(hosts.tolist(), index.tolist(), strict=True)]
        nodes = wiring.place(names, "device")
        up = wiring.cable(nodes, hosts, _hub_wire(group.spec, nvlink))
        columns = {
            "host": hosts,
            "index": index,
            "nic": index * group.spec.nics // max(group.count, 1),
            "up": up,
        }
        for name, column in columns.items():
            setattr(interior, name, np.concatenate([getattr(interior, name), column]))
    profile, kind = group.spec.devices.profile, group.spec.devices.device_class
    rows = zip(nodes.tolist(), hosts.tolist(), index.tolist(), strict=True)
    interior.devices.extend(Device(node, host, i, profile, kind) for node, host, i in rows)
    if isinstance(group.spec, NvlinkMesh) and group.count > 1:
        _lay_mesh(wiring, interior, group, nodes.reshape(group.hosts, group.count), nvlink)


def _lay_mesh(wiring: Wiring, interior: Interior, group: Group, nodes: IntArray, nvlink: NvlinkOf) -> None:
    """Pairs (i, j), i < j, in lexical order: pair number `i c - i (i + 1) / 2 + j - i - 1` of c devices."""
    i, j = np.triu_indices(group.count, 1)
    first = wiring.cable(nodes[:, i], nodes[:, j], _pair_wire(group.spec, group.count, nvlink))
    interior.mesh[group.first : group.first + group.hosts] = first[:, 0]


def _hub_wire(spec: Host, nvlink: NvlinkOf) -> Wire:
    if isinstance(spec, NvSwitch):
        return spec.nvlink or _profile_wire(spec, nvlink)
    if isinstance(spec, CpuOnly):
        raise TypeError("processors sit on the hub itself")
    return spec.bus


def _pair_wire(spec: Host, count: int, nvlink: NvlinkOf) -> Wire:
    given = spec.nvlink if isinstance(spec, NvlinkMesh) else None
    total = given or _profile_wire(spec, nvlink)
    if given:
        return given
    share = payload(total) / (count - 1)
    return LinkSpec(bandwidth=Quantity(share), latency=Quantity(total.latency))


def _profile_wire(spec: Host, nvlink: NvlinkOf) -> Wire:
    wire = nvlink(spec.devices.profile)
    if wire is None:
        raise Impossible(
            f"a host of kind {spec.kind} without `nvlink`, and none in the profile {spec.devices.profile}",
            "`nvlink: {bandwidth, latency}` in the host or in the profile",
            "for example nvlink: {bandwidth: 300 GB/s, latency: 1 us}",
            at=("host",),
        )
    return wire
