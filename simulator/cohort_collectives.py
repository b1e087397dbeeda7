"""A cohort's collectives: all workers come, each at its time, and leave with the mean."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.ahead import Ahead
from simulator.coding import Places
from simulator.collectives import Call
from simulator.errors import CohortError
from simulator.fabric import FloatArray, IntArray
from simulator.line import Line
from simulator.meetings import Meeting, Part
from simulator.process import Proc, verb
from simulator.stretches import Beside, Stretches
from simulator.values import Vector

if TYPE_CHECKING:
    from simulator.engine import Engine


class CohortCollectives(ABC):
    """A part of `Cohort`.

    Attributes:
        size, step, t, dropped: see `Cohort`.
    """

    size: int
    step: int
    t: FloatArray
    dropped: str | None
    _engine: Engine
    _ahead: Ahead
    _latest: Call | None
    _places: Places
    _wasted: IntArray | None

    @property
    @abstractmethod
    def who(self) -> str:
        """For messages."""

    @abstractmethod
    def main_line(self) -> Line:
        """Of the cohort."""

    @abstractmethod
    def spend(self, seconds: FloatArray | float, name: str) -> None:
        """Add compute to every clock."""

    @abstractmethod
    def _until(self, event: Any, line: Line) -> Proc[None]:
        """Wait on a line."""

    @abstractmethod
    def _communicated(self, what: Stretches) -> None:
        """Account for a collective on the cohort's own line."""

    @abstractmethod
    def _round_ends(self) -> None:
        """Every worker has been through a synchronisation, at `t`."""

    @verb
    def all_mean(
        self,
        line: Line,
        x: Vector | Part,
        over: str | None = None,
        drop_slowest: int = 0,
        weight: float = 1.0,
        algorithm: str | None = None,
        since: Vector | None = None,
    ) -> Proc[Vector]:
        """The mean over all workers, by an all-reduce: (n, d) -> (d,)."""
        if over is not None:
            raise CohortError("all_mean", f"groups (over: {over}) need a cohort each")
        value, coding = x.value if isinstance(x, Part) else x, self._engine.coding
        need = self.size - drop_slowest if drop_slowest else None
        name, keep = self._places.name("all_mean", self.step, since), None
        for number, want in enumerate(coding.wants(value.nbytes, self.size, need, algorithm)):
            self._code(line, x, coding.encode_seconds(value.nbytes, number), first=not number)
            meeting = self._engine.channel(None, 0).call(want, self.step)
            yield from self._meet(line, None if number else x, meeting)
            if need is not None and not number:
                keep = meeting.in_time()
                self._wasted = np.where(keep, 0, self._engine.batch)
        if line.main:
            self._round_ends()
        self._owe(line, coding.mean_seconds(value.nbytes, self.size), "decode")
        return coding.cohort_mean(name, since, value, keep)

    def _meet(self, line: Line, x: Vector | Part | None, meeting: Meeting) -> Proc[None]:
        """All workers take part in a collective."""
        call, previous = meeting.call, self._latest
        self._latest, line.blocked = call, meeting
        arrivals = self._arrivals(line, x)
        if previous is not None:
            if np.isnan(previous.left).any():
                yield from self._until(previous.done, line)
            arrivals = np.maximum(arrivals, previous.left)
        call.arrive_all(self._present(arrivals))
        # With backup workers all times are known when the first leaves: do not wait for the late ones.
        late = meeting.want.need is not None
        yield from self._until(call.leaves(int(arrivals.argmin())) if late else call.done, line)
        if np.isnan(call.left).any():
            yield from self._until(call.done, line)
        line.blocked = None
        self._left(line, meeting, arrivals)

    def _code(self, line: Line, x: Vector | Part, seconds: FloatArray, *, first: bool) -> None:
        """See `Collectives._code`: the time of one message's making."""
        if not first and not line.main:
            self._owe(line, seconds, "encode")
        elif not (first and isinstance(x, Part)) and seconds.any():
            self.spend(seconds, "encode")
            if isinstance(line, Beside):
                line.at = self.t

    def _owe(self, line: Line, seconds: FloatArray, name: str) -> None:
        """Spend compute at once, or when what runs beside is joined."""
        if not line.main:
            line.owed = line.owed + seconds
        elif seconds.any():
            self.spend(seconds, name)

    def _arrivals(self, line: Line, x: Vector | Part | None) -> FloatArray:
        """When the workers come to a collective, if nothing else keeps them."""
        if not isinstance(line, Beside):
            return np.maximum(self.t, x.ready) if isinstance(x, Part) else self.t
        return np.maximum(line.here, x.ready) if isinstance(x, Part) else line.at

    def _present(self, at: FloatArray) -> FloatArray:
        """Arrivals, none of them before the engine's now.

        Raises:
            CohortError: a worker would start a transfer in the past.
        """
        if at.min() < self._engine.clock.now:
            raise CohortError(
                "all_mean", "a worker that left its last collective early would start in the past"
            )
        return at

    def _be_in_time(self) -> None:
        """See that nobody has looked at workers that had left a collective while others had not.

        Raises:
            CohortError: evaluations, or samples to stop at, may have been missed.
        """
        if self.t.min() < self._engine.clock.now and self._ahead.is_watched():
            raise CohortError("all_mean", "workers leave it at different times, and are looked at in between")

    def _left(self, line: Line, meeting: Meeting, arrivals: FloatArray) -> None:
        """All have been through a collective."""
        call, name = meeting.call, self._engine.recorder.name(meeting.want.op)
        began = np.maximum(call.began, arrivals)
        done = Stretches(name, began, call.left.copy(), np.asarray(call.bytes_sent))
        if isinstance(line, Beside):
            line.done.append(done)
        else:
            self._communicated(done)
            self._be_in_time()
