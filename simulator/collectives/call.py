"""One collective under way: members arrive, steps run on the network, members leave.

Arrivals come one at a time (a process per worker) or as a vector (a cohort, whose clock runs ahead of the
engine's); both give the same times, bit for bit, since every beginning is the maximum of the same numbers.

With `need` < n (backup workers) the call begins at the need-th arrival. All n members take part in the
traffic; one that is late leaves when its part is over, at once if it is over already.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import final

import numpy as np
from simpy.events import NORMAL, Event

from simulator.collectives.laid import LaidPlan
from simulator.collectives.running import Running
from simulator.fabric import FloatArray
from simulator.network import LawError, Network

_SLACK = 1 - 1e-9  # of the law: rounding of the solver's sums


class Call(ABC):
    """A collective that members join with `arrive` and leave at `left`.

    Attributes:
        n: number of members.
        arrivals: when each came, s, NaN until then, shape (n,).
        began: when each member's waiting ended (the last peer it needs had come), s, NaN until then, shape
            (n,).
        left: when each member has its result and goes on, s, NaN until then, shape (n,).
    """

    def __init__(self, network: Network, laid: LaidPlan, nbytes: float, need: int) -> None:
        self._network = network
        self._laid = laid
        self._nbytes = nbytes
        self._missing = need  # arrivals before it begins
        self._backup = need < laid.n
        self.n = laid.n
        self.arrivals = np.full(self.n, np.nan)
        self.began = np.full(self.n, np.nan)
        self.left = np.full(self.n, np.nan)
        self._running = Running(network, laid, nbytes, self._ended)
        self._steps = len(laid.steps)
        self._start = math.nan
        self._member_events: dict[int, Event] = {}
        self._began_event: Event | None = None
        self._done: Event | None = None

    @cached_property
    def bytes_sent(self) -> FloatArray:
        """Bytes each member sends, shape (n,)."""
        return self._laid.sends * self._nbytes

    @property
    def done(self) -> Event:
        """Fires when all have left."""
        if self._done is None:
            self._done = self._event_at(float(self.left.max()))
        return self._done

    @property
    def began_event(self) -> Event:
        """Fires when all have begun."""
        if self._began_event is None:
            self._began_event = self._event_at(float(self.began.max()))
        return self._began_event

    def leaves(self, member: int) -> Event:
        """The event that fires when a member leaves."""
        event = self._member_events.get(member)
        if event is None:
            event = self._member_events[member] = self._event_at(float(self.left[member]))
        return event

    @abstractmethod
    def arrive(self, member: int, at: float) -> None:
        """One member comes at `at`, which is now or later."""

    @abstractmethod
    def arrive_all(self, at: FloatArray) -> None:
        """All members come, each at its time, shape (n,)."""

    @abstractmethod
    def _ended(self, step: int, left: float, arrived: float) -> None:
        """A step's last byte has left, and will have arrived."""

    def _event_at(self, time: float) -> Event:
        """An event for a time that may not be known yet (NaN)."""
        event = Event(self._network.clock)
        if not math.isnan(time):
            self._fire(event, time)
        return event

    def _fire(self, event: Event | None, time: float) -> None:
        """Let an event happen at `time`, which is its value."""
        if event is None or event.triggered:
            return
        clock = self._network.clock
        event._ok, event._value = True, time
        clock.push(event, max(time, clock.now), NORMAL)

    def _obey(self, begin: float, end: float) -> None:
        """No collective finishes before (bytes through its busiest port) / (port rate)."""
        least = self._laid.busiest(self._network) * self._nbytes
        if end - begin < least * _SLACK - 1e-15 * abs(end):
            raise LawError(
                f"{self._laid.name} took {end - begin!r} s; its busiest link alone needs {least!r} s"
            )


@final
class TogetherCall(Call):
    """All begin when the last needed member has come, and leave with the last step."""

    def __init__(self, network: Network, laid: LaidPlan, nbytes: float, need: int) -> None:
        super().__init__(network, laid, nbytes, need)
        self._last = -math.inf
        self._over = -math.inf

    def arrive(self, member: int, at: float) -> None:
        """One member comes at `at`, which is now or later."""
        self.arrivals[member] = at
        if self._backup:
            self._arrive_backup(member, at)
            return
        if at > self._last:
            self._last = at
        self._missing -= 1
        if not self._missing:
            self._begin(self._last)

    def arrive_all(self, at: FloatArray) -> None:
        """All members come, each at its time, shape (n,)."""
        self.arrivals[:] = at
        self._begin(
            float(np.partition(at, self._missing - 1)[self._missing - 1] if self._backup else at.max())
        )

    def leaves(self, member: int) -> Event:
        """The event that fires when a member leaves: one for all, unless some may be late."""
        return super().leaves(member) if self._backup else self.done

    def _arrive_backup(self, member: int, at: float) -> None:
        if at > self._network.clock.now:  # arrivals are counted in the order of time
            self._network.clock.call_at(at, lambda: self._count(member, at))
        else:
            self._count(member, at)

    def _count(self, member: int, at: float) -> None:
        self._missing -= 1
        if not self._missing:
            self._begin(at)
        elif self._missing < 0:
            self._come_late()

    def _begin(self, at: float) -> None:
        self._start = at
        self._come_late()
        self._running.begin(at)
        if not self._steps:
            self._finish(at)

    def _come_late(self) -> None:
        """Note who has begun, and who leaves when: NaN for those who have not come yet."""
        if self._backup:
            self.began = np.maximum(self._start, self.arrivals)
        else:
            self.began.fill(self._start)
        self._fire_known(self._began_event, self.began)
        if not self._steps:
            self._leave()

    def _ended(self, step: int, left: float, arrived: float) -> None:
        self._over = max(self._over, arrived)
        self._steps -= 1
        if not self._steps:
            self._finish(self._over)

    def _finish(self, time: float) -> None:
        self._over = time
        self._obey(self._start, time)
        self._leave()

    def _leave(self) -> None:
        if not self._backup:
            self.left.fill(self._over)
        else:
            self.left = np.maximum(self._over, self.arrivals)
            for member, event in self._member_events.items():
                if not np.isnan(self.left[member]):
                    self._fire(event, float(self.left[member]))
        self._fire_known(self._done, self.left)

    def _fire_known(self, event: Event | None, times: FloatArray) -> None:
        if event is not None:
            last = float(times.max())
            if not math.isnan(last):
                self._fire(event, last)


@final
class StepwiseCall(Call):
    """Steps begin as their members come; a member leaves when its own steps have ended."""

    def __init__(self, network: Network, laid: LaidPlan, nbytes: float, need: int) -> None:
        super().__init__(network, laid, nbytes, need)
        self._owed = laid.owed.copy()
        self._gate = [-math.inf] * len(laid.steps)  # the last arrival that a step has waited for
        self._result = [-math.inf] * self.n
        self._away = self.n

    def arrive(self, member: int, at: float) -> None:
        """One member comes at `at`, which is now or later."""
        self.arrivals[member] = at
        if not self._backup:
            self._come(member, at)
        elif at > self._network.clock.now:
            self._network.clock.call_at(at, lambda: self._count(member, at))
        else:
            self._count(member, at)

    def arrive_all(self, at: FloatArray) -> None:
        """All members come, each at its time, shape (n,)."""
        for member in np.argsort(at, kind="stable").tolist():
            self.arrive(member, float(at[member]))

    def _count(self, member: int, at: float) -> None:
        self._missing -= 1
        if not self._missing:
            for each in range(self.n):
                self._come(each, at)
        elif self._missing < 0 and not self._owed[member]:
            self._leave(member)

    def _come(self, member: int, at: float) -> None:
        self._start = at if math.isnan(self._start) else min(self._start, at)
        self._result[member] = at
        for step in self._laid.gates[member]:
            self._gate[step] = max(self._gate[step], at)
            self._running.release(step, at)
        if not self._owed[member]:
            self._leave(member)

    def _ended(self, step: int, left: float, arrived: float) -> None:
        gate = self._gate[step]
        for follower in (*self._laid.on_left[step], *self._laid.on_arrived[step]):
            self._gate[follower] = max(self._gate[follower], gate)
        src, dst = self._laid.ends[step]
        sent = arrived if self._network.send_ends == "arrived" else left
        for member in src:
            self._credit(member, gate, sent)
        for member in dst:
            self._credit(member, gate, arrived)
        self._steps -= 1

    def _credit(self, member: int, gate: float, time: float) -> None:
        """A member's part in a step is over at `time`."""
        if not self.began[member] >= gate:
            self.began[member] = gate
        self._result[member] = max(self._result[member], time)
        self._owed[member] -= 1
        if not self._owed[member]:
            self._leave(member)

    def _leave(self, member: int) -> None:
        came = float(self.arrivals[member])
        if math.isnan(came):
            return  # late: leaves as it comes
        time = max(self._result[member], came)
        self.left[member] = time
        if not self.began[member] >= came:
            self.began[member] = came
        self._fire(self._member_events.get(member), time)
        self._away -= 1
        if not self._away:
            self._obey(self._start, float(np.max(self._result)))
            self._fire(self._began_event, float(self.began.max()))
            self._fire(self._done, float(self.left.max()))
