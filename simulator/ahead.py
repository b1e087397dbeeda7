"""How far a cohort may run ahead of the clock: not past an evaluation, nor past the end of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.clock import OBSERVE
from simulator.fabric import FloatArray
from simulator.process import Proc

if TYPE_CHECKING:
    from simulator.engine import Engine

FOREVER = float("inf")


class Ahead:
    """Waits until the clock has been where the engine must look, and ends the run by `stop: samples`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._ends: list[FloatArray] = []
        self._ends_at = FOREVER
        self._waits = 0

    def step_ends(self, t: FloatArray) -> None:
        """Each worker has ended a step at `t`, seconds, shape (n,)."""
        if self._engine.job.stop.samples is not None:
            self._ends.append(t)

    def looked_at(self, t: FloatArray) -> Proc[None]:
        """Computing has come to `t`: wait until the clock has been where the engine must look."""
        engine, ahead = self._engine, float(t.min())
        self._end_by_samples(ahead)
        while (time := self._next_look()) < min(ahead, engine.time_limit):
            yield engine.clock.at(time, priority=OBSERVE + 2)

    def all_over(self, t: FloatArray) -> Proc[None]:
        """All steps have been taken, the last ended at `t`: wait until the clock has been there."""
        self._end_by_samples(FOREVER)
        end = float(t.max())
        if end > self._engine.clock.now:
            yield self._engine.clock.at(end)

    def until(self, event: Any) -> Proc[None]:
        """Wait on the cohort's own line. No step ends meanwhile: the ends known may be all that count."""
        self._waits += 1
        this, end = self._waits, self._samples_end()

        def stop_if_still_waiting() -> None:
            if self._waits == this:
                self._engine.stop()

        if end < FOREVER:
            self._engine.clock.call_at(end, stop_if_still_waiting, OBSERVE + 1)
        yield event
        self._waits += 1

    def is_watched(self) -> bool:
        """Whether anybody looks at workers in between: evaluations, or a count of samples."""
        return self._engine.observer is not None or self._engine.job.stop.samples is not None

    def _next_look(self) -> float:
        observer = self._engine.observer
        return min(self._ends_at, observer.next_time if observer else FOREVER)

    def _end_by_samples(self, before: float) -> None:
        """Put the stop on the clock, once the step end that reaches it is certain.

        Args:
            before: seconds; no step not ended yet will end earlier.
        """
        end = self._samples_end()
        if end <= before:
            self._ends_at = end
            self._engine.clock.call_at(end, self._engine.stop, OBSERVE + 1)

    def _samples_end(self) -> float:
        """When the step ends known so far reach `stop: samples`; inf if they do not, or that is settled."""
        samples = self._engine.job.stop.samples
        if samples is None or self._ends_at < FOREVER:
            return FOREVER
        needed = int(-(-samples // self._engine.batch))
        if len(self._ends) * self._engine.size < needed:
            return FOREVER
        return float(np.partition(np.concatenate(self._ends), needed - 1)[needed - 1])
