"""MNIST and CIFAR-10 from the user's disk: nothing is downloaded."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Literal, Self, final

import numpy as np
from pydantic import Field, PositiveInt, model_validator

from simulator.fabric import FloatArray
from simulator.problems.base import DataProblem, Layer, uniform_start
from simulator.problems.digits import Classified
from simulator.problems.image_files import CLASSES, ImageSet, cifar10_set, mnist_set
from simulator.problems.image_networks import Cnn, Network, Shape
from simulator.streams import Draws
from simulator.user_files import UserPath

if TYPE_CHECKING:
    from simulator.maths.task import Task

__all__ = ["Cifar10", "Mnist"]


class _ImageProblem(DataProblem):
    """What both data sets share."""

    folder: UserPath = Field(description="where the files are, relative to the scenario's file")
    network: Network = Cnn()
    n_samples: PositiveInt | None = Field(None, description="training images, the first so many; all if null")
    n_test: PositiveInt | None = Field(None, description="test images, the first so many; all if null")

    @abstractmethod
    def files(self) -> ImageSet:
        """The images as they are in the files."""

    @model_validator(mode="after")
    def _readable(self) -> Self:
        there = self.files()
        for key, asked, count in (
            ("n_samples", self.n_samples, len(there.train)),
            ("n_test", self.n_test, len(there.test)),
        ):
            if asked is not None and asked > count:
                raise ValueError(f"found {key}: {asked}, expected at most the {count} images in the files")
        return self

    @property
    def metrics(self) -> tuple[str, ...]:
        """Loss and accuracy."""
        return ("loss", "accuracy")

    @property
    def samples(self) -> int:
        """Training images."""
        return self.n_samples or len(self.files().train)

    def labels(self) -> np.ndarray:
        """The classes."""
        return self.files().train_labels[: self.n_samples].astype(np.int64)

    @property
    def _shape(self) -> Shape:
        _, channels, side, _ = self.files().train.shape
        return channels, side, CLASSES

    @property
    def parameters(self) -> int:
        """The network's."""
        return sum(block.size for block in self.network.blocks(self._shape))

    def layers(self) -> tuple[Layer, ...]:
        """The network's."""
        return self.network.layers(self._shape)

    def initial(self, draws: Draws) -> FloatArray:
        """Uniform within 1 / sqrt(inputs), as torch."""
        return uniform_start(self.network.blocks(self._shape), draws)

    def task(self, dtype: str, n_workers: int) -> Task:
        """The network's; pixels are scaled to 0 .. 1."""
        there = self.files()
        few, some = slice(self.n_samples), slice(self.n_test)
        data = Classified(
            there.train[few].astype(np.float32) / np.float32(255),
            self.labels(),
            there.test[some].astype(np.float32) / np.float32(255),
            there.test_labels[some].astype(np.int64),
        )
        return self.network.task(self._shape, data, dtype)


@final
class Mnist(_ImageProblem):
    """MNIST, or a data set in its form (Fashion-MNIST, KMNIST), from IDX files in a folder, packed or not."""

    kind: Literal["mnist"] = "mnist"

    def files(self) -> ImageSet:
        """Grey images."""
        return mnist_set(self.folder)


@final
class Cifar10(_ImageProblem):
    """CIFAR-10 from a folder with its binary files (`data_batch_1.bin` to `..._5.bin`, `test_batch.bin`)."""

    kind: Literal["cifar10"] = "cifar10"

    def files(self) -> ImageSet:
        """Images of three colours."""
        return cifar10_set(self.folder)
