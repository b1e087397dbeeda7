"""The handwritten digits of scikit-learn: 1,797 images of 8 x 8 in ten classes, split once for all."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from pydantic import Field

from simulator.problems.base import DataProblem
from simulator.streams import Draws

__all__ = ["CLASSES", "PIXELS", "TEST", "TRAIN", "Classified", "Digits", "digits"]

PIXELS, CLASSES = 64, 10
TRAIN, TEST = 1437, 360  # four fifths, one fifth


class Classified(NamedTuple):
    """Samples with classes: inputs (samples, features), labels (samples,)."""

    train: np.ndarray
    train_labels: np.ndarray
    test: np.ndarray
    test_labels: np.ndarray


@cache
def digits() -> Classified:
    """Pixels scaled to 0 .. 1. Which images are the test set does not depend on any seed of a run."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    order = Draws(0).permutation("digits/test", 0, len(labels))
    train, test = order[:TRAIN], order[TRAIN:]
    scaled = images / 16.0
    return Classified(scaled[train], labels[train], scaled[test], labels[test])


class Digits(DataProblem):
    """What the problems on digits share."""

    n_samples: int = Field(TRAIN, ge=1, le=TRAIN, description="training images, of 1,437 in a fixed order")

    @property
    def metrics(self) -> tuple[str, ...]:
        """Loss and accuracy."""
        return ("loss", "accuracy")

    @property
    def samples(self) -> int:
        """Training images."""
        return self.n_samples

    def labels(self) -> np.ndarray:
        """The digits."""
        return self.images().train_labels

    def images(self) -> Classified:
        """The training images in use, and the test images."""
        data = digits()
        few = slice(self.n_samples)
        return data._replace(train=data.train[few], train_labels=data.train_labels[few])
