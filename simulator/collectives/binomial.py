"""Broadcast and reduce over a binomial tree, one child at a time.

Members are numbered from the root. In round r = 0 .. L-1, L = ceil(log2 n), each member i < 2^r serves i +
2^r. A member serves its next child when the one before has all it needs, so that a round takes a + S/B on a
quiet star and the whole L (a + S/B), for every n. The reduce is the same tree run backwards. Thakur,
Rabenseifner and Gropp, "Optimization of Collective Communication Operations in MPICH", IJHPCA 19 (2005),
section 3.

Arrival rule: subtree by subtree. A message needs its two ends to have come and the sender to hold what it
sends; a member leaves when it has its result and has served its children.
"""

from __future__ import annotations

from simulator.collectives.plan import Plan, Step, part


def edges(n: int) -> list[tuple[int, int, int]]:
    """(round, parent, child) in the order of rounds, members counted from the root."""
    found = []
    for r in range((n - 1).bit_length()):
        found += [(r, i, i + 2**r) for i in range(min(2**r, n - 2**r))]
    return found


def broadcast(n: int, root: int) -> Plan:
    """The root's buffer goes to all."""
    holds: dict[int, int] = {}  # the step after which a member may send on: its receive, then its last send
    steps: list[Step] = []
    for r, parent, child in edges(n):
        before = (holds[parent],) if parent in holds else ()
        holds[parent] = holds[child] = len(steps)
        steps.append(Step(part([(parent + root) % n], [(child + root) % n], 1.0), arrived=before, stage=r))
    return Plan(tuple(steps))


def reduce(n: int, root: int) -> Plan:
    """The sum of all buffers ends at the root."""
    done: dict[int, int] = {}  # the step that brought a member its latest summand
    steps: list[Step] = []
    for r, parent, child in reversed(edges(n)):
        before = tuple(sorted({done[m] for m in (parent, child) if m in done}))
        done[parent] = len(steps)
        steps.append(Step(part([(child + root) % n], [(parent + root) % n], 1.0), arrived=before, stage=r))
    return Plan(tuple(steps))
