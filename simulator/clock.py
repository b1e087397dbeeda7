"""The simulated clock: SimPy's environment with absolute times and an end of the instant.

SimPy breaks ties by order of scheduling. Paceline decides ties in the model instead: what must see all that
happens at one instant (the network's re-solve, a meeting that counts arrivals, an evaluation) waits for
`end_of_instant`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

import simpy
from simpy.core import EmptySchedule
from simpy.events import NORMAL, Event

AFTER_ALL = 2  # behind SimPy's URGENT (0) and NORMAL (1): collects what happens within one instant
SERVE = 3  # behind those: a server answers when it has applied all that came
LAST = 4  # behind those too: the network solves once an instant
OBSERVE = 5  # evaluations: they see everything that has happened at or before their time


class Clock(simpy.Environment):
    """SimPy's environment with events at absolute times (seconds).

    Beside its events it keeps things that happen by themselves, whatever the run does: a link changes, a flow
    of strangers begins. They come before all else of their instant, and cannot keep a run going that has
    nothing else to wait for.
    """

    def __init__(self, initial_time: float = 0) -> None:
        super().__init__(initial_time)
        self._aside: list[tuple[float, int, Callable[[], None]]] = []

    def aside(self, time: float, callback: Callable[[], None]) -> None:
        """Let something happen at `time` (seconds, not before now) by itself."""
        assert time >= self._now
        heappush(self._aside, (time, next(self._eid), callback))

    def peek(self) -> float:
        """When something happens next, seconds; inf if there are no events, whatever happens by itself."""
        if self._aside and self._queue:
            return float(min(self._aside[0][0], self._queue[0][0]))
        return float(self._queue[0][0]) if self._queue else math.inf

    @property
    def waiting(self) -> int:
        """Number of events to come."""
        return len(self._queue)

    def at(self, time: float, value: Any = None, priority: int = NORMAL) -> Event:
        """An event that fires at exactly `time` (SimPy's `timeout` computes now + (time - now)).

        Raises:
            ValueError: `time` is before now.
        """
        if time < self._now:
            raise ValueError(f"an event at {time!r} s lies before now, {self._now!r} s")
        event = Event(self)
        event._ok = True
        event._value = value
        self.push(event, time, priority)
        return event

    def step(self) -> None:
        """Process the next event; a failure nobody has caught is raised as it is (SimPy raises a copy)."""
        if not self._queue:
            raise EmptySchedule
        if self._aside and self._aside[0][0] <= self._queue[0][0]:
            self._happen_aside()
            return
        self._now, _, _, event = heappop(self._queue)
        callbacks, event.callbacks = event.callbacks, None  # type: ignore[assignment]
        for callback in callbacks or ():
            callback(event)
        if not event._ok and not hasattr(event, "_defused"):
            raise event._value

    def _happen_aside(self) -> None:
        self._now, _, happen = heappop(self._aside)
        happen()

    def advance(self, time: float) -> None:
        """Let time pass to `time`, seconds, before which nothing is due."""
        assert self._now <= time <= self.peek()
        self._now = time

    def push(self, event: Event, time: float, priority: int) -> None:
        """Put a decided event on the heap at an absolute time."""
        entry: Any = (time, priority, next(self._eid), event)
        heappush(self._queue, entry)

    def call_at(self, time: float, callback: Callable[[], None], priority: int = NORMAL) -> Event:
        """Call `callback` at `time`."""
        event = self.at(time, None, priority)
        assert event.callbacks is not None
        event.callbacks.append(lambda _: callback())
        return event

    def end_of_instant(self, callback: Callable[[], None], priority: int = AFTER_ALL) -> Event:
        """Call `callback` after everything of lower priority that happens at this very time."""
        return self.call_at(self._now, callback, priority)
