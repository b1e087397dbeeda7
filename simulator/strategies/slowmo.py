"""SlowMo: local SGD whose average is a step of a slow momentum.

Wang, Tantia, Ballas and Rabbat, "SlowMo: Improving Communication-Efficient Distributed SGD with Slow
Momentum", ICLR 2020, Algorithm 1 [memory]: u <- beta u + (x_0 - mean) / lr, x_0 <- x_0 - alpha
lr u. With beta 0 and alpha 1 it is local SGD. Differences: local optimiser states are kept, neither averaged
nor reset; lr is that of the round's last step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from simulator.optimizers import FRESH, Sgd
from simulator.strategies.base import Proc, Strategy

if TYPE_CHECKING:
    from simulator.worker import Worker


class SlowMo(Strategy):
    """h local steps, one average, one step of slow momentum along what they have changed."""

    kind: Literal["slowmo"] = "slowmo"
    h: PositiveInt = Field(8, description="local steps between averages")
    beta: float = Field(0.7, ge=0, lt=1, description="slow momentum; 0.4 to 0.8 in the paper [memory]")
    alpha: PositiveFloat = Field(1.0, description="slow learning rate, times the optimiser's")

    def worker(self, w: Worker) -> Proc[None]:
        """Local steps; every h-th a mean of models and a slow step."""
        x, opt = w.initial_model(), w.optimizer()
        outer, u = x, FRESH
        for t in w.steps():
            g = yield from w.gradient(x)
            x, opt = w.apply(x, g, opt)
            if t % self.h == 0 and (lr := w.lr(t)) > 0:  # at rate 0 nobody has moved
                mean = yield from w.all_mean(x, since=outer)
                slow = Sgd(lr=self.alpha * lr, momentum=self.beta)
                outer, u = w.apply(outer, (outer - mean) / lr, u, slow)
                x = outer
            w.report(x, outer)
