"""Synchronous SGD: every step all workers average their gradients.

Chen et al., "Revisiting Distributed Synchronous SGD", 2016 (backup workers); Li et al., "PyTorch
Distributed", VLDB 2020 (buckets that overlap with the backward pass); Goyal et al., "Accurate, Large
Minibatch SGD", 2017.
Differences: with backup workers a late gradient is computed to its end and dropped; its worker then takes the
means of the rounds that it has missed and joins the round after (`late: skip`), or computes a gradient for
each of them too (`finish`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from simulator.strategies.base import Proc, Strategy
from simulator.units import PositiveBytes

if TYPE_CHECKING:
    from simulator.worker import Worker


class SyncSGD(Strategy):
    """One gradient a worker, one mean over all, one step, again."""

    kind: Literal["sync_sgd"] = "sync_sgd"
    bucket_bytes: PositiveBytes = Field(
        25e6, validate_default=False, description="gradients travel in buckets of this size"
    )
    collective: (
        Literal["ring", "halving_doubling", "tree", "double_tree", "hierarchical", "direct"] | None
    ) = Field(None, description="algorithm of the all-reduce; by default the network's")
    backup: int = Field(0, ge=0, description="go on without the slowest so many gradients; one bucket then")
    late: Literal["skip", "finish"] = Field(
        "skip",
        description="with backup: a late worker skips to the round under way, or takes all steps",
    )

    def worker(self, w: Worker) -> Proc[None]:
        """Gradient, mean, step."""
        x, opt = w.initial_model(), w.optimizer()
        for _ in w.steps():
            if self.backup:
                missed = self.late == "skip" and w.missed_round()
                own = None if missed else (yield from w.gradient(x))
                g = yield from w.all_mean(own, drop_slowest=self.backup, algorithm=self.collective)
            else:
                parts = yield from w.gradient_parts(x, self.bucket_bytes)
                means = [w.start(w.all_mean(part, algorithm=self.collective)) for part in parts]
                g = w.concat((yield from w.join(means)))
            x, opt = w.apply(x, g, opt)
            w.report(x)
