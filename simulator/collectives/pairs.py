"""Pair exchange: members 2k and 2k + 1 swap their buffers, both ways at once: a + S/B on a quiet star.

Arrival rule: each pair by itself, when both have come. A member leaves when it has its partner's buffer and
its own has gone.
"""

from __future__ import annotations

from simulator.collectives.plan import Plan, Step, part


def exchange(n: int) -> Plan:
    """All pairs of a group of even size; each direction goes at its own rate."""
    if n % 2:
        raise ValueError(f"an exchange needs pairs, found {n} members")
    ways = [(i, i + 1) for i in range(0, n, 2)] + [(i + 1, i) for i in range(0, n, 2)]
    return Plan(tuple(Step(part([src], [dst], 1.0)) for src, dst in ways))
