"""D2: decentralised SGD that corrects for how unlike the workers' data are.

Tang, Lian, Yan, Zhang and Liu, "D2: Decentralized Training over Decentralized Data", ICML 2018, Algorithm 1
[memory]: x' = W (2 x - x_before - lr (g - g_before)), which is W (y + x - y_before) with the
plain step y = x - lr g. Differences: written with y, so that any optimiser may make the step. W must be
symmetric, and its smallest eigenvalue above -1/3: a ring of evenly many workers needs `lazy`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from simulator.strategies.base import Proc, Strategy

if TYPE_CHECKING:
    from simulator.worker import Worker


class D2(Strategy):
    """A step, corrected by what the last mixing has changed, and a mixing with the neighbours."""

    needs_gossip: ClassVar[bool] = True
    least_eigenvalue: ClassVar[float] = -1 / 3

    kind: Literal["d2"] = "d2"

    def worker(self, w: Worker) -> Proc[None]:
        """Gradient, step, correction, mixing."""
        x, opt = w.initial_model(), w.optimizer()
        y_before = None
        for _ in w.steps():
            g = yield from w.gradient(x)
            y, opt = w.apply(x, g, opt)
            corrected = y if y_before is None else y + (x - y_before)
            y_before = y
            x = yield from w.neighbour_mean(corrected)
            w.report(x)
