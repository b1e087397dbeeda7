"""All-reduce as NCCL does it on hosts of several GPUs: rings over all rails, and reduction in the switch.

*Rings.* On m hosts of g members there are g rings of S / g each. All go through the hosts in the same order,
and through a host's members from another one on: ring j comes in at member j and goes out at the one before.
So each member's network port (its rail) carries one ring each way, and the rings turn at once. With k ports
of B a host, n = g m, inner links quick,

    2 (n-1) (a + S / (n k B))

on a star, where all edges share one port a member, that of one ring. Members on one host, or not equally many
on each, make one ring. (NCCL enters and leaves a host by the same port; each port's load is the same.)
docs.nvidia.com/deeplearning/nccl; Jeaugey, "NCCL 2.0", GTC 2017.

*Switch.* All members of a host send their S up to its switch, which adds them up and sends the sum down to
all, both at once in small pieces: a + S/B with NVLink B per direction, whatever g. (NVLS itself moves
(1 + 1/g) of that: each member fetches its part of the sum and stores it back.) On several hosts: up, rings of
the j-th members of all hosts for S / g, down, one after the other. Klenk and others, "An In-Network
Architecture for Accelerating Shared-Memory Multiprocessor Collectives", ISCA 2020.

    m = 1: a_i + S/B_i;    else 2 (a_i + S/B_i) + 2 (m-1) (a + S / (g m B))

The network has no members in switches: a pass is one edge from each member to the next, which puts S on each
one's way up and on each one's way down.

Arrival rule: starts when the last member has come; all leave together.
"""

from __future__ import annotations

import numpy as np

from simulator.collectives.hierarchical import hosts_in_rows
from simulator.collectives.plan import Part, Plan, Step, in_phases
from simulator.collectives.ring import ring
from simulator.fabric import IntArray


def rings(orders: IntArray, rounds: int, share: float) -> Part:
    """Rings of equal length that turn side by side; members of each, shape (rings, length)."""
    return Part(orders.ravel(), np.roll(orders, -1, axis=1).ravel(), share, rounds)


def ring_all_reduce(hosts: IntArray) -> Plan:
    """A ring for each member of a host; `hosts`: host of each member, shape (n,)."""
    count = np.unique(hosts, return_counts=True)[1]
    if len(count) == 1 or count.max() == 1 or count.min() < count.max():
        return in_phases([ring(len(hosts), turns=2)])
    rows = hosts_in_rows(hosts)
    n, g = rows.size, rows.shape[1]
    orders = np.stack([np.roll(rows, -j, axis=1).ravel() for j in range(g)])
    return Plan(tuple(Step(ring(n, 2, order, 1 / g)) for order in orders), together=True)


def switch_all_reduce(hosts: IntArray) -> Plan:
    """Within each host by its switch, across by rings; `hosts`: host of each member, shape (n,)."""
    rows = hosts_in_rows(hosts)
    m, g = rows.shape
    if g == 1:
        return in_phases([ring(m, turns=2)])
    through = rings(rows, 1, 1.0)
    if m == 1:
        return in_phases([through])
    return in_phases([through, rings(rows.T, 2 * (m - 1), 1 / (g * m)), through])
