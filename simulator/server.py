"""A parameter server: a queue of requests, apart from the sharing of links.

A push is served by its transfer to the server and then applied; a pull by the transfer of the model; an
exchange by both, as one service: nobody else is taken between them. Disciplines: `fcfs` one transfer at a
time in order of arrival (ties by rank); `round_robin` likewise, but pushes in turn of ranks;
`processor_sharing` all transfers at once, updates one at a time; `lock_free` all at once, updates too. A
transfer occupies the server until its bytes have left; the latency of the last byte is the wire's. A
request itself travels with the push before it and costs nothing.
"""

from __future__ import annotations

import math
from bisect import insort
from typing import TYPE_CHECKING, Any, Literal

from simpy.events import Event

from simulator.clock import AFTER_ALL, SERVE
from simulator.line import Line
from simulator.meetings import Meeting, Want
from simulator.neighbours import one_after_another
from simulator.process import Proc, verb
from simulator.values import Vector

if TYPE_CHECKING:
    from simulator.engine import Engine
    from simulator.optimizers import State

Discipline = Literal["fcfs", "processor_sharing", "round_robin", "lock_free"]
Callbacks = list[Any]


class Request:
    """A push, a pull or an exchange (push, then pull) of one worker.

    Attributes:
        kind: push, pull or exchange.
        value: the gradient pushed, or the model pulled.
        version: of the model the gradient was computed on, or of the model pulled.
        reply, reply_version: the model that answers an exchange.
        step: the worker's step.
        staleness: model versions between the pull and the application.
        sent: bytes the worker itself sends.
        packed: whether values travel in one message, not in one a layer.
    """

    __slots__ = (
        "_began", "_server", "at", "done", "kind", "packed", "rank", "reply", "reply_version", "sent",
        "slack", "staleness", "step", "value", "version",
    )  # fmt: skip

    def __init__(self, server: Server, rank: int, kind: str, value: Vector | None, version: int) -> None:
        self._server = server
        self._began = math.nan
        self.rank, self.kind, self.value, self.version = rank, kind, value, version
        self.at = server.clock.now
        self.packed = True
        self.step = server.step_of(rank)
        self.slack: int | None = None
        self.reply: Vector | None = None
        self.reply_version = 0
        self.staleness = math.nan
        self.sent = 0.0
        self.done = Event(server.clock)

    @property
    def given(self) -> Vector:
        """What a push or an exchange brings."""
        assert self.value is not None
        return self.value

    def begin(self) -> None:
        """The server begins to serve."""
        self._began = self._server.clock.now

    def began_for(self, rank: int) -> float:
        """See `line.Blocked`."""
        return self._began

    def waits_for(self, rank: int) -> str:
        """See `line.Blocked`."""
        behind = self._server.slowest()
        needs = f" (its slack of {self.slack} waits for worker {behind})" if self.slack is not None else ""
        return f"the server to take its {self.kind}{needs}"


class Server:
    """The server side of a method; `s` in the methods' files.

    Attributes:
        workers: how many push to it.
        model: what is published; pulls get it.
        version: how often the model has been published after the first.
    """

    def __init__(self, engine: Engine, node: int, discipline: Discipline) -> None:
        self.clock = engine.clock
        self.dropped: str | None = None
        self.workers = engine.size
        self.version = -1
        self.model: Vector
        self._made: Vector | None = None
        self.line = Line(0.0)
        self._engine = engine
        self._node = node
        self._discipline = discipline
        self._one_at_a_time = discipline in ("fcfs", "round_robin")
        self._waiting: list[Request] = []
        self._inbox: list[tuple[float, int, int, Request]] = []
        self._arrived = 0
        self._unpublished: list[Request] = []
        self._wanted: Event | None = None
        self._busy = False
        self._dispatching = False
        self._applied = [0] * engine.size
        self._open: list[Request] = []
        self._turn = 0

    # facts

    @property
    def who(self) -> str:
        """For messages."""
        return "the server"

    def main_line(self) -> Line:
        """The server's own timeline."""
        return self.line

    def step_of(self, rank: int) -> int:
        """The step a worker is in."""
        return max(self._engine.workers[rank].step, 1)

    def slowest(self) -> int:
        """The worker whose pushes applied are fewest."""
        return self._applied.index(min(self._applied))

    # what a method's server does

    def initial_model(self) -> Vector:
        """The model all start from."""
        return self._engine.maths.initial()

    def optimizer(self) -> State:
        """The scenario's optimiser, as it begins."""
        return self._engine.job.optimizer.initial()

    @verb
    def next_push(self, line: Line) -> Proc[Request]:
        """The next push that has arrived; the pushes handed out before are applied by now."""
        if line.t > self.clock.now:
            yield self.clock.at(line.t)
        self._show()
        self._close_open()
        if not self._inbox:
            self._wanted = Event(self.clock)
            yield self._wanted
            self._wanted = None
        yield self.clock.at(self.clock.now, priority=AFTER_ALL)  # all that arrive at this instant: by rank
        *_, push = self._inbox.pop(0)
        line.t = max(line.t, self.clock.now)
        if self._discipline != "lock_free":
            line.t += self._decode_seconds(push)
        self._open.append(push)
        self._unpublished.append(push)
        return push

    def _decode_seconds(self, push: Request) -> float:
        """Time to decode what was pushed, at the speed of worker 0's device."""
        return float(self._engine.coding.decode_seconds(push.given.nbytes)[0])

    def apply(self, x: Vector, g: Vector, opt: State, step: int = 1) -> tuple[Vector, State]:
        """One step of the scenario's optimiser, at the learning rate of `step`; takes the server's time."""
        self.work()
        return self._engine.apply(x, g, opt, step)

    def work(self) -> None:
        """Spend the time of one update of the model."""
        if self._discipline != "lock_free":
            self.line.t += self._engine.job.server_seconds

    def add(self, x: Vector, change: Vector) -> Vector:
        """Add a change to x; takes the server's time."""
        self.work()
        return x + change

    def mean(self, pushes: list[Request]) -> Vector:
        """Mean of what was pushed, in rank order."""
        values = [p.value for p in sorted(pushes, key=lambda p: p.rank)]
        return self._engine.maths.mean([v for v in values if v is not None])

    def answer(self, push: Request, x: Vector) -> None:
        """Answer an exchange with x, the model before the push, instead of the model that it makes."""
        push.reply, push.reply_version = x, self.version

    @verb
    def broadcast_and_reduce(self, line: Line, x: Vector, packed: bool = True) -> Proc[Vector]:
        """Send x to all workers, then the mean of what they bring; they have the verb with root "master"."""
        if line.t > self.clock.now:
            yield self.clock.at(line.t)
        self._show()
        yield from self._meet(line, "broadcast", x, packed)
        meeting = yield from self._meet(line, "reduce", x, packed)
        maths = self._engine.maths
        return meeting.mean(lambda _, values, weights: maths.mean(values, weights))

    def _meet(self, line: Line, op: str, x: Vector, packed: bool) -> Proc[Meeting]:
        channel, me = self._engine.channel("master", 0), self.workers
        meeting: Meeting | None = None
        for nbytes in self._engine.message_sizes(x.nbytes, packed):
            if meeting is not None:
                yield meeting.call.done
            meeting = channel.enter(me, Want(op, nbytes, me))
            meeting.bring(me, x, float(op == "broadcast"))
            yield from channel.attend(meeting, me, line.t, self.clock)
        line.t = max(line.t, self.clock.now)
        assert meeting is not None
        return meeting

    def publish(self, x: Vector) -> None:
        """Make x the model that pulls get, a new version, as soon as the server's time has come there."""
        self._show()
        for push in self._unpublished:
            push.staleness = self.version - push.version
        self._unpublished.clear()
        self._made = x
        if self.line.t <= self.clock.now:
            self._show()

    def _show(self) -> None:
        if self._made is not None:
            self.model, self._made = self._made, None
            self.version += 1

    def _close_open(self) -> None:
        for push in self._open:
            self._applied[push.rank] += 1
            if push.kind == "exchange":
                self._answer(push)
            else:
                push.done.succeed()
        self._open.clear()
        self._dispatch_soon()

    # the queue

    def request(
        self,
        rank: int,
        kind: str,
        value: Vector | None = None,
        version: int = 0,
        *,
        slack: int | None = None,
        packed: bool = True,
        nbytes: float = 0.0,
    ) -> Request:
        """A worker asks; the request is served by the discipline. So many bytes travel of what it gives."""
        request = Request(self, rank, kind, value, version)
        request.slack, request.packed, request.sent = slack, packed, nbytes
        self._waiting.append(request)
        self._dispatch_soon()
        return request

    def _dispatch_soon(self) -> None:
        # At the end of the instant: who comes at one instant is served by rank, not by the order of the heap.
        if not self._dispatching:
            self._dispatching = True
            self.clock.end_of_instant(self._dispatch, SERVE)

    def _dispatch(self) -> None:
        self._dispatching = False
        ready = [r for r in self._waiting if self._eligible(r)]
        ready.sort(key=lambda r: (r.at, r.rank))
        if self._one_at_a_time:
            ready = [] if self._busy else ready[:1]
        for request in ready:
            self._waiting.remove(request)
            self._serve(request)

    def _eligible(self, request: Request) -> bool:
        if request.kind != "pull":
            return self._discipline != "round_robin" or request.rank == self._turn
        if self.version < 0:
            return False
        pushed = self._applied[request.rank]
        return request.slack is None or min(self._applied) >= pushed - request.slack

    def _serve(self, request: Request) -> None:
        request.begin()
        self._busy = True
        worker = int(self._engine.job.workers.node[request.rank])
        pull = request.kind == "pull"
        if pull:
            request.value, request.version = self.model, self.version
        elif self._discipline == "round_robin":
            self._turn = (self._turn + 1) % self.workers
        src, dst = (self._node, worker) if pull else (worker, self._node)
        left, arrived = self._send(request, src, dst, self.model.nbytes if pull else request.sent)
        if request.kind != "exchange":
            left.append(lambda _: self._free())
        arrived.append(lambda _: _succeed(request.done) if pull else self._deliver(request))

    def _send(self, request: Request, src: int, dst: int, nbytes: float) -> tuple[Callbacks, Callbacks]:
        """Send so many bytes; returns what to call when they have left, and when they have arrived."""
        sizes = self._engine.message_sizes(nbytes, request.packed)
        left, arrived = one_after_another(self._engine.network, src, dst, sizes)
        assert left.callbacks is not None
        assert arrived.callbacks is not None
        return left.callbacks, arrived.callbacks

    def _answer(self, request: Request) -> None:
        """The second half of an exchange: the model goes back."""
        if request.reply is None:
            request.reply, request.reply_version = self.model, self.version
        worker = int(self._engine.job.workers.node[request.rank])
        left, arrived = self._send(request, self._node, worker, request.reply.nbytes)
        left.append(lambda _: self._free())
        arrived.append(lambda _: _succeed(request.done))

    def _free(self) -> None:
        self._busy = False
        if self._waiting:
            self._dispatch_soon()

    def _deliver(self, push: Request) -> None:
        if self._discipline == "lock_free":
            delay = self._engine.job.server_seconds + self._decode_seconds(push)
            self.clock.call_at(self.clock.now + delay, lambda: self._hand_over(push))
        else:
            self._hand_over(push)

    def _hand_over(self, push: Request) -> None:
        self._arrived += 1
        insort(self._inbox, (self.clock.now, push.rank, self._arrived, push))
        if self._wanted is not None and not self._wanted.triggered:
            self._wanted.succeed()


def _succeed(event: Event) -> None:
    event.succeed()
