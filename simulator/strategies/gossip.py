"""Gossiping SGD: every worker trains on its own and now and then averages with one at random, one-sided.

Jin, Yuan, Iandola and Keutzer, "How to scale distributed deep learning?", 2016. Pull: a worker
fetches a peer's model and takes the mean, the peer does not notice. Push: it sends its own, and the receiver
takes the mean of what has come and its own. Peers are those of `training.gossip`; the paper's: `complete`.
Differences: the exchange follows the step [order from memory]; a receiver looks for what has come once a
step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, PositiveInt

from simulator.strategies.base import Proc, Strategy

if TYPE_CHECKING:
    from simulator.worker import Worker


class Gossip(Strategy):
    """Own steps, and means with random peers that are not asked to wait."""

    needs_gossip: ClassVar[bool] = True
    mixes: ClassVar[bool] = False
    sends: ClassVar[Literal["changes", "models", "whole"]] = "models"

    kind: Literal["gossip"] = "gossip"
    direction: Literal["pull", "push"] = Field("pull", description="who gets whose model")
    every: PositiveInt = Field(1, description="steps between exchanges, tau")
    at_random: bool = Field(False, description="by chance, in a share 1/every of the steps")

    def worker(self, w: Worker) -> Proc[None]:
        """Gradient, step; a pull, or a push and a look for what has come."""
        w.model, opt = w.initial_model(), w.optimizer()
        for t in w.steps():
            g = yield from w.gradient(w.model)
            w.model, opt = w.apply(w.model, g, opt)
            peer = w.draw_peer()
            due = w.chance(1 / self.every) if self.at_random else t % self.every == 0
            if due and peer != w.rank and self.direction == "pull":
                theirs = yield from w.fetch(peer)
                w.model = w.mean([w.model, theirs])
            elif due and peer != w.rank:
                yield from w.send(peer, w.model)
            if self.direction == "push" and (arrived := (yield from w.collect())):
                w.model = w.mean([w.model, *arrived])
