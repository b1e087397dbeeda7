"""Verbs of collectives: what all workers, or a group of them, do together."""

from __future__ import annotations

from functools import partial
from typing import Literal

from simulator.acting import Acting
from simulator.coding import Places
from simulator.fabric import FloatArray
from simulator.line import Line
from simulator.meetings import Meeting, Part, Want
from simulator.process import Proc, verb
from simulator.values import Vector

Root = int | Literal["master"]
"""A worker, or the method's server."""


class Collectives(Acting):
    """A part of `Worker`."""

    _places: Places
    _wasted: int
    _skipped: bool

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
        since: Vector | None = None,
    ) -> Proc[Vector]:
        """The mean over all workers, by an all-reduce; by an all-gather of codes that do not add up.

        Args:
            line: the timeline that the verb moves; supplied by the verb's call.
            x: this worker's contribution; None where it has missed the round.
            over: None for all workers, `server` for those of this host, `across` for those of equal place on
                all hosts.
            drop_slowest: begin without the last so many; a late worker's own x is dropped, it takes the
                others' mean.
            weight: this worker's weight in the mean.
            algorithm: of the all-reduce, instead of the network's.
            since: x is a model that gives way to the mean, and all workers know this much of it: if values
                are compressed, the difference travels.
        """
        channel = self._engine.channel(over, self.rank)
        need = len(channel.ranks) - drop_slowest if drop_slowest else None
        value, coding = x.value if isinstance(x, Part) else x, self._engine.coding
        self._skipped = value is None
        nbytes = (self._engine.maths.initial() if value is None else value).nbytes
        name, member = self._places.name("all_mean", self.step, since), channel.member(self.rank)
        meetings = []
        wants = coding.wants(nbytes, len(channel.ranks), need, algorithm)
        for number, want in enumerate(wants):
            if value is not None:
                self._code(line, x, coding.encode_seconds(nbytes, number), first=not number)
            meetings.append(channel.enter(member, want))
            meetings[-1].bring(member, value, weight)
            last = number == len(wants) - 1  # several messages are one round
            yield from self._meet(line, None if number else x, over, meetings[-1], counts=last)
        if value is not None and need is not None and not meetings[0].counted(member):
            self._wasted = self._engine.batch
        self._decode(line, coding.mean_seconds(nbytes, len(channel.ranks)))
        return meetings[0].mean(partial(coding.mean, name, since))

    def _code(self, line: Line, x: Vector | Part | None, seconds: FloatArray, *, first: bool) -> None:
        """Spend the time of one message's making; a bucket's first has been made in the backward pass."""
        if not first and not line.main:
            self._decode(line, seconds)
        elif not (first and isinstance(x, Part)):
            self._encode(line, seconds)

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
        return self._mean(meeting) if root == self.rank else None

    @verb
    def broadcast_and_reduce(
        self, line: Line, x: Vector, mine: Vector, root: Root = 0, packed: bool = True
    ) -> Proc[tuple[Vector, Vector | None]]:
        """The root's x at every worker, then the mean of everyone's own at the root, None elsewhere."""
        down = yield from self._to_or_from(line, "broadcast", x, root, packed)
        up = yield from self._to_or_from(line, "reduce", mine, root, packed)
        return down.of_root(), self._mean(up) if root == self.rank else None

    def _mean(self, meeting: Meeting) -> Vector:
        maths = self._engine.maths
        return meeting.mean(lambda _, values, weights: maths.mean(values, weights))

    def _to_or_from(self, line: Line, op: str, x: Vector, root: Root, packed: bool) -> Proc[Meeting]:
        over, member = ("master", self.size) if root == "master" else (None, root)
        channel = self._engine.channel(over, self.rank)
        meeting: Meeting | None = None
        sizes = self._engine.message_sizes(x.nbytes, packed)
        for number, nbytes in enumerate(sizes):
            if meeting is not None:
                yield meeting.call.done
            meeting = channel.enter(channel.member(self.rank), Want(op, nbytes, member))
            meeting.bring(self.rank, x, 1.0)
            yield from self._meet(line, x, over, meeting, counts=number == len(sizes) - 1)
        assert meeting is not None
        return meeting

    @verb
    def barrier(self, line: Line) -> Proc[None]:
        """Wait until all workers have come."""
        channel = self._engine.channel(None, self.rank)
        meeting = channel.enter(self.rank, Want("barrier", 0.0))
        meeting.bring(self.rank, self._engine.maths.initial(), 1.0)
        yield from self._meet(line, None, None, meeting)

    def _meet(
        self,
        line: Line,
        x: Vector | Part | None,
        over: str | None,
        meeting: Meeting,
        *,
        counts: bool = True,
    ) -> Proc[None]:
        channel, call = self._engine.channel(over, self.rank), meeting.call
        member = channel.member(self.rank)
        if isinstance(x, Part):  # on a line of its own it may come before the whole gradient has
            line.t = max(line.t, x.ready) if line.main else x.ready
        line.blocked, line.name = meeting, self._engine.recorder.name(meeting.want.op)
        yield from channel.attend(meeting, member, line.t, self._engine.clock)
        line.blocked = None
        self.rounds += line.main and counts and line.name in self._engine.names.rounds
        began, left = float(call.began[member]), float(call.left[member])
        self.communicated(line, line.name, began, left, float(call.bytes_sent[member]), -1)
