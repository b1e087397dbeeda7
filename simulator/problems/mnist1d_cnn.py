"""A small convolutional network on the series of MNIST-1D: harder than digits, still trained in seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, final

import numpy as np
from pydantic import Field, PositiveInt

from simulator.fabric import FloatArray
from simulator.problems.base import Block, DataProblem, Layer, uniform_start
from simulator.problems.digits import CLASSES, Classified
from simulator.problems.mnist1d_series import LENGTH, SERIES, mnist1d
from simulator.streams import Draws

if TYPE_CHECKING:
    from simulator.maths.task import Task

__all__ = ["Mnist1dCnn"]

KERNELS = (5, 3, 3)  # each with stride 2 and one point of padding


@final
class Mnist1dCnn(DataProblem):
    """Three convolutions with stride 2 and ReLU, one dense layer, on series of 40 numbers in ten classes.

    Greydanus, Kobak, "Scaling down deep learning with MNIST-1D", ICML 2024: their network and its width.
    """

    kind: Literal["mnist1d_cnn"] = "mnist1d_cnn"
    n_samples: int = Field(SERIES, ge=1, le=SERIES, description="training series, of 4,000 in a fixed order")
    channels: PositiveInt = Field(25, description="of each convolution")

    @property
    def metrics(self) -> tuple[str, ...]:
        """Loss and accuracy."""
        return ("loss", "accuracy")

    @property
    def samples(self) -> int:
        """Training series."""
        return self.n_samples

    def series(self) -> Classified:
        """The training series in use, and the test series."""
        data = mnist1d()
        few = slice(self.n_samples)
        return data._replace(train=data.train[few], train_labels=data.train_labels[few])

    def labels(self) -> np.ndarray:
        """The classes."""
        return self.series().train_labels

    @property
    def lengths(self) -> tuple[int, ...]:
        """Points of the series and after each convolution."""
        lengths = [LENGTH]
        for kernel in KERNELS:
            lengths.append((lengths[-1] + 2 - kernel) // 2 + 1)
        return tuple(lengths)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Kernel and biases of each convolution; dense weights and biases."""
        blocks, inputs = [], 1
        for kernel in KERNELS:
            width = (inputs * kernel) ** -0.5
            blocks += [Block((self.channels, inputs, kernel), width), Block((self.channels,), width)]
            inputs = self.channels
        flat = self.channels * self.lengths[-1]
        return (*blocks, Block((CLASSES, flat), flat**-0.5), Block((CLASSES,), flat**-0.5))

    @property
    def parameters(self) -> int:
        """All blocks' entries."""
        return sum(block.size for block in self.blocks)

    def layers(self) -> tuple[Layer, ...]:
        """Convolutions with their ReLU, and the dense layer."""
        layers, inputs, c = [], 1, self.channels
        for i, kernel in enumerate(KERNELS):
            before, after = self.lengths[i], self.lengths[i + 1]
            entries, weights = c * after, c * inputs * kernel
            moved = inputs * before + entries
            layers += [
                Layer(f"convolution{i + 1}", "convolution", weights + c, 2.0 * weights * after, moved),
                Layer(f"relu{i + 1}", "elementwise", 0, entries, 2 * entries),
            ]
            inputs = c
        flat = c * self.lengths[-1]
        dense = Layer("dense", "matmul", (flat + 1) * CLASSES, 2.0 * flat * CLASSES, flat + CLASSES)
        return (*layers, dense, Layer("softmax", "softmax", 0, 5.0 * CLASSES, 2 * CLASSES))

    def initial(self, draws: Draws) -> FloatArray:
        """Uniform within 1 / sqrt(inputs), as torch."""
        return uniform_start(self.blocks, draws)

    def task(self, dtype: str, n_workers: int) -> Task:
        """One gradient after the other, by autograd."""
        from simulator.maths.convolutions import series_logits
        from simulator.maths.looped import Looped

        data = self.series()
        series = data._replace(train=data.train[:, None], test=data.test[:, None])
        return Looped([block.shape for block in self.blocks], series_logits, series, dtype)
