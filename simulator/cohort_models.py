"""The models that a cohort reports over time, ahead of the clock: what evaluations see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simulator.fabric import FloatArray
from simulator.values import Vector

if TYPE_CHECKING:
    from simulator.engine import Engine


class CohortModels:
    """Reports of all workers at once, each at its own time.

    Args:
        engine: the run.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._models: list[tuple[FloatArray, Vector]] = [(np.zeros(engine.size), engine.maths.initial())]

    def __len__(self) -> int:
        """Reports that are kept."""
        return len(self._models)

    def report(self, t: FloatArray, x: Vector) -> None:
        """The workers' models are x, (n, d) or (d,), from `t` on, seconds, shape (n,)."""
        if t.max() <= self._engine.next_observation:
            self._models.clear()
        while len(self._models) > 1 and self._models[1][0].max() <= self._engine.clock.now:
            self._models.pop(0)  # nobody asks for an earlier time
        self._models.append((t, x))

    def at(self, time: float) -> Vector:
        """The models reported last at or before `time`, shape (n, d), or (d,) while all are equal."""
        newest = np.full(self._engine.size, -1)
        for index, (when, _) in enumerate(self._models):
            newest[when <= time] = index
        used = np.unique(newest).tolist()
        self._models = self._models[used[0] :]
        newest -= used[0]
        if len(used) == 1:
            return self._models[0][1]
        maths = self._engine.maths
        return maths.stack([maths.row(self._models[i][1], w) for w, i in enumerate(newest.tolist())])
