"""Pair exchange: members 2k and 2k + 1 swap their buffers, both ways at once: a + S/B on a quiet star.

Arrival rule: each pair by itself, when both have come; they leave together.
"""

from __future__ import annotations

from simulator.collectives.plan import Plan, Step, part


def exchange(n: int) -> Plan:
    """All pairs of a group of even size."""
    if n % 2:
        raise ValueError(f"an exchange needs pairs, found {n} members")
    return Plan(tuple(Step(part([i, i + 1], [i + 1, i], 1.0)) for i in range(0, n, 2)))
