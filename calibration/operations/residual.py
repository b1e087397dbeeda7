"""Residual networks: He et al., "Deep Residual Learning", CVPR 2016; MobileNetV2 (Sandler et al., CVPR 2018).

The stride of a bottleneck sits in its 3x3 convolution ("v1.5", as in torchvision and NVIDIA's examples).
ResNet-20 is the one for CIFAR, with shortcuts that have no parameters (option A). ResNeXt-50 (Xie et al.,
CVPR 2017), 32x4d, is the backbone of `detection.py`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

from torch import Tensor, nn
from torch.nn.functional import pad

CLASSES = 1000  # of ImageNet
Norm = Callable[[int], nn.Module]


def convolution(inputs: int, outputs: int, size: int, stride: int = 1, groups: int = 1) -> nn.Conv2d:
    """A convolution that keeps the size of the image (but for its stride), without biases."""
    return nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, groups=groups, bias=False)


class Padded(nn.Module):
    """A shortcut without parameters: every `stride`-th pixel, with `more` channels of zeros around."""

    def __init__(self, more: int, stride: int) -> None:
        super().__init__()
        self.more, self.stride = more, stride

    def forward(self, x_BCHW: Tensor) -> Tensor:
        """(B, C, H, W) to (B, C + more, H / stride, W / stride)."""
        half = self.more // 2
        return pad(x_BCHW[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, half, self.more - half))


class Block(nn.Module):
    """A residual block: convolutions with normalisation, added to the input (brought to shape by a 1x1).

    Args:
        inputs: channels that come in.
        layers: (channels out, kernel size, stride) of each convolution.
        groups: of the convolutions that are larger than 1x1.
        padded: a shortcut of another shape leaves out pixels and adds channels of zeros (option A) instead of
            a convolution.
        norm: makes the normalisation of so many channels.
    """

    def __init__(
        self,
        inputs: int,
        layers: Sequence[tuple[int, int, int]],
        groups: int = 1,
        padded: bool = False,
        norm: Norm = nn.BatchNorm2d,
    ) -> None:
        super().__init__()
        channels = [inputs, *(outputs for outputs, _, _ in layers)]
        stride = max(stride for _, _, stride in layers)
        self.convolutions = nn.ModuleList(
            convolution(channels[i], outputs, size, step, groups if size > 1 else 1)
            for i, (outputs, size, step) in enumerate(layers)
        )
        self.norms = nn.ModuleList(norm(outputs) for outputs, _, _ in layers)
        self.relus = nn.ModuleList(nn.ReLU(inplace=True) for _ in layers)
        self.shortcut: nn.Module | None = None
        if stride > 1 or inputs != channels[-1]:
            projection = nn.Sequential(convolution(inputs, channels[-1], 1, stride), norm(channels[-1]))
            self.shortcut = Padded(channels[-1] - inputs, stride) if padded else projection

    def forward(self, x_BCHW: Tensor) -> Tensor:
        """(B, C, H, W) to (B, channels of the last layer, H / stride, W / stride)."""
        y_BCHW = x_BCHW
        for i, (convolution, norm) in enumerate(zip(self.convolutions, self.norms, strict=True)):
            y_BCHW = norm(convolution(y_BCHW))
            if i + 1 < len(self.norms):
                y_BCHW = self.relus[i](y_BCHW)
        y_BCHW += x_BCHW if self.shortcut is None else self.shortcut(x_BCHW)
        out: Tensor = self.relus[-1](y_BCHW)
        return out


def sequence(modules: Sequence[tuple[str, nn.Module]]) -> nn.Sequential:
    """Modules one after the other, by name."""
    return nn.Sequential(OrderedDict(modules))


def stem(norm: Norm = nn.BatchNorm2d) -> list[tuple[str, nn.Module]]:
    """What comes before the blocks: 3 channels to 64, a fourth of the side."""
    return [
        ("convolution", convolution(3, 64, 7, 2)),
        ("norm", norm(64)),
        ("relu", nn.ReLU(inplace=True)),
        ("pool", nn.MaxPool2d(3, 2, 1)),
    ]


def stage(
    number: int,
    depth: int,
    inputs: int,
    bottleneck: bool,
    width: int = 0,
    groups: int = 1,
    norm: Norm = nn.BatchNorm2d,
) -> list[tuple[str, nn.Module]]:
    """The blocks of stage `number` (0 to 3), the first of which halves the side (but for stage 0)."""
    inner = width or 64 * 2**number
    modules: list[tuple[str, nn.Module]] = []
    for block in range(depth):
        stride = 2 if number > 0 and block == 0 else 1
        layers = [(inner, 3, stride), (inner, 3, 1)]
        if bottleneck:
            layers = [(inner, 1, 1), (inner, 3, stride), (256 * 2**number, 1, 1)]
        modules.append((f"stage{number + 1}_block{block + 1}", Block(inputs, layers, groups, norm=norm)))
        inputs = layers[-1][0]
    return modules


def _classifier(channels: int, classes: int) -> list[tuple[str, nn.Module]]:
    return [
        ("mean", nn.AdaptiveAvgPool2d(1)),
        ("flatten", nn.Flatten()),
        ("classifier", nn.Linear(channels, classes)),
    ]


def _resnet(depths: Sequence[int], bottleneck: bool, groups: int = 1, width: int = 64) -> nn.Sequential:
    """Stem, four stages of blocks, pooling, classifier."""
    modules, channels = stem(), 64
    for number, depth in enumerate(depths):
        modules += stage(number, depth, channels, bottleneck, width * 2**number, groups)
        channels = (256 if bottleneck else 64) * 2**number
    return sequence([*modules, *_classifier(channels, CLASSES)])


def resnet18() -> nn.Module:
    """ResNet-18: 11,689,512 parameters."""
    return _resnet((2, 2, 2, 2), bottleneck=False)


def resnet50() -> nn.Module:
    """ResNet-50 v1.5: 25,557,032 parameters."""
    return _resnet((3, 4, 6, 3), bottleneck=True)


def resnet101() -> nn.Module:
    """ResNet-101 v1.5: 44,549,160 parameters."""
    return _resnet((3, 4, 23, 3), bottleneck=True)


def resnext50() -> nn.Module:
    """ResNeXt-50 32x4d: 25,028,904 parameters."""
    return _resnet((3, 4, 6, 3), bottleneck=True, groups=32, width=128)


def resnet20() -> nn.Module:
    """ResNet-20 on CIFAR-10 (He et al., 4.2), option A: 269,722 parameters."""
    modules: list[tuple[str, nn.Module]] = [
        ("convolution", convolution(3, 16, 3)),
        ("norm", nn.BatchNorm2d(16)),
        ("relu", nn.ReLU(inplace=True)),
    ]
    channels = 16
    for number, width in enumerate((16, 32, 64), start=1):
        for block in range(3):
            stride = 2 if number > 1 and block == 0 else 1
            layers = [(width, 3, stride), (width, 3, 1)]
            modules.append((f"stage{number}_block{block + 1}", Block(channels, layers, padded=True)))
            channels = width
    return sequence([*modules, *_classifier(channels, 10)])


class Inverted(nn.Module):
    """MobileNetV2's block: widen by 1x1, one 3x3 kernel a channel, narrow by 1x1; added to an input alike."""

    def __init__(self, inputs: int, outputs: int, stride: int, widening: int) -> None:
        super().__init__()
        wide = inputs * widening
        modules = _relu6(inputs, wide, 1) if widening > 1 else []
        modules += _relu6(wide, wide, 3, stride, wide)
        self.layers = nn.Sequential(*modules, convolution(wide, outputs, 1), nn.BatchNorm2d(outputs))
        self.added = stride == 1 and inputs == outputs

    def forward(self, x_BCHW: Tensor) -> Tensor:
        """(B, C, H, W) to (B, outputs, H / stride, W / stride)."""
        y_BCHW: Tensor = self.layers(x_BCHW)
        return x_BCHW + y_BCHW if self.added else y_BCHW


def _relu6(inputs: int, outputs: int, size: int, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    """A convolution, its normalisation, its activation."""
    return [
        convolution(inputs, outputs, size, stride, groups),
        nn.BatchNorm2d(outputs),
        nn.ReLU6(inplace=True),
    ]


_INVERTED = (  # Sandler et al., table 2: widening, channels, blocks, stride of the first
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
)  # fmt: skip


def mobilenet_v2() -> nn.Module:
    """MobileNetV2 on ImageNet: 3,504,872 parameters."""
    modules: list[tuple[str, nn.Module]] = [("stem", nn.Sequential(*_relu6(3, 32, 3, 2)))]
    channels = 32
    for number, (widening, outputs, blocks, stride) in enumerate(_INVERTED, start=1):
        for block in range(blocks):
            step = stride if block == 0 else 1
            modules.append((f"stage{number}_block{block + 1}", Inverted(channels, outputs, step, widening)))
            channels = outputs
    modules += [("head", nn.Sequential(*_relu6(channels, 1280, 1))), ("mean", nn.AdaptiveAvgPool2d(1))]
    modules += [("flatten", nn.Flatten()), ("dropout", nn.Dropout(0.2))]
    return sequence([*modules, ("classifier", nn.Linear(1280, CLASSES))])
