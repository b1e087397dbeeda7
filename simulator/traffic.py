"""What went over the network, for the timeline: one row a transfer, and what each puts on links."""

from __future__ import annotations

import numpy as np

from simulator.fabric import IntArray
from simulator.network import Network, Record
from simulator.placement import Workers
from simulator.result import Coded, Columns

MOST_LOADS = 2_000_000
"""Rows of the table of loads; a run with more of them leaves it out."""


def transfers(network: Network, workers: Workers, server_node: int | None) -> Columns | None:
    """One row a finished activity, in order of ending; None if the network kept no log."""
    if network.log is None:
        return None
    rank = _ranks(network, workers, server_node)
    log = network.log
    return {
        "name": Coded.of(record.name or "message" for record in log),
        "begin_s": np.array([record.begin for record in log], dtype=float),
        "end_s": np.array([record.end for record in log], dtype=float),
        "bytes": np.array([record.total_bytes for record in log], dtype=float),
        "src": rank[np.array([record.src for record in log], dtype=np.int64)],
        "dst": rank[np.array([record.dst for record in log], dtype=np.int64)],
    }


def _ranks(network: Network, workers: Workers, server_node: int | None) -> IntArray:
    """Who sits on a node: a worker's rank, for the server the number of workers, else -1 (as at index -1)."""
    rank = np.full(len(network.fabric.node_names) + 1, -1, dtype=np.int64)
    order = np.arange(len(workers.node))[::-1]  # of workers on one node the first
    rank[workers.node[order]] = order
    if server_node is not None and rank[server_node] < 0:
        rank[server_node] = len(workers.node)
    return rank


def loads(network: Network) -> Columns | None:
    """One row a (transfer, link); None without a log, or where there would be too many rows."""
    if network.log is None or sum(map(_links_of, network.log)) > MOST_LOADS:
        return None
    counts = [_links_of(record) for record in network.log]
    activities = [record.activity for record in network.log]
    empty = [np.zeros(0)]
    return {
        "transfer": np.repeat(np.arange(len(counts)), counts),
        "link": np.concatenate([a.links for a in activities] or empty).astype(np.int64),
        "bytes": np.concatenate([a.weights * a.size for a in activities] or empty),
    }


def _links_of(record: Record) -> int:
    return len(record.activity.links)
