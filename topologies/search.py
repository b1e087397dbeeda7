"""Shortest paths by hops on any graph, found as they are asked for and kept per destination."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from simulator.fabric import IntArray
from topologies.hashing import hashed, remixed
from topologies.links import Impossible

_AT_ONCE = 4_000_000  # distances searched for together
_KEPT = 40_000_000  # numbers of all destinations kept


@dataclass(frozen=True)
class _Toward:
    """Links on shortest paths to one destination.

    Attributes:
        distance: hops from each node, -1 where there is no way, shape (nodes,).
        links: ids sorted by (tail, head, id).
        first: of node u the links are `links[first[u] : first[u + 1]]`, shape (nodes + 1,).
    """

    distance: IntArray
    links: IntArray
    first: IntArray


@dataclass(frozen=True)
class SearchRouter:
    """Router of a fabric without rule.

    Of several shortest ways `shortest` goes to the lowest-numbered neighbour by the lowest-numbered link;
    `ecmp` hashes anew at each hop.

    Attributes:
        nodes: how many.
        tail, head: ends of the links, shape (links,).
        ecmp: seed of the hash, or None for `shortest`.
    """

    nodes: int
    tail: IntArray
    head: IntArray
    ecmp: int | None = None
    _known: dict[int, _Toward] = field(default_factory=dict)

    def paths(self, src: IntArray, dst: IntArray) -> IntArray:
        """Link ids in path order, shape (n, hops); rows padded with -1 at the end; src = dst gives all -1."""
        word = np.zeros(len(src), dtype=np.int64) if self.ecmp is None else hashed(src, dst, self.ecmp)
        return self.walk(src, dst, word)

    def walk(self, src: IntArray, dst: IntArray, word: IntArray) -> IntArray:
        """As `paths`, with the word of each row that chooses among equal ways (0: the first)."""
        ends, which = np.unique(dst, return_inverse=True)
        self._search(ends)
        order = np.argsort(which, kind="stable")
        groups = np.split(order, np.cumsum(np.bincount(which, minlength=len(ends)))[:-1]) if len(ends) else []
        parts = [
            self._descend(self._known[end], src[rows], word[rows])
            for end, rows in zip(ends.tolist(), groups, strict=True)
        ]
        paths = np.full((len(src), max((p.shape[1] for p in parts), default=0)), -1, dtype=np.int64)
        for rows, part in zip(groups, parts, strict=True):
            paths[rows, : part.shape[1]] = part
        return paths

    def _descend(self, toward: _Toward, at: IntArray, word: IntArray) -> IntArray:
        hops = toward.distance[at]
        if (hops < 0).any():
            raise Impossible(f"no way from node {at[hops < 0][0]}", "a connected network")
        paths = np.full((len(at), int(hops.max(initial=0))), -1, dtype=np.int64)
        for hop in range(paths.shape[1]):
            moving = hop < hops
            here, ways = at[moving], word[moving]
            first = toward.first[here]
            link = toward.links[first + ways % (toward.first[here + 1] - first)]
            paths[moving, hop] = link
            at = at.copy()
            at[moving] = self.head[link]
            word = word if self.ecmp is None else remixed(word)
        return paths

    def _search(self, ends: IntArray) -> None:
        """Fills in what is not known of these destinations."""
        new = [end for end in ends.tolist() if end not in self._known]
        if (len(self._known) + len(new)) * (self.nodes + len(self.tail)) > _KEPT:
            self._known.clear()
            new = ends.tolist()
        step = max(1, _AT_ONCE // max(self.nodes, 1))
        for begin in range(0, len(new), step):
            chunk = new[begin : begin + step]
            for end, distance in zip(chunk, hop_counts(self.nodes, self.head, self.tail, chunk), strict=True):
                self._known[end] = self._toward(distance)

    def _toward(self, distance: IntArray) -> _Toward:
        before, after = distance[self.tail], distance[self.head]
        links = np.flatnonzero((before > 0) & (after == before - 1))
        links = links[np.lexsort((links, self.head[links], self.tail[links]))]
        counts = np.bincount(self.tail[links], minlength=self.nodes)
        return _Toward(distance, links, np.concatenate([[0], np.cumsum(counts)]))


def hop_counts(nodes: int, tail: IntArray, head: IntArray, start: list[int]) -> IntArray:
    """Least number of links from each node of `start` to every node, -1: no way; shape (start, nodes)."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    graph = csr_array((np.ones(len(tail)), (tail, head)), shape=(nodes, nodes))
    hops = dijkstra(graph, indices=start, unweighted=True)
    counts: IntArray = np.where(np.isfinite(hops), hops, -1).astype(np.int64)
    return counts
