"""The input pipeline: samples come from storage and through loader processes, ahead of the gradients.

A worker's loader fills a queue of at most `prefetch` batches, one after the other, each in

    load = batch * max(bytes / share of the storage, (latency + CPU time) / loader processes)

seconds: the slower of the storage and the processes sets the pace. Batch k is begun when batch k - 1 is ready
and a place in the queue is free, that is when batch k - prefetch has been taken. So in the steady state a
step takes max(compute, load); with `prefetch: 0` it takes compute + load. What a worker waits for samples are
its spans of kind `input`.

A worker's share of a storage that many read is fixed, bandwidth / readers: what one does not use is not lent
to others (exact where all are kept busy alike, else the loading is too slow, never too fast). Loading uses a
storage network of its own, and loader processes are not slowed by stragglers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

import numpy as np
from pydantic import Field, NonNegativeInt, PositiveInt

from simulator.fabric import FloatArray
from simulator.placement import Workers
from simulator.spec import Spec
from simulator.units import Bandwidth, PositiveBytes, Quantity, Seconds

Times = TypeVar("Times", float, FloatArray)


class Storage(Spec):
    """Where samples are read from."""

    bandwidth: Bandwidth = Field(description="of one storage, for all that read from it")
    latency: Seconds = Field(Quantity(0.0), description="until the first byte of a sample; its process waits")
    per: Literal["cluster", "host", "worker"] = Field(
        "host", description="one storage for all, for each host (a local disk), or for each worker"
    )

    def readers(self, workers: Workers) -> FloatArray:
        """How many workers share each worker's storage, itself among them, shape (n,)."""
        n = len(workers)
        if self.per == "worker":
            return np.ones(n)
        if self.per == "cluster":
            return np.full(n, float(n))
        return np.bincount(workers.host)[workers.host].astype(float)


class InputSpec(Spec):
    """Scenario key `workload.input`: what it takes to have the samples of a gradient."""

    bytes_per_sample: PositiveBytes = Field(description="read from the storage")
    storage: Storage
    cpu_seconds_per_sample: Seconds = Field(Quantity(0.0), description="to decode and transform one sample")
    workers: PositiveInt = Field(4, description="loader processes of each worker")
    prefetch: NonNegativeInt = Field(
        2, description="batches loaded ahead; 0: loading and computing take turns"
    )

    def loading(self, batch: int, workers: Workers) -> Loading:
        """How long each worker loads a batch."""
        reading = self.bytes_per_sample * self.storage.readers(workers) / self.storage.bandwidth
        working = (self.storage.latency + self.cpu_seconds_per_sample) / self.workers
        return Loading(batch * np.maximum(reading, working), self.prefetch)


@dataclass(frozen=True, eq=False)
class Loading:
    """The input pipelines of a run.

    Attributes:
        seconds: to load a batch, of each worker, shape (n,).
        prefetch: batches loaded ahead.
    """

    seconds: FloatArray
    prefetch: int

    def of_worker(self, rank: int) -> Loader[float]:
        """One worker's loader."""
        return Loader(float(self.seconds[rank]), self.prefetch, 0.0, max)

    def of_all(self) -> Loader[FloatArray]:
        """All workers' loaders, their times as vectors (n,); the same numbers as one by one."""
        return Loader(self.seconds, self.prefetch, np.zeros(len(self.seconds)), np.maximum)


class Loader(Generic[Times]):
    """A queue of batches that is filled from time 0 on.

    >>> loader = Loader(2.0, 1, 0.0, max)
    >>> loader.take(0.0)  # nothing is there yet
    2.0
    >>> loader.take(3.0)  # the next was begun at 2, so it is ready at 4
    4.0
    >>> loader.take(9.0)
    9.0
    """

    def __init__(
        self, seconds: Times, prefetch: int, zero: Times, later: Callable[[Times, Times], Times]
    ) -> None:
        self._seconds: Times = seconds
        self._later: Callable[[Times, Times], Times] = later
        self._ready: Times = zero
        self._taken: deque[Times] = deque([zero] * prefetch, maxlen=prefetch)

    def take(self, asked: Times) -> Times:
        """When a worker that asks for its next batch at `asked` (seconds) has it."""
        free = self._taken[0] if self._taken else asked
        self._ready = self._later(self._ready, free) + self._seconds
        taken: Times = self._later(asked, self._ready)
        self._taken.append(taken)
        return taken
