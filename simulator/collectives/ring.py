"""Ring: every member sends to the next one, round after round.

All-reduce of S bytes over n members: n - 1 rounds that reduce and scatter chunks of S / n, n - 1 rounds
that gather them. On a quiet star 2 (n - 1) (a + S / (n B)): Patarasuk and Yuan, "Bandwidth Optimal
All-reduce Algorithms for Clusters of Workstations", JPDC 69 (2009).

Arrival rule: the ring turns when the last member has come; all leave together.
"""

from __future__ import annotations

import numpy as np

from simulator.collectives.plan import Part, Plan, in_phases


def ring(n: int, turns: int = 1, members: np.ndarray | None = None, share: float = 1.0) -> Part:
    """`turns` times n - 1 rounds of a buffer of `share`, through `members` (default 0 .. n-1)."""
    src = np.arange(n) if members is None else members
    return Part(src, np.roll(src, -1), share / n, turns * (n - 1))


def all_reduce(n: int) -> Plan:
    """Reduce-scatter and all-gather in one: the ring does not stop between them."""
    return in_phases([ring(n, turns=2)])


def reduce_scatter(n: int) -> Plan:
    """Each member ends with the sum of its chunk."""
    return in_phases([ring(n)])


def all_gather(n: int) -> Plan:
    """Each member begins with a chunk and ends with all."""
    return in_phases([ring(n)])
