"""Activities that share links max-min fairly, by the compiled ripple.

Takes over from an `Unshared` when two activities first meet on a link, with the same bits for those that meet
nobody. So a run without contention neither imports nor compiles numba code.
"""

from __future__ import annotations

import math

import numpy as np

from simulator.fabric import FloatArray, IntArray
from simulator.share_tables import FREE, OWN, SHARED, Tables, empty_tables, with_activities, with_entries
from simulator.unshared import Unshared, bound_of


class FairShare:
    """Max-min fair sharing; the methods are those of `Shares`.

    Args:
        apart: what has been under way so far, no two activities on one link.
    """

    def __init__(self, apart: Unshared) -> None:
        from simulator import indexed_heap, ripple

        self._ripple = ripple
        self._capacity = apart.capacity
        self._numbers = apart.numbers
        self._gone: list[int] = []
        self._links: dict[int, tuple[IntArray, FloatArray, float]] = {}
        self._tables = with_activities(empty_tables(apart.capacity), 64)
        self._tables.links["busy"] = apart.busy
        self._tables.links["peak"] = apart.peak
        self._found = np.zeros(64, np.int64)
        for number, solo in sorted(apart.under_way.items()):
            self._make_room(number, 0)
            row = (solo.rate, solo.rate, OWN, solo.remaining, solo.since, solo.finish, solo.begin)
            self._tables.activities[number] = (*row, solo.rate, solo.rate, -1, -1, 0)
            self._links[number] = solo.links, solo.weights, solo.cap
            links = self._tables.links
            links["owner"][solo.links] = number
            links["weight"][solo.links] = solo.weights
            links["since"][solo.links] = apart.since[solo.links]
            t = self._tables
            count = t.counts[0]
            count["due"] = indexed_heap.put(
                t.activity_lists[0], t.activities["finish"], t.activities["place"], number, count["due"]
            )

    def _make_room(self, number: int, pairs: int) -> None:
        """Room for this activity and two entries (its own, and the first user's) for each of its links."""
        if number >= len(self._tables.activities):
            self._tables = with_activities(self._tables, 2 * (number + 1))
            self._found = np.zeros(2 * (number + 1), np.int64)
        lacking = 2 * pairs - int(self._tables.counts["room"][0])
        if lacking > 0:
            room = len(self._tables.entries)
            self._tables = with_entries(self._tables, max(2 * room, room + lacking))

    def add(
        self, links: IntArray, weights: FloatArray, size: float, cap: float, begin: float, now: float
    ) -> int:
        """See `Shares`."""
        number = self._numbers.take()
        self._make_room(number, len(links))
        bound = bound_of(links, weights, cap, self._capacity)
        self._tables.activities[number] = (
            *(0.0, bound, FREE, size, now, math.inf, begin),
            *(0.0, 0.0, -1, -1, 0),
        )
        self._links[number] = links, weights, cap
        self._ripple.join(self._tables, number, links, weights, now)
        return number

    def remove(self, number: int, now: float) -> None:
        """See `Shares`."""
        links, _, _ = self._links.pop(number)
        self._ripple.leave(self._tables, number, links, now)
        self._gone.append(number)

    def set_capacity(self, link: int, capacity: float, now: float) -> None:
        """See `Shares`."""
        self._capacity[link] = self._tables.links["capacity"][link] = capacity
        for number in self.users(link):
            bound = bound_of(*self._links[number], self._capacity)
            self._ripple.renew(self._tables, number, bound)

    def users(self, link: int) -> list[int]:
        """Numbers of the activities on a link, ascending."""
        row = self._tables.links[link]
        if row["owner"] != SHARED:
            return [int(row["owner"])] if row["owner"] >= 0 else []
        entries = self._tables.entries
        found, e = [], row["first"]
        while e >= 0:
            found.append(int(entries[e]["activity"]))
            e = entries[e]["next"]
        return sorted(found)

    def solve(self, now: float) -> None:
        """See `Shares`."""
        self._ripple.solve(self._tables, now)
        self._numbers.give(self._gone)  # only now: the tables may still name them before
        self._gone = []

    def next_finish(self) -> float:
        """See `Shares`."""
        t = self._tables
        return float(t.activities["finish"][t.activity_lists[0, 0]]) if t.counts["due"][0] else math.inf

    def due(self, now: float) -> list[int]:
        """See `Shares`."""
        found: list[int] = self._found[: self._ripple.due(self._tables, now, self._found)].tolist()
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
        busy: FloatArray = links["busy"] + np.where(links["owner"] != -1, now - links["since"], 0.0)
        return busy

    def peaks(self) -> FloatArray:
        """See `Shares`."""
        peaks: FloatArray = self._tables.links["peak"].copy()
        return peaks
