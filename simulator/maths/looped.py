"""Gradients of any differentiable model, one after the other.

For convolutions and attention a stacked computation is not faster than a loop on one thread, and its
rounding depends on how many models are stacked. A loop's does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from simulator.maths import Evaluation
from simulator.maths.task import DTYPES
from simulator.problems.batches import IntArray
from simulator.problems.digits import Classified

Logits = Callable[[Sequence[Tensor], Tensor], Tensor]
AT_ONCE = 512  # samples evaluated together


class Judge(NamedTuple):
    """How scores are judged by labels.

    Attributes:
        loss: mean loss of scores and labels.
        right: how many are told rightly; None where nothing is classified.
        count: how many there are to be told, in labels.
    """

    loss: Callable[[Tensor, Tensor], Tensor]
    right: Callable[[Tensor, Tensor], Tensor] | None
    count: Callable[[Tensor], int]


def _cross_entropy(scores: Tensor, labels: Tensor) -> Tensor:
    return cross_entropy(scores.flatten(0, -2), labels.flatten())


def _right(scores: Tensor, labels: Tensor) -> Tensor:
    return (scores.flatten(0, -2).argmax(1) == labels.flatten()).sum()


ONE_CLASS = Judge(_cross_entropy, _right, Tensor.numel)
"""Mean cross-entropy; right is what has the best score at its class."""


class Looped:
    """Mean loss of a model given as a function.

    Args:
        shapes: tensors of the flat model, in order.
        logits: class scores (..., classes) of inputs, from these tensors.
        data: inputs, and classes of the scores' shape without its last axis (or what the judge takes).
        dtype: `float32` or `float64`.
        evaluated: most samples an evaluation looks at, evenly spaced; all if None.
        judge: the loss, and what counts as right.
    """

    def __init__(
        self,
        shapes: Sequence[tuple[int, ...]],
        logits: Logits,
        data: Classified,
        dtype: str,
        evaluated: int | None = None,
        judge: Judge = ONE_CLASS,
    ) -> None:
        self._shapes, self._logits, self._evaluated = list(shapes), logits, evaluated
        self._judge = judge
        self._sizes = [prod(shape) for shape in shapes]
        kind = DTYPES[dtype] if data.train.dtype.kind == "f" else torch.int64
        self._inputs = {
            "train": torch.tensor(data.train, dtype=kind),
            "test": torch.tensor(data.test, dtype=kind),
        }
        self._labels = {"train": torch.tensor(data.train_labels), "test": torch.tensor(data.test_labels)}

    def _tensors(self, model: Tensor) -> list[Tensor]:
        """Copies: each begins on a cache line wherever the model lies, as rounding may depend on that."""
        return [
            part.clone().view(shape)
            for part, shape in zip(torch.split(model, self._sizes), self._shapes, strict=True)
        ]

    def gradients(self, models: Sequence[Tensor], samples: IntArray, workers: Sequence[int]) -> Tensor:
        """See `Task`."""
        chosen = torch.from_numpy(samples)
        rows = [self._gradient(model, one) for model, one in zip(models, chosen, strict=True)]
        return torch.stack(rows)

    def _gradient(self, model: Tensor, chosen: Tensor) -> Tensor:
        tensors = [tensor.requires_grad_() for tensor in self._tensors(model)]
        scores = self._logits(tensors, self._inputs["train"][chosen])
        loss = self._judge.loss(scores, self._labels["train"][chosen])
        return torch.cat([slope.flatten() for slope in torch.autograd.grad(loss, tensors)])

    @torch.no_grad()
    def evaluate(self, model: Tensor, split: str) -> Evaluation:
        """Mean loss and share told rightly."""
        tensors, told, right, judge = self._tensors(model), 0.0, 0.0, self._judge
        step = 1 if self._evaluated is None else -(-len(self._inputs[split]) // self._evaluated)
        inputs, labels = self._inputs[split][::step], self._labels[split][::step]
        for some, theirs in zip(torch.split(inputs, AT_ONCE), torch.split(labels, AT_ONCE), strict=True):
            scores = self._logits(tensors, some)
            told += float(judge.loss(scores, theirs)) * judge.count(theirs)
            right += float(judge.right(scores, theirs)) if judge.right else 0.0
        count = judge.count(labels)
        return Evaluation(told / count, right / count if judge.right else None)
