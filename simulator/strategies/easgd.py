"""EASGD: workers and a centre draw each other like springs, at a server in some order or in lock step.

Zhang, Choromanska and LeCun, "Deep learning with Elastic Averaging SGD", NIPS 2015 [memory]; You, Buluc and
Demmel, "Scaling Deep Learning on GPU and Knights Landing Clusters", SC17: x <- x - lr v - alpha
(x - centre), centre <- centre + alpha (x - centre), v the gradient or its momentum (MEASGD). The original is
served in turn; fcfs and lock_free (Hogwild) exchange beside the gradient. Sync 1: a tree with a master; 2:
the centre lives at worker 0; 3: and beside the gradient. Differences: alpha = lr rho = beta / workers,
whatever the schedule; beta 0.9 [memory].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, PositiveInt

from simulator.strategies.base import Proc, Strategy

if TYPE_CHECKING:
    from simulator.process import Step
    from simulator.server import Server
    from simulator.values import Vector
    from simulator.worker import Worker


class EASGD(Strategy):
    """A local step and a pull towards the centre, which the workers pull towards them."""

    kind: Literal["easgd"] = "easgd"
    discipline: Literal["round_robin", "fcfs", "lock_free"] = Field("fcfs", description="of the server")
    sync_stage: int | None = Field(None, ge=1, le=3, description="in lock step instead, at this stage")
    momentum: float = Field(0.0, ge=0, lt=1, description="of the local steps, on top of the optimiser's")
    beta: float = Field(0.9, ge=0, le=1, description="elastic force of all workers together, workers x alpha")
    every: PositiveInt = Field(1, description="steps between exchanges, tau")
    packed: bool = Field(True, description="one message for the model; false: one a layer")

    # Both depend on a field: the centre of stages 2 and 3 lives at a worker, and trees carry values whole.
    has_server = property(lambda self: self.sync_stage in (None, 1))
    sends = property(lambda self: "whole" if self.sync_stage else "changes")

    def worker(self, w: Worker) -> Proc[None]:
        """A gradient, an exchange behind it or beside it; the step and the pull."""
        beside = self.sync_stage == 3 if self.sync_stage else self.discipline != "round_robin"
        x, opt, more = w.initial_model(), w.optimizer(), 0
        centre, v = x, 0.0 * x
        for t in w.steps():
            if not beside:
                g = yield from w.gradient(x)
            exchange = [w.start(self.exchange(w, x, centre, more))] if t % self.every == 0 else []
            if beside:
                g = yield from w.gradient(x)
            answer = yield from w.join(exchange)
            before, v = x, g + self.momentum * v
            x, opt = w.apply(x, v, opt)
            for told, more in answer:
                x = x - self.beta / w.size * (before - told)
                centre = told + self.beta * (more - told) if self.sync_stage and more is not None else told
            w.report(x, centre)

    def exchange(self, w: Worker, x: Vector, centre: Vector, version: int) -> Step[Any]:
        """-> the centre as it was; its version or, in lock step at its root, the mean of all models."""
        if self.sync_stage is None:
            return w.push_pull(x, version, self.packed, kept=True)
        root: Literal["master", 0] = "master" if self.sync_stage == 1 else 0
        return w.broadcast_and_reduce(centre, x, root, self.packed)

    def server(self, s: Server) -> Proc[None]:
        """The centre moves by each model that comes, or by the mean of all."""
        centre = s.initial_model()
        s.publish(centre)
        while True:
            if self.sync_stage:
                mean = yield from s.broadcast_and_reduce(centre, self.packed)
                centre = s.add(centre, self.beta * (mean - centre))
            else:
                push = yield from s.next_push()
                s.answer(push, centre)
                centre = s.add(centre, self.beta / s.workers * (push.given - centre))
            s.publish(centre)
