"""Dense networks of many workers at once: forward and backward written out as stacked matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from simulator.maths import Evaluation, stacked
from simulator.maths.task import DTYPES
from simulator.problems.batches import IntArray
from simulator.problems.digits import Classified


class DenseNet:
    """Dense layers, ReLU, mean cross-entropy.

    Flat model: weights (inputs, outputs) of all layers, then their biases.

    Args:
        sizes: widths, input first.
        data: samples and classes.
        dtype: `float32` or `float64`.
    """

    def __init__(self, sizes: tuple[int, ...], data: Classified, dtype: str) -> None:
        self._shapes = list(pairwise(sizes))
        self._weight_ends = _running([wide * narrow for wide, narrow in self._shapes], 0)
        self._bias_ends = _running([narrow for _, narrow in self._shapes], self._weight_ends[-1])
        kind = DTYPES[dtype]
        self._inputs = {
            "train": torch.tensor(data.train, dtype=kind),
            "test": torch.tensor(data.test, dtype=kind),
        }
        self._labels = {"train": torch.tensor(data.train_labels), "test": torch.tensor(data.test_labels)}

    def _tensors(self, flat: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """Weights (k, inputs, outputs) and biases (k, 1, outputs) of each layer: views of (k, d)."""
        weights = [
            flat[:, low:high].view(len(flat), *shape)
            for (low, high), shape in zip(pairwise(self._weight_ends), self._shapes, strict=True)
        ]
        biases = [flat[:, low:high].unsqueeze(1) for low, high in pairwise(self._bias_ends)]
        return weights, biases

    def gradients(self, models: Sequence[Tensor], samples: IntArray, workers: Sequence[int]) -> Tensor:
        """See `Task`."""
        chosen = torch.from_numpy(samples)
        weights, biases = self._tensors(stacked.models(models))
        weights = [stacked.aligned(weight) for weight in weights]
        layers = [stacked.aligned(self._inputs["train"][chosen])]
        for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
            layers.append(stacked.product(layers[-1], weight).add_(bias).relu_())
        logits = stacked.product(layers[-1], weights[-1]).add_(biases[-1])
        delta = _slope(logits, self._labels["train"][chosen])
        return self._backward(weights, layers, delta)

    def _backward(self, weights: list[Tensor], layers: list[Tensor], delta: Tensor) -> Tensor:
        """Gradients (k, d) from the loss's slope by the logits, (k, batch, classes)."""
        flat = stacked.rows(len(delta), self._bias_ends[-1], delta.dtype)
        weight_slopes, bias_slopes = self._tensors(flat)
        for number in reversed(range(len(weights))):
            bias_slopes[number].copy_(stacked.column_sums(delta))
            weight_slopes[number].copy_(stacked.product(layers[number].transpose(1, 2), delta))
            if number:
                delta = stacked.product(delta, weights[number].transpose(1, 2)).mul_(layers[number] > 0)
        return flat

    def evaluate(self, model: Tensor, split: str) -> Evaluation:
        """Mean cross-entropy and accuracy."""
        weights, biases = self._tensors(stacked.models([model]))  # rounding may depend on where a model lies
        layer = self._inputs[split]
        for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
            layer = (layer @ weight[0] + bias[0]).relu_()
        logits = layer @ weights[-1][0] + biases[-1][0]
        labels = self._labels[split]
        right = (logits.argmax(1) == labels).double().mean()
        return Evaluation(float(cross_entropy(logits, labels)), float(right))


def _running(sizes: list[int], start: int) -> list[int]:
    """Borders of consecutive stretches of the given sizes."""
    borders = [start]
    for size in sizes:
        borders.append(borders[-1] + size)
    return borders


def _slope(logits: Tensor, labels: Tensor) -> Tensor:
    """Slope of the mean cross-entropy by the logits: (softmax - one hot) / batch."""
    slope = stacked.softmax(logits)
    minus = torch.full((1, 1, 1), -1.0, dtype=logits.dtype).expand(*labels.shape, 1)
    return slope.scatter_add_(2, labels.unsqueeze(2), minus).div_(labels.shape[1])
