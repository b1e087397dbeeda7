"""A small convolutional network that reads handwritten digits; group normalisation, as batches are small."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, final

from pydantic import Field, PositiveInt

from simulator.fabric import FloatArray
from simulator.problems.base import Block, Layer, uniform_start
from simulator.problems.digits import CLASSES, Digits
from simulator.streams import Draws

if TYPE_CHECKING:
    from simulator.maths.task import Task

__all__ = ["DigitsCnn", "convolution_blocks", "convolution_layers"]

SIDE, KERNEL = 8, 9  # pixels a side; entries of a 3 x 3 kernel


@final
class DigitsCnn(Digits):
    """Two 3 x 3 convolutions (the second halves the image), group normalisation, ReLU, one dense layer.

    Normalisation is over groups of channels (Wu and He, "Group normalization", 2018), so that a sample's
    gradient does not depend on its batch.
    """

    kind: Literal["digits_cnn"] = "digits_cnn"
    channels: PositiveInt = Field(8, multiple_of=2, description="channels of the first convolution")

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Kernels, scales and shifts of both convolutions; dense weights and biases."""
        c, flat = self.channels, 2 * self.channels * (SIDE // 2) ** 2
        return (
            *convolution_blocks(1, c),
            *convolution_blocks(c, 2 * c),
            Block((CLASSES, flat), flat**-0.5),
            Block((CLASSES,), flat**-0.5),
        )

    @property
    def parameters(self) -> int:
        """All blocks' entries."""
        return sum(block.size for block in self.blocks)

    def layers(self) -> tuple[Layer, ...]:
        """Convolutions with their normalisation and ReLU, and the dense layer."""
        c, flat = self.channels, 2 * self.channels * (SIDE // 2) ** 2
        return (
            *convolution_layers("1", 1, c, SIDE, SIDE),
            *convolution_layers("2", c, 2 * c, SIDE, SIDE // 2),
            Layer("dense", "matmul", (flat + 1) * CLASSES, 2.0 * flat * CLASSES, flat + CLASSES),
            Layer("softmax", "softmax", 0, 5.0 * CLASSES, 2 * CLASSES),
        )

    def initial(self, draws: Draws) -> FloatArray:
        """Uniform within 1 / sqrt(inputs), scales 1, shifts 0: as torch."""
        return uniform_start(self.blocks, draws)

    def task(self, dtype: str, n_workers: int) -> Task:
        """One gradient after the other, by autograd."""
        from simulator.maths.digits_cnn import logits
        from simulator.maths.looped import Looped

        data = self.images()
        images = data._replace(train=data.train.reshape(-1, 1, 8, 8), test=data.test.reshape(-1, 1, 8, 8))
        return Looped([block.shape for block in self.blocks], logits, images, dtype)


def convolution_blocks(inputs: int, outputs: int) -> tuple[Block, ...]:
    """Kernel without bias (the normalisation's shift serves), scale, shift."""
    kernel = Block((outputs, inputs, 3, 3), (KERNEL * inputs) ** -0.5)
    return (kernel, Block((outputs,), 0.0, 1.0), Block((outputs,), 0.0))


def convolution_layers(name: str, inputs: int, outputs: int, before: int, after: int) -> tuple[Layer, ...]:
    """A convolution from `before` to `after` pixels a side, its normalisation and ReLU."""
    entries = outputs * after**2
    return (
        Layer(
            f"convolution{name}",
            "convolution",
            KERNEL * inputs * outputs,
            2.0 * KERNEL * inputs * entries,
            inputs * before**2 + entries,
        ),
        Layer(f"normalisation{name}", "normalisation", 2 * outputs, 8.0 * entries, 2 * entries),
        Layer(f"relu{name}", "elementwise", 0, entries, 2 * entries),
    )
