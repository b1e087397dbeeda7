"""Binary tree: chunks are reduced up to the root, then broadcast down; double tree: two, of half each.

Shape. Member i's children are 2i + 1 and 2i + 2 (root 0), depth D = floor(log2 n). The second tree of a
double tree is the mirror, i -> n - 1 - i: whoever has children in one is a leaf in the other, for every n.
Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel
Computing 35 (2009).

Schedule. The buffer goes in c chunks. A parent takes chunk k from all its children side by side, when chunk
k - 1 has left them and all of them have chunk k complete; likewise down: it serves all its children chunk k
side by side. The broadcast begins when the root has everything.

Closed form, quiet star. With t = S / (c B), a parent of m children takes m t for a chunk (m messages share
its port): its stage. Let E(p, k) be the time chunk k has left for p; with q over the children of p that
have children themselves,

    E(p, k) = max(E(p, k-1), max_q E(q, k) + a) + m_p t

a pipeline of constant stages, so the root has all after the longest path from a leaf: the sum of its
stages, c - 1 times its largest stage, and a per edge. All parents have two children but the last one if n
is even. The longest path has D edges and stages 2t, hence D a + 2t (D + c - 1); if n = 2^D its deepest
parent has one child, which saves a t (and for n = 2 all stages are t). The broadcast takes the same, run
backwards, so with e = 1 if n = 2^D else 0

    binary tree  n = 2: 2 (a + S/B);  else 2 D a + 2 (2 (D + c - 1) - e) S / (c B)
    double tree  the same with S/2

The two trees do not disturb each other: a parent's port receives 2 x B/2 in one tree and, being a leaf of
the other, nothing; it sends B/2 up in each. If a send ends when its bytes have arrived, a chunk keeps a
parent busy for m t + a: 2 ((D + c - 1)(2t + a) - e t).

Arrival rule: subtree by subtree, phase by phase.

In bundles a parent's traffic is three activities a phase, not c: its first chunk, which sets the pipeline
going, its last, which waits for the last of its children, and what lies between.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from simulator.collectives.plan import Part, Plan, Step
from simulator.fabric import IntArray

MOST_PARENTS = 256  # above that, parents of one depth move as one bundle


def children(i: int, n: int) -> range:
    """Positions of the children of position i."""
    return range(2 * i + 1, min(2 * i + 3, n))


@dataclass(frozen=True, slots=True)
class Family:
    """Parents that move as one, with all their children.

    Attributes:
        parent, child: members at the two ends of each edge, shape (edges,).
        below: families that the children lead.
    """

    parent: IntArray
    child: IntArray
    below: tuple[int, ...]


def families(place: IntArray) -> list[Family]:
    """Families from the root down, one per parent or one per depth; `place[i]`: member at position i."""
    n = len(place)
    parents = n // 2
    found = []
    if parents <= MOST_PARENTS:
        for i in range(parents):
            kids = list(children(i, n))
            below = tuple(k for k in kids if k < parents)
            found.append(Family(np.full(len(kids), place[i]), place[kids], below))
        return found
    position = np.arange(1, n)
    depth = np.frexp(position + 1)[1] - 1  # of the child: floor(log2(position + 1))
    for d in range(1, int(depth[-1]) + 1):
        kids = position[depth == d]
        below = (d,) if d < depth[-1] else ()
        found.append(Family(place[(kids - 1) // 2], place[kids], below))
    return found


def segments(chunks: int, by_chunk: bool) -> list[int]:
    """Chunks in each piece of a family's traffic: one by one, or first, between and last."""
    if by_chunk or chunks <= 2:
        return [1] * chunks
    return [1, chunks - 2, 1]


@dataclass(slots=True)
class _Planner:
    """Collects the steps of trees."""

    chunks: int
    by_chunk: bool
    steps: list[Step] = field(default_factory=list)

    def add(self, part: Part, arrived: list[int], left: list[int], stage: int) -> list[int]:
        """One step, or one per message."""
        first = len(self.steps)
        if self.by_chunk:
            parts = [Part(part.src[[e]], part.dst[[e]], part.share) for e in range(len(part.src))]
        else:
            parts = [part]
        for each in parts:
            self.steps.append(Step(each, tuple(arrived), tuple(left), stage))
        return list(range(first, len(self.steps)))

    def stream(
        self, src: IntArray, dst: IntArray, share: float, sources: list[list[list[int]]], stage: int
    ) -> list[list[int]]:
        """Send a family's pieces one after the other, each when all `sources` have brought it."""
        sent: list[list[int]] = []
        pieces = segments(self.chunks, self.by_chunk)
        for k, count in enumerate(pieces):
            between = 0 < k < len(pieces) - 1 and not self.by_chunk
            arrived = [] if between else [s for source in sources for s in source[k]]
            part = Part(src, dst, share / self.chunks, count, relay=False)
            sent.append(self.add(part, arrived, sent[-1] if sent else [], stage + k))
        return sent

    def all_reduce(self, place: IntArray, share: float) -> None:
        """Up and down one tree."""
        tree = families(place)
        up: dict[int, list[list[int]]] = {}
        for f in range(len(tree) - 1, -1, -1):
            family = tree[f]
            up[f] = self.stream(family.child, family.parent, share, [up[b] for b in family.below], 0)
        pieces = len(up[0])
        down = {0: [up[0][-1]] * pieces}
        for f, family in enumerate(tree):
            sent = self.stream(family.parent, family.child, share, [down[f]], pieces)
            down.update(dict.fromkeys(family.below, sent))


def all_reduce(n: int, chunks: int, by_chunk: bool) -> Plan:
    """One tree."""
    planner = _Planner(chunks, by_chunk)
    planner.all_reduce(np.arange(n), 1.0)
    return Plan(tuple(planner.steps))


def double_all_reduce(n: int, chunks: int, by_chunk: bool) -> Plan:
    """A tree and its mirror, at the same time."""
    planner = _Planner(chunks, by_chunk)
    for place in (np.arange(n), np.arange(n)[::-1]):
        planner.all_reduce(place, 0.5)
    return Plan(tuple(planner.steps))
