"""A small dense network that reads handwritten digits: the default problem."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Literal, final

from pydantic import Field, PositiveInt

from simulator.fabric import FloatArray
from simulator.problems.base import Block, Layer, dense_layers, uniform_start
from simulator.problems.digits import CLASSES, PIXELS, Digits
from simulator.streams import Draws

if TYPE_CHECKING:
    from simulator.maths.task import Task

__all__ = ["DigitsMlp", "dense_blocks"]


@final
class DigitsMlp(Digits):
    """Dense layers with ReLU between them and cross-entropy at the end, on 8 x 8 digits."""

    kind: Literal["digits_mlp"] = "digits_mlp"
    hidden: tuple[PositiveInt, ...] = Field((128,), description="widths of the hidden layers")

    @property
    def sizes(self) -> tuple[int, ...]:
        """Widths of all layers."""
        return (PIXELS, *self.hidden, CLASSES)

    @property
    def parameters(self) -> int:
        """Weights and biases."""
        return sum(block.size for block in dense_blocks(self.sizes))

    def layers(self) -> tuple[Layer, ...]:
        """Dense layers and ReLUs."""
        return dense_layers(self.sizes)

    def initial(self, draws: Draws) -> FloatArray:
        """Uniform within 1 / sqrt(inputs of the layer), as torch's Linear."""
        return uniform_start(dense_blocks(self.sizes), draws)

    def task(self, dtype: str, n_workers: int) -> Task:
        """Stacked matrix products."""
        from simulator.maths.dense_net import DenseNet

        return DenseNet(self.sizes, self.images(), dtype)


def dense_blocks(sizes: tuple[int, ...]) -> tuple[Block, ...]:
    """Tensors of a dense network within the flat model: all weights (inputs, outputs), then all biases."""
    pairs = list(pairwise(sizes))
    weights = [Block((wide, narrow), wide**-0.5) for wide, narrow in pairs]
    biases = [Block((narrow,), wide**-0.5) for wide, narrow in pairs]
    return (*weights, *biases)
