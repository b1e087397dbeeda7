"""DiLoCo: local steps, then one step of an outer optimiser along the mean change of the models.

Douillard et al., "DiLoCo: Distributed Low-Communication Training of Language Models", 2023, Algorithm 1
[memory]: outer Nesterov, lr 0.7, momentum 0.9 [memory], inner AdamW, h 500. With outer
SGD at rate 1 it is local SGD. Differences: the outer gradient is a mean over all workers by an all-reduce;
every worker keeps the outer model and its optimiser's state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field, PositiveInt

from simulator.optimizers import Nesterov, OptimizerSpec
from simulator.strategies.base import Proc, Strategy

if TYPE_CHECKING:
    from simulator.worker import Worker


class DiLoCo(Strategy):
    """h local steps of the scenario's optimiser, one outer step on their mean."""

    kind: Literal["diloco"] = "diloco"
    h: PositiveInt = Field(100, description="local steps between outer steps")
    outer: OptimizerSpec = Field(
        Nesterov(lr=0.7, momentum=0.9), description="optimiser of the outer model, without schedule"
    )

    def worker(self, w: Worker) -> Proc[None]:
        """Local steps; every h-th the mean outer gradient and an outer step."""
        x, opt = w.initial_model(), w.optimizer()
        outer, state = x, self.outer.initial()
        for t in w.steps():
            g = yield from w.gradient(x)
            x, opt = w.apply(x, g, opt)
            if t % self.h == 0:
                change = yield from w.all_mean(outer - x)
                outer, state = w.apply(outer, change, state, self.outer)
                x = outer
            w.report(x, outer)
