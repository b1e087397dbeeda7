"""Verbs of collectives: what all workers, or a group of them, do together."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from simulator.line import Line
from simulator.meetings import Meeting, Part, Want
from simulator.process import Proc, verb
from simulator.values import Vector

if TYPE_CHECKING:
    from simulator.engine import Engine


class Collectives(ABC):
    """A part of `Worker`.

    Attributes:
        rank, size, step, rounds, line, dropped: see `Worker`.
    """

    rank: int
    size: int
    step: int
    rounds: int
    line: Line
    dropped: str | None
    _engine: Engine
    _wasted: int

    @property
    @abstractmethod
    def who(self) -> str:
        """For messages."""

    @abstractmethod
    def main_line(self) -> Line:
        """The worker's own timeline."""

    @abstractmethod
    def communicated(self, line: Line, name: int, began: float, end: float, size: float, peer: int) -> None:
        """Account for a communication that waited from the line's time to `began` and went on to `end`."""

    @verb
    def all_mean(
        self,
        line: Line,
        x: Vector | Part,
        over: str | None = None,
        drop_slowest: int = 0,
        weight: float = 1.0,
        algorithm: str | None = None,
    ) -> Proc[Vector]:
        """The mean over all workers, by an all-reduce.

        Args:
            line: the timeline that the verb moves; supplied by the verb's call.
            x: this worker's contribution.
            over: None for all workers, `server` for those of this host, `across` for those of equal place on
                all hosts.
            drop_slowest: begin without the last so many; a late worker's own x is dropped, it takes the
                others' mean.
            weight: this worker's weight in the mean.
            algorithm: of the all-reduce, instead of the network's.
        """
        channel = self._engine.channel(over, self.rank)
        need = len(channel.ranks) - drop_slowest if drop_slowest else None
        value = x.value if isinstance(x, Part) else x
        want = Want("all_reduce", value.nbytes, 0, need, algorithm)
        member = channel.member(self.rank)
        meeting = channel.enter(member, want)
        meeting.bring(member, value, weight)
        yield from self._meet(line, x, over, meeting)
        if need is not None and not meeting.counted(member):
            self._wasted = self._engine.batch
        return meeting.mean(self._engine.maths)

    @verb
    def broadcast(self, line: Line, x: Vector, root: int = 0) -> Proc[Vector]:
        """The root's x, at every worker."""
        channel = self._engine.channel(None, self.rank)
        meeting = channel.enter(self.rank, Want("broadcast", x.nbytes, root))
        meeting.bring(self.rank, x, 1.0)
        yield from self._meet(line, x, None, meeting)
        return meeting.of_root()

    @verb
    def barrier(self, line: Line) -> Proc[None]:
        """Wait until all workers have come."""
        channel = self._engine.channel(None, self.rank)
        meeting = channel.enter(self.rank, Want("barrier", 0.0))
        meeting.bring(self.rank, self._engine.maths.initial(), 1.0)
        yield from self._meet(line, None, None, meeting)

    def _meet(self, line: Line, x: Vector | Part | None, over: str | None, meeting: Meeting) -> Proc[None]:
        channel, call = self._engine.channel(over, self.rank), meeting.call
        member = channel.member(self.rank)
        if isinstance(x, Part):  # on a line of its own it may come before the whole gradient has
            line.t = max(line.t, x.ready) if line.main else x.ready
        line.blocked, line.name = meeting, self._engine.recorder.name(meeting.want.op)
        previous, at = channel.previous(meeting), line.t
        if previous is not None:
            if math.isnan(previous.left[member]):
                yield previous.leaves(member)
            at = max(at, float(previous.left[member]))
        call.arrive(member, max(at, self._engine.clock.now))
        yield call.leaves(member)
        line.blocked = None
        channel.leave(meeting)
        self.rounds += line.main
        began, left = float(call.began[member]), float(call.left[member])
        self.communicated(line, line.name, began, left, float(call.bytes_sent[member]), -1)
