"""Hierarchical all-reduce over m hosts of g members: scatter inside, all-reduce across, gather inside.

Each host's members reduce and scatter S among themselves (ring of g), the j-th members of all hosts reduce
their S / g (g rings of m), each host gathers. Closed form, quiet, inner links of (a_i, B_i), links between
hosts of (a, B), one for each member:

    2 (g-1)(a_i + S / (g B_i)) + 2 (m-1)(a + S / (g m B))

Where the g rings share the host's one link, B is a g-th of it. Ueno and Yokota,
"Exhaustive Study of Hierarchical AllReduce Patterns for Large Messages Between GPUs", CCGrid 2019.

Arrival rule: subtree by subtree. A host's reduce-scatter starts when its members have come, the rings
across when all hosts have scattered, a host's all-gather when the rings have ended; a host's members leave
together.
"""

from __future__ import annotations

import numpy as np

from simulator.collectives.plan import Plan, Step
from simulator.collectives.ring import ring
from simulator.errors import InputError
from simulator.fabric import IntArray


def hosts_in_rows(hosts: IntArray) -> IntArray:
    """Members by host, shape (m, g), hosts in the order of their first members."""
    _, first, count = np.unique(hosts, return_index=True, return_counts=True)
    if len(set(count.tolist())) > 1:
        raise InputError(
            expected="the same number of members on every host for a hierarchical all-reduce",
            found=f"{count.min()} to {count.max()} members a host",
            field="network.collective.all_reduce",
            hint="use ring, or place equally many workers on each host",
        )
    order = np.argsort(hosts, kind="stable").reshape(len(count), -1)
    return order[np.argsort(first)]


def all_reduce(hosts: IntArray) -> Plan:
    """`hosts`: host of each member, shape (n,)."""
    rows = hosts_in_rows(hosts)
    m, g = rows.shape
    steps: list[Step] = []
    if g > 1:
        steps += [Step(ring(g, members=row)) for row in rows]
    scattered = tuple(range(len(steps)))
    if m > 1:
        steps += [Step(ring(m, 2, column, 1 / g), scattered, stage=1) for column in rows.T]
    reduced = tuple(range(len(scattered), len(steps))) or scattered
    if g > 1:
        steps += [Step(ring(g, members=row), reduced, stage=2) for row in rows]
    return Plan(tuple(steps))
