"""What all regular topologies share: hosts of one kind or of several, one kind of cable, a way of routing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from simulator.fabric import Fabric, IntArray
from simulator.spec import Spec
from topologies.interior import Group, Interior, NvlinkOf, furnish, no_nvlink
from topologies.links import Impossible, LinkSpec
from topologies.routing import Between, HostRouter, Routing
from topologies.search import SearchRouter
from topologies.server import CpuOnly, Host
from topologies.wiring import Wiring

MOST_HOSTS = 500_000
"""Hosts of a regular topology."""


@dataclass(frozen=True)
class Site:
    """What a topology finds when it lays its cables: the hosts stand, furnished.

    Attributes:
        wiring: to add switches and cables to.
        interior: the hosts.
        extra: how many of the last hosts are servers added beside the topology's own.
    """

    wiring: Wiring
    interior: Interior
    extra: int

    @property
    def hosts(self) -> IntArray:
        """Hubs of the topology's own hosts."""
        return self.interior.hubs[: len(self.interior.hubs) - self.extra]

    @property
    def servers(self) -> IntArray:
        """Hubs of the servers added."""
        return self.interior.hubs[len(self.interior.hubs) - self.extra :]


class Unlike(Spec):
    """Hosts of a mixed cluster that differ from its `host`.

    Attributes:
        hosts: their numbers.
        host: what they are inside.
    """

    hosts: tuple[Annotated[int, Field(ge=0)], ...] = Field(min_length=1)
    host: Host


class Regular(Spec, ABC):
    """A topology whose hosts and cables follow a rule.

    Attributes:
        kind: its name in files.
        link: each cable of the network.
        routing: `shortest` or `ecmp` (see `routing.py`).
        host: what each host is inside; by default one processor on the hub.
        unlike: hosts that are something else inside.
    """

    kind: str
    link: LinkSpec
    routing: Routing = "shortest"
    host: Host = Field(default_factory=CpuOnly)
    unlike: tuple[Unlike, ...] = ()

    @property
    @abstractmethod
    def host_count(self) -> int:
        """Number of hosts, without servers added."""

    @abstractmethod
    def lay(self, site: Site) -> Between:
        """Adds switches and cables; returns the way between hosts."""

    def build(self, nvlink: NvlinkOf = no_nvlink, *, extra_hosts: int = 0, seed: int = 0) -> Fabric:
        """The fabric.

        Args:
            nvlink: NVLink by profile name, for hosts that do not say theirs.
            extra_hosts: servers to add, without devices, each behind one more link of the topology's kind;
                they are the last hosts, named `server`, `server1` ...
            seed: of the hash of `ecmp`.

        Raises:
            Impossible: what the file asks for cannot be.
        """
        names = [f"h{i}" for i in range(self.host_count)]
        names += ["server" if i == 0 else f"server{i}" for i in range(extra_hosts)]
        wiring = Wiring()
        interior = furnish(wiring, names, self._groups(), nvlink)
        between = self.lay(Site(wiring, interior, extra_hosts))
        ecmp = seed if self.routing in ("ecmp", "valiant") else None
        tail, head = wiring.ends()
        beyond = SearchRouter(len(wiring.names), tail, head, ecmp)
        return wiring.fabric(interior.hubs, interior.devices, HostRouter(interior, between, beyond, ecmp))

    def interiors(self) -> list[tuple[Host, int]]:
        """What hosts are inside, and how many of each."""
        return [(group.spec, group.hosts) for group in self._groups()]

    def _groups(self) -> list[Group]:
        """Runs of hosts alike, in order."""
        odd = {number: entry.host for entry in self.unlike for number in entry.hosts}
        if odd and max(odd) >= self.host_count:
            raise Impossible(f"host {max(odd)}", f"numbers below {self.host_count}", at=("unlike",))
        groups, first = [], 0
        for number in sorted(odd):
            if number > first:
                groups.append(Group(self.host, first, number - first))
            groups.append(Group(odd[number], number, 1))
            first = number + 1
        return [*groups, Group(self.host, first, self.host_count - first)]
