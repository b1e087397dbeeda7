"""AD-PSGD: each worker averages with a random neighbour while it computes, and nobody waits for a step.

Lian et al., "Asynchronous Decentralized Parallel Stochastic Gradient Descent", ICML 2018, Algorithm 1.
Differences: any peer of the gossip graph answers at once (no active and passive halves); an average is of
what both models are when the exchange ends, so that a step meanwhile is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from simulator.strategies.base import Proc, Strategy

if TYPE_CHECKING:
    from simulator.worker import Worker


class ADPSGD(Strategy):
    """A gradient on a snapshot, meanwhile an average with a peer, then the step."""

    needs_gossip: ClassVar[bool] = True
    mixes: ClassVar[bool] = False
    sends: ClassVar[Literal["changes", "models", "whole"]] = "models"

    kind: Literal["ad_psgd"] = "ad_psgd"
    overlap: bool = Field(True, description="average while the gradient is computed; false: after it")

    def worker(self, w: Worker) -> Proc[None]:
        """Average beside the gradient; apply it to what the model has become."""
        w.model, opt = w.initial_model(), w.optimizer()
        for _ in w.steps():
            peer = w.draw_peer()
            if self.overlap:
                averages = [w.start(w.average_with(peer))] if peer != w.rank else []
                g = yield from w.gradient(w.model)
                yield from w.join(averages)
            else:
                g = yield from w.gradient(w.model)
                if peer != w.rank:
                    yield from w.average_with(peer)
            w.model, opt = w.apply(w.model, g, opt)
