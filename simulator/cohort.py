"""A cohort: all workers of a synchronous method as one process, whose clock is a vector.

It has the verbs of `Worker`, and the method's file does not change. Times are the same expressions as
there, so both engines give one digest. The conditions: control flow depends on step numbers and fields
only, and no transfer begins before the engine's now. Verbs that cannot keep them raise `CohortError`. A
value has a worker axis, (n, d), or none, (d,), while all workers are equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from simulator.ahead import Ahead
from simulator.coding import Places
from simulator.cohort_collectives import CohortCollectives
from simulator.cohort_models import CohortModels
from simulator.collectives import Call
from simulator.errors import CohortError, VerbError
from simulator.fabric import FloatArray, IntArray
from simulator.line import Handle, Line, begun, complain_of_unjoined, only_on_main
from simulator.lone_verbs import LoneVerbs
from simulator.meetings import Meeting, Part
from simulator.outer_models import OuterModels
from simulator.process import Proc, Step, complain_of_dropped, verb
from simulator.recorder import COMMUNICATION, COMPUTE, INPUT, WAITING
from simulator.stretches import Beside, Stretches, hide, lay_under, lines_of, under_way
from simulator.values import Vector

if TYPE_CHECKING:
    from simulator.engine import Engine
    from simulator.optimizers import Optimizer, State

T = TypeVar("T")


class Cohort(CohortCollectives, LoneVerbs):
    """All workers at once; `w` in the methods' files.

    Attributes:
        size: number of workers.
        step: the local step they are in, from 1.
        t: seconds up to which each worker is accounted for, shape (n,).
        outers: what worker 0 has reported as outer models.
    """

    def __init__(self, engine: Engine) -> None:
        self.size = engine.size
        self.step = 0
        self.dropped: str | None = None
        self.t: FloatArray = np.zeros(self.size)
        self._here = self.t
        self._beside: list[Handle[Any]] = []
        self._joining: Sequence[Handle[Any]] = ()
        self._latest: Call | None = None
        self._ahead = Ahead(engine)
        self._rounds = 0
        self._rounds_ending: list[FloatArray] = []
        self._engine = engine
        self._line = Line(0.0)
        self._places = Places()
        self._drawn = 0
        loading = engine.job.input
        self._loader = None if loading is None else loading.of_all()
        self._step_start = self.t
        self._spent = np.zeros((8, self.size))
        self._sent = np.zeros(self.size)
        self._wasted: IntArray | None = None
        self._models = CohortModels(engine)
        self.outers = OuterModels()
        self._reported = self._stepped = False
        totals = [cost.total for cost in engine.job.costs]
        self._totals: FloatArray = np.array(totals)
        self._buckets: dict[float, tuple[FloatArray, tuple[float, ...]]] = {}

    # facts

    @property
    def who(self) -> str:
        """For messages."""
        return "the cohort"

    def main_line(self) -> Line:
        """Not used: the cohort's times are in `t`."""
        return self._line

    def steps(self, pace: float = 1.0) -> Iterator[int]:
        """Local steps t = 1, 2, ... until the scenario's stop."""
        self._stepped, limit = True, self._engine.step_limit(pace)
        while self.step < limit and self.t.min() <= self._engine.time_limit:
            self.step += 1
            yield self.step
            self._end_step()

    def _end_step(self) -> None:
        complain_of_dropped(self)
        self._engine.see_report(self.who, self._reported)
        engine, spent = self._engine, self._spent
        columns = {
            "start": self._step_start, "end": self.t, "compute": spent[COMPUTE],
            "communication": spent[COMMUNICATION], "waiting": spent[WAITING],
            "bubble": spent[3], "bytes_sent": self._sent, "staleness": np.full(self.size, np.nan),
        }  # fmt: skip
        engine.recorder.steps(self.step, columns, engine.batch, self._wasted)
        self._ahead.step_ends(self.t)
        self._step_start, self._wasted = self.t, None
        self._spent, self._sent = np.zeros((8, self.size)), np.zeros(self.size)

    # the model and its optimiser

    def initial_model(self) -> Vector:
        """The model all workers start from, shape (d,)."""
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
        """One step of the scenario's optimiser, or of the method's, on every worker; adds to their clocks."""
        self.spend(self._engine.update_seconds(optimizer), "optimiser")
        return self._engine.apply(x, g, opt, max(self.step, 1), optimizer)

    def spend(self, seconds: FloatArray | float, name: str) -> None:
        """Add compute to every clock, slowed as the workers' gradients of this step were."""
        work = np.broadcast_to(np.asarray(seconds, dtype=float), (self.size,))
        end = self._engine.slowdown.finish_all(max(self._drawn - 1, 0), self.t, work)
        self._record(COMPUTE, self.t, end, self._engine.recorder.name(name))
        self.t = end

    def report(self, x: Vector, outer: Vector | None = None) -> None:
        """Say that the workers' models are now x, and the outer model `outer`: what evaluations see."""
        self._reported = True
        if outer is not None:
            self.outers.report(float(self.t[0]), outer, self._engine.clock.now)
        self._models.report(self.t, x)

    def models_at(self, time: float) -> Vector:
        """The models reported last at or before `time`, shape (n, d), or (d,) while all are equal."""
        return self._models.at(time)

    # verbs

    @verb
    def gradient(self, line: Line, x: Vector) -> Proc[Vector]:
        """One stochastic gradient of every worker at x."""
        only_on_main(line, self.who, "gradient")
        self._load()
        value = self._compute_gradient(x, self._totals)
        yield from self._looked_at()
        return value

    @verb
    def gradient_parts(self, line: Line, x: Vector, bucket_bytes: float) -> Proc[list[Part]]:
        """One gradient of every worker in buckets; `ready` of a part is a vector."""
        only_on_main(line, self.who, "gradient_parts")
        self._load()
        start, draw = self.t, self._drawn
        offsets, nbytes = self._buckets_of(bucket_bytes)
        value = self._compute_gradient(x, offsets[-1])
        finish = self._engine.slowdown.finish_all
        yield from ()  # nothing waits here: `join` does
        return [
            Part(part, finish(draw, start, offset))
            for part, offset in zip(value.split(nbytes), offsets, strict=True)
        ]

    def _buckets_of(self, bucket_bytes: float) -> tuple[FloatArray, tuple[float, ...]]:
        """Offsets of the buckets, shape (buckets, n), and their sizes."""
        found = self._buckets.get(bucket_bytes)
        if found is None:
            costs = self._engine.job.costs
            each = {id(cost): cost.buckets(bucket_bytes, beside=self.size > 1) for cost in costs}
            offsets = np.stack([each[id(cost)][0] for cost in costs], axis=1)
            sizes = tuple(each[id(costs[0])][1].tolist())
            offsets = offsets + self._engine.coding.bucket_seconds(sizes)
            found = self._buckets[bucket_bytes] = (offsets, sizes)
        return found

    def _load(self) -> None:
        """Wait until the samples of the next gradients are there."""
        if self._loader is not None:
            taken = self._loader.take(self.t)
            self._record(INPUT, self.t, taken, self._engine.recorder.name("input"))
            self.t = taken

    def _compute_gradient(self, x: Vector, work: FloatArray) -> Vector:
        draw = self._drawn
        self._drawn += 1
        end = self._engine.slowdown.finish_all(draw, self.t, work)
        self._record(COMPUTE, self.t, end, self._engine.names.gradient)
        self.t = end
        return self._engine.maths.gradients(x, draw)

    @verb
    def charge(self, line: Line, seconds: float, name: str = "compute") -> Proc[None]:
        """Compute that is not a gradient."""
        only_on_main(line, self.who, "charge")
        self.spend(seconds, name)
        yield from self._looked_at()

    def start(self, step: Step[T]) -> Handle[T]:
        """Let an all_mean run beside what follows; `join` waits for it."""
        line = Beside(0.0, main=False, at=self.t, here=self._here)
        handle: Handle[T] = Handle(self._engine.clock.process(begun(step.begin(line))), line, step.name)
        self._beside.append(handle)
        return handle

    @verb
    def join(self, line: Line, handles: Sequence[Handle[Vector]]) -> Proc[list[Vector]]:
        """Wait until all have ended; their values in order."""
        only_on_main(line, self.who, "join")
        values: list[Vector] = []
        self._joining = handles
        joined = set(handles)
        self._beside = [handle for handle in self._beside if handle not in joined]
        for handle in handles:
            if handle.process.is_alive:
                yield from self._until(handle.process, line)
            values.append(handle.process.value)
        self._joining = ()
        stretches = [done for beside in lines_of(handles) for done in beside.done]
        self._here = self.t = lay_under(self.t, stretches, self._record, self._engine.names.wait)
        self._be_in_time()
        if stretches:
            self._round_ends()
        if np.any(owed := sum(beside.owed for beside in lines_of(handles))):
            self.spend(owed, "decode")
        return values

    def _looked_at(self) -> Proc[None]:
        self._here = self.t
        yield from self._ahead.looked_at(self.t)

    def _until(self, event: Any, line: Line) -> Proc[None]:
        if line.main:
            yield from self._ahead.until(event)
        else:
            yield event

    def finish(self) -> Proc[None]:
        """All steps have been taken: wait until the clock has been at the end of the last."""
        yield from self._ahead.all_over(self.t)

    def concat(self, parts: Sequence[Vector]) -> Vector:
        """One value of consecutive parts."""
        return self._engine.maths.concat(parts)

    def _round_ends(self) -> None:
        """Every worker has been through a synchronisation, at `t`."""
        self._rounds_ending.append(self.t)
        while self._rounds_ending and self._rounds_ending[0].max() <= self._engine.clock.now:
            self._rounds_ending.pop(0)
            self._rounds += 1

    def rounds(self, now: float) -> int | None:
        """Synchronisations that every worker has been through by `now`; None before the first of any."""
        ended = self._rounds + sum((end <= now).astype(int) for end in self._rounds_ending)
        return int(np.min(ended)) if np.max(ended) else None

    # accounts

    def _communicated(self, what: Stretches) -> None:
        self._record(WAITING, self.t, what.began, self._engine.names.wait)
        self._record(COMMUNICATION, what.began, what.end, what.name, what.size)
        self._here = self.t = np.maximum(self.t, what.end)

    def _record(
        self,
        kind: int,
        start: FloatArray,
        end: FloatArray,
        name: int,
        size: FloatArray | None = None,
        hidden: bool = False,
    ) -> None:
        if not hidden:
            self._spent[kind] += np.maximum(end - start, 0.0)
        if size is not None:
            self._sent = self._sent + size
        self._engine.recorder.spans(kind, start, end, self.step, name, size, hidden)

    # the end of the run

    def cut(self) -> None:
        """The run has ended in the middle: record what the workers were in.

        Raises:
            CohortError: some have left a collective, and would be in their next step.
        """
        waits = self._joining[-1].line.blocked if self._joining else self._line.blocked
        if isinstance(waits, Meeting) and (waits.call.left <= self._engine.clock.now).any():
            raise CohortError("all_mean", "the run ends when some workers have left it and others have not")
        name, wait = self._engine.recorder.name, self._engine.names.wait
        with np.errstate(invalid="ignore"):  # from never to never
            hide(self.t, [s for beside in lines_of(self._beside) for s in beside.so_far(name)], self._record)
            if self._joining:
                stretches = [s for beside in lines_of(self._joining) for s in beside.so_far(name)]
                lay_under(self.t, stretches, self._record, wait)
            elif self._line.blocked is not None:
                lay_under(self.t, [under_way(self._line.blocked, name)], self._record, wait)

    def use_steps(self) -> None:
        """At the end of its process: a method that never took a step has forgotten `for t in w.steps()`.

        Raises:
            VerbError: it took none.
        """
        complain_of_dropped(self)
        if not self._stepped:
            raise VerbError("the method took no step: write `for t in w.steps()`")
        if self.t.min() <= self._engine.time_limit:  # else it is cut
            complain_of_unjoined(self.who, self._beside)

    def stuck(self) -> str:
        """What the cohort waits for, for the message of a stuck run."""
        return f"the cohort (step {self.step}) waits in " + (
            self._line.blocked.waits_for(0) if self._line.blocked else "no verb"
        )
