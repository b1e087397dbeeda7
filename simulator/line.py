"""A worker's timeline, and what runs beside it.

A verb moves a line: the worker's main one, whose spans are recorded as they end, or one of its own
(`w.start`), whose stretches of communication are kept until `w.join` lays them under the main line: what
lies before the main line's time was hidden behind computation, the rest is exposed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from simulator.recorder import COMMUNICATION, WAITING

T = TypeVar("T")


class Blocked(Protocol):
    """What a worker waits in: a collective, a message, a server's queue."""

    def began_for(self, rank: int) -> float:
        """When the last needed peer had arrived, or the server began to serve (seconds); NaN until then."""
        ...

    def waits_for(self, rank: int) -> str:
        """For messages of a stuck run: "all_reduce 12 for workers 5, 7"."""
        ...


class Stretch(NamedTuple):
    """Communication of one worker: from the time it had all it waited for until its end (seconds)."""

    name: int
    began: float
    end: float
    size: float
    peer: int


@dataclass(slots=True)
class Line:
    """One timeline of a worker.

    Attributes:
        t: seconds; the line is accounted for up to here. May lie ahead of the clock, never behind a span's
        end. main: whether it is the worker's own; else its stretches wait for `join`. blocked: what the
        line waits in just now, if anything.
    """

    t: float
    main: bool = True
    blocked: Blocked | None = None
    stretches: list[Stretch] = field(default_factory=list)


@dataclass(slots=True)
class Handle(Generic[T]):
    """A verb that runs beside the worker's own line; `w.join([...])` waits for it."""

    process: Any
    line: Line


Record = Callable[[int, float, float, int, float, int, bool], None]
"""kind, start, end, name, size, peer, hidden."""


def lay_under(t: float, stretches: Iterable[Stretch], record: Record, idle_name: int) -> float:
    """Lay stretches of background communication under a main line that has come to `t`.

    Each stretch's part before `t` is recorded as hidden, what is exposed as communication, the gaps as
    waiting. The bytes go with a stretch's hidden part if it has one, so that they are counted once.

    Returns:
        The time when the last stretch ends, or `t`.
    """
    cursor = t
    for name, began, end, size, peer in sorted(stretches, key=lambda s: (s.began, s.end)):
        if began < t:
            record(COMMUNICATION, began, min(end, t), name, size, peer, True)
            size = 0.0
        if end > cursor:
            start = max(began, cursor)
            record(WAITING, cursor, start, idle_name, 0.0, -1, False)
            record(COMMUNICATION, start, end, name, size, peer, False)
            cursor = end
    return cursor
