"""Who gets which training samples.

`iid` deals the whole set anew in every epoch, as `DistributedSampler` does. The others give each worker a
share for good: `shards` at random, `label` by class, `dirichlet` with class frequencies of its own.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Annotated, Literal, final

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt

from simulator.problems.batches import Batches, Dealt, IntArray, Own, Whole
from simulator.spec import Spec
from simulator.streams import Draws

__all__ = ["Dirichlet", "Iid", "Label", "Shards", "Split", "SplitSpec"]

Labels = Callable[[], np.ndarray]


class Split(Spec):
    """What all splits share."""

    @abstractmethod
    def shares(self, labels: Labels, samples: int, n: int, draws: Draws) -> list[IntArray]:
        """The samples of each of n workers; every worker gets at least one.

        Args:
            labels: gives the class of each sample, shape (samples,); called only where needed.
            samples: how many there are.
            n: workers.
            draws: the run's draws.
        """

    def batches(self, labels: Labels, samples: int, n: int, batch: int | None, draws: Draws) -> Batches:
        """Batches of `batch` samples from the worker's share; all of the share if None."""
        shares = self.shares(labels, samples, n, draws)
        return Whole(shares) if batch is None else Own(shares, batch, draws)


def _cut(order: IntArray, n: int) -> list[IntArray]:
    """Cut into n shares whose sizes differ by at most one; too few samples for n are dealt again."""
    repeated = np.resize(order, max(len(order), n))
    return [np.ascontiguousarray(part) for part in np.array_split(repeated, n)]


@final
class Iid(Split):
    """Every worker may take any sample: each epoch is a fresh order of all, dealt to the workers in turn.

    Full-batch gradients (`batch: full`) need shares for good: those of `shards`.
    """

    kind: Literal["iid"] = "iid"

    def shares(self, labels: Labels, samples: int, n: int, draws: Draws) -> list[IntArray]:
        """As `shards`."""
        return _cut(draws.permutation("split", 0, samples), n)

    def batches(self, labels: Labels, samples: int, n: int, batch: int | None, draws: Draws) -> Batches:
        """Dealt anew in every epoch."""
        if batch is None:
            return super().batches(labels, samples, n, batch, draws)
        return Dealt(samples, n, batch, draws)


@final
class Shards(Split):
    """Disjoint random shares of equal size (give or take one), kept for the whole run."""

    kind: Literal["shards"] = "shards"

    def shares(self, labels: Labels, samples: int, n: int, draws: Draws) -> list[IntArray]:
        """A random order cut into n."""
        return _cut(draws.permutation("split", 0, samples), n)


@final
class Label(Split):
    """Sorted by class, cut into n x `pieces`, each worker getting `pieces` of them at random.

    McMahan et al., "Communication-efficient learning of deep networks from decentralized data", 2017,
    section 3.
    """

    kind: Literal["label"] = "label"
    pieces: PositiveInt = Field(1, description="pieces of the sorted samples per worker")

    def shares(self, labels: Labels, samples: int, n: int, draws: Draws) -> list[IntArray]:
        """Pieces of the sorted samples; samples of one class in random order."""
        shuffled = draws.permutation("split", 0, samples)
        order = shuffled[np.argsort(labels()[shuffled], kind="stable")]
        pieces = _cut(order, n * self.pieces)
        dealt = draws.permutation("split/pieces", 0, n * self.pieces) if self.pieces > 1 else np.arange(n)
        return [
            np.concatenate([pieces[p] for p in dealt[w * self.pieces : (w + 1) * self.pieces]])
            for w in range(n)
        ]


@final
class Dirichlet(Split):
    """Each class is shared out in proportions drawn from a Dirichlet distribution.

    Yurochkin et al., "Bayesian nonparametric federated learning of neural networks", 2019, section 4. A
    worker left with nothing gets one sample of the best served.
    """

    kind: Literal["dirichlet"] = "dirichlet"
    alpha: PositiveFloat = Field(
        description="concentration: 100 is nearly iid, 0.1 leaves few classes a worker"
    )

    def shares(self, labels: Labels, samples: int, n: int, draws: Draws) -> list[IntArray]:
        """Class by class, a random order cut at the cumulative proportions."""
        shuffled = draws.permutation("split", 0, samples)
        if samples < n:
            return _cut(shuffled, n)
        classes = labels()[shuffled]
        parts: list[list[IntArray]] = [[] for _ in range(n)]
        for number, label in enumerate(np.unique(classes)):
            members = shuffled[classes == label]
            cuts = np.rint(np.cumsum(self._proportions(number, n, draws))[:-1] * len(members)).astype(
                np.int64
            )
            for part, piece in zip(parts, np.split(members, cuts), strict=True):
                part.append(piece)
        return _fed([np.concatenate(part) for part in parts])

    def _proportions(self, number: int, n: int, draws: Draws) -> np.ndarray:
        """Shares of class `number`, shape (n,): independent gammas over their sum."""
        from scipy.special import gammaincinv

        gammas = gammaincinv(self.alpha, draws.block("split/dirichlet", number, n)) + 1e-300
        return np.asarray(gammas / gammas.sum())


def _fed(shares: list[IntArray]) -> list[IntArray]:
    """Give each worker without samples one of the best served."""
    for worker, share in enumerate(shares):
        if not len(share):
            rich = max(range(len(shares)), key=lambda w: len(shares[w]))
            shares[worker], shares[rich] = shares[rich][:1], shares[rich][1:]
    return shares


SplitSpec = Annotated[Iid | Shards | Label | Dirichlet, Field(discriminator="kind")]
