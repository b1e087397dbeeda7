"""Gossip graphs: who averages with whom at a step, and with which weights. Nothing to do with cables.

A graph gives the *sources* of each worker (whose values it mixes in), its weights make the mixing matrix W
doubly stochastic: for an edge of workers with d_i and d_j sources `metropolis` takes 1 / (1 + max(d_i, d_j)),
which for equal degrees d is 1 / (d + 1) throughout (ring 1/3); `max_degree` takes 1 / (1 + max d) on every
edge. The rest stays with the worker. `lazy` = s makes it s I + (1 - s) W.

Reference: L. Xiao, S. Boyd, Fast linear iterations for distributed averaging, 2004 (weights).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import lru_cache
from math import isqrt
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from simulator.fabric import IntArray
from simulator.peers import Mixing
from simulator.spec import Spec
from simulator.streams import Draws
from topologies import spectral
from topologies.links import Impossible

MOST_ENTRIES = 30_000_000
"""Workers times sources of a worker."""


class GossipGraph(Spec, ABC):
    """What all gossip graphs share.

    Attributes:
        graph: its name in files.
        weights: rule of the mixing matrix.
        lazy: share s of its own value that a worker keeps out of the mixing.
    """

    graph: str
    weights: Literal["metropolis", "max_degree"] = "metropolis"
    lazy: float = Field(default=0.0, ge=0, lt=1)

    def period(self, n: int) -> int | None:
        """Steps after which the graph repeats; None where it is drawn anew at each step."""
        return 1

    @abstractmethod
    def sources(self, step: int, n: int, draws: Draws) -> IntArray:
        """Whose values each of n workers mixes in, shape (n, k); rows padded with -1 at the end."""

    def targets(self, step: int, n: int, draws: Draws) -> IntArray:
        """Whom each worker sends to; the sources, unless edges are one-way."""
        return self.sources(step, n, draws)

    def neighbours(self, worker: int, step: int, n: int, draws: Draws) -> IntArray:
        """Workers that `worker` may send to at its step."""
        row: IntArray = _targets(self, self._phase(step, n), n, draws.seed)[worker]
        return row[row >= 0]

    def mixing(self, step: int, n: int, draws: Draws) -> Mixing:
        """The step's mixing matrix."""
        return _mixing(self, self._phase(step, n), n, draws.seed)

    def spectral_gap(self, n: int) -> float:
        """How fast n workers agree: 1 - the factor by which a step shrinks their distance from the mean.

        That factor is the second largest |eigenvalue| of W; over a period the L-th root of the product's
        second singular value; where W is drawn, sqrt(rho), with rho the second eigenvalue of E[W^T W]
        (W. Zhang et al., Improving efficiency in large-scale decentralized distributed training, 2020).
        """
        return spectral.gap_over_a_period(self, n)

    def _phase(self, step: int, n: int) -> int:
        period = self.period(n)
        return step if period is None else step % period


@lru_cache(maxsize=1024)
def _targets(graph: GossipGraph, step: int, n: int, seed: int) -> IntArray:
    return graph.targets(step, n, Draws(seed))


@lru_cache(maxsize=64)
def _mixing(graph: GossipGraph, step: int, n: int, seed: int) -> Mixing:
    return weigh(graph.sources(step, n, Draws(seed)), graph.weights, graph.lazy)


def weigh(sources: IntArray, rule: str, lazy: float = 0.0) -> Mixing:
    """Doubly stochastic weights of a graph whose edges go both ways, or whose workers have equally many."""
    there = sources >= 0
    degree = there.sum(axis=1)
    most = np.maximum(degree[:, None], degree[sources]) if rule == "metropolis" else degree.max(initial=0)
    weights = np.where(there, (1 - lazy) / (1.0 + most), 0.0)
    return Mixing(sources, weights, 1.0 - weights.sum(axis=1))


def _around(n: int, offsets: list[int]) -> IntArray:
    """Worker i with i + each offset, without repeats and itself; shape (n, k)."""
    distinct = sorted({offset % n for offset in offsets} - {0})
    _within(n, len(distinct))
    return (np.arange(n, dtype=np.int64)[:, None] + np.array(distinct, dtype=np.int64)) % n


def _within(n: int, k: int) -> None:
    if n * k > MOST_ENTRIES:
        raise Impossible(f"{n} workers with {k} neighbours each", f"at most {MOST_ENTRIES:,} pairs")


class RingGraph(GossipGraph):
    """Worker i with i - 1 and i + 1, weights 1/3; gap 1 - (1 + 2 cos(2 pi / n)) / 3."""

    graph: Literal["ring"] = "ring"

    def sources(self, step: int, n: int, draws: Draws) -> IntArray:
        """Left and right."""
        return _around(n, [-1, 1])


class CompleteGraph(GossipGraph):
    """Everyone with everyone, weights 1/n: an all-reduce; gap 1."""

    graph: Literal["complete"] = "complete"

    def sources(self, step: int, n: int, draws: Draws) -> IntArray:
        """All others."""
        _within(n, n)
        return _around(n, list(range(1, n)))


class RandomMatching(GossipGraph):
    """At each step random pairs, weights 1/2; of an odd number one worker rests."""

    graph: Literal["random_matching"] = "random_matching"

    def period(self, n: int) -> int | None:
        """Never repeats."""
        return None

    def sources(self, step: int, n: int, draws: Draws) -> IntArray:
        """The partner, -1 for the worker that rests; shape (n, 1)."""
        order = draws.permutation("gossip/random_matching", step, n)
        first, second = order[0 : n - 1 : 2], order[1:n:2]
        partner = np.full((n, 1), -1, dtype=np.int64)
        partner[first, 0], partner[second, 0] = second, first
        return partner

    def spectral_gap(self, n: int) -> float:
        """Rho = (n - 2) / (2 (n - 1)) for even n, 1/2 for odd n; 1 - sqrt(rho) if not lazy."""
        rho = (n - 2) / (2 * (n - 1)) if n % 2 == 0 else 0.5
        return spectral.gap_of_moments(rho if n > 1 else 0.0, rho if n > 1 else 0.0, self.lazy)


class RandomRing(GossipGraph):
    """At each step a ring in a random order, weights 1/3.

    Reference: W. Zhang et al., Improving efficiency in large-scale decentralized distributed training, 2020.
    """

    graph: Literal["random_ring"] = "random_ring"

    def period(self, n: int) -> int | None:
        """Never repeats."""
        return None

    def sources(self, step: int, n: int, draws: Draws) -> IntArray:
        """Left and right in that order."""
        order = draws.permutation("gossip/random_ring", step, n).astype(np.int64)
        sources = np.empty_like(_around(n, [-1, 1]))
        sources[order] = order[_around(n, [-1, 1])]
        return sources

    def spectral_gap(self, n: int) -> float:
        """Rho = 1/3 - (2/3) / (n - 1), falling to the constant gap 1 - 1 / sqrt(3)."""
        rho = (n - 3) / (3 * (n - 1)) if n > 3 else 0.0
        return spectral.gap_of_moments(rho, rho, self.lazy)


class ExponentialGraph(GossipGraph):
    """Worker i receives from i - 2^j for every 2^j < n, one way, equal weights.

    Reference: M. Assran et al., Stochastic gradient push, ICML 2019.
    """

    graph: Literal["exponential"] = "exponential"

    def sources(self, step: int, n: int, draws: Draws) -> IntArray:
        """Distances 1, 2, 4 ... behind."""
        return _around(n, [-(2**j) for j in range(_powers(n))])

    def targets(self, step: int, n: int, draws: Draws) -> IntArray:
        """The same distances ahead."""
        return _around(n, [2**j for j in range(_powers(n))])


class OnePeerExponential(GossipGraph):
    """At step t worker i receives from i - 2^(t mod L) alone, L = ceil(log2 n), weights 1/2.

    For n = 2^L the L matrices of a period multiply to the exact mean.

    Reference: B. Ying et al., Exponential graph is provably efficient for decentralized deep training,
    NeurIPS 2021.
    """

    graph: Literal["one_peer_exponential"] = "one_peer_exponential"

    def period(self, n: int) -> int | None:
        """L."""
        return max(_powers(n), 1)

    def sources(self, step: int, n: int, draws: Draws) -> IntArray:
        """One distance behind."""
        return _around(n, [-(2 ** (step % max(_powers(n), 1)))])

    def targets(self, step: int, n: int, draws: Draws) -> IntArray:
        """The same distance ahead."""
        return _around(n, [2 ** (step % max(_powers(n), 1))])


def _powers(n: int) -> int:
    """How many powers of two lie below n: ceil(log2 n)."""
    return (n - 1).bit_length()


class TorusGraph(GossipGraph):
    """Workers at the points of a grid joined at its ends, the last axis runs first.

    Attributes:
        dims: points of each axis; by default the most nearly square two.
    """

    graph: Literal["torus"] = "torus"
    dims: tuple[Annotated[int, Field(ge=1)], ...] | None = Field(default=None, min_length=1, max_length=16)

    def sides(self, n: int) -> tuple[int, ...]:
        """Points of each axis for n workers.

        Raises:
            Impossible: `dims` does not multiply to n.
        """
        if self.dims is None:
            short = next(side for side in range(isqrt(n), 0, -1) if n % side == 0)
            return (short, n // short)
        if np.prod(self.dims, dtype=object) != n:
            raise Impossible(
                f"dims: {list(self.dims)} for {n} workers", "dims whose product is the number of workers"
            )
        return self.dims

    def sources(self, step: int, n: int, draws: Draws) -> IntArray:
        """Both neighbours on each axis."""
        grid = np.arange(n, dtype=np.int64).reshape(self.sides(n))
        columns = []
        for axis, size in enumerate(grid.shape):
            shifts = (1, -1)[: size - 1]  # an axis of two points has one neighbour
            columns += [np.roll(grid, shift, axis).ravel() for shift in shifts]
        return np.stack(columns, axis=1) if columns else np.empty((n, 0), dtype=np.int64)


class StarGraph(GossipGraph):
    """Everyone with worker 0: edges weigh 1/n."""

    graph: Literal["star"] = "star"

    def sources(self, step: int, n: int, draws: Draws) -> IntArray:
        """The centre; all, for the centre."""
        return adjacency(n, [(0, i) for i in range(1, n)])


class CustomGraph(GossipGraph):
    """Edges as given, both ways; the graph is connected.

    Attributes:
        edges: pairs of workers.
    """

    graph: Literal["custom"] = "custom"
    edges: tuple[tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]], ...] = Field(
        min_length=1, max_length=1_000_000
    )

    @model_validator(mode="after")
    def _simple(self) -> Self:
        seen = set()
        for i, (a, b) in enumerate(self.edges):
            if a == b:
                raise Impossible(f"the edge [{a}, {b}]", "two workers", at=("edges", i))
            if (min(a, b), max(a, b)) in seen:
                raise Impossible(f"the edge [{a}, {b}] twice", "each edge once", at=("edges", i))
            seen.add((min(a, b), max(a, b)))
        return self

    def sources(self, step: int, n: int, draws: Draws) -> IntArray:
        """All joined to a worker by an edge.

        Raises:
            Impossible: an edge names a worker that is not, or some workers are cut off.
        """
        most = max(max(edge) for edge in self.edges)
        if most >= n:
            raise Impossible(f"worker {most} in the gossip edges", f"workers 0 to {n - 1}")
        sources = adjacency(n, self.edges)
        reached = np.zeros(n, dtype=np.bool_)
        front = np.array([0])
        while len(front):
            reached[front] = True
            around = np.unique(sources[front])
            front = around[(around >= 0) & ~reached[around]]
        if not reached.all():
            raise Impossible(
                f"no way from worker 0 to worker {np.flatnonzero(~reached)[0]}",
                "a connected graph of all workers",
            )
        return sources


def adjacency(n: int, edges: list[tuple[int, int]] | tuple[tuple[int, int], ...]) -> IntArray:
    """Neighbours by rising number, shape (n, largest degree), padded with -1."""
    pairs = np.array(edges, dtype=np.int64).reshape(-1, 2)
    both = np.concatenate([pairs, pairs[:, ::-1]])
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    degree = np.bincount(both[:, 0], minlength=n)
    _within(n, int(degree.max(initial=0)))
    rows = np.full((n, int(degree.max(initial=0))), -1, dtype=np.int64)
    column = np.arange(len(both)) - np.repeat(np.cumsum(degree) - degree, degree)
    rows[both[:, 0], column] = both[:, 1]
    return rows


Gossip = Annotated[
    RingGraph
    | CompleteGraph
    | RandomMatching
    | RandomRing
    | ExponentialGraph
    | OnePeerExponential
    | TorusGraph
    | StarGraph
    | CustomGraph,
    Field(discriminator="graph"),
]
"""Any gossip graph, by its name (key `graph` of `training.gossip`)."""
