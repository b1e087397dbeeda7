"""Forward passes of the convolutional networks on series and on images of any size."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch.nn.functional import conv1d, conv2d, group_norm

GROUPS = 2


def series_logits(tensors: Sequence[Tensor], series: Tensor) -> Tensor:
    """Class scores (batch, classes) of series (batch, 1, points).

    Args:
        tensors: kernel and biases of each convolution; dense weights (classes, features) and biases.
        series: numbers.
    """
    *convolutions, weight, bias = tensors
    x = series
    for kernel, shift in zip(convolutions[::2], convolutions[1::2], strict=True):
        x = conv1d(x, kernel, shift, stride=2, padding=1).relu()
    return x.flatten(1) @ weight.T + bias


def image_logits(tensors: Sequence[Tensor], images: Tensor) -> Tensor:
    """Class scores (batch, classes) of images (batch, channels, side, side).

    Args:
        tensors: kernel, scale and shift of each 3 x 3 convolution; dense weights and biases.
        images: pixels in 0 .. 1.
    """
    *convolutions, weight, bias = tensors
    x = images
    for kernel, scale, shift in zip(*(convolutions[i::3] for i in range(3)), strict=True):
        x = group_norm(conv2d(x, kernel, stride=2, padding=1), GROUPS, scale, shift).relu()
    return x.flatten(1) @ weight.T + bias
