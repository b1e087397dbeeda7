"""Networks that tell images of any size apart: dense, or convolutional with group normalisation."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, Literal, final

from pydantic import Field, PositiveInt

from simulator.problems.base import Block, Layer, dense_layers
from simulator.problems.digits import Classified
from simulator.problems.digits_cnn import convolution_blocks, convolution_layers
from simulator.problems.digits_mlp import dense_blocks
from simulator.spec import Spec

if TYPE_CHECKING:
    from simulator.maths.task import Task

__all__ = ["Cnn", "Mlp", "Network", "Shape"]

Shape = tuple[int, int, int]
"""Channels, side, classes."""


class _Network(Spec):
    """What both share."""

    @abstractmethod
    def blocks(self, shape: Shape) -> tuple[Block, ...]:
        """The tensors of the flat model."""

    @abstractmethod
    def layers(self, shape: Shape) -> tuple[Layer, ...]:
        """What a gradient costs."""

    @abstractmethod
    def task(self, shape: Shape, data: Classified, dtype: str) -> Task:
        """What computes; images (samples, channels, side, side)."""


@final
class Mlp(_Network):
    """Dense layers with ReLU between them."""

    kind: Literal["mlp"] = "mlp"
    hidden: tuple[PositiveInt, ...] = Field((128,), description="widths of the hidden layers")

    def _sizes(self, shape: Shape) -> tuple[int, ...]:
        channels, side, classes = shape
        return (channels * side**2, *self.hidden, classes)

    def blocks(self, shape: Shape) -> tuple[Block, ...]:
        """All weights, then all biases."""
        return dense_blocks(self._sizes(shape))

    def layers(self, shape: Shape) -> tuple[Layer, ...]:
        """Dense layers and ReLUs."""
        return dense_layers(self._sizes(shape))

    def task(self, shape: Shape, data: Classified, dtype: str) -> Task:
        """Stacked matrix products."""
        from simulator.maths.dense_net import DenseNet

        flat = data._replace(
            train=data.train.reshape(len(data.train), -1), test=data.test.reshape(len(data.test), -1)
        )
        return DenseNet(self._sizes(shape), flat, dtype)


@final
class Cnn(_Network):
    """3 x 3 convolutions, each halving the side and doubling the channels, and one dense layer."""

    kind: Literal["cnn"] = "cnn"
    channels: PositiveInt = Field(16, multiple_of=2, description="of the first convolution")
    depth: int = Field(3, ge=1, le=6, description="convolutions")

    def _widths(self, shape: Shape) -> list[tuple[int, int, int, int]]:
        """Channels in and out, side before and after, of each convolution."""
        channels, side, _ = shape
        rows = []
        for layer in range(self.depth):
            outputs = self.channels * 2**layer
            rows.append((channels, outputs, side, (side + 1) // 2))
            channels, side = outputs, (side + 1) // 2
        return rows

    def _flat(self, shape: Shape) -> int:
        _, channels, _, side = self._widths(shape)[-1]
        return channels * side**2

    def blocks(self, shape: Shape) -> tuple[Block, ...]:
        """Kernel, scale and shift of each convolution; dense weights and biases."""
        flat, classes = self._flat(shape), shape[2]
        convolutions = [
            block
            for inputs, outputs, _, _ in self._widths(shape)
            for block in convolution_blocks(inputs, outputs)
        ]
        return (*convolutions, Block((classes, flat), flat**-0.5), Block((classes,), flat**-0.5))

    def layers(self, shape: Shape) -> tuple[Layer, ...]:
        """Convolutions with their normalisation and ReLU, and the dense layer."""
        flat, classes = self._flat(shape), shape[2]
        rows = [
            layer
            for number, row in enumerate(self._widths(shape), start=1)
            for layer in convolution_layers(str(number), *row)
        ]
        dense = Layer("dense", "matmul", (flat + 1) * classes, 2.0 * flat * classes, flat + classes)
        return (*rows, dense, Layer("softmax", "softmax", 0, 5.0 * classes, 2 * classes))

    def task(self, shape: Shape, data: Classified, dtype: str) -> Task:
        """One gradient after the other, by autograd."""
        from simulator.maths.convolutions import image_logits
        from simulator.maths.looped import Looped

        return Looped([block.shape for block in self.blocks(shape)], image_logits, data, dtype)


Network = Annotated[Mlp | Cnn, Field(discriminator="kind")]
"""What tells images apart."""
