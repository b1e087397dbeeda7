"""How a bundle that shares links gets on, edge by edge.

A bundle alone on its links moves all its edges at one rate. Where it shares links they do not fare alike:

*Pace of an edge.* While an edge of a ring sends, it has the share that one more message would have on its
path; latency and slow neighbours leave it idle in between. So another ring on a link is there part of the
time, and an edge over several such links has the mean of the least of their shares, which is less than the
least of the means. Each link is taken to be in one of two states, its rings all sending or all idle, with the
mean of what they leave on average; the links of a path are taken to be independent.

*Run-ahead.* A member may send what it has received: edge e is at most one chunk ahead of edge e - 1, so up
to n - 1 chunks, half an all-reduce, ahead of a slow one. Links that are slow one after the other do not add
up. The bytes p_e that each edge has moved are kept: after t seconds at speeds v_e

    p_e = min_k (p_{e-k} + v_{e-k} t + k s)

and the bundle ends when the last edge has moved its bytes at its present speed. Meanwhile each edge loads
its links at the speed it really has (averaged until the next look). The messages of an all-to-all wait for
nobody.

With nobody else on its links all this is the formula of `load`. tests/validation compares it with messages.
"""

from __future__ import annotations

import math

import numpy as np

from simulator.collectives.load import Load
from simulator.fabric import FloatArray, IntArray
from simulator.steering import Course, Crowd

MOST_EDGES = 4096  # larger bundles (all-to-alls of many) go at one rate
LOOKS = 4  # a course that will change by itself is set anew after this part of the time left
_MOST = 1e30  # bytes/s of an edge inside a node
_LEAST_WEIGHT = 1e-6  # of an edge that waits
_EVEN = 1 - 1e-9


def progress(load: Load, chunk: float, send_ends: str, begin: float) -> Progress | None:
    """The progress of a bundle, None for what has one edge, no bytes, or no edges that differ."""
    edges = len(load.part.src)
    if chunk <= 0.0 or not 1 < edges <= MOST_EDGES or (load.part.rounds > 1 and not load.part.relay):
        return None
    return Progress(load, chunk, send_ends, begin)


class Progress:
    """The edges of a bundle under way (a `Steering`).

    Args:
        load: the bundle.
        chunk: bytes of a round.
        send_ends: `left` or `arrived`.
        begin: when it began, s.
    """

    def __init__(self, load: Load, chunk: float, send_ends: str, begin: float) -> None:
        self._load = load
        self._chunk = chunk
        self._send_ends = send_ends
        self._total = chunk * load.part.rounds
        self.pauses = load.part.rounds > 1
        self._alone = 1.0 / np.maximum(load.pace, 1.0 / _MOST)
        self._moved = np.zeros(len(self._alone))  # bytes, each edge
        self._speed = self._speeds(self._alone)
        self._load_of: FloatArray | None = None  # each edge's load per unit of rate; None: alone so far
        self._since = begin

    def steer(self, now: float, crowd: Crowd, moved: float) -> Course:
        """See `Steering`."""
        if self._load_of is None:
            self._moved = self.moved_after(now - self._since)
        else:
            self._moved = np.minimum(self._moved + self._load_of * moved, self._total)
        self._since = now
        speed = self._speed = self._speeds(self._rates(crowd))
        left = float(((self._total - self._moved) / speed).max())
        rate = float(speed.min())
        look = self._look(left, rate, len(crowd.links) > 0)
        real = speed if look == math.inf else (self.moved_after(look) - self._moved) / look
        self._load_of = real / rate if len(crowd.links) else None
        return Course(rate, self._weights(real / rate, crowd), left, look if look < left else math.inf)

    def _look(self, left: float, rate: float, crowded: bool) -> float:
        """Seconds after which the edges' speeds will have changed; inf if they need not be known."""
        even = rate >= self._speed.max() * _EVEN and self._moved.min() >= self._moved.max() * _EVEN
        if even or left <= 0.0 or not crowded:
            return math.inf
        shortest = self._chunk / rate / (1 if self.pauses else 2 * LOOKS)
        return min(left, max(left / LOOKS, shortest))

    def moved_after(self, seconds: float) -> FloatArray:
        """Bytes each edge will have moved, if its speed and those before it stay, shape (edges,)."""
        moved = self._moved + self._speed * seconds
        if self.pauses:
            ahead = np.arange(2 * len(moved)) * self._chunk
            moved = (np.minimum.accumulate(np.tile(moved, 2) - ahead) + ahead)[len(moved) :]
        return np.minimum(moved, self._total)

    def _speeds(self, rate: FloatArray) -> FloatArray:
        """Bytes/s of each edge, latency counted, if it gets `rate` while it sends."""
        if not self.pauses:
            return rate
        sending = self._load.overhead + self._chunk / rate
        return self._chunk / self._load.round_seconds(sending, self._send_ends)

    def _rates(self, crowd: Crowd) -> FloatArray:
        """Bytes/s of each edge while it sends, in the mean over the states of its links."""
        load = self._load
        place = np.full(len(load.links) + 1, -1)
        place[np.searchsorted(load.links, crowd.links)] = np.arange(len(crowd.links))
        met = place[load.hops]
        edges = np.flatnonzero((met >= 0).any(axis=1))
        rate = self._alone.copy()
        if len(edges):
            rate[edges] = least_share(crowd, met[edges], rate[edges])
        return rate

    def _weights(self, speed: FloatArray, crowd: Crowd) -> FloatArray:
        """Load on the crowd's links, from edges at `speed` in units of the bundle's rate, shape (k,)."""
        load = self._load
        each = np.repeat(speed, load.hops.shape[1])
        total = np.bincount(load.hops.ravel(), each, minlength=len(load.links) + 1)
        return np.maximum(total[np.searchsorted(load.links, crowd.links)], _LEAST_WEIGHT)


def least_share(crowd: Crowd, met: IntArray, alone: FloatArray) -> FloatArray:
    """Mean of the least share along each path, shape (edges,).

    Args:
        crowd: the shared links.
        met: places in `crowd` of the shared links on each path, -1 for none, shape (edges, hops).
        alone: what an edge has at the most, shape (edges,).

    A link is idle with probability q, and then leaves more. Over the thresholds t of all shares,
    E[min] = sum dt prod_hops P(share >= t).
    """
    most = alone[:, None]
    gap = crowd.idle - crowd.busy
    idle_part = np.where(gap > 0.0, (crowd.mean - crowd.busy) / np.where(gap > 0.0, gap, 1.0), 1.0)
    q = np.where(met < 0, 1.0, idle_part[met])
    idle = np.where(met < 0, most, np.minimum(crowd.idle[met], most))
    busy = np.where(met < 0, most, np.minimum(crowd.busy[met], most))
    threshold = np.sort(np.concatenate([idle, busy], axis=1), axis=1)
    reached = np.ones_like(threshold)
    for hop in range(met.shape[1]):
        column = [hop]
        share = q[:, column] * (idle[:, column] >= threshold)
        reached *= share + (1.0 - q[:, column]) * (busy[:, column] >= threshold)
    mean: FloatArray = (np.diff(threshold, axis=1, prepend=0.0) * reached).sum(axis=1)
    return mean
