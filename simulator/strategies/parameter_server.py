"""Parameter server: workers push gradients to a server and pull its model, more or less in step.

Ho et al., "More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server", NIPS 2013
(bound s); Dean et al., "Large Scale Distributed Deep Networks", NIPS 2012 (asynchronous, bound none);
Paine et al., "GPU Asynchronous SGD", 2013 (n_sync local steps between pushes of the model's change).
Differences: a worker pulls right after its push (asynchronous: the server answers before it takes the next);
with bound 0 the server applies the mean of a round once, else each push as it comes, at the full learning
rate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from simulator.strategies.base import Proc, Strategy

if TYPE_CHECKING:
    from simulator.server import Server
    from simulator.worker import Worker


class ParameterServer(Strategy):
    """Push, pull; the server applies."""

    has_server: ClassVar[bool] = True

    kind: Literal["parameter_server"] = "parameter_server"
    bound: NonNegativeInt | Literal["none"] = Field(
        "none",
        description="pushes a worker may be ahead of the slowest: 0 = bulk synchronous, none = asynchronous",
    )
    n_sync: PositiveInt = Field(
        1, description="local steps between pushes; above 1 the model's change is pushed"
    )
    discipline: Literal["fcfs", "processor_sharing", "round_robin", "lock_free"] = Field(
        "fcfs", description="how the server takes its requests"
    )

    def worker(self, w: Worker) -> Proc[None]:
        """Pull, compute, push."""
        slack = None if self.bound == "none" else self.bound
        opt = w.optimizer()
        pulled, version = yield from w.pull()
        x = pulled
        for t in w.steps():
            g = yield from w.gradient(x)
            if self.n_sync > 1:
                x, opt = w.apply(x, g, opt)
            if t % self.n_sync == 0:
                change = g if self.n_sync == 1 else x - pulled
                if slack is None:
                    pulled, version = yield from w.push_pull(change, version)
                else:
                    yield from w.push(change, version)
                    pulled, version = yield from w.pull(slack)
                x = pulled
            w.report(x)

    def server(self, s: Server) -> Proc[None]:
        """Apply what is pushed, publish the model."""
        x, opt = s.initial_model(), s.optimizer()
        s.publish(x)
        pushes = []
        while True:
            push = yield from s.next_push()
            pushes.append(push)
            if self.bound == 0 and len(pushes) < s.workers:
                continue
            change = s.mean(pushes)
            if self.n_sync == 1:
                x, opt = s.apply(x, change, opt, step=push.step)
            else:
                x = s.add(x, change)
            s.publish(x)
            pushes = []
