"""Hierarchical all-reduce over three levels: members of a host, hosts of a group (a rack, a site), groups.

As `hierarchical`, once more: each host scatters (ring of g), hosts of a group scatter what their j-th members
hold (rings of h on S / g), groups reduce what is left (rings of m on S / (g h)), and all is gathered back the
same way. With (a_i, B_i) inside hosts, (a_h, B_h) inside groups, (a, B) between them, links not shared,

    2 (g-1)(a_i + S / (g B_i)) + 2 (h-1)(a_h + S / (g h B_h)) + 2 (m-1)(a + S / (g h m B))

Cho and others, "BlueConnect: Decomposing all-reduce for deep learning on heterogeneous network hierarchy",
MLSys 2019.

Arrival rule: starts when the last member has come; all leave together. A level starts when the one before has
ended everywhere.
"""

from __future__ import annotations

import numpy as np

from simulator.collectives.hierarchical import hosts_in_rows
from simulator.collectives.nccl import rings
from simulator.collectives.plan import Plan, in_phases
from simulator.errors import InputError
from simulator.fabric import IntArray


def all_reduce(hosts: IntArray, hosts_per_group: int) -> Plan:
    """`hosts`: host of each member, shape (n,); groups are runs of hosts in the order of their members."""
    rows = hosts_in_rows(hosts)
    if len(rows) % hosts_per_group:
        raise InputError(
            expected="groups of equally many hosts",
            found=f"{len(rows)} hosts in groups of {hosts_per_group}",
            field="network.collective.hosts_per_group",
            hint="give a divisor of the number of hosts",
        )
    cube = rows.reshape(-1, hosts_per_group, rows.shape[1])  # (groups, hosts, members)
    parts, share = [], 1.0
    for axis in (2, 1, 0):
        length = cube.shape[axis]
        share /= length
        orders = np.moveaxis(cube, axis, 2).reshape(-1, length)
        if length > 1:
            parts.append((orders, length - 1, share))
    around = [rings(orders, rounds, share) for orders, rounds, share in parts]
    if cube.shape[0] == 1:
        return in_phases([*around, *around[::-1]])
    orders, rounds, share = parts[-1]
    return in_phases([*around[:-1], rings(orders, 2 * rounds, share), *around[-2::-1]])
