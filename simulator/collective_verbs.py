"""Verbs of collectives: what all workers, or a group of them, do together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Literal

from simulator.line import Line
from simulator.meetings import Meeting, Part, Want
from simulator.process import Proc, verb
from simulator.values import Vector

if TYPE_CHECKING:
    from simulator.engine import Engine

Root = int | Literal["master"]
"""A worker, or the method's server."""


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
    _skipped: bool

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

    def missed_round(self) -> bool:
        """Whether the worker's next collective has begun without it (backup workers)."""
        channel = self._engine.channel(None, self.rank)
        return channel.begun_before(channel.member(self.rank), self.line.t)

    @verb
    def all_mean(
        self,
        line: Line,
        x: Vector | Part | None,
        over: str | None = None,
        drop_slowest: int = 0,
        weight: float = 1.0,
        algorithm: str | None = None,
    ) -> Proc[Vector]:
        """The mean over all workers, by an all-reduce.

        Args:
            line: the timeline that the verb moves; supplied by the verb's call.
            x: this worker's contribution; None where it has missed the round.
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
        self._skipped = value is None
        nbytes = (self._engine.maths.initial() if value is None else value).nbytes
        want = Want("all_reduce", nbytes, 0, need, algorithm)
        member = channel.member(self.rank)
        meeting = channel.enter(member, want)
        meeting.bring(member, value, weight)
        yield from self._meet(line, x, over, meeting)
        if value is not None and need is not None and not meeting.counted(member):
            self._wasted = self._engine.batch
        return meeting.mean(self._engine.maths)

    @verb
    def broadcast(self, line: Line, x: Vector, root: Root = 0, packed: bool = True) -> Proc[Vector]:
        """The root's x, at every worker.

        Args:
            line: the timeline that the verb moves; supplied by the verb's call.
            x: of the root; elsewhere it only says the size.
            root: a worker, or the method's server.
            packed: in one message, not in one a layer, each when all have the one before.
        """
        meeting = yield from self._to_or_from(line, "broadcast", x, root, packed)
        return meeting.of_root()

    @verb
    def reduce(self, line: Line, x: Vector, root: Root = 0, packed: bool = True) -> Proc[Vector | None]:
        """The mean of all workers' x, at the root; None elsewhere. Arguments as in `broadcast`."""
        meeting = yield from self._to_or_from(line, "reduce", x, root, packed)
        return meeting.mean(self._engine.maths) if root == self.rank else None

    @verb
    def broadcast_and_reduce(
        self, line: Line, x: Vector, mine: Vector, root: Root = 0, packed: bool = True
    ) -> Proc[tuple[Vector, Vector | None]]:
        """The root's x at every worker, then the mean of everyone's own at the root, None elsewhere."""
        down = yield from self._to_or_from(line, "broadcast", x, root, packed)
        up = yield from self._to_or_from(line, "reduce", mine, root, packed)
        return down.of_root(), up.mean(self._engine.maths) if root == self.rank else None

    def _to_or_from(self, line: Line, op: str, x: Vector, root: Root, packed: bool) -> Proc[Meeting]:
        over, member = ("master", self.size) if root == "master" else (None, root)
        channel = self._engine.channel(over, self.rank)
        meeting: Meeting | None = None
        for nbytes in self._engine.message_sizes(x, packed):
            if meeting is not None:
                yield meeting.call.done
            meeting = channel.enter(channel.member(self.rank), Want(op, nbytes, member))
            meeting.bring(self.rank, x, 1.0)
            yield from self._meet(line, x, over, meeting)
        assert meeting is not None
        return meeting

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
        yield from channel.attend(meeting, member, line.t, self._engine.clock)
        line.blocked = None
        self.rounds += line.main and line.name in self._engine.names.rounds
        began, left = float(call.began[member]), float(call.left[member])
        self.communicated(line, line.name, began, left, float(call.bytes_sent[member]), -1)
