"""Networks without shortcuts: LeNet-5, AlexNet, VGG, GoogLeNet, and a dense network on sparse features.

LeCun et al., "Gradient-based learning applied to document recognition", Proc. IEEE 1998 (LeNet-5, with a
dense second convolution and dense output, as all frameworks have it); Krizhevsky, "One weird trick", 2014
(AlexNet in its single-column form, as in torchvision); Simonyan, Zisserman, "Very Deep Convolutional
Networks", ICLR 2015 (configurations D and E, without batch normalisation); Szegedy et al., "Going deeper with
convolutions", CVPR 2015 (GoogLeNet as in torchvision: batch normalisation, 3x3 in place of 5x5, no auxiliary
classifiers); Ma, Rusu, Torres, IPDPS 2019 (dense network behind sparse features).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from calibration.operations.residual import CLASSES, sequence

Modules = list[tuple[str, nn.Module]]


def lenet5() -> nn.Module:
    """LeNet-5 on MNIST: 61,706 parameters."""
    return sequence(
        [
            ("convolution1", nn.Conv2d(1, 6, 5, padding=2)),
            ("tanh1", nn.Tanh()),
            ("pool1", nn.AvgPool2d(2)),
            ("convolution2", nn.Conv2d(6, 16, 5)),
            ("tanh2", nn.Tanh()),
            ("pool2", nn.AvgPool2d(2)),
            ("flatten", nn.Flatten()),
            ("linear3", nn.Linear(400, 120)),
            ("tanh3", nn.Tanh()),
            ("linear4", nn.Linear(120, 84)),
            ("tanh4", nn.Tanh()),
            ("linear5", nn.Linear(84, 10)),
        ]
    )


def alexnet() -> nn.Module:
    """AlexNet on ImageNet: 61,100,840 parameters."""
    modules: Modules = []
    channels = 3
    rows = ((64, 11, 4, 2, True), (192, 5, 1, 2, True), (384, 3, 1, 1, False), (256, 3, 1, 1, False))
    for layer, (outputs, size, stride, padding, pooled) in enumerate((*rows, (256, 3, 1, 1, True)), start=1):
        modules.append((f"convolution{layer}", nn.Conv2d(channels, outputs, size, stride, padding)))
        modules.append((f"relu{layer}", nn.ReLU(inplace=True)))
        modules += [(f"pool{layer}", nn.MaxPool2d(3, 2))] if pooled else []
        channels = outputs
    modules.append(("flatten", nn.Flatten()))
    for layer, inputs in ((6, 256 * 36), (7, 4096)):
        modules.append((f"dropout{layer}", nn.Dropout()))
        modules.append((f"linear{layer}", nn.Linear(inputs, 4096)))
        modules.append((f"relu{layer}", nn.ReLU(inplace=True)))
    return sequence([*modules, ("linear8", nn.Linear(4096, CLASSES))])


def _vgg(depths: Sequence[int]) -> nn.Module:
    """Five stages of 3x3 convolutions, three dense layers."""
    modules: Modules = []
    channels = 3
    for stage, (depth, outputs) in enumerate(zip(depths, (64, 128, 256, 512, 512), strict=True), start=1):
        for layer in range(1, depth + 1):
            modules.append((f"convolution{stage}_{layer}", nn.Conv2d(channels, outputs, 3, padding=1)))
            modules.append((f"relu{stage}_{layer}", nn.ReLU(inplace=True)))
            channels = outputs
        modules.append((f"pool{stage}", nn.MaxPool2d(2, 2)))
    modules.append(("flatten", nn.Flatten()))
    for number, inputs in ((6, 512 * 49), (7, 4096)):
        modules.append((f"linear{number}", nn.Linear(inputs, 4096)))
        modules.append((f"relu{number}", nn.ReLU(inplace=True)))
        modules.append((f"dropout{number}", nn.Dropout()))
    return sequence([*modules, ("linear8", nn.Linear(4096, CLASSES))])


def vgg16() -> nn.Module:
    """VGG-16: 138,357,544 parameters."""
    return _vgg((2, 2, 3, 3, 3))


def vgg19() -> nn.Module:
    """VGG-19: 143,667,240 parameters."""
    return _vgg((2, 2, 4, 4, 4))


def _unit(inputs: int, outputs: int, size: int, stride: int = 1) -> nn.Sequential:
    """A convolution, its normalisation, its activation."""
    convolution = nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs, eps=0.001), nn.ReLU(inplace=True))


class Inception(nn.Module):
    """Four branches side by side, their channels one after the other.

    Args:
        inputs: channels that come in.
        widths: of the 1x1 branch; of the second branch, narrow and wide; of the third; of the pooled one.
    """

    def __init__(self, inputs: int, widths: Sequence[int]) -> None:
        super().__init__()
        one, narrow, wide, narrower, wider, pooled = widths
        self.branches = nn.ModuleList(
            [
                _unit(inputs, one, 1),
                nn.Sequential(_unit(inputs, narrow, 1), _unit(narrow, wide, 3)),
                nn.Sequential(_unit(inputs, narrower, 1), _unit(narrower, wider, 3)),
                nn.Sequential(nn.MaxPool2d(3, 1, 1, ceil_mode=True), _unit(inputs, pooled, 1)),
            ]
        )

    def forward(self, x_BCHW: Tensor) -> Tensor:
        """(B, C, H, W) to (B, channels of all branches, H, W)."""
        return torch.cat([branch(x_BCHW) for branch in self.branches], dim=1)


_INCEPTIONS = (  # Szegedy et al., table 1
    ("3a", (64, 96, 128, 16, 32, 32)), ("3b", (128, 128, 192, 32, 96, 64)),
    ("4a", (192, 96, 208, 16, 48, 64)), ("4b", (160, 112, 224, 24, 64, 64)),
    ("4c", (128, 128, 256, 24, 64, 64)), ("4d", (112, 144, 288, 32, 64, 64)),
    ("4e", (256, 160, 320, 32, 128, 128)), ("5a", (256, 160, 320, 32, 128, 128)),
    ("5b", (384, 192, 384, 48, 128, 128)),
)  # fmt: skip


def googlenet() -> nn.Module:
    """GoogLeNet on ImageNet, without auxiliary classifiers: 6,624,904 parameters."""
    modules: Modules = [
        ("stem1", _unit(3, 64, 7, 2)),
        ("pool1", nn.MaxPool2d(3, 2, ceil_mode=True)),
        ("stem2", _unit(64, 64, 1)),
        ("stem3", _unit(64, 192, 3)),
        ("pool2", nn.MaxPool2d(3, 2, ceil_mode=True)),
    ]
    channels = 192
    for name, widths in _INCEPTIONS:
        if name == "4a":
            modules.append(("pool3", nn.MaxPool2d(3, 2, ceil_mode=True)))
        if name == "5a":
            modules.append(("pool4", nn.MaxPool2d(2, 2, ceil_mode=True)))
        modules.append((f"inception{name}", Inception(channels, widths)))
        channels = widths[0] + widths[2] + widths[4] + widths[5]
    modules += [("mean", nn.AdaptiveAvgPool2d(1)), ("flatten", nn.Flatten()), ("dropout", nn.Dropout(0.2))]
    return sequence([*modules, ("classifier", nn.Linear(channels, CLASSES))])


class SparseMlp(nn.Module):
    """A dense network behind a sum of vectors, one for each feature that is not zero.

    As many features a sample as text has words: `nonzeros` numbers of features, all with value 1.
    """

    def __init__(self, features: int, hidden: Sequence[int], classes: int) -> None:
        super().__init__()
        self.features = nn.EmbeddingBag(features, hidden[0], mode="sum")
        modules: Modules = [("relu0", nn.ReLU())]
        for layer, (inputs, outputs) in enumerate(zip(hidden, (*hidden[1:], classes), strict=True), start=1):
            modules.append((f"linear{layer}", nn.Linear(inputs, outputs)))
            modules += [(f"relu{layer}", nn.ReLU())] if layer < len(hidden) else []
        self.dense = sequence(modules)

    def forward(self, columns_BN: Tensor) -> Tensor:
        """(B, nonzeros) numbers of features to (B, classes) scores."""
        scores: Tensor = self.dense(self.features(columns_BN))
        return scores


def sparse_mlp() -> nn.Module:
    """47,236 features (as in rcv1) to 128 to 64 to 103 labels: 6,061,159 parameters."""
    return SparseMlp(47_236, (128, 64), 103)
