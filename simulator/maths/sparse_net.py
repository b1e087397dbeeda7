"""A dense network behind sparse features, and the loss of several labels a sample."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, embedding

from simulator.maths.looped import Judge


def logits(tensors: Sequence[Tensor], columns: Tensor) -> Tensor:
    """Scores (batch, classes) of each label.

    Args:
        tensors: vectors of the features and a bias; weights (outputs, inputs) and biases of each dense layer.
        columns: features of each sample, -1 where there is none, shape (batch, most).
    """
    table, shift, *dense = tensors
    there = (columns >= 0).to(table.dtype)
    x = (embedding(columns.clamp(min=0), table) * there.unsqueeze(2)).sum(1) + shift
    for weight, bias in zip(dense[::2], dense[1::2], strict=True):
        x = x.relu() @ weight.T + bias
    return x


def _loss(scores: Tensor, labels: Tensor) -> Tensor:
    return binary_cross_entropy_with_logits(scores, labels.to(scores.dtype))


def _right(scores: Tensor, labels: Tensor) -> Tensor:
    return labels.gather(1, scores.argmax(1, keepdim=True)).sum()


SOME_LABELS = Judge(_loss, _right, len)
"""Mean logistic loss over all labels; right is a sample whose best label is one of its own."""
