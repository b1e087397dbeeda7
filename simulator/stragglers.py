"""Stragglers: what slows workers down, as pure functions of (worker, draw, start time).

An entry of a scenario's `stragglers` slows some workers for the whole run, anew in each gradient (`step`),
or from time to time (`burst`, `pause`). Factors that meet multiply. All numbers are addressed
(`streams.py`): two methods under one seed meet the same stragglers, and adding a worker moves nobody's
draws. There are no processes here: a cohort asks for a vector of workers what a single worker asks for
itself, and gets the same bits.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from math import inf
from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from simulator.distributions import Constant, Distribution
from simulator.fabric import FloatArray, IntArray
from simulator.placement import Where, Workers
from simulator.renewal import Renewal
from simulator.spec import Spec
from simulator.streams import Draws
from simulator.units import PositiveSeconds

CHUNK = 4096  # workers whose factors are computed together
_KEPT = 512 * 1024  # factors kept at hand for single workers


class StragglerSpec(Spec):
    """One entry of `stragglers`.

    `run`: one factor for each worker, for the whole run. `step`: a new factor for each gradient. `burst`: a
    factor from time to time. `pause`: no progress from time to time. Bursts and pauses slow computation only.
    """

    where: Where = "all"
    per: Literal["step", "run", "burst", "pause"]
    factor: Distribution | None = Field(None, description="how many times longer; not for pauses")
    every: PositiveSeconds | None = Field(None, description="bursts, pauses: mean from start to next start")
    duration: PositiveSeconds | None = Field(None, description="bursts, pauses: mean length, below `every`")

    @model_validator(mode="after")
    def _complete(self) -> Self:
        needed = {"burst": ("factor", "every", "duration"), "pause": ("every", "duration")}
        keys = needed.get(self.per, ("factor",))
        for key in ("factor", "every", "duration"):
            if (getattr(self, key) is not None) != (key in keys):
                said = "no" if key in keys else "a"
                raise ValueError(f"found {said} `{key}`, expected `per: {self.per}` with {', '.join(keys)}")
        if self.every is not None and self.duration is not None and self.duration >= self.every:
            raise ValueError("found a `duration` not below `every`, expected disturbances with gaps between")
        return self


class _Step:
    """An entry that draws anew for each gradient."""

    def __init__(self, purpose: str, factor: Distribution, ranks: IntArray, draws: Draws) -> None:
        self._purpose, self._factor, self._ranks, self._draws = purpose, factor, ranks, draws

    def slow(self, factors: FloatArray, draw: int, first: int) -> None:
        """Multiply the factors of the workers `first`, `first + 1`, ... by those of gradient `draw`."""
        low, high = np.searchsorted(self._ranks, (first, first + len(factors)))
        if low == high:
            return
        uniform = self._draws.block(self._purpose, draw, len(factors), first)
        if high - low == len(factors):
            factors *= self._factor.quantile(uniform)
        else:
            members = self._ranks[low:high] - first
            factors[members] *= self._factor.quantile(uniform[members])


class Slowdown:
    """How long work takes under stragglers.

    Args:
        specs: the scenario's entries.
        draws: the run's random numbers.
        workers: all workers, by rank.
    """

    def __init__(self, specs: Sequence[StragglerSpec], draws: Draws, workers: Workers) -> None:
        self.n = len(workers)
        self._run = np.ones(self.n)
        self._steps: list[_Step] = []
        self._renewals: list[Renewal] = []
        for index, spec in enumerate(specs):
            ranks = workers.select(spec.where, draws, f"straggler/{index}/share")
            self._add(spec, f"straggler/{index}/{spec.per}", ranks, draws)
        self.none = not specs
        self._run.setflags(write=False)
        self._run_list: list[float] = self._run.tolist()
        self._latest: tuple[int, FloatArray] = (-1, self._run)
        self._chunks: OrderedDict[tuple[int, int], list[float]] = OrderedDict()
        self._most_chunks = max(1, _KEPT // max(1, min(self.n, CHUNK)))

    def _add(self, spec: StragglerSpec, purpose: str, ranks: IntArray, draws: Draws) -> None:
        if spec.every is not None and spec.duration is not None:
            self._renewals.append(Renewal(purpose, spec.every, spec.duration, spec.factor, ranks, draws))
        elif spec.factor is not None and (spec.per == "run" or isinstance(spec.factor, Constant)):
            self._run[ranks] *= spec.factor.quantile(draws.block(purpose, 0, self.n)[ranks])
        elif spec.factor is not None:
            self._steps.append(_Step(purpose, spec.factor, ranks, draws))

    @property
    def timed(self) -> bool:
        """Whether durations depend on when the work begins (bursts, pauses)."""
        return bool(self._renewals)

    def factor(self, worker: int, draw: int) -> float:
        """How many times longer gradient `draw` of a worker takes, bursts and pauses left out."""
        if not self._steps:
            return self._run_list[worker]
        address = (draw, worker // CHUNK)
        chunk = self._chunks.get(address)
        if chunk is None:
            chunk = self._chunks[address] = self._chunk(*address).tolist()
            if len(self._chunks) > self._most_chunks:
                self._chunks.popitem(last=False)
        return chunk[worker % CHUNK]

    def factors(self, draw: int) -> FloatArray:
        """As `factor`, for all workers, shape (n,), read-only."""
        if not self._steps:
            return self._run
        if self._latest[0] != draw:  # a gradient in buckets asks once for each
            chunks = [self._chunk(draw, number) for number in range(-(-self.n // CHUNK))]
            self._latest = draw, np.concatenate(chunks)
            self._latest[1].setflags(write=False)
        return self._latest[1]

    def finish(self, worker: int, draw: int, start: float, work: float) -> float:
        """When `work` seconds of undisturbed computation that begin at `start` are done (absolute, seconds).

        Args:
            worker: rank.
            draw: number of the worker's gradient, from 0.
            start: not negative.
            work: not negative.
        """
        elapsed = work * self.factor(worker, draw)
        if not self._renewals or elapsed == 0:
            return start + elapsed
        return self._through(worker, start, elapsed)

    def finish_all(self, draw: int, start: FloatArray, work: FloatArray | float) -> FloatArray:
        """As `finish` for all workers, the same bits; start and result of shape (n,)."""
        elapsed = work * self.factors(draw)
        if not self._renewals:
            return start + elapsed
        return self._through_all(start, elapsed)

    def _through(self, worker: int, time: float, left: float) -> float:
        """Work through bursts and pauses: progress per second is 1 / (product of their factors)."""
        while True:
            factor, until = 1.0, inf
            for renewal in self._renewals:
                value, end = renewal.at(worker, time)
                factor *= value
                until = min(until, end)
            done = time + left * factor
            if done <= until:
                return done
            left = left - (until - time) / factor
            time = until
            if left <= 0:
                return time

    def _through_all(self, start: FloatArray, elapsed: FloatArray) -> FloatArray:
        """As `_through` for all workers: the same expressions on arrays that shrink."""
        finish = start + elapsed
        ranks = np.flatnonzero(elapsed > 0)
        time, left = start[ranks], elapsed[ranks]
        while len(ranks):
            factor, until = np.ones(len(ranks)), np.full(len(ranks), inf)
            for renewal in self._renewals:
                value, end = renewal.at_all(ranks, time)
                factor *= value
                until = np.minimum(until, end)
            done = time + left * factor
            finish[ranks] = np.where(done <= until, done, until)
            left = left - (until - time) / factor
            on = (done > until) & (left > 0)
            ranks, time, left = ranks[on], until[on], left[on]
        return finish

    def _chunk(self, draw: int, number: int) -> FloatArray:
        """Factors of one chunk of workers for gradient `draw`; all reads pass here, hence the same bits."""
        first = number * CHUNK
        factors = self._run[first : first + CHUNK].copy()
        for step in self._steps:
            step.slow(factors, draw, first)
        return factors
