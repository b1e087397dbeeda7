"""Recursive halving-doubling: swap halves, then quarters, ... with partners ever nearer, then gather back.

n = 2^L members: round k = 0 .. L-1 swaps S / 2^(k+1) with the member n / 2^(k+1) away; the gather runs the
rounds backwards. 2 L a + 2 (n-1)/n S/B on a quiet star. Other n: the excess members give their buffers to a
partner first and get the result last, + 2 (a + S/B) on n' = 2^floor(log2 n). Rabenseifner, "Optimization of
Collective Reduction Operations", ICCS 2004; Thakur, Rabenseifner and Gropp (2005), section 4.

Arrival rule: starts when the last member has come; all leave together.
"""

from __future__ import annotations

import numpy as np

from simulator.collectives.plan import Part, Plan, in_phases


def swap(n: int, distance: int, share: float) -> Part:
    """All members of a power of two swap with the partner at `distance`."""
    members = np.arange(n)
    return Part(members, members ^ distance, share)


def halving(n: int) -> list[Part]:
    """The rounds of the reduce-scatter on a power of two."""
    return [swap(n, n >> k, 0.5**k) for k in range(1, n.bit_length())]


def all_reduce(n: int) -> Plan:
    """Halving, doubling, and the fold of what exceeds a power of two."""
    core = 1 << (n.bit_length() - 1)
    near = np.arange(n - core)
    rounds = halving(core)
    rounds = rounds + rounds[::-1]
    if n > core:
        rounds = [Part(near + core, near, 1.0), *rounds, Part(near, near + core, 1.0)]
    return in_phases(rounds)
