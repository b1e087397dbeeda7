"""What a learning problem is: facts known without torch (sizes, cost, shares), and a task that computes.

Everything random is addressed through `Draws`: the start `initial`, the batches `batch...`, the noise
`noise`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt

from simulator.fabric import FloatArray
from simulator.problems.batches import Batches
from simulator.problems.splits import Iid, SplitSpec
from simulator.spec import Spec
from simulator.streams import Draws

if TYPE_CHECKING:
    from simulator.maths.task import Task

__all__ = ["Block", "DataProblem", "Layer", "Problem", "dense_layers", "uniform_start"]


@dataclass(frozen=True)
class Layer:
    """One layer's share of a gradient's cost, per sample.

    Attributes:
        name: what it is called.
        kind: kind of operation: matmul, convolution, elementwise, normalisation, softmax or embedding.
        parameters: numbers it learns.
        flop: FLOP of the forward pass (a multiplication and an addition count two).
        elements: numbers read and written by the forward pass, without the parameters.
    """

    name: str
    kind: str
    parameters: int
    flop: float
    elements: float


@dataclass(frozen=True)
class Block:
    """One tensor within the flat model, and how it starts: `centre` + uniform(-`width`, `width`)."""

    shape: tuple[int, ...]
    width: float
    centre: float = 0.0

    @property
    def size(self) -> int:
        """Entries."""
        return prod(self.shape)


class Problem(Spec):
    """What all problems share.

    Attributes:
        noise: standard deviation of Gaussian noise added to every entry of every gradient.
    """

    kind: str
    noise: NonNegativeFloat = 0.0

    @property
    def name(self) -> str:
        """What `executed` says in the summary."""
        return self.kind

    @property
    def metrics(self) -> tuple[str, ...]:
        """What an evaluation tells."""
        return ("loss",)

    @property
    @abstractmethod
    def parameters(self) -> int:
        """Entries d of the model."""

    @abstractmethod
    def layers(self) -> tuple[Layer, ...]:
        """The operations of one gradient, in forward order."""

    @property
    def flop_per_sample(self) -> float:
        """FLOP of forward and backward pass for one sample: three times the forward pass."""
        return 3.0 * sum(layer.flop for layer in self.layers())

    @abstractmethod
    def train_size(self, n_workers: int) -> int:
        """Samples of one epoch."""

    @abstractmethod
    def batch_size(self, n_workers: int) -> int:
        """Samples a gradient counts for."""

    @abstractmethod
    def batches(self, n_workers: int, draws: Draws) -> Batches:
        """Which samples each worker takes."""

    @abstractmethod
    def initial(self, draws: Draws) -> FloatArray:
        """The model all start from, shape (d,)."""

    @abstractmethod
    def task(self, dtype: str, n_workers: int) -> Task:
        """What computes gradients and losses; imports torch."""


class DataProblem(Problem):
    """A problem with training samples that are dealt to the workers.

    Attributes:
        batch: samples of one gradient; `full`: all the worker's samples, each time.
        split: who gets which samples.
    """

    batch: PositiveInt | Literal["full"] = 32
    split: SplitSpec = Iid()

    @property
    @abstractmethod
    def samples(self) -> int:
        """Training samples."""

    @abstractmethod
    def labels(self) -> np.ndarray:
        """A class for each training sample, shape (samples,), by which splits may go."""

    def train_size(self, n_workers: int) -> int:
        """The training samples, whoever holds them."""
        return self.samples

    def batch_size(self, n_workers: int) -> int:
        """`batch`, or the mean size of the workers' shares rounded up."""
        return -(-self.samples // n_workers) if self.batch == "full" else self.batch

    def batches(self, n_workers: int, draws: Draws) -> Batches:
        """Epochs without replacement, as the split deals them."""
        size = None if self.batch == "full" else self.batch
        return self.split.batches(self.labels, self.samples, n_workers, size, draws)


class SyntheticProblem(DataProblem):
    """A problem whose data are generated.

    Attributes:
        data_seed: seed of the data; the run's seed does not move them, so that targets keep their meaning.
    """

    data_seed: NonNegativeInt = Field(0, description="seed of the generated data")


def uniform_start(blocks: tuple[Block, ...], draws: Draws) -> FloatArray:
    """The blocks one after the other, filled as they say, shape (d,)."""
    u = 2.0 * draws.block("initial", 0, sum(block.size for block in blocks)) - 1.0
    width = np.concatenate([np.full(block.size, block.width) for block in blocks])
    centre = np.concatenate([np.full(block.size, block.centre) for block in blocks])
    start: FloatArray = centre + width * u
    return start


def dense_layers(sizes: tuple[int, ...], activation: str = "relu") -> tuple[Layer, ...]:
    """Layers of a dense network with the given widths, input first, output last."""
    layers = []
    for number, (wide, narrow) in enumerate(pairwise(sizes), start=1):
        layers.append(
            Layer(f"dense{number}", "matmul", (wide + 1) * narrow, 2.0 * wide * narrow, wide + narrow)
        )
        if number < len(sizes) - 1:
            layers.append(Layer(f"{activation}{number}", "elementwise", 0, narrow, 2 * narrow))
    layers.append(Layer("softmax", "softmax", 0, 5.0 * sizes[-1], 2 * sizes[-1]))
    return tuple(layers)
