"""The network alone: when does each flow of a table finish? `paceline replay`.

Drives the same `Network` as a run. A flow uses bandwidth from its start plus the latencies of its path on, so
finish = start + sum of latencies + transfer. Nothing to send, or src = dst: it finishes after the latency.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scenarios.csv_rows import Table, name, number, whole
from scenarios.include import TOPOLOGIES, Includes, Library
from scenarios.lift import lifted
from scenarios.machines import fabric_of
from scenarios.schema import Scenario
from simulator.activity import Activity
from simulator.clock import Clock
from simulator.errors import InputError
from simulator.fabric import Fabric, IntArray
from simulator.network import Network
from simulator.validation import did_you_mean, validate
from simulator.yaml_source import Mark, Node

_LINKS = {"link": name, "bandwidth_bytes_per_s": number(above=0), "latency_s": number(least=0)}
_ROUTES = {"flow": name, "hop": whole, "link": name}
_FLOWS = {
    "flow": name,
    "src": name,
    "dst": name,
    "size_bytes": number(least=0),
    "start_s": number(least=0),
    "weight": number(above=0),
}


@dataclass(frozen=True, slots=True)
class _Flow:
    line: int
    flow: str
    src: str
    dst: str
    size_bytes: float
    start_s: float
    weight: float = 1.0

    @property
    def idle(self) -> bool:
        return self.src == self.dst or self.size_bytes == 0


class _NoRouter:
    """Routes are given."""

    def paths(self, src: IntArray, dst: IntArray) -> IntArray:
        return np.full((len(src), 0), -1)


def replay(
    links: Path | None,
    routes: Path | None,
    flows: Path,
    out: Path,
    topology: str | Path | None = None,
) -> dict[str, Any]:
    """Simulate flows over a network and write when each finishes.

    Args:
        links: CSV with link,bandwidth_bytes_per_s,latency_s.
        routes: CSV with flow,hop,link; hops from 0 in path order.
        flows: CSV with flow,src,dst,size_bytes,start_s and optionally weight (part of contended links, 1).
        out: CSV to write: flow,finish_s, in the order of the flows.
        topology: FILE.yaml, FILE.yaml#NAME or a shipped name, instead of links and routes; then src and dst
            are host numbers.

    Returns:
        flows (their number), out, last_finish_s.

    Raises:
        InputError: what is wrong, with file and line.
    """
    table = Table(flows, _FLOWS, optional=["weight"])
    if topology is not None:
        if links is not None or routes is not None:
            raise InputError("either --topology, or --links and --routes", "both", "--topology")
        fabric = _fabric_of_topology(str(topology))
        its_flows = _read_flows(table)
        paths = _host_paths(fabric, table, its_flows)
    elif links is None or routes is None:
        raise InputError(
            "--links and --routes, or --topology", "neither" if links is routes else "one", "--links"
        )
    else:
        fabric, ids = _fabric_of_links(Table(links, _LINKS))
        its_flows = _read_flows(table)
        paths = _given_paths(Table(routes, _ROUTES), table, its_flows, ids)
    finish = _simulate(fabric, its_flows, paths)
    _write(out, its_flows, finish)
    return {"flows": len(its_flows), "out": str(out), "last_finish_s": max(finish, default=0.0)}


def _simulate(fabric: Fabric, flows: list[_Flow], paths: list[IntArray]) -> list[float]:
    clock = Clock()
    network = Network(clock, fabric)
    transfers = []
    for flow, path in zip(flows, paths, strict=True):
        begin = flow.start_s + float(sum(fabric.latency[path].tolist()))
        links, times = np.unique(path, return_counts=True)
        size = 0.0 if flow.idle else flow.size_bytes
        activity = Activity(links, times.astype(float), size, name=flow.flow, weight=flow.weight)
        transfers.append(network.start(activity, begin))
    clock.run()
    network.check_laws()
    return [float(transfer.value or 0.0) for transfer in transfers]


def _write(out: Path, flows: list[_Flow], finish: list[float]) -> None:
    try:
        with out.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["flow", "finish_s"])
            writer.writerows(zip((flow.flow for flow in flows), map(repr, finish), strict=True))
    except OSError as error:
        raise InputError("a file that can be written", error.strerror or "", "--out", file=str(out)) from None


def _read_flows(table: Table) -> list[_Flow]:
    flows: dict[str, _Flow] = {}
    for line, row in table.rows():
        if row["flow"] in flows:
            first = flows[row["flow"]].line
            raise table.error(
                line, "flow", "each flow once", f"{row['flow']!r} again", f"first in line {first}"
            )
        flows[row["flow"]] = _Flow(line, **row)
    return list(flows.values())


def _fabric_of_links(table: Table) -> tuple[Fabric, dict[str, int]]:
    ids: dict[str, int] = {}
    bandwidth, latency = [], []
    for line, row in table.rows():
        if row["link"] in ids:
            raise table.error(line, "link", "each link once", f"{row['link']!r} again")
        ids[row["link"]] = len(ids)
        bandwidth.append(row["bandwidth_bytes_per_s"])
        latency.append(row["latency_s"])
    nowhere = np.zeros(len(ids), np.int64)
    fabric = Fabric(
        node_names=("network",),
        node_kinds=("switch",),
        tail=nowhere,
        head=nowhere,
        bandwidth=np.array(bandwidth, float),
        latency=np.array(latency, float),
        hosts=np.zeros(0, np.int64),
        devices=(),
        router=_NoRouter(),
    )
    return fabric, ids


def _given_paths(table: Table, flow_table: Table, flows: list[_Flow], ids: dict[str, int]) -> list[IntArray]:
    """The path of each flow as link ids."""
    hops: dict[str, dict[int, int]] = {flow.flow: {} for flow in flows}
    for line, row in table.rows():
        flow, hop, link = row["flow"], row["hop"], row["link"]
        if flow not in hops:
            raise table.error(line, "flow", f"a flow of {flow_table.path.name}", repr(flow))
        if link not in ids:
            raise table.error(line, "link", "one of the links", repr(link), did_you_mean(link, ids))
        if hop in hops[flow]:
            raise table.error(line, "hop", f"each hop of flow {flow} once", f"{hop} again")
        hops[flow][hop] = ids[link]
    paths = []
    for one in flows:
        path = hops[one.flow]
        if not path and not one.idle:
            raise flow_table.error(one.line, "flow", f"its route in {table.path.name}", repr(one.flow))
        if path and max(path) != len(path) - 1:
            found = ",".join(map(str, sorted(path)[:8]))
            raise table.error(None, "hop", f"hops 0 to {len(path) - 1} of flow {one.flow}", found)
        paths.append(np.array([path[hop] for hop in range(len(path))], np.int64))
    return paths


def _fabric_of_topology(asked: str) -> Fabric:
    """The network of a topology file, read as the cluster of the smallest scenario."""
    document, library = Library().document(asked, Mark(None), TOPOLOGIES, "--topology")

    def here(content: Any) -> Node:
        return Node(content, document.at, document.key)

    cluster = {key: node for key, node in document.content.items() if key not in ("paceline", "name")}
    scenario = here({"cluster": here(cluster), "stop": here({"steps": here(1)})})
    return fabric_of(validate(Scenario, lifted(Includes((Scenario,), library).all(scenario)), {}))


def _host_paths(fabric: Fabric, table: Table, flows: list[_Flow]) -> list[IntArray]:
    """The path of each flow between hosts given by number."""
    ends = np.array([[_host(fabric, table, flow, end) for end in ("src", "dst")] for flow in flows], np.int64)
    nodes = fabric.hosts[ends.reshape(-1, 2)]
    return [path[path >= 0] for path in fabric.router.paths(nodes[:, 0], nodes[:, 1])]


def _host(fabric: Fabric, table: Table, flow: _Flow, end: str) -> int:
    text: str = getattr(flow, end)
    hosts = len(fabric.hosts)
    if not text.isascii() or not text.isdigit() or int(text) >= hosts:
        raise table.error(flow.line, end, f"a host number, 0 to {hosts - 1}", repr(text))
    return int(text)
