"""RetinaNet on a ResNeXt-50, as MLPerf trains it: 800 x 800 pixels, the 264 classes of Open Images.

Lin et al., "Focal loss for dense object detection", ICCV 2017. Torchvision's arrangement: normalisation of
the backbone is frozen (its numbers are no parameters), feature maps of 1/8 to 1/128, nine anchors a pixel,
heads shared by all of them.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from calibration.operations.residual import sequence, stage, stem

CLASSES, ANCHORS, WIDTH = 264, 9, 256


class Frozen(nn.Module):
    """Batch normalisation that does not learn: a factor and a shift a channel."""

    scale: Tensor
    shift: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer("scale", torch.ones(1, channels, 1, 1))
        self.register_buffer("shift", torch.zeros(1, channels, 1, 1))

    def forward(self, x_BCHW: Tensor) -> Tensor:
        """(B, C, H, W) to the same."""
        return x_BCHW * self.scale + self.shift


class Pyramid(nn.Module):
    """Feature maps of one width: from three stages, summed from coarse to fine, and two coarser ones."""

    def __init__(self, channels: tuple[int, ...]) -> None:
        super().__init__()
        self.inner = nn.ModuleList(nn.Conv2d(inputs, WIDTH, 1) for inputs in channels)
        self.outer = nn.ModuleList(nn.Conv2d(WIDTH, WIDTH, 3, padding=1) for _ in channels)
        self.p6, self.p7 = (nn.Conv2d(WIDTH, WIDTH, 3, 2, 1) for _ in range(2))

    def forward(self, maps: list[Tensor]) -> list[Tensor]:
        """Maps from fine to coarse to the same and two more."""
        inner = [convolution(x) for convolution, x in zip(self.inner, maps, strict=True)]
        for i in reversed(range(len(inner) - 1)):
            inner[i] = inner[i] + interpolate(inner[i + 1], inner[i].shape[-2:])
        outer = [convolution(x) for convolution, x in zip(self.outer, inner, strict=True)]
        p6 = self.p6(outer[-1])
        return [*outer, p6, self.p7(p6.relu())]


class Head(nn.Module):
    """Four convolutions and one that gives `outputs` numbers an anchor, on every feature map."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        units = [m for _ in range(4) for m in (nn.Conv2d(WIDTH, WIDTH, 3, padding=1), nn.ReLU(inplace=True))]
        self.layers = nn.Sequential(*units, nn.Conv2d(WIDTH, ANCHORS * outputs, 3, padding=1))
        self.outputs = outputs

    def forward(self, maps: list[Tensor]) -> Tensor:
        """Maps to (B, anchors of all maps, outputs)."""
        out = [self.layers(x).flatten(2).transpose(1, 2).unflatten(2, (ANCHORS, self.outputs)) for x in maps]
        return torch.cat([x.flatten(1, 2) for x in out], dim=1)


class Found(NamedTuple):
    """Scores (B, anchors, classes) and corrections of the anchors (B, anchors, 4)."""

    scores: Tensor
    boxes: Tensor


class RetinaNet(nn.Module):
    """Backbone, pyramid, two heads.

    Args:
        classes: to tell apart.
        width: of the first stage's 3x3 convolutions.
        groups: of these.
    """

    def __init__(self, classes: int, width: int, groups: int) -> None:
        super().__init__()
        self.stem = sequence(stem(Frozen))
        depths = (3, 4, 6, 3)
        self.stages = nn.ModuleList(
            sequence(stage(i, depth, 256 * 2**i // 2 if i else 64, True, width * 2**i, groups, Frozen))
            for i, depth in enumerate(depths)
        )
        self.pyramid = Pyramid((512, 1024, 2048))
        self.classes, self.boxes = Head(classes), Head(4)

    def forward(self, x_BCHW: Tensor) -> Found:
        """(B, 3, H, W) to what was found."""
        x, maps = self.stem(x_BCHW), []
        for layers in self.stages:
            x = layers(x)
            maps.append(x)
        features = self.pyramid(maps[1:])
        return Found(self.classes(features), self.boxes(features))


def retinanet_resnext50() -> nn.Module:
    """RetinaNet on ResNeXt-50 32x4d, 264 classes; 37,060,652 parameters by its parts (no published sum)."""
    return RetinaNet(CLASSES, 128, 32)
