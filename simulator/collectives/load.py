"""What a part of a collective puts on the links, and how its latency bounds its rate.

A part is a bundle: one activity of rate rho loads link l with m_l rho, where m_l edges pass over l. An edge
carries `rounds` chunks of s bytes; a member of a ring sends chunk r + 1 when chunk r has left and its
neighbour's chunk r has come. So latency is neither added nor hidden; on a quiet network, with a_i the latency
and r_i the rate of edge i,

    rounds * max(s / r_min, mean_i(a_i + s / r_i))      a send ends when its bytes have left
    rounds * max_i(a_i + s / r_i)                       a send ends when its bytes have arrived

In the first form a round is as long as the mean edge takes, or the slowest by itself. In half a turn, the
n - 1 rounds of a reduce-scatter or all-gather, the longest way leaves the shortest edge out, and a slow
edge's last chunk has still to arrive: the longer of max_i(s / r_i + a_i / (n-1)) and
(sum_i(a_i + s / r_i) - min_i(a_i + s / r_i)) / (n-1) a round.
A part of one round hides nothing: its latency follows its bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from simulator.collectives.plan import Part, Step
from simulator.fabric import FloatArray, IntArray
from simulator.network import Network


@dataclass(frozen=True, eq=False)
class Load:
    """A part laid over a fabric, for a buffer of one byte.

    Attributes:
        part: what moves.
        links: ids of the links used, ascending, shape (k,).
        weights: edges over each, shape (k,).
        latency: seconds of each edge, shape (edges,).
        pace: seconds per byte of each edge when the part (where nothing is shared: its stage) is alone, shape
            (edges,).
        overhead: host seconds before each message.
        slowest: seconds per byte that a network without sharing needs; 0 where links are shared.
        paths: links of each edge, padded with -1, shape (edges, hops).
    """

    part: Part
    links: IntArray
    weights: FloatArray
    latency: FloatArray
    pace: FloatArray
    overhead: float
    slowest: float
    max_latency: float
    paths: IntArray

    @cached_property
    def hops(self) -> IntArray:
        """`paths` as places in `links`; where a path has no more links, the place behind the last."""
        return np.where(self.paths >= 0, np.searchsorted(self.links, self.paths), len(self.links))

    def pace_on(self, bandwidth: FloatArray) -> FloatArray:
        """`pace` if links have these bandwidths, bytes/s, shape (links of the fabric,)."""
        seconds = np.append(self.weights / bandwidth[self.links], 0.0)
        pace: FloatArray = seconds[self.hops].max(axis=1, initial=0.0)
        return pace

    def cap(self, chunk: float, send_ends: str, pace: FloatArray | None = None) -> float:
        """Largest rate, bytes/s, for chunks of `chunk` bytes; `pace`: another than the load's own."""
        if chunk <= 0.0:
            return math.inf
        seconds = chunk * self.slowest
        if self.part.rounds > 1 and self.max_latency + self.overhead > 0.0:
            sending = self.overhead + chunk * (self.pace if pace is None else pace)
            seconds = max(seconds, float(self.round_seconds(sending, send_ends).max()))
        return chunk / seconds if seconds > 0.0 else math.inf

    def round_seconds(self, sending: FloatArray, send_ends: str) -> FloatArray:
        """Seconds a round takes each edge that needs `sending` seconds to send a chunk, shape (edges,)."""
        if send_ends == "arrived":
            return sending + self.latency
        if not self.part.relay:
            return sending
        hop, edges = sending + self.latency, len(sending)
        if self.part.rounds >= edges:
            slowest, longest = sending, float(hop.mean())
        else:
            slowest, longest = (
                sending + self.latency / self.part.rounds,
                float(hop.sum() - hop.min()) / (edges - 1),
            )
        seconds: FloatArray = np.maximum(slowest, longest)
        return seconds

    def after(self, chunk: float, send_ends: str) -> float:
        """Seconds from the last byte's leaving to the end of the part."""
        if self.part.rounds == 1 or (send_ends == "left" and not self.part.relay):
            return self.max_latency
        if chunk > 0.0:
            return 0.0
        empty = np.full(len(self.latency), self.overhead)
        return self.part.rounds * float(self.round_seconds(empty, send_ends).max())


def lay(network: Network, nodes: IntArray, steps: Sequence[Step]) -> list[Load]:
    """Lay all steps of a plan over the fabric, with one query to the router."""
    if not steps:
        return []
    fabric = network.fabric
    src = nodes[np.concatenate([s.part.src for s in steps])]
    dst = nodes[np.concatenate([s.part.dst for s in steps])]
    paths = fabric.router.paths(src, dst)
    latency = fabric.path_latency(paths)
    loads, begin = [], 0
    for step in steps:
        edges = slice(begin, begin + len(step.part.src))
        begin = edges.stop
        loads.append(_load(network, step.part, paths[edges], latency[edges]))
    if network.fidelity == "closed_form":
        stage = np.repeat([s.stage for s in steps], [len(s.part.src) for s in steps])
        loads = _unshared(loads, _stage_pace(network.bandwidth, paths, stage))
    return loads


def _stage_pace(bandwidth: FloatArray, paths: IntArray, stage: IntArray) -> FloatArray:
    """Seconds per byte of each edge if all edges of its stage share each link equally, shape (edges,)."""
    pace = np.zeros(len(paths))
    for each in np.unique(stage):
        rows = stage == each
        pace[rows] = _pace(bandwidth, paths[rows])[2]
    return pace


def _unshared(loads: list[Load], pace: FloatArray) -> list[Load]:
    """Loads at the pace of their stages, which they keep by themselves: nothing is shared."""
    parts = np.split(pace, np.cumsum([len(load.pace) for load in loads])[:-1])
    return [
        replace(load, pace=part, slowest=float(part.max())) for load, part in zip(loads, parts, strict=True)
    ]


def _pace(bandwidth: FloatArray, paths: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Links used, edges over each, seconds per byte of each edge if all share each link equally."""
    used = paths >= 0
    on = paths[used]
    each = np.zeros(paths.shape)
    if 8 * len(on) < len(bandwidth):
        links, place, count = np.unique(on, return_inverse=True, return_counts=True)
        each[used] = (count / bandwidth[links])[place]
    else:
        counts = np.bincount(on, minlength=len(bandwidth))
        links = np.flatnonzero(counts)
        count = counts[links]
        each = np.append(counts / bandwidth, 0.0)[paths]  # the pad -1 reads the last
    pace: FloatArray = each.max(axis=1, initial=0.0)
    return links, count, pace


def _load(network: Network, part: Part, paths: IntArray, latency: FloatArray) -> Load:
    links, count, pace = _pace(network.bandwidth, paths)
    overhead, longest = network.message_overhead, float(latency.max())
    return Load(part, links, count.astype(np.float64), latency, pace, overhead, 0.0, longest, paths)
