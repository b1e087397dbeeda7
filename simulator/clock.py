"""The simulated clock: SimPy's environment with absolute times and an end of the instant.

SimPy breaks ties by order of scheduling. Paceline decides ties in the model instead: what must see all that
happens at one instant (the network's re-solve, a meeting that counts arrivals, an evaluation) waits for
`end_of_instant`.
"""

from __future__ import annotations

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
    """SimPy's environment with events at absolute times (seconds)."""

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
        self._now, _, _, event = heappop(self._queue)
        callbacks, event.callbacks = event.callbacks, None  # type: ignore[assignment]
        for callback in callbacks or ():
            callback(event)
        if not event._ok and not hasattr(event, "_defused"):
            raise event._value  # type: ignore[misc]

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
