"""What a set of activities on links must answer, and the answer without sharing.

`Unshared` gives each activity the time it would take alone: that is the fidelity `closed_form`, and all that
a run needs as long as no two activities meet on a link. From then on `fairshare.FairShare` takes over.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Protocol

import numpy as np

from simulator.fabric import FloatArray, IntArray
from simulator.share_tables import TIE


class Shares(Protocol):
    """Who uses which link at what rate. Times are seconds, rates bytes/s per unit of weight."""

    def add(
        self, links: IntArray, weights: FloatArray, size: float, cap: float, begin: float, now: float
    ) -> int:
        """An activity comes with `size` bytes per unit of weight to move; -> its number.

        `begin` (at most now) is when it first began: finish times tie relative to an activity's duration.
        Numbers of those that have gone are used again.
        """
        ...

    def remove(self, number: int, now: float) -> None:
        """An activity goes."""
        ...

    def set_capacity(self, link: int, capacity: float, now: float) -> None:
        """A link has another bandwidth (bytes/s) from now on."""
        ...

    def set_cap(self, number: int, cap: float, now: float) -> None:
        """An activity has another largest rate (bytes/s per unit of weight) from now on."""
        ...

    def solve(self, now: float) -> None:
        """Rates and finish times after all that came, went and changed at this instant."""
        ...

    def next_finish(self) -> float:
        """When the next activity will be done, inf if none is under way; asked after `solve`."""
        ...

    def due(self, now: float) -> list[int]:
        """Those done now, within `TIE` of their own duration; each once. They still hold their links."""
        ...

    def remaining(self, number: int, now: float) -> float:
        """Bytes per unit of weight still to be moved."""
        ...

    def busy_seconds(self, now: float) -> FloatArray:
        """Time during which each link had a user, shape (links,)."""
        ...

    def peaks(self) -> FloatArray:
        """Highest load / capacity of each link so far, shape (links,)."""
        ...


class Numbers:
    """Small whole numbers, used again when given back; `most`: how many there have been at once."""

    def __init__(self) -> None:
        self.most = 0
        self._spare: list[int] = []

    def take(self) -> int:
        """One that is not in use."""
        if self._spare:
            return self._spare.pop()
        self.most += 1
        return self.most - 1

    def give(self, numbers: list[int]) -> None:
        """Give back; the first of them is the next to be taken."""
        self._spare.extend(reversed(numbers))


@dataclass(slots=True)
class Solo:
    """An activity that shares nothing."""

    links: IntArray
    weights: FloatArray
    cap: float
    begin: float
    rate: float
    remaining: float
    since: float
    finish: float


def bound_of(links: IntArray, weights: FloatArray, cap: float, capacity: FloatArray) -> float:
    """The rate of an activity alone on its links."""
    return min(float((capacity[links] / weights).min(initial=math.inf)), cap)


class Unshared:
    """Each activity takes the time it would take alone.

    Args:
        capacity: of each link, bytes/s, shape (links,).

    Attributes:
        users: activities on each link, shape (links,).
        busy: seconds during which a link had a user, without the spell since `since`, shape (links,).
        peak: highest load / capacity of a link, of activities that have gone, shape (links,).
    """

    def __init__(self, capacity: FloatArray) -> None:
        self.capacity = capacity.copy()
        self.users = np.zeros(len(capacity), np.int64)
        self.numbers = Numbers()
        self.under_way: dict[int, Solo] = {}
        self._finishes: list[tuple[float, int]] = []
        self.busy = np.zeros(len(capacity))
        self.since = np.zeros(len(capacity))
        self.peak = np.zeros(len(capacity))

    def add(
        self, links: IntArray, weights: FloatArray, size: float, cap: float, begin: float, now: float
    ) -> int:
        """See `Shares`."""
        number = self.numbers.take()
        rate = bound_of(links, weights, cap, self.capacity)
        finish = now + size / rate
        self.under_way[number] = Solo(links, weights, cap, begin, rate, size, now, finish)
        heappush(self._finishes, (finish, number))
        idle = links[self.users[links] == 0]
        self.since[idle] = now
        self.users[links] += 1
        return number

    def remove(self, number: int, now: float) -> None:
        """See `Shares`."""
        solo = self.under_way.pop(number)
        links = solo.links
        self.users[links] -= 1
        idle = links[self.users[links] == 0]
        self.busy[idle] += now - self.since[idle]
        load = np.minimum(solo.weights * solo.rate / self.capacity[links], 1.0)
        self.peak[links] = np.maximum(self.peak[links], load)
        self.numbers.give([number])

    def set_capacity(self, link: int, capacity: float, now: float) -> None:
        """See `Shares`."""
        self.capacity[link] = capacity
        for number, solo in self.under_way.items():
            if link in solo.links:
                self.set_cap(number, solo.cap, now)

    def set_cap(self, number: int, cap: float, now: float) -> None:
        """See `Shares`."""
        solo = self.under_way[number]
        solo.remaining, solo.cap = self.remaining(number, now), cap
        solo.rate, solo.since = bound_of(solo.links, solo.weights, cap, self.capacity), now
        solo.finish = now + solo.remaining / solo.rate
        heappush(self._finishes, (solo.finish, number))

    def solve(self, now: float) -> None:
        """Nothing is shared, so there is nothing to solve."""

    def next_finish(self) -> float:
        """See `Shares`."""
        while self._finishes:
            finish, number = self._finishes[0]
            solo = self.under_way.get(number)
            if solo is not None and solo.finish == finish:
                return finish
            heappop(self._finishes)  # an entry of an activity that has gone or has changed its rate
        return math.inf

    def due(self, now: float) -> list[int]:
        """See `Shares`."""
        found = []
        while (finish := self.next_finish()) < math.inf:
            number = self._finishes[0][1]
            solo = self.under_way[number]
            if finish - now > TIE * (finish - solo.begin):
                break
            solo.finish = math.inf
            found.append(number)
        return found

    def remaining(self, number: int, now: float) -> float:
        """See `Shares`."""
        solo = self.under_way[number]
        return max(solo.remaining - solo.rate * (now - solo.since), 0.0)

    def busy_seconds(self, now: float) -> FloatArray:
        """See `Shares`."""
        return self.busy + np.where(self.users > 0, now - self.since, 0.0)

    def peaks(self) -> FloatArray:
        """See `Shares`."""
        return self.peak.copy()
