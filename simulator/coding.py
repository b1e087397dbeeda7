"""How values travel in a run: as they are, or compressed; sizes, the time of coding, what is remembered.

`Whole` and `Coded` are asked the same by the verbs. A worker alone sends nothing, so its values are whole.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, final

import numpy as np

from simulator.compression import Compression, Stream
from simulator.errors import VerbError
from simulator.fabric import FloatArray
from simulator.maths import BoolArray
from simulator.meetings import Want
from simulator.values import Vector

if TYPE_CHECKING:
    from simulator.engine import Engine


class Places:
    """Tells the calls of a verb within a step apart: each has a stream of its own."""

    def __init__(self) -> None:
        self._step = self._calls = 0

    def name(self, verb: str, step: int, since: Vector | None) -> str:
        """Of the next call."""
        self._calls = self._calls + 1 if step == self._step else 1
        self._step = step
        return f"{verb} {self._calls}" + (" of models" if since is not None else "")


class Coding(ABC):
    """What becomes of values on their way. `name` says where in a method a value is sent."""

    # sizes and times

    @abstractmethod
    def size(self, nbytes: float) -> float:
        """Bytes of what travels for a value of so many bytes."""

    @abstractmethod
    def wants(self, nbytes: float, members: int, need: int | None, algorithm: str | None) -> list[Want]:
        """The collectives that bring a mean about, one after the other."""

    @abstractmethod
    def encode_seconds(self, nbytes: float, message: int = 0) -> FloatArray:
        """Time on each worker's device to make a value's message of that number, shape (n,)."""

    @abstractmethod
    def bucket_seconds(self, sizes: Sequence[float]) -> FloatArray:
        """Time until each of a gradient's buckets is made, one after the other, shape (buckets, n)."""

    @abstractmethod
    def decode_seconds(self, nbytes: float, codes: int = 1) -> FloatArray:
        """Time on each worker's device to decode so many values, shape (n,)."""

    @abstractmethod
    def mean_seconds(self, nbytes: float, members: int) -> FloatArray:
        """Time on each worker's device to decode a mean over so many members, shape (n,)."""

    # values

    @abstractmethod
    def mean(
        self,
        name: str,
        since: Vector | None,
        ranks: Sequence[int],
        values: Sequence[Vector],
        weights: Sequence[float] | None,
    ) -> Vector:
        """The mean of what arrives of gradients or changes, or of models of which all know `since`."""

    @abstractmethod
    def cohort_mean(self, name: str, since: Vector | None, x: Vector, keep: BoolArray | None) -> Vector:
        """The same of a cohort's value, of the workers in `keep` (n,) only if given."""

    @abstractmethod
    def change(self, name: str, rank: int, x: Vector) -> Vector:
        """What arrives of a gradient or a change."""

    @abstractmethod
    def model(self, name: str, rank: int, x: Vector) -> Vector:
        """What arrives of a model of which the receiver knows nothing."""

    @abstractmethod
    def copy(self, name: str, rank: int, x: Vector, start: Vector | None = None) -> Vector:
        """What those to whom a worker always sends know of its model, after what it sends now.

        Args:
            name: where in a method.
            rank: the worker.
            x: its model.
            start: what they know of it at first; None: nothing, that is zero.
        """

    @abstractmethod
    def towards(self, x: Vector, copy: Vector, mean: Vector) -> Vector:
        """What a model becomes when the mean of the neighbours' copies, its own among them, is known."""


@final
class Whole(Coding):
    """Values travel as they are."""

    def __init__(self, engine: Engine) -> None:
        self._maths = engine.maths
        self._nothing = np.zeros(engine.size)

    def size(self, nbytes: float) -> float:
        """All of them."""
        return nbytes

    def wants(self, nbytes: float, members: int, need: int | None, algorithm: str | None) -> list[Want]:
        """An all-reduce."""
        return [Want("all_reduce", nbytes, 0, need, algorithm)]

    def encode_seconds(self, nbytes: float, message: int = 0) -> FloatArray:
        """None."""
        return self._nothing

    def bucket_seconds(self, sizes: Sequence[float]) -> FloatArray:
        """None."""
        return np.broadcast_to(self._nothing, (len(sizes), len(self._nothing)))

    def decode_seconds(self, nbytes: float, codes: int = 1) -> FloatArray:
        """None."""
        return self._nothing

    def mean_seconds(self, nbytes: float, members: int) -> FloatArray:
        """None."""
        return self._nothing

    def mean(
        self,
        name: str,
        since: Vector | None,
        ranks: Sequence[int],
        values: Sequence[Vector],
        weights: Sequence[float] | None,
    ) -> Vector:
        """Theirs."""
        return self._maths.mean(values, weights)

    def cohort_mean(self, name: str, since: Vector | None, x: Vector, keep: BoolArray | None) -> Vector:
        """Theirs."""
        return self._maths.cohort_mean(x, keep)

    def change(self, name: str, rank: int, x: Vector) -> Vector:
        """It."""
        return x

    def model(self, name: str, rank: int, x: Vector) -> Vector:
        """It."""
        return x

    def copy(self, name: str, rank: int, x: Vector, start: Vector | None = None) -> Vector:
        """It."""
        return x

    def towards(self, x: Vector, copy: Vector, mean: Vector) -> Vector:
        """The mean."""
        return mean


@final
class Coded(Coding):
    """Values travel compressed."""

    def __init__(self, engine: Engine, how: Compression) -> None:
        self._engine = engine
        self._how = how
        self._whole = engine.maths.initial().nbytes
        self._seconds: dict[tuple[float, float], FloatArray] = {}
        self._streams: dict[str, Stream] = {}
        self._copies: dict[str, Vector] = {}

    def _messages(self, nbytes: float) -> tuple[float, ...]:
        item = self._engine.job.item_bytes
        return self._how.messages(max(round(nbytes / item), 1), item)

    def size(self, nbytes: float) -> float:
        """Of all its messages."""
        return sum(self._messages(nbytes))

    def wants(self, nbytes: float, members: int, need: int | None, algorithm: str | None) -> list[Want]:
        """All-reduces of codes that add up, else one all-gather: everybody gets everybody's."""
        if self._how.adds_up:
            return [Want("all_reduce", size, 0, need, algorithm) for size in self._messages(nbytes)]
        return [Want("all_gather", members * self.size(nbytes), 0, need)]

    def encode_seconds(self, nbytes: float, message: int = 0) -> FloatArray:
        """The passes of the compressor."""
        return self._passes(self._how.coding()[message], nbytes)

    def bucket_seconds(self, sizes: Sequence[float]) -> FloatArray:
        """Sums of their times."""
        return np.cumsum([self.encode_seconds(size) for size in sizes], axis=0)

    def decode_seconds(self, nbytes: float, codes: int = 1) -> FloatArray:
        """The passes of the compressor."""
        return self._passes(self._how.decoding(codes), nbytes)

    def mean_seconds(self, nbytes: float, members: int) -> FloatArray:
        """Of the sum if codes add up, else of every member's."""
        return self.decode_seconds(nbytes, 1 if self._how.adds_up else members)

    def _passes(self, passes: float, nbytes: float) -> FloatArray:
        found = self._seconds.get((passes, nbytes))
        if found is None:
            found = np.asarray(self._engine.pass_seconds * (passes * (nbytes / self._whole)), dtype=float)
            self._seconds[passes, nbytes] = found
        return found

    def mean(
        self,
        name: str,
        since: Vector | None,
        ranks: Sequence[int],
        values: Sequence[Vector],
        weights: Sequence[float] | None,
    ) -> Vector:
        """What is known with the mean of what is decoded."""
        if since is None:
            return self._arrives(self._stream(name), ranks, values, weights)
        changes = [value - since for value in values]
        return since + self._arrives(self._stream(name), ranks, changes, weights)

    def cohort_mean(self, name: str, since: Vector | None, x: Vector, keep: BoolArray | None) -> Vector:
        """Row by row."""
        ranks = range(self._engine.size) if keep is None else np.flatnonzero(keep).tolist()
        rows = [self._engine.maths.row(x, rank) for rank in ranks]
        return self.mean(name, since, ranks, rows, None)

    def change(self, name: str, rank: int, x: Vector) -> Vector:
        """What is decoded."""
        return self._arrives(self._stream(f"{name} of {rank}"), (rank,), (x,))

    def model(self, name: str, rank: int, x: Vector) -> Vector:
        """What is decoded.

        Raises:
            VerbError: hardly anything would be.
        """
        if not self._how.keeps_models:
            raise VerbError(
                f"`w.{name.split()[0]}` sends a model to a worker that knows nothing of it: "
                'of the compressors only qsgd keeps what it is; say `sends = "models"` in the method'
            )
        return self._kept(name, rank, x)

    def copy(self, name: str, rank: int, x: Vector, start: Vector | None = None) -> Vector:
        """The copy before with what is decoded of the difference.

        Koloskova, Stich and Jaggi, "Decentralized Stochastic Optimization and Gossip Algorithms with
        Compressed Communication", ICML 2019 (CHOCO-SGD).
        """
        key = f"{name} of {rank}"
        before = self._copies.get(key, start)
        news = self._kept(name, rank, x if before is None else x - before)
        self._copies[key] = copy = news if before is None else before + news
        return copy

    def towards(self, x: Vector, copy: Vector, mean: Vector) -> Vector:
        """As far towards the mean as the copy would have to go, times `consensus`."""
        return x + self._how.consensus * (mean - copy)

    def _kept(self, name: str, rank: int, x: Vector) -> Vector:
        """What is decoded of a value whose rest can be sent again."""
        return self._arrives(self._stream(f"{name} of {rank}", persists=True), (rank,), (x,))

    def _stream(self, name: str, persists: bool = False) -> Stream:
        return self._streams.setdefault(name, Stream(name, persists))

    def _arrives(
        self,
        stream: Stream,
        ranks: Sequence[int],
        values: Sequence[Vector],
        weights: Sequence[float] | None = None,
    ) -> Vector:
        return self._engine.maths.compressed_mean(self._how, stream, ranks, values, weights)
