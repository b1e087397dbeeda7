"""Losses behind the shipped models, on targets of the meta device: their kernels are part of a step."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils._pytree import tree_leaves


def cross_entropy(outputs: Tensor | tuple[Tensor, ...]) -> Tensor:
    """Mean cross-entropy over the last axis; of several outputs, the sum of theirs."""
    losses = []
    for scores in tree_leaves(outputs):
        flat = scores.reshape(-1, scores.shape[-1])
        labels = torch.empty(len(flat), dtype=torch.long, device="meta")
        losses.append(functional.cross_entropy(flat, labels))
    return sum(losses[1:], start=losses[0])


def multi_label(scores: Tensor) -> Tensor:
    """Mean over all labels of the logistic loss."""
    return functional.binary_cross_entropy_with_logits(scores, torch.empty_like(scores))


def detection(found: tuple[Tensor, Tensor]) -> Tensor:
    """RetinaNet's: focal loss (gamma 2, alpha 0.25) of the scores, absolute error of the boxes.

    Here over all anchors; matching anchors to what is in an image is left out.
    """
    scores, boxes = found
    truth = torch.empty_like(scores)
    likely = scores.sigmoid()
    entropy = functional.binary_cross_entropy_with_logits(scores, truth, reduction="none")
    right = likely * truth + (1 - likely) * (1 - truth)
    focal = (0.25 * truth + 0.75 * (1 - truth)) * entropy * (1 - right) ** 2
    return focal.sum() / len(scores) + functional.l1_loss(boxes, torch.empty_like(boxes))
