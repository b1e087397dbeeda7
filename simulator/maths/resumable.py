"""Stopping a run of real maths and taking it up again: the maths on a tape, and the file between."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from operator import is_
from pathlib import Path
from time import monotonic
from typing import Any, final

import numpy as np
import torch

from simulator.compression import Compression, Stream
from simulator.errors import InputError
from simulator.maths import BoolArray, Evaluation
from simulator.maths.dense import Dense
from simulator.maths.tape import SKIPPED, Tape, recorded
from simulator.maths.torch_maths import TorchMaths
from simulator.values import Vector

FORMAT = 1


@final
class ResumableMaths:
    """Maths whose values are noted on a tape, and whose evaluations are kept.

    Args:
        inner: what computes.
        tape: of the run.
        told: evaluations and distances asked for so far, in order; those of a run taken up again are given
            out while its tape skips.
    """

    def __init__(self, inner: TorchMaths, tape: Tape, told: list[Any]) -> None:
        self.batch, self.train_samples, self.metrics = inner.batch, inner.train_samples, inner.metrics
        self._inner, self._tape, self._told, self._next = inner, tape, told, 0
        self._initial = tape.note(inner.initial())
        self._joined: tuple[tuple[Vector, ...], Dense] | None = None

    def _note(self, nbytes: float, make: Callable[[], Dense]) -> Dense:
        # A value of its own, so that each has one number: the maths may give one object twice.
        return recorded(make, lambda: Dense(None, nbytes, SKIPPED))

    def initial(self) -> Dense:
        """See `Maths`."""
        return self._initial

    def gradient(self, x: Vector, worker: int, draw: int) -> Dense:
        """See `Maths`."""
        return self._note(self._initial.nbytes, lambda: self._inner.gradient(x, worker, draw))

    def gradients(self, x: Vector, draw: int) -> Dense:
        """See `Maths`."""
        return self._note(self._initial.nbytes, lambda: self._inner.gradients(x, draw))

    def cancel(self, value: Vector) -> None:
        """See `Maths`."""
        if self._tape.skipping and isinstance(value, Dense):
            value.settle(None)
        else:
            self._inner.cancel(value)

    def mean(self, values: Sequence[Vector], weights: Sequence[float] | None = None) -> Dense:
        """See `Maths`."""
        return self._note(values[0].nbytes, lambda: self._inner.mean(values, weights))

    def cohort_mean(self, x: Vector, keep: BoolArray | None = None) -> Dense:
        """See `Maths`."""
        return self._note(x.nbytes, lambda: self._inner.cohort_mean(x, keep))

    def compressed_mean(
        self,
        how: Compression,
        stream: Stream,
        ranks: Sequence[int],
        values: Sequence[Vector],
        weights: Sequence[float] | None,
    ) -> Vector:
        """See `Maths`; what the stream remembers is on the tape too."""
        computed: list[Dense] = []

        def make(index: int) -> Dense:
            if not computed:
                computed.extend(self._inner.outcomes(how, stream, ranks, values, weights))
            return computed[index]

        size = values[0].nbytes
        outcomes = [self._note(size, partial(make, index)) for index in range(stream.outcomes(how, ranks))]
        return stream.take(how, ranks, outcomes)

    def concat(self, parts: Sequence[Vector]) -> Dense:
        """See `Maths`; as there, the same parts give the same object."""
        asked, kept = tuple(parts), self._joined
        if kept is None or len(kept[0]) != len(asked) or not all(map(is_, kept[0], asked)):
            size = sum(part.nbytes for part in asked)
            kept = self._joined = (asked, self._note(size, lambda: self._inner.concat(asked)))
        return kept[1]

    def row(self, x: Vector, worker: int) -> Dense:
        """See `Maths`."""
        return self._note(x.nbytes, lambda: self._inner.row(x, worker))

    def stack(self, rows: Sequence[Vector]) -> Dense:
        """See `Maths`."""
        return self._note(self._initial.nbytes, lambda: self._inner.stack(rows))

    def evaluate(self, x: Vector, split: str) -> Evaluation:
        """See `Maths`."""
        told: Evaluation = self._tell(lambda: self._inner.evaluate(x, split))
        return told

    def evaluate_each(self, values: Sequence[Vector] | Vector, split: str) -> Evaluation:
        """See `Maths`."""
        told: Evaluation = self._tell(lambda: self._inner.evaluate_each(values, split))
        return told

    def distance(self, values: Sequence[Vector] | Vector) -> float:
        """See `Maths`."""
        told: float = self._tell(lambda: self._inner.distance(values))
        return told

    def _tell(self, compute: Callable[[], Any]) -> Any:
        if not self._tape.skipping:
            self._told.append(compute())
        self._next += 1
        return self._told[self._next - 1]


@dataclass
class Checkpoint:
    """A place where a run is kept, so that it may end at any time and go on from there.

    Attributes:
        path: the file; it is replaced as a whole, so it is always one that can be read.
        job: what tells that the file is of this very run, such as the hash of its scenario.
        every: seconds of real time between two saves.
        tape: of the values of the run.
        told: its evaluations.
    """

    path: Path
    job: str
    every: float = 60.0
    tape: Tape = field(default_factory=Tape)
    told: list[Any] = field(default_factory=list)
    _events: int = -1
    _saved: dict[int, Any] = field(default_factory=dict)
    _engine: str = ""
    _last: float = field(default_factory=monotonic)

    def begin(self, engine: str) -> None:
        """Read what there is of an earlier run.

        Args:
            engine: `process` or `cohort`; what another engine has saved is of no use and left alone.

        Raises:
            InputError: the file is damaged or of another run.
        """
        self._engine, self.tape = engine, Tape()
        self.told.clear()
        if not self.path.is_file():
            return
        head, saved = self._read()
        if head["job"] != self.job or head["format"] != FORMAT:
            raise InputError("a checkpoint of this run", f"one of another in {self.path}", hint="delete it")
        if head["engine"] == engine:
            self._events, self._saved, self.tape.skipping = head["events"], saved, True
            self.told += [Evaluation(**one) if isinstance(one, dict) else one for one in head["told"]]

    def _read(self) -> tuple[dict[str, Any], dict[int, Any]]:
        try:
            with np.load(io.BytesIO(self.path.read_bytes()), allow_pickle=False) as there:
                arrays = {name: there[name] for name in there.files}
            head = json.loads(bytes(arrays.pop("head")))
            return head, {int(name): torch.from_numpy(array) for name, array in arrays.items()}
        except Exception as error:  # of a damaged file anything may come
            found = f"{type(error).__name__} in {self.path}"
            raise InputError("a checkpoint", found, hint="delete it to begin anew") from error

    def maths(self, inner: TorchMaths) -> ResumableMaths:
        """The run's maths, on the tape."""
        return ResumableMaths(inner, self.tape, self.told)

    def after_event(self, events: int) -> None:
        """The engine has come through so many events: take up, or save, if it is time."""
        if self.tape.skipping:
            if events == self._events:
                self.tape.fill(self._saved)
                self._saved = {}
                self._last = monotonic()
        elif monotonic() - self._last >= self.every:
            self.save(events)

    def save(self, events: int) -> None:
        """Write all values held, and the evaluations so far."""
        arrays: dict[str, Any] = {str(number): data.numpy() for number, data in self.tape.held().items()}
        told = [asdict(one) if isinstance(one, Evaluation) else one for one in self.told]
        head = {"format": FORMAT, "job": self.job, "engine": self._engine, "events": events, "told": told}
        content = io.BytesIO()
        arrays["head"] = np.frombuffer(json.dumps(head).encode(), np.uint8)
        np.savez(content, **arrays)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_name(self.path.name + ".new")
        beside.write_bytes(content.getvalue())
        os.replace(beside, self.path)
        self._last = monotonic()
