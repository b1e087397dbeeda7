"""A fabric as a networkx graph, for pictures and as an oracle in tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulator.fabric import Fabric

if TYPE_CHECKING:
    import networkx as nx


def to_networkx(fabric: Fabric) -> nx.MultiDiGraph[str]:
    """Nodes by name (attribute `kind`), one edge a directed link (key: its number; `bandwidth`, `latency`).

    >>> from topologies.star import Star
    >>> graph = to_networkx(Star(hosts=2, link={"bandwidth": "8 Gbit/s", "latency": "1 us"}).build())
    >>> sorted(graph.nodes), graph.edges["h0", "s0", 0]
    (['h0', 'h1', 's0'], {'bandwidth': 1000000000.0, 'latency': 1e-06})
    """
    import networkx as nx

    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    names = fabric.node_names
    for name, kind in zip(names, fabric.node_kinds, strict=True):
        graph.add_node(name, kind=kind)
    columns = (fabric.tail.tolist(), fabric.head.tolist(), fabric.bandwidth.tolist(), fabric.latency.tolist())
    for link, (tail, head, bandwidth, latency) in enumerate(zip(*columns, strict=True)):
        graph.add_edge(names[tail], names[head], key=link, bandwidth=bandwidth, latency=latency)
    return graph
