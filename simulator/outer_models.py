"""Outer models as reported over time: what a method has learned where workers' own models run apart."""

from __future__ import annotations

from collections import deque

from simulator.values import Vector


class OuterModels:
    """Reports of worker 0, which may lie ahead of the clock; all workers' outer models are equal."""

    def __init__(self) -> None:
        self._reported: deque[tuple[float, Vector]] = deque()

    def report(self, time: float, outer: Vector, now: float) -> None:
        """The outer model is this from `time` on (seconds); nobody will ask for what was before `now`."""
        if not self._reported or self._reported[-1][1] is not outer:
            self._reported.append((time, outer))
        self._forget(now)

    def at(self, time: float) -> Vector | None:
        """The outer model at `time`; None before the first."""
        self._forget(time)
        return self._reported[0][1] if self._reported and self._reported[0][0] <= time else None

    def _forget(self, time: float) -> None:
        while len(self._reported) > 1 and self._reported[1][0] <= time:
            self._reported.popleft()
