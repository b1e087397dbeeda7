"""A worker: the verbs that a training method may use, each worker a process of its own.

`cohort.py` has the same verbs for all workers at once. Only verbs cost simulated time; `apply` adds the
optimiser's time to the worker's line, to be waited for by its next verb.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from simulator.coding import Places
from simulator.collective_verbs import Collectives
from simulator.errors import VerbError
from simulator.exchanges import Exchanges
from simulator.line import (
    Blocked,
    Handle,
    Line,
    Stretch,
    begun,
    complain_of_unjoined,
    hide,
    lay_under,
    only_on_main,
)
from simulator.meetings import Part
from simulator.outer_models import OuterModels
from simulator.process import Proc, Step, complain_of_dropped, verb
from simulator.recorder import COMMUNICATION, COMPUTE, INPUT, WAITING
from simulator.values import Vector

if TYPE_CHECKING:
    from simulator.engine import Engine
    from simulator.optimizers import Optimizer, State
    from simulator.server import Request

T = TypeVar("T")
FOREVER = float("inf")


class Worker(Collectives, Exchanges):
    """One worker; `w` in the methods' files.

    Attributes:
        rank: 0 .. size - 1.
        size: number of workers.
        step: the local step it is in, from 1.
        rounds: synchronisations it has been through.
        model: for methods in which others change a worker's model: what the worker holds now.
        outers: what it has reported as outer models.
    """

    def __init__(self, engine: Engine, rank: int) -> None:
        self.rank = rank
        self.size = engine.size
        self.step = 0
        self.dropped: str | None = None
        self.finished = False
        self.rounds = 0
        self.line = Line(engine.begin)
        self.joining: Sequence[Handle[Any]] = ()
        self.beside: list[Handle[Any]] = []
        self._engine = engine
        self._cost = engine.job.costs[rank]
        self._places = Places()
        self._drawn = 0
        self._skipped = False
        loading = engine.job.input
        self._loader = None if loading is None else loading.of_worker(rank)
        self._step_start = engine.begin
        self._spent = [0.0] * 8
        self._sent = 0.0
        self._pushed: Request | None = None
        self._wasted = self._mixed = 0
        self._models: deque[tuple[float, Vector]] = deque([(0.0, engine.maths.initial())])
        self.outers = OuterModels()
        self._reported = self._stepped = False

    # facts

    @property
    def who(self) -> str:
        """For messages."""
        return f"worker {self.rank}"

    @property
    def kind(self) -> str:
        """The class of the worker's device, as in `device: {class: gpu}`."""
        return self._engine.job.workers.kind[self.rank]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The classes of all workers' devices, by rank."""
        return self._engine.job.workers.kind

    def main_line(self) -> Line:
        """The worker's own timeline."""
        return self.line

    def steps(self, pace: float = 1.0) -> Iterator[int]:
        """Local steps t = 1, 2, ... until the scenario's stop; `pace` scales this worker's steps."""
        self._stepped, limit = True, self._engine.step_limit(pace)
        while self.step < limit:
            self.step += 1
            yield self.step
            self._end_step()

    def _end_step(self) -> None:
        complain_of_dropped(self)
        self._engine.see_report(self.who, self._reported)
        if self._skipped:
            self._skipped = False
            return  # a round it has missed is no step of its own: the time goes with the next
        spent, end = self._spent, self.line.t
        staleness = float("nan") if self._pushed is None else self._pushed.staleness
        self._engine.recorder.step(
            self._step_start, end, spent[0], spent[1], spent[2], spent[3], self._sent, staleness,
            self.rank, self.step, self._engine.batch, self._wasted,
        )  # fmt: skip
        self._engine.step_ended(end)
        self._step_start = end
        self._spent = [0.0] * 8
        self._sent, self._wasted, self._mixed, self._pushed = 0.0, 0, 0, None

    # the model and its optimiser

    def initial_model(self) -> Vector:
        """The model all workers start from."""
        return self._engine.maths.initial()

    def optimizer(self) -> State:
        """The scenario's optimiser, as it begins."""
        return self._engine.job.optimizer.initial()

    def lr(self, t: int) -> float:
        """The learning rate of step t, after the schedule."""
        return self._engine.lr(t)

    def apply(
        self, x: Vector, g: Vector, opt: State, optimizer: Optimizer | None = None
    ) -> tuple[Vector, State]:
        """One step of the scenario's optimiser, or of the method's; its time is added to the line."""
        self.spend(self._engine.update_seconds(optimizer)[self.rank], "optimiser")
        return self._engine.apply(x, g, opt, max(self.step, 1), optimizer)

    def spend(self, seconds: float, name: str) -> None:
        """Add compute to the worker's line, slowed as its gradient of this step was."""
        start = self.line.t
        end = self._engine.slowdown.finish(self.rank, max(self._drawn - 1, 0), start, seconds)
        self._record(COMPUTE, start, end, self._engine.recorder.name(name))
        self.line.t = end

    def report(self, x: Vector, outer: Vector | None = None) -> None:
        """Say that the worker's model is now x: what evaluations see.

        Args:
            x: its own model.
            outer: what the method has learned, if that is not the mean of the workers' models.
        """
        self._reported = True
        if outer is not None and self.rank == 0:
            self.outers.report(self.line.t, outer, self._engine.clock.now)
        self._models.append((self.line.t, x))
        self.model_at(self._engine.clock.now)  # nobody asks for an earlier time: forget what was before

    def model_at(self, time: float) -> Vector:
        """The model reported last at or before `time`; earlier ones are forgotten."""
        while len(self._models) > 1 and self._models[1][0] <= time:
            self._models.popleft()
        return self._models[0][1]

    @property
    def model(self) -> Vector:
        """The model the worker holds, which peers may change."""
        return self._models[-1][1]

    @model.setter
    def model(self, x: Vector) -> None:
        self.report(x)

    def replace_model(self, x: Vector) -> None:
        """The worker's model is now x: what a peer's average has made of it."""
        time, now = self._models[-1][0], self._engine.clock.now
        if time > now:  # an optimiser's step under way went into x
            self._models[-1] = (time, x)
        else:
            self._models.append((now, x))
        self.model_at(now)

    # verbs: computing

    @verb
    def gradient(self, line: Line, x: Vector) -> Proc[Vector]:
        """One stochastic gradient at x; takes the workload's forward and backward time."""
        only_on_main(line, self.who, "gradient")
        self._load(line)
        value, _, end = self._compute_gradient(line, x, self._cost.total)
        if end > self._engine.clock.now:
            yield self._engine.clock.at(end)
        return value

    @verb
    def gradient_parts(self, line: Line, x: Vector, bucket_bytes: float) -> Proc[list[Part]]:
        """One gradient in buckets, in the order of the backward pass; each exists as soon as it is full."""
        only_on_main(line, self.who, "gradient_parts")
        self._load(line)
        draw = self._drawn
        ready, nbytes = self._cost.buckets(bucket_bytes, beside=self.size > 1)
        ready = ready + self._engine.coding.bucket_seconds(nbytes.tolist())[:, self.rank]
        value, start, _ = self._compute_gradient(line, x, float(ready[-1]))
        yield from ()  # nothing waits here: `join` does
        finish = self._engine.slowdown.finish
        values = value.split(tuple(nbytes.tolist()))
        return [
            Part(part, finish(self.rank, draw, start, offset))
            for part, offset in zip(values, ready.tolist(), strict=True)
        ]

    def _load(self, line: Line) -> None:
        """Wait until the samples of the next gradient are there."""
        if self._loader is not None:
            taken = self._loader.take(line.t)
            self._record(INPUT, line.t, taken, self._engine.recorder.name("input"))
            line.t = taken

    def _compute_gradient(self, line: Line, x: Vector, work: float) -> tuple[Vector, float, float]:
        start, draw = line.t, self._drawn
        self._drawn += 1
        end = self._engine.slowdown.finish(self.rank, draw, start, work)
        value = self._engine.maths.gradient(x, self.rank, draw)
        self._record(COMPUTE, start, end, self._engine.names.gradient)
        line.t = end
        return value, start, end

    @verb
    def charge(self, line: Line, seconds: float, name: str = "compute") -> Proc[None]:
        """Compute that is not a gradient; seconds undisturbed, slowed like the rest of the step."""
        only_on_main(line, self.who, "charge")
        self.spend(seconds, name)
        yield self._engine.clock.at(line.t)

    # running beside, and waiting

    def start(self, step: Step[T]) -> Handle[T]:
        """Let a verb run beside what follows; `join` waits for it."""
        line = Line(self.line.t, main=False)
        handle: Handle[T] = Handle(self._engine.clock.process(begun(step.begin(line))), line, step.name)
        self.beside.append(handle)
        return handle

    @verb
    def join(self, line: Line, handles: Sequence[Handle[T]]) -> Proc[list[T]]:
        """Wait until all have ended; their values in order. What computation hides of them costs nothing."""
        only_on_main(line, self.who, "join")
        self.joining = handles
        joined = set(handles)
        self.beside = [handle for handle in self.beside if handle not in joined]
        values = []
        for handle in handles:
            if handle.process.is_alive:
                yield handle.process
            values.append(handle.process.value)
        if line.t > self._engine.clock.now:
            yield self._engine.clock.at(line.t)
        self.joining = ()
        stretches = [stretch for handle in handles for stretch in handle.line.stretches]
        self.rounds += any(s.name in self._engine.names.rounds for s in stretches)
        line.t = lay_under(line.t, stretches, self._record, self._engine.names.wait)
        if owed := sum(handle.line.owed for handle in handles):
            self.spend(owed, "decode")
        return values

    def concat(self, parts: Sequence[Vector]) -> Vector:
        """One value of consecutive parts."""
        return self._engine.maths.concat(parts)

    def _wait_for(
        self, line: Line, what: Blocked, event: Any, verb_name: str, size: float | None = None, peer: int = -1
    ) -> Proc[None]:
        line.blocked, line.name = what, self._engine.recorder.name(verb_name)
        yield event
        line.blocked = None
        sent = what.sent_by(self.rank) if size is None else size  # type: ignore[attr-defined]
        self.communicated(line, line.name, what.began_for(self.rank), self._engine.clock.now, sent, peer)

    def communicated(self, line: Line, name: int, began: float, end: float, size: float, peer: int) -> None:
        """Account for a communication that waited from the line's time to `began` and went on to `end`."""
        start = max(line.t, began)
        end = max(start, end)  # the line may have come further than what it waited for
        if line.main:
            self._record(WAITING, line.t, start, self._engine.names.wait)
            self._record(COMMUNICATION, start, end, name, size, peer)
        else:
            line.stretches.append(Stretch(name, start, end, size, peer))
        line.t = end

    def _record(
        self,
        kind: int,
        start: float,
        end: float,
        name: int,
        size: float = 0.0,
        peer: int = -1,
        hidden: bool = False,
    ) -> None:
        if not hidden:
            self._spent[kind] += end - start
        self._sent += size
        self._engine.recorder.span(self.rank, kind, start, end, self.step, name, size, peer, hidden)

    # the end of the run

    def cut(self) -> None:
        """The run has ended in the middle: record what this worker was in."""
        wait = self._engine.names.wait
        hide(self.line.t, [s for handle in self.beside for s in self._so_far(handle.line)], self._record)
        if self.joining:
            stretches = [s for handle in self.joining for s in self._so_far(handle.line)]
            end = lay_under(self.line.t, stretches, self._record, wait)
            self._record(WAITING, end, FOREVER, wait)
        elif self.line.blocked is not None and not self.finished:
            lay_under(self.line.t, self._so_far(self.line), self._record, wait)

    def _so_far(self, line: Line) -> list[Stretch]:
        """A line's communication, with what it is in."""
        if line.blocked is None:
            return line.stretches
        began = line.blocked.began_for(self.rank)
        start = FOREVER if began != began else max(began, line.t)
        return [*line.stretches, Stretch(line.name, start, FOREVER, 0.0, -1)]

    def stuck(self) -> str | None:
        """What the worker waits for, for the message of a stuck run; None if it has finished."""
        if self.finished:
            return None
        lines = [self.line, *(handle.line for handle in self.joining)]
        waits = [line.blocked.waits_for(self.rank) for line in lines if line.blocked is not None]
        return f"{self.who} (step {self.step}): " + ("; ".join(waits) or "between verbs")

    def use_steps(self) -> None:
        """At the end of its process: a method that never took a step has forgotten `for t in w.steps()`.

        Raises:
            VerbError: it took none.
        """
        complain_of_dropped(self)
        if not self._stepped:
            raise VerbError(f"{self.who} took no step: write `for t in w.steps()`")
        complain_of_unjoined(self.who, self.beside)
