"""The forward pass of the small convolutional network."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch.nn.functional import conv2d, group_norm

GROUPS = 2


def logits(tensors: Sequence[Tensor], images: Tensor) -> Tensor:
    """Class scores (batch, 10) of images (batch, 1, 8, 8).

    Args:
        tensors: kernel, scale and shift of the two convolutions; dense weights (10, features) and biases.
        images: pixels in 0 .. 1.
    """
    kernel1, scale1, shift1, kernel2, scale2, shift2, weight, bias = tensors
    x = group_norm(conv2d(images, kernel1, padding=1), GROUPS, scale1, shift1).relu()
    x = group_norm(conv2d(x, kernel2, padding=1, stride=2), GROUPS, scale2, shift2).relu()
    return x.flatten(1) @ weight.T + bias
