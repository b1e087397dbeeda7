"""A group of ranks that communicate: plans are laid over the network once and serve calls of any size."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from simulator.collectives import (
    barrier,
    binomial,
    direct,
    gloo,
    halving_doubling,
    hierarchical,
    nccl,
    pairs,
    ring,
    three_levels,
    tree,
)
from simulator.collectives.call import Call, StepwiseCall, TogetherCall
from simulator.collectives.laid import LaidPlan
from simulator.collectives.libraries import BY_SIZE, chosen
from simulator.collectives.plan import Plan
from simulator.fabric import IntArray
from simulator.network import Network

DEFAULTS = {
    "all_reduce": "ring",
    "reduce_scatter": "ring",
    "all_gather": "ring",
    "broadcast": "binomial",
    "reduce": "binomial",
    "all_to_all": "direct",
    "exchange": "pairs",
    "barrier": "dissemination",
}

TREE_CHUNKS = 16  # chunks of the buffer in a tree, where `network.collective.tree_chunks` says nothing

_PLANS: dict[tuple[str, str], Callable[[Group, int], Plan]] = {
    ("all_reduce", "ring"): lambda g, _: ring.all_reduce(g.n),
    ("all_reduce", "halving_doubling"): lambda g, _: halving_doubling.all_reduce(g.n),
    ("all_reduce", "tree"): lambda g, _: tree.all_reduce(g.n, g.tree_chunks, g.by_message),
    ("all_reduce", "double_tree"): lambda g, _: tree.double_all_reduce(g.n, g.tree_chunks, g.by_message),
    ("all_reduce", "hierarchical"): lambda g, _: hierarchical.all_reduce(g.hosts),
    ("all_reduce", "hierarchical_3"): lambda g, _: three_levels.all_reduce(g.hosts, g.hosts_per_group),
    ("all_reduce", "direct"): lambda g, _: direct.all_reduce(g.n),
    ("all_reduce", "gloo_ring"): lambda g, _: gloo.all_reduce(g.n, g.by_message),
    ("all_reduce", "nccl_ring"): lambda g, _: nccl.ring_all_reduce(g.hosts),
    ("all_reduce", "in_switch"): lambda g, _: nccl.switch_all_reduce(g.hosts),
    ("reduce_scatter", "ring"): lambda g, _: ring.reduce_scatter(g.n),
    ("reduce_scatter", "gloo_ring"): lambda g, _: gloo.all_reduce(g.n, g.by_message),
    ("all_gather", "ring"): lambda g, _: ring.all_gather(g.n),
    ("all_gather", "gloo_ring"): lambda g, _: gloo.all_gather(g.n, g.by_message),
    ("broadcast", "binomial"): lambda g, root: binomial.broadcast(g.n, root),
    ("broadcast", "gloo_broadcast"): lambda g, root: gloo.broadcast(g.n, root),
    ("reduce", "binomial"): lambda g, root: binomial.reduce(g.n, root),
    ("reduce", "gloo_ring"): lambda g, root: gloo.reduce(g.n, root, g.by_message),
    ("all_to_all", "direct"): lambda g, _: direct.all_to_all(g.n),
    ("all_to_all", "gloo_direct"): lambda g, _: gloo.all_to_all(g.n),
    ("exchange", "pairs"): lambda g, _: pairs.exchange(g.n),
    ("exchange", "gloo_pairs"): lambda g, _: gloo.exchange(g.n),
    ("barrier", "dissemination"): lambda g, _: barrier.barrier(g.n),
    ("barrier", "gloo_dissemination"): lambda g, _: gloo.barrier(g.n),
}


class Group:
    """Members of a collective, in group order.

    Args:
        network: what carries the messages.
        nodes: node of each member, shape (n,).
        hosts: host id of each member, shape (n,), for hierarchical algorithms.
        algorithms: operation -> algorithm, where not the default, and `tree_chunks`, `hosts_per_group` (the
            scenario's `network.collective`).
    """

    def __init__(
        self,
        network: Network,
        nodes: IntArray,
        *,
        hosts: IntArray,
        algorithms: Mapping[str, str | int] | None = None,
    ) -> None:
        self.network = network
        self.nodes = np.asarray(nodes, dtype=np.int64)
        self.hosts: IntArray = np.asarray(hosts, dtype=np.int64)
        self.n: int = len(self.nodes)
        self.algorithms = {**DEFAULTS, **(algorithms or {})}
        self.tree_chunks: int = int(self.algorithms.get("tree_chunks", TREE_CHUNKS))
        self.hosts_per_group: int = int(self.algorithms.get("hosts_per_group", 1))
        self.by_message: bool = network.fidelity == "flows"
        self._laid: dict[tuple[str, str, int], LaidPlan] = {}

    def call(
        self,
        op: str,
        nbytes: float,
        *,
        root: int = 0,
        need: int | None = None,
        algorithm: str | None = None,
    ) -> Call:
        """Begin a collective on a buffer of `nbytes`; members then arrive.

        Args:
            op: all_reduce, reduce_scatter, all_gather, broadcast, reduce, all_to_all, exchange or barrier.
            nbytes: bytes of the full buffer, S.
            root: member that sends a broadcast or receives a reduce.
            need: begin with the need-th arrival (backup workers); default: as the algorithm's arrival rule
                says.
            algorithm: another one than the group's.
        """
        named = algorithm or str(self.algorithms[op])
        laid = self.plan(op, chosen(op, named, nbytes, self.n), root)
        kind = TogetherCall if laid.together else StepwiseCall
        return kind(self.network, laid, float(nbytes), self.n if need is None else need)

    def plan(self, op: str, algorithm: str, root: int = 0) -> LaidPlan:
        """The laid plan of an operation, made at its first use."""
        key = (op, algorithm, root)
        laid = self._laid.get(key)
        if laid is not None:
            laid.keep_up(self.network)
        else:
            if (op, algorithm) not in _PLANS:
                known = ", ".join(a for o, a in (*_PLANS, *BY_SIZE) if o == op)
                raise ValueError(f"no {algorithm!r} for {op}, known: {known}")
            plan = _PLANS[op, algorithm](self, root) if self.n > 1 else Plan((), together=True)
            laid = self._laid[key] = LaidPlan(self.network, self.nodes, plan, f"{op} {algorithm}")
        laid.keep_up(self.network)
        return laid
