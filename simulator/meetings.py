"""Where a group's members meet: the k-th collective call of each member is the group's k-th collective."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from simulator.clock import Clock
from simulator.collectives import Call, Group
from simulator.errors import VerbError
from simulator.fabric import IntArray
from simulator.maths import BoolArray
from simulator.process import Proc
from simulator.values import Vector


class Part(NamedTuple):
    """A bucket of a gradient: its value and the time (seconds) from which it exists."""

    value: Vector
    ready: Any  # seconds; a vector with an entry per worker in a cohort


class Want(NamedTuple):
    """What one member asks of the group: all must ask the same."""

    op: str
    nbytes: float
    root: int = 0
    need: int | None = None
    algorithm: str | None = None


Average = Callable[[Sequence[int], Sequence[Vector], Sequence[float] | None], Vector]


class Meeting:
    """One collective: its timing (`call`) and the values its members brought."""

    __slots__ = ("_ranks", "_result", "call", "number", "present", "values", "want", "weights")

    def __init__(self, call: Call, want: Want, number: int, ranks: IntArray) -> None:
        self.call = call
        self.want = want
        self.number = number
        self.present = len(ranks)
        self._ranks = ranks
        self.values: list[Vector | None] = [None] * len(ranks)
        self.weights: list[float] = [1.0] * len(ranks)
        self._result: Vector | None = None

    def bring(self, member: int, value: Vector | None, weight: float) -> None:
        """A member's contribution, there when it arrives; one that is too late to be counted is dropped."""
        if self._result is None:
            self.values[member] = value
            self.weights[member] = weight

    def counted(self, member: int) -> bool:
        """Whether the member came in time to be counted (backup workers); ties go by rank."""
        return self.want.need is None or bool(self.in_time()[member])

    def in_time(self) -> BoolArray:
        """Who was among the first `need` to come, shape (members,)."""
        arrivals = np.where(np.isnan(self.call.arrivals), np.inf, self.call.arrivals)
        first = np.argsort(arrivals, kind="stable")[: self.want.need]
        return np.isin(np.arange(len(arrivals)), first)

    def mean(self, average: Average) -> Vector:
        """The mean over the members counted, in rank order; computed once and shared by all.

        Who weighs nothing adds nothing.

        Args:
            average: makes it from the ranks of the members, their values and their weights, None if even.
        """
        if self._result is None:
            members = list(range(len(self.values)))
            if self.want.need is not None:
                members = np.flatnonzero(self.in_time()).tolist()
            members = [m for m in members if self.weights[m]]
            values = [self.values[m] for m in members]
            weights = [self.weights[m] for m in members]
            even = all(w == weights[0] for w in weights)
            ranks = self._ranks[members].tolist()
            self._result = average(ranks, _all_there(values), None if even else weights)
            self.values = []
        return self._result

    def of_root(self) -> Vector:
        """What the root brought (broadcast)."""
        value = self.values[self.want.root]
        assert value is not None
        return value

    def began_for(self, rank: int) -> float:
        """See `line.Blocked`."""
        return float(self.call.began[self._member(rank)])

    def waits_for(self, rank: int) -> str:
        """See `line.Blocked`."""
        absent = [str(r) for r, v in zip(self._ranks.tolist(), self.values, strict=False) if v is None]
        some = ", ".join(absent[:8]) + (f" and {len(absent) - 8} more" if len(absent) > 8 else "")
        return f"{self.want.op} {self.number} for workers {some}"

    def _member(self, rank: int) -> int:
        return int((self._ranks == rank).argmax())


def _all_there(values: Sequence[Vector | None]) -> list[Vector]:
    there = [value for value in values if value is not None]
    assert len(there) == len(values), "a counted member brought nothing"
    return there


class Channel:
    """The collectives of one group of workers, in order.

    Attributes:
        ranks: the members, shape (members,).
    """

    def __init__(self, group: Group, ranks: IntArray, label: str) -> None:
        self.ranks = ranks
        self.label = label
        self._group = group
        self._member = {rank: member for member, rank in enumerate(ranks.tolist())}
        self._entered = [0] * len(ranks)
        self._meetings: dict[int, Meeting] = {}

    def member(self, rank: int) -> int:
        """A rank's place in the group."""
        return self._member[rank]

    def enter(self, member: int, want: Want) -> Meeting:
        """The member's next meeting, made if it is the first to come.

        Raises:
            VerbError: others have asked for something else there.
        """
        number = self._entered[member]
        self._entered[member] = number + 1
        meeting = self._meetings.get(number)
        if meeting is None:
            meeting = self._meetings[number] = self.call(want, number)
        elif meeting.want != want:
            raise VerbError(
                f"worker {self.ranks[member]} asks for {want} as collective {number} of {self.label}, "
                f"others for {meeting.want}: all members must call the same in the same order"
            )
        return meeting

    def begun_before(self, member: int, time: float) -> bool:
        """Whether the member's next meeting has begun before `time` (seconds), without it."""
        meeting = self._meetings.get(self._entered[member])
        if meeting is None:
            return False
        began = meeting.call.began[~np.isnan(meeting.call.began)]
        return len(began) > 0 and float(began.min()) < time

    def call(self, want: Want, number: int) -> Meeting:
        """Open a meeting (a cohort opens its own: all members come together)."""
        call = self._group.call(
            want.op, want.nbytes, root=want.root, need=want.need, algorithm=want.algorithm
        )
        return Meeting(call, want, number, self.ranks)

    def previous(self, meeting: Meeting) -> Call | None:
        """The collective before this one, unless all have left it: calls of a member do not overtake."""
        before = self._meetings.get(meeting.number - 1)
        return None if before is None else before.call

    def attend(self, meeting: Meeting, member: int, at: float, clock: Clock) -> Proc[None]:
        """Come at `at` (seconds), or as soon as the collective before lets the member go; then leave."""
        previous, call = self.previous(meeting), meeting.call
        if previous is not None:
            if math.isnan(previous.left[member]):
                yield previous.leaves(member)
            at = max(at, float(previous.left[member]))
        call.arrive(member, max(at, clock.now))
        yield call.leaves(member)
        self.leave(meeting)

    def leave(self, meeting: Meeting) -> None:
        """A member has its result; a meeting that all have left is forgotten."""
        meeting.present -= 1
        if not meeting.present:
            del self._meetings[meeting.number]
