"""What a part of a collective puts on the links, and how its latency bounds its rate.

A part is a bundle: one activity of rate rho loads link l with m_l rho, where m_l edges pass over l. An edge
carries `rounds` chunks of s bytes; a member sends chunk r + 1 when chunk r has left and its neighbour's
chunk r has come. So latency is neither added nor hidden; on a quiet network, with a_i the latency and r_i
the rate of edge i,

    rounds * max(s / r_min, mean_i(a_i + s / r_i))      a send ends when its bytes have left
    rounds * max_i(a_i + s / r_i)                       a send ends when its bytes have arrived

(`schema.md` 7): the second term is a cap on the rate, s / mean_i(...) or s / max_i(...), the first is the
fluid share. A part of one round hides nothing: its latency follows its bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.collectives.plan import Part
from simulator.fabric import Fabric, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Load:
    """A part laid over a fabric, for a buffer of one byte.

    Attributes:
        part: what moves.
        links: ids of the links used, ascending, shape (k,).
        weights: edges over each, shape (k,).
        latency: seconds of each edge, with the host's overhead per message, shape (edges,).
        rate: bytes/s of each edge when the part is alone, shape (edges,).
        mean_latency, mean_pace: means over edges of the latency and of 1 / rate.
    """

    part: Part
    links: IntArray
    weights: FloatArray
    latency: FloatArray
    rate: FloatArray
    mean_latency: float
    mean_pace: float
    max_latency: float

    def cap(self, chunk: float, send_ends: str) -> float:
        """Bytes/s that latency leaves of the rate, for chunks of `chunk` bytes; inf for one round."""
        if self.part.rounds == 1 or self.max_latency == 0.0:
            return np.inf
        if send_ends == "arrived":
            return chunk / float((self.latency + chunk / self.rate).max())
        return chunk / (self.mean_latency + chunk * self.mean_pace)

    def after(self, chunk: float, send_ends: str) -> float:
        """Seconds from the last byte's leaving to the end of the part."""
        if self.part.rounds == 1:
            return self.max_latency
        if chunk > 0.0:
            return 0.0
        return self.part.rounds * (self.max_latency if send_ends == "arrived" else self.mean_latency)


def lay(fabric: Fabric, part: Part, paths: IntArray, overhead: float) -> Load:
    """Lay a part over the paths of its edges, shape (edges, hops) padded with -1."""
    used = paths[paths >= 0]
    if len(paths) == 1:
        links, weights = np.sort(used), np.ones(len(used))
        rate = fabric.path_bandwidth(paths)
    else:
        count = np.bincount(used, minlength=fabric.links)
        links = np.flatnonzero(count)
        weights = count[links].astype(np.float64)
        share = np.append(fabric.bandwidth / np.maximum(count, 1), np.inf)  # the pad -1 reads the last
        rate = share[paths].min(axis=1, initial=np.inf)
    latency = fabric.path_latency(paths) + overhead
    return Load(
        part,
        links,
        weights,
        latency,
        rate,
        float(latency.mean()),
        float((1.0 / rate).mean()),
        float(latency.max()),
    )


def lay_all(fabric: Fabric, nodes: IntArray, parts: list[Part], overhead: float) -> list[Load]:
    """Lay many parts, with one query to the router."""
    if not parts:
        return []
    src = nodes[np.concatenate([p.src for p in parts])]
    dst = nodes[np.concatenate([p.dst for p in parts])]
    paths = fabric.router.paths(src, dst)
    ends = np.cumsum([len(p.src) for p in parts]).tolist()
    return [
        lay(fabric, p, paths[end - len(p.src) : end], overhead) for p, end in zip(parts, ends, strict=True)
    ]
