"""SGP: stochastic gradient push; gossip one way, de-biased by a mass that is gossiped along.

Assran, Loizou, Ballas and Rabbat, "Stochastic Gradient Push for Distributed Deep Learning", ICML 2019,
Algorithm 1 [memory]: a worker shares its x and its mass out evenly among itself and its
out-peers, adds up what comes, and takes its gradient at z = x / mass. Their graph: `one_peer_exponential`.
Differences: in lock step with the neighbours; no overlap of messages and gradients.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from simulator.strategies.base import Proc, Strategy

if TYPE_CHECKING:
    from simulator.worker import Worker


class SGP(Strategy):
    """A step on the biased sum with the gradient at the de-biased model, then a push to the out-peers."""

    needs_gossip: ClassVar[bool] = True
    mixes: ClassVar[bool] = False
    sends: ClassVar[Literal["changes", "models", "whole"]] = "models"

    kind: Literal["sgp"] = "sgp"

    def worker(self, w: Worker) -> Proc[None]:
        """Gradient at z, step on x, push-sum, z."""
        x, mass, opt = w.initial_model(), 1.0, w.optimizer()
        z = x
        for _ in w.steps():
            g = yield from w.gradient(z)
            x, opt = w.apply(x, g, opt)
            x, mass = yield from w.push_sum(x, mass)
            z = x / mass
            w.report(z)
