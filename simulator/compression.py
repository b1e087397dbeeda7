"""Compression of values on their way: what travels, what it takes, and what is added up or only gathered.

A compressed value has a size that follows from the number of its entries, never from their content, so that a
timing-only run costs the same as one that computes. With `error_feedback` a worker keeps what compression
has left out and adds it to what it sends next (Seide et al., "1-Bit SGD", Interspeech 2014; Karimireddy et
al., "Error Feedback Fixes SignSGD", ICML 2019). Papers from memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil, isqrt, log2
from typing import Annotated, ClassVar, Literal, final

from pydantic import Field, PositiveInt

from simulator.spec import Spec
from simulator.values import Vector

__all__ = ["Compression", "CompressionSpec", "PowerSgd", "Qsgd", "RandomK", "Sign", "Stream", "TopK"]

INDEX = 4  # bytes of an entry's number
SCALE = 4  # bytes of a factor

Share = Annotated[float, Field(gt=0, le=1)]


class Compression(Spec, ABC):
    """What all compressors share.

    Attributes:
        adds_up: codes of several workers can be added without decoding them, so an all-reduce will do; else
            every worker gathers all codes.
        keeps_models: a whole model survives it, not only a gradient or a change.
        error_feedback: what was left out is added to what is sent next.
        consensus: in gossip, how far a model moves towards its neighbours' public copies.
    """

    adds_up: ClassVar[bool] = False
    keeps_models: ClassVar[bool] = False

    kind: str
    error_feedback: bool = Field(True, description="add what was left out to what is sent next")
    consensus: Share = Field(0.5, description="of gossip: step towards neighbours' copies, CHOCO-SGD's gamma")

    @abstractmethod
    def messages(self, numbers: int, item: float) -> tuple[float, ...]:
        """Bytes of the messages that carry a value, one after the other.

        Args:
            numbers: entries of the value.
            item: bytes of an entry as it is.
        """

    @abstractmethod
    def coding(self) -> tuple[float, ...]:
        """Passes before each message: vectors of the value's size read or written to make it."""

    @abstractmethod
    def decoding(self, codes: int) -> float:
        """Passes that turn so many codes into their sum."""

    @property
    def feedback(self) -> int:
        """Passes of error feedback: read the memory, write it."""
        return 2 if self.error_feedback else 0


def kept(share: float, numbers: int) -> int:
    """Entries that a sparse code keeps.

    >>> kept(0.01, 1000), kept(0.01, 20)
    (10, 1)
    """
    return max(1, round(share * numbers))


@final
class TopK(Compression):
    """The largest entries, with their numbers.

    Passes: one that finds a threshold, one that gathers what lies above it [assumed].

    Reference: Aji and Heafield, "Sparse Communication for Distributed Gradient Descent", EMNLP 2017.

    >>> TopK(share=0.01).messages(1000, 4)
    (80,)
    """

    kind: Literal["top_k"] = "top_k"
    share: Share = Field(0.01, description="of the entries that travel")

    def messages(self, numbers: int, item: float) -> tuple[float, ...]:
        """Values and their numbers."""
        return (kept(self.share, numbers) * (item + INDEX),)

    def coding(self) -> tuple[float, ...]:
        """Two."""
        return (2.0 + self.feedback,)

    def decoding(self, codes: int) -> float:
        """Zeros, then number, value and sum of each entry."""
        return 1.0 + 4 * self.share * codes


@final
class RandomK(Compression):
    """Entries drawn anew each time, the same at all workers, so that they add up.

    Gradients without error feedback are scaled up by 1 / share, which keeps the mean.

    Reference: Stich, Cordonnier and Jaggi, "Sparsified SGD with Memory", NeurIPS 2018.
    """

    adds_up: ClassVar[bool] = True

    kind: Literal["random_k"] = "random_k"
    share: Share = Field(0.01, description="of the entries that travel")

    def messages(self, numbers: int, item: float) -> tuple[float, ...]:
        """Values: their numbers follow from a seed."""
        return (kept(self.share, numbers) * item,)

    def coding(self) -> tuple[float, ...]:
        """The entries read and written."""
        return (2 * self.share + self.feedback,)

    def decoding(self, codes: int) -> float:
        """Zeros, then the entries."""
        return 1.0 + 2 * self.share * codes


@final
class Sign(Compression):
    """Signs, times the mean size of the entries.

    Reference: Karimireddy et al., "Error Feedback Fixes SignSGD", ICML 2019.
    """

    kind: Literal["sign"] = "sign"

    def messages(self, numbers: int, item: float) -> tuple[float, ...]:
        """A bit an entry, and the scale."""
        return (ceil(numbers / 8) + SCALE,)

    def coding(self) -> tuple[float, ...]:
        """One for the scale, one for the signs."""
        return (2.0 + self.feedback,)

    def decoding(self, codes: int) -> float:
        """Each code's bits, and the sum read and written."""
        return (2 + 1 / 32) * codes


@final
class Qsgd(Compression):
    """Entries rounded at random to a few levels, which keeps their mean.

    Each bucket of entries is scaled by its largest [as in their experiments, from memory], not by its norm.

    Reference: Alistarh, Grubic, Li, Tomioka and Vojnovic, "QSGD", NIPS 2017.
    """

    keeps_models: ClassVar[bool] = True

    kind: Literal["qsgd"] = "qsgd"
    error_feedback: bool = Field(False, description="add what was left out to what is sent next")
    consensus: Share = Field(1.0, description="of gossip: step towards neighbours' copies, CHOCO-SGD's gamma")
    levels: PositiveInt = Field(127, description="between 0 and the largest; 127 takes a byte an entry")
    bucket: PositiveInt = Field(512, description="entries that share a scale")

    @property
    def bits(self) -> int:
        """Of an entry, its sign included.

        >>> [Qsgd(levels=levels).bits for levels in (1, 7, 127)]
        [2, 4, 8]
        """
        return ceil(log2(2 * self.levels + 1))

    def messages(self, numbers: int, item: float) -> tuple[float, ...]:
        """Rounded entries, and a scale a bucket."""
        return (ceil(numbers * self.bits / 8) + ceil(numbers / self.bucket) * SCALE,)

    def coding(self) -> tuple[float, ...]:
        """One for the scales, one for the entries, and their code written."""
        return (2.0 + self.bits / 32 + self.feedback,)

    def decoding(self, codes: int) -> float:
        """Each code, and the sum read and written."""
        return (2 + self.bits / 32) * codes


@final
class PowerSgd(Compression):
    """Two thin matrices, by a step of the power method.

    P = M Q is added up and made orthogonal, Q = M^T P is added up, P Q^T stands for M. The value is laid out
    as one matrix as nearly square as can be; the paper takes each layer's.

    Reference: Vogels, Karimireddy and Jaggi, "PowerSGD", NeurIPS 2019.

    >>> PowerSgd(rank=2).messages(10_000, 4)
    (800, 800)
    """

    adds_up: ClassVar[bool] = True

    kind: Literal["powersgd"] = "powersgd"
    rank: PositiveInt = Field(4, description="columns of P and Q")

    def messages(self, numbers: int, item: float) -> tuple[float, ...]:
        """P, then Q."""
        rows, columns = matrix(numbers)
        rank = min(self.rank, columns)
        return (rank * rows * item, rank * columns * item)

    def coding(self) -> tuple[float, ...]:
        """M read for each product: memory bounds them at these ranks."""
        return (1.0 + self.feedback, 1.0)

    def decoding(self, codes: int) -> float:
        """The product written; with error feedback subtracted too."""
        return 1.0 + self.feedback


def matrix(numbers: int) -> tuple[int, int]:
    """Rows and columns of the nearly square matrix that holds so many entries.

    >>> matrix(10), matrix(16)
    ((4, 3), (4, 4))
    """
    rows = isqrt(numbers - 1) + 1
    return rows, ceil(numbers / rows)


CompressionSpec = Annotated[TopK | RandomK | Sign | Qsgd | PowerSgd, Field(discriminator="kind")]


@dataclass
class Stream:
    """Values that are sent at one place of a method, one after the other: what their coding remembers.

    Attributes:
        name: says which, for random draws.
        persists: what is left out is there to be sent again, so that nothing is remembered nor scaled up:
            differences of models that stay what they are.
        uses: values so far.
        errors: what compression has left out, by rank.
        basis: Q of PowerSGD as it was last.
    """

    name: str
    persists: bool = False
    uses: int = 0
    errors: dict[int, Vector] = field(default_factory=dict)
    basis: Vector | None = None

    def remembers(self, how: Compression) -> bool:
        """Whether what is left out is added to what is sent next."""
        return how.error_feedback and not self.persists

    def outcomes(self, how: Compression, ranks: Sequence[int]) -> int:
        """How many values `take` takes."""
        return 1 + self.remembers(how) * len(ranks) + isinstance(how, PowerSgd)

    def take(self, how: Compression, ranks: Sequence[int], outcomes: Sequence[Vector]) -> Vector:
        """Remember a use.

        Args:
            how: the compressor.
            ranks: whose values were sent.
            outcomes: the mean of what arrives; if errors are remembered, that of each; PowerSGD's Q.

        Returns:
            The mean.
        """
        self.uses += 1
        mean, *rest = outcomes
        if isinstance(how, PowerSgd):
            self.basis = rest.pop()
        self.errors.update(zip(ranks, rest, strict=True) if rest else ())
        return mean
