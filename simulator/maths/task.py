"""What `TorchMaths` needs of a problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from simulator.maths import Evaluation
from simulator.problems.batches import IntArray

DTYPES = {"float32": torch.float32, "float64": torch.float64}


class Task(Protocol):
    """Gradients and losses; the bits of a gradient depend on its own model and samples only."""

    def gradients(self, models: Sequence[Tensor], samples: IntArray, workers: Sequence[int]) -> Tensor:
        """Gradients of k models.

        Args:
            models: k models of shape (d,); the very same tensor again and again where workers agree.
            samples: training samples of each, shape (k, batch).
            workers: whose gradients these are, k numbers.

        Returns:
            Shape (k, d).
        """

    def evaluate(self, model: Tensor, split: str) -> Evaluation:
        """Quality of one model (d,) on the split `test` or `train`."""
