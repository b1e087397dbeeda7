"""Free form: nodes and cables by name."""

from __future__ import annotations

from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, StringConstraints, model_validator

from simulator.fabric import Fabric, IntArray
from simulator.spec import Spec
from topologies.interior import Group, NvlinkOf, furnish, no_nvlink
from topologies.links import Impossible, LinkSpec
from topologies.search import SearchRouter
from topologies.server import CpuOnly, Host, Processors
from topologies.wiring import Wiring

Name = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=r"^[^\s>#]+$")]


class HostNode(Spec):
    """A host: with `devices` they sit on the hub itself, with `host` it has that interior.

    Attributes:
        name: unique; devices are named behind it, `a0/gpu0`.
        devices: as in a `cpu_only` host; by default one processor; `count: 0` for a parameter server's place.
        host: a server interior, instead of `devices`. Its `nics` stays 1: the links drawn are the NICs.
    """

    name: Name
    kind: Literal["host"]
    devices: Processors | None = None
    host: Host | None = None

    @model_validator(mode="after")
    def _one_interior(self) -> Self:
        if self.devices is not None and self.host is not None:
            raise Impossible(f"both `devices` and `host` in node {self.name}", "one of the two", at=("host",))
        if self.interior.nics != 1:
            raise Impossible(
                f"nics: {self.interior.nics} in node {self.name}",
                "as many links drawn, and nics: 1",
                at=("host", "nics"),
            )
        return self

    @property
    def interior(self) -> Host:
        """What the host is inside."""
        return self.host or CpuOnly(devices=self.devices or Processors())


class SwitchNode(Spec):
    """A switch, non-blocking inside."""

    name: Name
    kind: Literal["switch"]


Node = Annotated[HostNode | SwitchNode, Field(discriminator="kind")]


class GraphLink(LinkSpec):
    """A cable between two nodes; entries that repeat a pair are parallel cables.

    Attributes:
        between: names of the two nodes.
        directed: one link only, from the first to the second.
    """

    between: tuple[Name, Name]
    directed: bool = False


class Graph(Spec):
    r"""Whatever is drawn.

        a0 --- wan --- b0

    Routes are shortest in hops, over hosts too; of equal ones `shortest` takes the lowest-numbered neighbour
    (hosts first, then switches, each in the file's order) by the first cable, `ecmp` hashes at each hop.
    Links: two a cable (one where `directed`) and those inside the hosts. A server of its own
    (`placement.server: own`) is the host named `server`, if one is drawn (of a second job's: `server1`).

    >>> wire = {"bandwidth": "1 Gbit/s", "latency": "20 ms"}
    >>> kinds = {"a": "host", "b": "host", "w": "switch"}
    >>> graph = Graph(nodes=[{"name": name, "kind": kind} for name, kind in kinds.items()],
    ...               links=[{"between": ["a", "w"], **wire}, {"between": ["w", "b"], **wire}])
    >>> fabric = graph.build()
    >>> path = fabric.router.paths(fabric.hosts[:1], fabric.hosts[1:])[0]
    >>> [fabric.link_names[link] for link in path]
    ['a->w', 'w->b']
    """

    kind: Literal["graph"] = "graph"
    nodes: tuple[Node, ...] = Field(min_length=1, max_length=100_000)
    links: tuple[GraphLink, ...] = Field(default=(), max_length=500_000)
    routing: Literal["shortest", "ecmp"] = "shortest"

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        names = [node.name for node in self.nodes]
        _refuse_repeats(names)
        known = set(names)
        for i, link in enumerate(self.links):
            at = ("links", i, "between")
            for end in link.between:
                if end not in known:
                    raise Impossible(f"{end}, which is no node", f"one of {_some(names)}", at=at)
            if link.between[0] == link.between[1]:
                raise Impossible(f"{link.between[0]} twice", "two nodes", at=at)
        if not self.hosts:
            raise Impossible("no node of kind host", "at least one", at=("nodes",))
        self._refuse_islands(names)
        return self

    def _refuse_islands(self, names: list[str]) -> None:
        """Every node must be reached from the first, and reach it."""
        there: dict[str, list[str]] = {name: [] for name in names}
        back: dict[str, list[str]] = {name: [] for name in names}
        for link in self.links:
            a, b = link.between
            there[a].append(b)
            back[b].append(a)
            if not link.directed:
                there[b].append(a)
                back[a].append(b)
        for neighbours, word in ((there, "from"), (back, "to")):
            reached = _reached(names[0], neighbours)
            cut_off = [name for name in names if name not in reached]
            if cut_off:
                raise Impossible(
                    f"no way {word} {names[0]} {_other(word)} {_some(cut_off)}", "a connected graph"
                )

    @property
    def hosts(self) -> tuple[HostNode, ...]:
        """Nodes of kind host, in the file's order."""
        return tuple(node for node in self.nodes if isinstance(node, HostNode))

    @property
    def host_count(self) -> int:
        """Number of hosts."""
        return len(self.hosts)

    def interiors(self) -> list[tuple[Host, int]]:
        """What hosts are inside, and how many of each."""
        return [(host.interior, 1) for host in self.hosts]

    def build(self, nvlink: NvlinkOf = no_nvlink, *, extra_hosts: int = 0, seed: int = 0) -> Fabric:
        """The fabric; arguments as for regular topologies.

        Raises:
            Impossible: a server of its own is wanted and no host named `server` is drawn.
        """
        names = [host.name for host in self.hosts]
        for server in range(extra_hosts):
            name = f"server{server}" if server else "server"
            if name not in names:
                raise Impossible(
                    "a server of its own (`placement.server: own`) in a graph without a place for it",
                    f"a host named `{name}`, or `placement.server` with a host's name",
                    f"draw {{name: {name}, kind: host, devices: {{count: 0}}}} and its link",
                )
        wiring = Wiring()
        groups = [Group(host.interior, i, 1) for i, host in enumerate(self.hosts)]
        interior = furnish(wiring, names, groups, nvlink)
        wiring.place([node.name for node in self.nodes if isinstance(node, SwitchNode)], "switch")
        _refuse_repeats(wiring.names, in_file=False)
        number = {name: i for i, name in enumerate(wiring.names)}
        for link in self.links:
            tail, head = (np.array([number[end]], dtype=np.int64) for end in link.between)
            _draw(wiring, tail, head, link)
        tail, head = wiring.ends()
        router = SearchRouter(len(wiring.names), tail, head, seed if self.routing == "ecmp" else None)
        return wiring.fabric(interior.hubs, interior.devices, router)


def _draw(wiring: Wiring, tail: IntArray, head: IntArray, link: GraphLink) -> None:
    if link.directed:
        wiring.arcs(tail, head, link)
    else:
        wiring.cable(tail, head, link)


def _reached(start: str, neighbours: dict[str, list[str]]) -> set[str]:
    seen, left = {start}, [start]
    while left:
        for other in neighbours[left.pop()]:
            if other not in seen:
                seen.add(other)
                left.append(other)
    return seen


def _refuse_repeats(names: list[str], *, in_file: bool = True) -> None:
    seen: set[str] = set()
    for i, name in enumerate(names):
        if name in seen:
            own = "a name of its own for each node (and device)"
            raise Impossible(f"two nodes named {name}", own, at=("nodes", i, "name") if in_file else ())
        seen.add(name)


def _other(word: str) -> str:
    return "to" if word == "from" else "from"


def _some(names: list[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
