"""Direct: everybody sends to everybody at once.

All-to-all of S bytes: a + (n-1)/n S/B on a quiet star. An all-reduce done so (scatter of the parts, then
gather) takes 2 (a + (n-1)/n S/B): as many bytes through each port as a ring, with fewer latencies; never
twice as fast.

Arrival rule: starts when the last member has come; all leave together.
"""

from __future__ import annotations

import numpy as np

from simulator.collectives.plan import Part, Plan, in_phases


def everybody(n: int) -> Part:
    """All ordered pairs, a chunk of 1/n each; member i's sends in the order i+1, i+2, ..."""
    src = np.repeat(np.arange(n), n - 1)
    hop = np.tile(np.arange(1, n), n)
    return Part(src, (src + hop) % n, 1.0 / n)


def all_to_all(n: int) -> Plan:
    """Every member has a part for each other one."""
    return in_phases([everybody(n)])


def all_reduce(n: int) -> Plan:
    """Reduce-scatter, then all-gather, each all at once."""
    return in_phases([everybody(n), everybody(n)])
