"""Torch modules whose operations are shipped: built here so that no other package need be installed.

He et al., "Deep Residual Learning", CVPR 2016 (ResNet-18, ResNet-50; the stride of a bottleneck sits in its
3x3 convolution, "v1.5", as in torchvision and NVIDIA's examples); Simonyan, Zisserman, "Very Deep
Convolutional Networks", ICLR 2015 (VGG-16, configuration D, without batch normalisation).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from torch import Tensor, nn

CLASSES = 1000  # of ImageNet


def _convolution(inputs: int, outputs: int, size: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)


class Block(nn.Module):
    """A residual block: convolutions with normalisation, added to the input (brought to shape by a 1x1).

    Args:
        inputs: channels that come in.
        layers: (channels out, kernel size, stride) of each convolution.
    """

    def __init__(self, inputs: int, layers: Sequence[tuple[int, int, int]]) -> None:
        super().__init__()
        channels = [inputs, *(outputs for outputs, _, _ in layers)]
        stride = max(stride for _, _, stride in layers)
        self.convolutions = nn.ModuleList(
            _convolution(channels[i], outputs, size, step) for i, (outputs, size, step) in enumerate(layers)
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(outputs) for outputs, _, _ in layers)
        self.relus = nn.ModuleList(nn.ReLU(inplace=True) for _ in layers)
        self.shortcut: nn.Module | None = None
        if stride > 1 or inputs != channels[-1]:
            self.shortcut = nn.Sequential(
                _convolution(inputs, channels[-1], 1, stride), nn.BatchNorm2d(channels[-1])
            )

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


def _sequence(modules: Sequence[tuple[str, nn.Module]]) -> nn.Sequential:
    return nn.Sequential(OrderedDict(modules))


def _resnet(depths: Sequence[int], bottleneck: bool) -> nn.Sequential:
    """Stem, four stages of blocks, pooling, classifier."""
    modules: list[tuple[str, nn.Module]] = [
        ("convolution", _convolution(3, 64, 7, 2)),
        ("norm", nn.BatchNorm2d(64)),
        ("relu", nn.ReLU(inplace=True)),
        ("pool", nn.MaxPool2d(3, 2, 1)),
    ]
    channels = 64
    for stage, depth in enumerate(depths):
        width = 64 * 2**stage
        for block in range(depth):
            stride = 2 if stage > 0 and block == 0 else 1
            if bottleneck:
                layers = [(width, 1, 1), (width, 3, stride), (4 * width, 1, 1)]
            else:
                layers = [(width, 3, stride), (width, 3, 1)]
            modules.append((f"stage{stage + 1}_block{block + 1}", Block(channels, layers)))
            channels = layers[-1][0]
    modules += [("mean", nn.AdaptiveAvgPool2d(1)), ("flatten", nn.Flatten())]
    return _sequence([*modules, ("classifier", nn.Linear(channels, CLASSES))])


def resnet18() -> nn.Module:
    """ResNet-18: 11,689,512 parameters."""
    return _resnet((2, 2, 2, 2), bottleneck=False)


def resnet50() -> nn.Module:
    """ResNet-50 v1.5: 25,557,032 parameters."""
    return _resnet((3, 4, 6, 3), bottleneck=True)


def vgg16() -> nn.Module:
    """VGG-16: 138,357,544 parameters."""
    modules: list[tuple[str, nn.Module]] = []
    channels = 3
    for stage, widths in enumerate(((64,) * 2, (128,) * 2, (256,) * 3, (512,) * 3, (512,) * 3), start=1):
        for layer, outputs in enumerate(widths, start=1):
            modules.append((f"convolution{stage}_{layer}", nn.Conv2d(channels, outputs, 3, padding=1)))
            modules.append((f"relu{stage}_{layer}", nn.ReLU(inplace=True)))
            channels = outputs
        modules.append((f"pool{stage}", nn.MaxPool2d(2, 2)))
    modules.append(("flatten", nn.Flatten()))
    for number, inputs in ((6, 512 * 49), (7, 4096)):
        modules.append((f"linear{number}", nn.Linear(inputs, 4096)))
        modules.append((f"relu{number}", nn.ReLU(inplace=True)))
        modules.append((f"dropout{number}", nn.Dropout()))
    return _sequence([*modules, ("linear8", nn.Linear(4096, CLASSES))])
