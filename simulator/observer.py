"""Evaluations: how good the method's model is as simulated time goes by. They cost no simulated time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.clock import OBSERVE
from simulator.maths import Evaluation
from simulator.result import Coded, Columns
from simulator.values import Vector

if TYPE_CHECKING:
    from simulator.engine import Engine


class Observer:
    """Evaluates at 0, every so many seconds, and at the end; finds the target.

    An evaluation sees everything that has happened at or before its time.
    """

    def __init__(self, engine: Engine, every: float | None, split: str) -> None:
        self._engine = engine
        self._every = every
        self._split = split
        self._next = 0
        self._rows: list[dict[str, Any]] = []
        self.time_to_target: float | None = None
        self.samples_to_target: int | None = None

    @property
    def next_time(self) -> float:
        """Time of the next evaluation, seconds; inf if none is planned."""
        if self._every is None:
            return 0.0 if self._next == 0 else np.inf
        return self._next * self._every

    def plan(self) -> None:
        """Put the next evaluation on the clock."""
        if self.next_time < np.inf:
            self._engine.clock.call_at(self.next_time, self._observe, OBSERVE)

    def _observe(self) -> None:
        evaluation = self._evaluate(self._engine.model_now(), self._split, "method")
        self._next += 1
        if self._meets(evaluation):
            self.time_to_target = self._engine.clock.now
            self.samples_to_target = self._rows[-1]["samples"]
            self._engine.stop()
        elif self._engine.has_events:
            self.plan()

    def _meets(self, found: Evaluation) -> bool:
        target = self._engine.job.stop.target
        if target is None:
            return False
        right = target.accuracy is None or (found.accuracy is not None and found.accuracy >= target.accuracy)
        return right and (target.loss is None or found.loss <= target.loss)

    def _evaluate(self, x: Vector, split: str, model: str) -> Evaluation:
        found = self._engine.maths.evaluate(x, split)
        assert found is not None
        self._note(found, split, model)
        return found

    def _note(self, found: Evaluation, split: str, model: str) -> None:
        steps, samples = self._engine.recorder.counts()
        epoch = samples / self._engine.maths.train_samples if self._engine.maths.train_samples else np.nan
        accuracy = np.nan if found.accuracy is None else found.accuracy
        self._rows.append(
            {
                "time_s": self._engine.clock.now, "samples": samples, "steps": steps, "epoch": epoch,
                "split": split, "model": model, "loss": found.loss, "accuracy": accuracy,
            }
        )  # fmt: skip

    def finish(self, each: Any) -> dict[str, float | None]:
        """The last evaluations: the method's model on both splits, and the workers' own.

        Args:
            each: the workers' models: a sequence of (d,) or one value (n, d).
        """
        x = self._engine.model_now()
        newest = {self._split: self._newest()}
        last = newest.get("test") or self._evaluate(x, "test", "method")
        train = newest.get("train") or self._evaluate(x, "train", "method")
        own = self._engine.maths.evaluate_each(each, "test")
        assert own is not None
        self._note(own, "test", "worker_mean")
        return {
            "final_loss": last.loss,
            "final_accuracy": last.accuracy,
            "final_train_loss": train.loss,
            "final_accuracy_worker_mean": own.accuracy,
        }

    def _newest(self) -> Evaluation | None:
        """The newest evaluation, if it was made at this very time: it has seen all that has happened."""
        if not self._rows or self._rows[-1]["time_s"] != self._engine.clock.now:
            return None
        accuracy = self._rows[-1]["accuracy"]
        return Evaluation(self._rows[-1]["loss"], None if np.isnan(accuracy) else accuracy)

    def curve(self) -> Columns:
        """One row an evaluation, columns of `result.COLUMNS`."""
        texts = ("split", "model")
        columns: dict[str, Any] = {
            k: np.array([r[k] for r in self._rows]) for k in self._rows[0] if k not in texts
        }
        columns |= {k: Coded.of([r[k] for r in self._rows]) for k in texts}
        return columns
