"""Disturbances that come by absolute time: quiet and disturbed intervals take turns for each member.

Both kinds of interval are exponential, drawn by address in order of index (`streams.py`), so a member's
disturbances do not depend on what it or anyone else does. At time 0 the process is in its steady state: the
member is disturbed with probability duration / every. Single and vector look-ups read the same blocks of
numbers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from math import inf
from typing import NamedTuple

import numpy as np

from simulator.distributions import Distribution, Exponential
from simulator.errors import InputError
from simulator.fabric import FloatArray, IntArray
from simulator.streams import Draws
from simulator.units import format as written

CYCLES = 16  # disturbances in a block
MOST_CYCLES = 10_000_000
_KEPT = 4_000_000  # numbers in the blocks kept at hand


class _Column(NamedTuple):
    """One member's part of a block, as plain lists."""

    block: int
    begin: float
    end: float
    boundaries: list[float]
    factors: list[float]


class Renewal:
    """When each of some workers is disturbed, and by what factor.

    Args:
        purpose: of the draws; see `Draws`.
        every: mean time from the start of one disturbance to the start of the next.
        duration: mean length of a disturbance, less than `every`.
        factor: how much slower a disturbance makes its member, one draw for each; None: it stands still.
        ranks: the workers concerned, rising.
        draws: the run's random numbers.
    """

    def __init__(
        self,
        purpose: str,
        every: float,
        duration: float,
        factor: Distribution | None,
        ranks: IntArray,
        draws: Draws,
    ) -> None:
        self._purpose, self._draws, self._ranks = purpose, draws, ranks
        self._every, self._share = every, duration / every
        self._quiet, self._length = Exponential(mean=every - duration), Exponential(mean=duration)
        self._factor = factor
        members = len(ranks)
        self._member = {rank: number for number, rank in enumerate(ranks.tolist())}
        self._starts = np.zeros((1, members))  # by block and member: when the block begins
        self._blocks: OrderedDict[int, tuple[FloatArray, FloatArray]] = OrderedDict()
        self._columns: dict[int, _Column] = {}
        self._at = np.zeros(members, dtype=np.int64)  # the block last looked at, a hint only
        self._from, self._until = np.full(members, inf), np.full(members, -inf)  # the interval last looked at
        self._last = np.ones(members)

    def at(self, rank: int, time: float) -> tuple[float, float]:
        """The factor of a worker at a time (seconds, not negative), and until when it holds."""
        member = self._member.get(rank)
        if member is None:
            return 1.0, inf
        column = self._columns.get(member)
        if column is None or not column.begin <= time < column.end:
            column = self._columns[member] = self._column(member, time, column.block if column else 0)
        place = bisect_right(column.boundaries, time)
        return column.factors[place], column.boundaries[place]

    def at_all(self, ranks: IntArray, times: FloatArray) -> tuple[FloatArray, FloatArray]:
        """As `at` for several workers, each at its own time; shapes (k,)."""
        factor, until = np.ones(len(ranks)), np.full(len(ranks), inf)
        place = np.minimum(np.searchsorted(self._ranks, ranks), len(self._ranks) - 1)
        inside = np.flatnonzero(self._ranks[place] == ranks)
        members, time = place[inside], times[inside]
        missed = ~((self._from[members] <= time) & (time < self._until[members]))
        if missed.any():
            self._look_up(members[missed], time[missed])
        factor[inside], until[inside] = self._last[members], self._until[members]
        return factor, until

    def _look_up(self, members: IntArray, time: FloatArray) -> None:
        """Put the intervals of `members` at `time` at hand."""
        blocks = self._block_of(members, time)
        for number in np.unique(blocks).tolist():
            chosen = blocks == number
            boundaries, factors = self._block(number)
            who = members[chosen]
            place = (boundaries[:, who] <= time[chosen]).sum(axis=0)
            before = boundaries[place - 1, who]  # for place 0 the last row: mended in the next line
            self._from[who] = np.where(place > 0, before, self._starts[number, who])
            self._until[who], self._last[who] = boundaries[place, who], factors[place, who]

    def _block_of(self, members: IntArray, time: FloatArray) -> IntArray:
        """The block that holds each time, shape (k,)."""
        block = self._at[members]
        while True:
            self._extend(int(block.max()) + 1)
            late = time >= self._starts[block + 1, members]
            early = time < self._starts[block, members]
            if not (late.any() or early.any()):
                self._at[members] = block
                return block
            block = block + late - early

    def _column(self, member: int, time: float, block: int) -> _Column:
        """The part of a block that holds `time`, searched from `block` on."""
        self._extend(block + 1)
        while time >= self._starts[block + 1, member]:
            block += 1
            self._extend(block + 1)
        while time < self._starts[block, member]:
            block -= 1
        boundaries, factors = (rows[:, member].tolist() for rows in self._block(block))
        return _Column(block, float(self._starts[block, member]), boundaries[-1], boundaries, factors)

    def _extend(self, block: int) -> None:
        """Make the starts of the blocks up to `block` known."""
        while len(self._starts) <= block:
            number = len(self._starts) - 1
            if number * CYCLES > MOST_CYCLES:
                raise InputError(
                    f"at most {MOST_CYCLES} disturbances of a worker in a run",
                    f"one every {written(self._every, 'time')}",
                    hint="let them come less often",
                )
            boundaries, _ = self._block(number)
            self._starts = np.vstack([self._starts, boundaries[-1]])

    def _block(self, number: int) -> tuple[FloatArray, FloatArray]:
        """Ends of intervals (quiet, disturbed, ...) and their factors, each of shape (2 CYCLES, members)."""
        block = self._blocks.get(number)
        if block is None:
            block = self._blocks[number] = self._drawn(number)
            most = max(4, _KEPT // (4 * CYCLES * len(self._ranks)))
            if len(self._blocks) > most:
                self._blocks.popitem(last=False)
        return block

    def _drawn(self, number: int) -> tuple[FloatArray, FloatArray]:
        lengths = np.empty((2 * CYCLES, len(self._ranks)))
        factors = np.ones_like(lengths)
        for row in range(CYCLES):
            cycle = number * CYCLES + row
            lengths[2 * row] = self._quiet.quantile(self._uniform("quiet", cycle))
            lengths[2 * row + 1] = self._length.quantile(self._uniform("length", cycle))
            factors[2 * row + 1] = inf
            if self._factor is not None:
                factors[2 * row + 1] = self._factor.quantile(self._uniform("factor", cycle))
        if number == 0:
            lengths[0, self._uniform("at_start", 0) < self._share] = 0.0
        boundaries = np.add.accumulate(np.vstack([self._starts[number], lengths]), axis=0)[1:]
        return boundaries, factors

    def _uniform(self, what: str, draw: int) -> FloatArray:
        """One number for each member, shape (members,)."""
        first, last = int(self._ranks[0]), int(self._ranks[-1])
        return self._draws.block(f"{self._purpose}/{what}", draw, last - first + 1, first)[
            self._ranks - first
        ]
