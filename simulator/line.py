"""A worker's timeline, and what runs beside it.

A verb moves a line: the worker's main one, whose spans are recorded as they end, or one of its own
(`w.start`), whose stretches of communication are kept until `w.join` lays them under the main line: what
lies before the main line's time was hidden behind computation, the rest is exposed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from simulator.errors import VerbError
from simulator.process import Proc
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
        line waits in just now, if anything; name: what its span will be called. owed: seconds of compute
        (a cohort's: a vector) that its results will cost the main line.
    """

    t: float
    main: bool = True
    blocked: Blocked | None = None
    name: int = 0
    owed: Any = 0.0
    stretches: list[Stretch] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Handle(Generic[T]):
    """A verb that runs beside the worker's own line; `w.join([...])` waits for it."""

    process: Any
    line: Line
    name: str


def begun(verb: Proc[T]) -> Proc[T]:
    """Let a verb run up to its first event at once, so that verbs take effect in the order of the text."""
    try:
        first = next(verb)
    except StopIteration as end:
        return _over(end.value)
    return _under_way(verb, first)


def _over(value: T) -> Proc[T]:
    yield from ()
    return value


def _under_way(verb: Proc[T], first: Any) -> Proc[T]:
    yield first
    return (yield from verb)


def only_on_main(line: Line, who: str, name: str) -> None:
    """See that what computes was not started beside the worker's own line.

    Raises:
        VerbError: a device computes one thing at a time.
    """
    if not line.main:
        raise VerbError(
            f"{who} started `w.{name}(...)` beside its own line, where only communication can run: "
            f"write `yield from w.{name}(...)`, and start the communication that it is to overlap with"
        )


def complain_of_unjoined(who: str, handles: Sequence[Handle[Any]]) -> None:
    """At the end of a worker's process, nothing may run beside it any more.

    Raises:
        VerbError: names the verb and the cure.
    """
    if handles:
        name = handles[0].name
        raise VerbError(
            f"{who} started `w.{name}(...)` and never waited for it: keep `h = w.start(w.{name}(...))` "
            "and write `yield from w.join([h])`"
        )


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
    stretches = sorted(stretches, key=lambda s: (s.began, s.end))
    hide(t, stretches, record)
    for name, began, end, size, peer in stretches:
        start = max(began, cursor) if end > cursor else cursor
        record(WAITING, cursor, start, idle_name, 0.0, -1, False)
        cursor = max(end, cursor)
        record(COMMUNICATION, start, cursor, name, size if began >= t else 0.0, peer, False)
    return cursor


def hide(t: float, stretches: Iterable[Stretch], record: Record) -> None:
    """Record what of background communication lies before `t`, hidden behind a main line that is there."""
    for name, began, end, size, peer in stretches:
        if began < t:
            record(COMMUNICATION, began, min(end, t), name, size, peer, True)
