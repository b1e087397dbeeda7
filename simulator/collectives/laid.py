"""A plan laid over a network: what the calls of one operation share, whatever their size."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from simulator.collectives.load import lay
from simulator.collectives.messages import by_message
from simulator.collectives.plan import Plan
from simulator.fabric import FloatArray, IntArray
from simulator.network import Network


class LaidPlan:
    """Steps with their loads, successors and members.

    Attributes:
        name: operation and algorithm, for the timeline.
        n: number of members.
        together: as in `Plan`.
        loads: one per step.
        waits: number of steps (and, unless together, of members) each step waits for.
        on_left, on_arrived: steps that wait for each step.
        first: steps that wait for no other.
        gates: per member, the steps that wait for its arrival; empty if together.
        owed: per member, how many (step, role) it takes part in; empty if together.
    """

    def __init__(self, network: Network, nodes: IntArray, plan: Plan, name: str) -> None:
        self.name = name
        self.n = len(nodes)
        self.nodes = nodes.tolist()
        if network.fidelity == "flows":
            plan = by_message(plan)
        self.together = plan.together
        self.steps = plan.steps
        self.loads = lay(network, nodes, plan.steps)
        self._changes = network.changes
        self._order()
        self._bytes = self._link_bytes(network.fabric.links)
        self._busiest = self._changes, self._seconds(network)

    def keep_up(self, network: Network) -> None:
        """Lay the steps anew if bandwidths have changed: loads know what the links give at present."""
        if self._changes != network.changes and network.fidelity != "flows":
            self.loads = lay(network, np.array(self.nodes, dtype=np.int64), self.steps)
        self._changes = network.changes

    def busiest(self, network: Network) -> float:
        """Seconds the busiest link needs at its best for a buffer of one byte: no call can be quicker."""
        if self._busiest[0] != network.changes:
            self._busiest = network.changes, self._seconds(network)
        return self._busiest[1]

    def _order(self) -> None:
        """Turn what each step waits for round, into what follows each step."""
        count = len(self.steps)
        self.on_left: list[list[int]] = [[] for _ in range(count)]
        self.on_arrived: list[list[int]] = [[] for _ in range(count)]
        self.waits = [len(s.arrived) + len(s.left) for s in self.steps]
        self.first = [i for i, wait in enumerate(self.waits) if not wait]
        self.gates: list[list[int]] = [[] for _ in range(0 if self.together else self.n)]
        self.owed = [0] * len(self.gates)
        self.ends: list[tuple[list[int], list[int]]] = []
        self._seen: list[set[int]] = []  # members of each step that it or one before it has waited for
        self._asked: tuple[tuple[int, ...], set[int]] = (), set()
        for i, step in enumerate(self.steps):
            for j in step.left:
                self.on_left[j].append(i)
            for j in step.arrived:
                self.on_arrived[j].append(i)
            if not self.together:
                self._gate(i)

    def _gate(self, i: int) -> None:
        """Step i waits for its members, but for those that a step before it has waited for."""
        step = self.steps[i]
        src, dst = set(step.part.src.tolist()), set(step.part.dst.tolist())
        self.ends.append((sorted(src), sorted(dst)))
        for m in (*src, *dst):
            self.owed[m] += 1
        waited = (src | dst) if step.members is None else set(step.members)
        self._seen.append((src | dst) & waited)
        for m in waited - self._known(step.arrived + step.left):
            self.gates[m].append(i)
            self.waits[i] += 1

    def _known(self, before: tuple[int, ...]) -> set[int]:
        """Members that these steps have waited for; asked for again by the steps of one stage."""
        if before != self._asked[0]:
            self._asked = before, set().union(*(self._seen[j] for j in before))
        return self._asked[1]

    def _link_bytes(self, links: int) -> FloatArray:
        """Bytes over each link for a buffer of one byte, shape (links,)."""
        total = np.zeros(links)
        for load in self.loads:
            total[load.links] += load.weights * (load.part.share * load.part.rounds)
        return total

    def _seconds(self, network: Network) -> float:
        return float((self._bytes / network.best_bandwidth).max(initial=0.0))

    @cached_property
    def sends(self) -> FloatArray:
        """Bytes each member sends per byte of the buffer, shape (n,)."""
        sent = np.zeros(self.n)
        for step in self.steps:
            np.add.at(sent, step.part.src, step.part.share * step.part.rounds)
        return sent
