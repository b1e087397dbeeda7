"""How a bundle that shares links gets on, edge by edge.

A bundle alone on its links moves all its edges at one rate. Where it shares links they do not fare alike:

*Pace of an edge.* While an edge of a ring sends, it has the share that one more message would have on its
path; latency and slow neighbours leave it idle in between. So another ring on a link is there part of the
time, and an edge over several such links has the mean of the least of their shares, which is less than the
least of the means. Each link is taken to be in one of two states, its rings all sending or all idle, with the
mean of what they leave on average. The links of a path are taken to be independent, but for those with the
same ring, whose edges all send at the same time.

*Run-ahead.* A member may send what it has received: edge e is at most one chunk ahead of edge e - 1, so up
to n - 1 chunks, half an all-reduce, ahead of a slow one. Links that are slow one after the other do not add
up. The bytes p_e that each edge has moved are kept: after t seconds at speeds v_e

    p_e = min_k (p_{e-k} + v_{e-k} t + (k - u_e) s),    u_e = (1 + v_min / v_e) / 2

with u_e s the mean part of a chunk that is under way and cannot be sent on,
and the bundle ends when the last edge has moved its bytes at its present speed. Meanwhile each edge loads
its links at the speed it really has (averaged until the next look). The messages of an all-to-all wait for
nobody. Bundles of more than `MOST_EDGES` edges, where the slow links of a moment even out, do without this:
they keep one rate, that of their slowest edge, and look at their crowd from time to time only.

With nobody else on its links all this is the formula of `load`. tests/validation compares it with messages.
"""

from __future__ import annotations

import math

import numpy as np

from simulator.collectives.load import Load
from simulator.fabric import FloatArray, IntArray
from simulator.steering import Course, Crowd

MOST_EDGES = 256  # larger bundles go at one rate
MOST_PACED = 100_000  # still larger ones (all-to-alls of many) at their share, whatever the pace of an edge
RESTS = 16  # a bundle of one rate looks at its crowd after this part of the time left
LOOKS = 4  # a course that will change by itself is set anew after this part of the time left
_MOST = 1e30  # bytes/s of an edge inside a node
_EVEN, _DONE = 1 - 1e-9, 1e-9


def progress(load: Load, chunk: float, send_ends: str, begin: float, team: int = 0) -> Progress | None:
    """The progress of a bundle, None for what has one edge, no bytes, or no edges that differ."""
    edges = len(load.part.src)
    if chunk <= 0.0 or not 1 < edges <= MOST_PACED or (load.part.rounds > 1 and not load.part.relay):
        return None
    return Progress(load, chunk, send_ends, begin, team)


def _rates_of(pace: FloatArray) -> FloatArray:
    """Bytes/s of edges that take `pace` seconds per byte."""
    rates: FloatArray = 1.0 / np.maximum(pace, 1.0 / _MOST)
    return rates


class Progress:
    """The edges of a bundle under way (a `Steering`).

    Args:
        load: the bundle.
        chunk: bytes of a round.
        send_ends: `left` or `arrived`.
        begin: when it began, s.
        team: a number that rings which turn in step have in common.
    """

    def __init__(self, load: Load, chunk: float, send_ends: str, begin: float, team: int = 0) -> None:
        self._load = load
        self._chunk = chunk
        self._send_ends = send_ends
        self._total = chunk * load.part.rounds
        self.pauses = load.part.rounds > 1
        self.team = team
        self._one_rate = len(load.pace) > MOST_EDGES
        self._alone = self._best = _rates_of(load.pace)
        self._moved = np.zeros(len(self._alone))  # bytes, each edge
        self._speed = self._speeds(self._alone)
        self._load_of: FloatArray | None = None  # each edge's load per unit of rate; None: alone so far
        self._since = begin

    def steer(self, now: float, crowd: Crowd, moved: float) -> Course:
        """See `Steering`."""
        if self._load_of is None:
            self._moved = self.moved_after(now - self._since)
        else:
            loaded = np.minimum(self._load_of * moved, self._best * (now - self._since))
            self._moved = np.minimum(self._moved + loaded, self._total)
        self._since, self._best = now, self._alone
        places = np.searchsorted(self._load.links, crowd.links)
        speed = self._speed = self._speeds(self._rates(crowd, places))
        left = float(((self._total - self._moved) / speed).max())
        rate = float(speed.min())
        look = self._look(left, rate, len(places) > 0)
        real = speed if look == math.inf else (self.moved_after(look) - self._moved) / look
        self._load_of = real / rate if len(places) else None
        rest = max(left, self._total / rate / 4) / RESTS if self._one_rate else 0.0
        look = look if look < left else math.inf
        return Course(rate, self._most(rate, left), self._weights(real / rate, places), left, look, rest)

    def refit(self, now: float, bandwidth: FloatArray) -> float:
        """See `Steering`."""
        if self._load_of is None:  # alone at one rate, as far as the network goes
            self._moved = np.minimum(self._moved + self._speed.min() * (now - self._since), self._total)
            self._since = now
        pace = self._load.pace_on(bandwidth)
        self._alone = _rates_of(pace)
        self._best = np.maximum(self._best, self._alone)
        if self._load_of is None:
            self._speed = self._speeds(self._alone)
        return self._load.cap(self._chunk, self._send_ends, pace)

    def _most(self, rate: float, left: float) -> float:
        """What the bundle could use if others left it more: no more than it means to have if it pauses."""
        if self.pauses or left <= 0.0:
            return rate
        return rate * left / float(((self._total - self._moved) / self._alone).max())

    def _look(self, left: float, rate: float, crowded: bool) -> float:
        """Seconds after which the edges' speeds will have changed; inf if they need not be known."""
        even = rate >= self._speed.max() * _EVEN and self._moved.min() >= self._moved.max() * _EVEN
        if even or left <= 0.0 or not crowded:
            return math.inf
        if self.pauses:
            return min(left, max(left / LOOKS, self._chunk / rate))
        to_go = (self._total - self._moved) / self._speed
        next_done = float(to_go[to_go > left * _DONE].min())
        return min(left, max(next_done, left / LOOKS**2))

    def moved_after(self, seconds: float) -> FloatArray:
        """Bytes each edge will have moved, if its speed and those before it stay, shape (edges,)."""
        from simulator.collectives import edges  # compiled: only where links are shared

        after = edges.advance(self._moved, self._speed, seconds, self._total)
        if self.pauses:
            edges.hold_back(after, self._moved, self._speed, self._chunk)
        return after

    def _speeds(self, rate: FloatArray) -> FloatArray:
        """Bytes/s of each edge, latency counted, if it gets `rate` while it sends."""
        speed = rate
        if self.pauses:
            sending = self._load.overhead + self._chunk / rate
            speed = self._chunk / self._load.round_seconds(sending, self._send_ends)
        return np.full_like(speed, speed.min()) if self._one_rate else speed

    def _rates(self, crowd: Crowd, places: IntArray) -> FloatArray:
        """Bytes/s of each edge while it sends, in the mean over the states of its links."""
        from simulator.collectives import edges

        place = np.full(len(self._load.links) + 1, -1)
        place[places] = np.arange(len(places))
        rate = np.empty_like(self._alone)
        states = np.stack([crowd.mean, crowd.idle, crowd.busy])
        edges.rates(rate, self._alone, self._load.hops, place, states, crowd.who)
        return rate

    def _weights(self, speed: FloatArray, places: IntArray) -> FloatArray:
        """Load on the crowd's links, from edges at `speed` in units of the bundle's rate, shape (k,)."""
        from simulator.collectives import edges

        weights, total = np.empty(len(places)), np.empty(len(self._load.links) + 1)
        edges.weigh(total, speed, self._load.hops, places, weights)
        return weights
