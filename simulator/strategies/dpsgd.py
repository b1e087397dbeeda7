"""D-PSGD: no server and no all-reduce; each worker mixes its model with its neighbours'.

Lian et al., "Can Decentralized Algorithms Outperform Centralized Algorithms?", NIPS 2017, Algorithm 1;
Zhang et al., "Improving Efficiency in Large-Scale Decentralized Distributed Training", ICASSP 2020 (delay
by one) [memory]. With delay 1 a step's mixing overlaps its gradient,
W T - lr G(W).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, model_validator

from simulator.strategies.base import Proc, Strategy

if TYPE_CHECKING:
    from simulator.worker import Worker


class DPSGD(Strategy):
    """A step and a mixing with the neighbours of `training.gossip`, in lock step."""

    needs_gossip: ClassVar[bool] = True

    kind: Literal["dpsgd"] = "dpsgd"
    order: Literal["step_then_mix", "mix_then_step"] = Field(
        "step_then_mix", description="(W - lr G) T, or W T - lr G(W)"
    )
    delay: int = Field(0, ge=0, le=1, description="1: mix while the gradient is computed (mix_then_step)")

    @model_validator(mode="before")
    @classmethod
    def _delayed_mixes_first(cls, data: object) -> object:
        if isinstance(data, dict) and data.get("delay") == 1 and data.get("order") == "step_then_mix":
            raise ValueError("found delay: 1 with order: step_then_mix, expected order: mix_then_step")
        return (
            {**data, "order": "mix_then_step"} if isinstance(data, dict) and data.get("delay") == 1 else data
        )

    def worker(self, w: Worker) -> Proc[None]:
        """Gradient, mixing and step in the order chosen."""
        x, opt = w.initial_model(), w.optimizer()
        for _ in w.steps():
            if self.delay:
                mixing = w.start(w.neighbour_mean(x))
                g = yield from w.gradient(x)
                (mixed,) = yield from w.join([mixing])
                x, opt = w.apply(mixed, g, opt)
            elif self.order == "mix_then_step":
                g = yield from w.gradient(x)
                mixed = yield from w.neighbour_mean(x)
                x, opt = w.apply(mixed, g, opt)
            else:
                g = yield from w.gradient(x)
                x, opt = w.apply(x, g, opt)
                x = yield from w.neighbour_mean(x)
            w.report(x)
