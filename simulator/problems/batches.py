"""Which samples a gradient uses: a pure function of (seed, worker, number of the gradient).

A worker's samples are an endless stream of epochs, each a fresh random order of what it may take (without
replacement); each gradient takes the next b entries. Two kinds of stream:

- *dealt*: one stream for all, an epoch being an order of the whole training set; gradient k of worker w takes
  block k n + w. So step k of n workers with batch b uses the very samples of one worker with batch n b.
- *own*: each worker has its share of the samples and orders it by itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from typing import final

import numpy as np
from numpy.typing import NDArray

from simulator.streams import Draws

__all__ = ["Batches", "Dealt", "IntArray", "NoBatches", "Own", "Whole"]

IntArray = NDArray[np.int64]
KEPT_BYTES = 2**26  # of orders, so that workers at unlike epochs find theirs


class Batches(ABC):
    """The samples of every gradient, by address."""

    @abstractmethod
    def one(self, worker: int, draw: int) -> IntArray:
        """Samples of one gradient, shape (batch,)."""

    def all(self, draw: int, n_workers: int) -> list[IntArray]:
        """Samples of gradient `draw` of every worker."""
        return [self.one(worker, draw) for worker in range(n_workers)]


class _Orders:
    """Random orders of m samples, addressed by (purpose, epoch); the latest used are kept."""

    def __init__(self, draws: Draws, largest: int) -> None:
        self._draws = draws
        self._kept: OrderedDict[tuple[str, int], IntArray] = OrderedDict()
        self._most = max(8, KEPT_BYTES // (8 * max(largest, 1)))

    def order(self, purpose: str, epoch: int, m: int) -> IntArray:
        """An order of 0 .. m - 1."""
        address = (purpose, epoch)
        order = self._kept.get(address)
        if order is None:
            order = self._kept[address] = self._draws.permutation(purpose, epoch, m)
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return order

    def stream(self, purpose: str, first: int, count: int, m: int) -> IntArray:
        """Entries `first` .. `first + count - 1` of the orders of 0 .. m - 1 set end to end."""
        epoch, offset = divmod(first, m)
        order = self.order(purpose, epoch, m)
        if offset + count <= m:
            return order[offset : offset + count]
        last = (first + count - 1) // m
        joined = np.concatenate([order, *(self.order(purpose, e, m) for e in range(epoch + 1, last + 1))])
        return joined[offset : offset + count]


@final
class Dealt(Batches):
    """One stream for all workers.

    Args:
        samples: training samples.
        n_workers: workers it is dealt to.
        batch: samples of a gradient.
        draws: the run's draws.
    """

    def __init__(self, samples: int, n_workers: int, batch: int, draws: Draws) -> None:
        self._samples, self._n, self._batch = samples, n_workers, batch
        self._orders = _Orders(draws, samples)

    def one(self, worker: int, draw: int) -> IntArray:
        """Block draw n + worker of the stream."""
        block = draw * self._n + worker
        return self._orders.stream("batch", block * self._batch, self._batch, self._samples)

    def all(self, draw: int, n_workers: int) -> list[IntArray]:
        """The stream's next n blocks."""
        count = n_workers * self._batch
        blocks = self._orders.stream("batch", draw * count, count, self._samples)
        return list(blocks.reshape(n_workers, self._batch))


@final
class Own(Batches):
    """A stream for each worker, of its own share.

    Args:
        shares: samples of each worker.
        batch: samples of a gradient.
        draws: the run's draws.
    """

    def __init__(self, shares: list[IntArray], batch: int, draws: Draws) -> None:
        self._shares, self._batch = shares, batch
        self._orders = _Orders(draws, max(map(len, shares)))

    def one(self, worker: int, draw: int) -> IntArray:
        """Block `draw` of the worker's stream."""
        share = self._shares[worker]
        places = self._orders.stream(f"batch/{worker}", draw * self._batch, self._batch, len(share))
        return share[places]


@final
class Whole(Batches):
    """All the worker's samples in every gradient, in a fixed order: full-batch gradients."""

    def __init__(self, shares: list[IntArray]) -> None:
        self._shares = shares

    def one(self, worker: int, draw: int) -> IntArray:
        """The worker's share."""
        return self._shares[worker]


@final
class NoBatches(Batches):
    """For problems without samples."""

    _none = np.zeros(0, dtype=np.int64)

    def one(self, worker: int, draw: int) -> IntArray:
        """Nothing."""
        return self._none
