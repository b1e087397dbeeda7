"""Barrier by dissemination: in round r every member tells member i + 2^r, ceil(log2 n) rounds of no bytes.

L a on a quiet star. Hensgen, Finkel and Manber, "Two Algorithms for Barrier Synchronization", IJPP 17 (1988).
Arrival rule: starts when the last member has come; all leave together.
"""

from __future__ import annotations

import numpy as np

from simulator.collectives.plan import Part, Plan, in_phases


def barrier(n: int) -> Plan:
    """Rounds of empty messages."""
    members = np.arange(n)
    rounds = range((n - 1).bit_length())
    return in_phases([Part(members, np.roll(members, -(2**r)), 0.0) for r in rounds])
