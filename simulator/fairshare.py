"""Activities that share links max-min fairly, by the compiled ripple.

Takes over from an `Unshared` when two activities first meet on a link, with the same bits for those that meet
nobody. So a run without contention neither imports nor compiles numba code.
"""

from __future__ import annotations

import math
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from simulator.fabric import FloatArray, IntArray
from simulator.share_tables import (
    END,
    NOBODY,
    OUTSIDE,
    OWN,
    SHARED,
    Tables,
    empty_tables,
    with_activities,
    with_entries,
)
from simulator.steering import Course, Crowd
from simulator.unshared import Solo, Unshared, bound_of

T = TypeVar("T", np.int64, np.float64)


def plain(array: NDArray[T], dtype: type[T]) -> NDArray[T]:
    """The array as compiled code knows it: another dtype or layout would be compiled for anew."""
    return array if array.dtype == dtype and array.flags.carray else np.array(array, dtype)


class FairShare:
    """Max-min fair sharing; the methods are those of `Shares`.

    Args:
        apart: what has been under way so far, no two activities on one link.
    """

    def __init__(self, apart: Unshared) -> None:
        from simulator import crowd_tables, ripple

        self._ripple, self._steered = ripple, crowd_tables
        self._capacity = apart.capacity
        self._numbers = apart.numbers
        self._gone: list[int] = []
        self._links: dict[int, tuple[IntArray, FloatArray, float]] = {}
        self._next_finish = math.inf
        self._use(empty_tables(apart.capacity))
        self._tables.links["busy"] = apart.busy
        self._tables.links["peak"] = apart.peak
        for number, solo in sorted(apart.under_way.items()):
            self._adopt(number, solo, apart.since)
        self.solve(0.0)  # changes nothing; finds the next finish

    def _use(self, tables: Tables) -> None:
        self._tables = tables
        self._arrays = cast(Tables, tuple(tables))  # see `ripple`
        self._found = np.zeros(len(tables.activities), np.int64)

    def _adopt(self, number: int, solo: Solo, since: FloatArray) -> None:
        self._make_room(number, 0)
        rate = solo.rate
        row = (rate, rate, OWN, END, rate, OUTSIDE, solo.remaining, solo.since, solo.begin, rate, 0)
        self._tables.activities[number] = row
        self._links[number] = plain(solo.links, np.int64), plain(solo.weights, np.float64), solo.cap
        links = self._tables.links
        links["owner"][solo.links] = number
        links["weight"][solo.links] = solo.weights
        links["since"][solo.links] = since[solo.links]
        self._ripple.adopt(self._arrays, number, solo.finish)

    def _make_room(self, number: int, pairs: int) -> None:
        """Room for this activity and two entries (its own, and the first user's) for each of its links."""
        if number >= len(self._found):
            self._use(with_activities(self._tables, max(64, 2 * (number + 1))))
        lacking = 2 * pairs - int(self._tables.counts["room"][0])
        if lacking > 0:
            room = len(self._tables.entries)
            self._use(with_entries(self._tables, max(2 * room, room + lacking)))

    def add(
        self, links: IntArray, weights: FloatArray, size: float, cap: float, begin: float, now: float
    ) -> int:
        """See `Shares`."""
        number = self._numbers.take()
        self._make_room(number, len(links))
        links, weights = plain(links, np.int64), plain(weights, np.float64)
        self._links[number] = links, weights, cap
        self._ripple.join(self._arrays, number, links, weights, size, cap, begin, now)
        return number

    def remove(self, number: int, now: float) -> None:
        """See `Shares`."""
        self._ripple.leave(self._arrays, number, self._links.pop(number)[0], now)
        self._gone.append(number)

    def set_capacity(self, link: int, capacity: float, now: float) -> None:
        """See `Shares`."""
        self._capacity[link] = self._tables.links["capacity"][link] = capacity
        for number in self.users(link):
            bound = bound_of(*self._links[number], self._capacity)
            self._ripple.rebound(self._arrays, number, bound)

    def crowd(self, number: int) -> Crowd:
        """Which of its links an activity shares, and what the others leave it there."""
        room = len(self._links[number][0])
        links, who, rates = np.empty(room, np.int64), np.empty(room, np.int64), np.empty((3, room))
        found = self._steered.crowd(self._arrays, number, links, who, rates)
        mean, idle, busy = rates[:, :found]
        return Crowd(links[:found], mean, idle, busy, who[:found])

    def note_pauses(self, number: int, team: int) -> None:
        """An activity is there part of the time only, where others than its team ask for their crowd."""
        self._tables.activities["pauses"][number] = max(team, 0) + 1

    def set_course(self, number: int, course: Course) -> None:
        """An activity has another largest rate, and other weights on the links of its latest crowd."""
        links, weights, _ = self._links[number]
        self._links[number] = links, weights, course.most
        bound = bound_of(links, weights, course.most, self._capacity)
        self._steered.set_course(self._arrays, number, bound, course.weights)

    def set_remaining(self, number: int, size: float, now: float) -> None:
        """An activity has `size` bytes per unit of weight still to move; after `solve`."""
        self._next_finish = self._steered.set_remaining(self._arrays, number, size, now)

    def set_cap(self, number: int, cap: float, now: float) -> None:
        """See `Shares`."""
        links, weights, _ = self._links[number]
        self._links[number] = links, weights, cap
        self._ripple.rebound(self._arrays, number, bound_of(links, weights, cap, self._capacity))

    def users(self, link: int) -> list[int]:
        """Numbers of the activities on a link, ascending."""
        row = self._tables.links[link]
        if row["owner"] != SHARED:
            return [int(row["owner"])] if row["owner"] != NOBODY else []
        entries = self._tables.entries
        found, e = [], row["first"]
        while e != END:
            found.append(int(entries[e]["activity"]))
            e = entries[e]["next"]
        return sorted(found)

    def solve(self, now: float) -> None:
        """See `Shares`."""
        self._next_finish = self._ripple.solve(self._arrays, now)
        self._numbers.give(self._gone)  # only now: the tables may still name them before
        self._gone = []

    def next_finish(self) -> float:
        """See `Shares`; as of the last `solve`."""
        return self._next_finish

    def due(self, now: float) -> list[int]:
        """See `Shares`."""
        found: list[int] = self._found[: self._ripple.due(self._arrays, now, self._found)].tolist()
        return found

    def remaining(self, number: int, now: float) -> float:
        """See `Shares`."""
        row = self._tables.activities[number]
        return max(float(row["remaining"] - row["rate"] * (now - row["since"])), 0.0)

    def rate(self, number: int) -> float:
        """Bytes/s per unit of weight."""
        return float(self._tables.activities["rate"][number])

    def work(self) -> tuple[int, int]:
        """Links handled and rates changed so far: the size of the solver's work."""
        counts = self._tables.counts[0]
        return int(counts["handled"]), int(counts["changed"])

    def busy_seconds(self, now: float) -> FloatArray:
        """See `Shares`."""
        links = self._tables.links
        spell = np.where(links["owner"] != NOBODY, now - links["since"], 0.0)
        busy: FloatArray = links["busy"] + spell
        return busy

    def peaks(self) -> FloatArray:
        """See `Shares`."""
        peaks: FloatArray = self._tables.links["peak"].copy()
        return peaks
