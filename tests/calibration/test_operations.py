"""Lists of operations: stored ones equal fresh traces; published sizes; each layer gets its own kernels."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from calibration import operations as shipped
from calibration.operations.__main__ import built, traced
from calibration.operations.detection import RetinaNet
from calibration.operations.recurrent import Bidirectional
from calibration.operations.residual import resnext50
from calibration.operations.trace import trace
from simulator.errors import InputError
from simulator.operations import KINDS, Operations
from simulator.problems.base import Problem
from simulator.problems.char_transformer import CharTransformer
from simulator.problems.digits_cnn import DigitsCnn
from simulator.problems.digits_mlp import DigitsMlp


def rows(operations: Operations) -> tuple[tuple[str, ...], list[int], list[object]]:
    return operations.layers, operations.parameters.tolist(), [*operations.rows()]


@pytest.mark.parametrize("name", shipped.names())
def test_stored_is_traced(name: str) -> None:
    stored = shipped.load(name)
    assert rows(stored) == rows(traced(name, shipped.MODELS[name]))
    assert rows(shipped.from_csv(shipped.to_csv(stored))) == rows(stored)
    assert set(stored.kind) <= set(KINDS)
    for column in (stored.flop, stored.values, stored.fixed, stored.kept):
        assert (column >= 0).all()
    backward = np.flatnonzero(stored.backward)
    assert (np.diff(backward) == 1).all()  # forward first, then backward
    trained = np.flatnonzero(stored.parameters > 0)
    assert set(trained) <= set(stored.layer[stored.backward])


@pytest.mark.parametrize(
    ("name", "parameters", "giga_mac"),
    [  # as published by torchvision; multiply-adds of a 224 x 224 image
        ("resnet18", 11_689_512, 1.81),
        ("resnet50", 25_557_032, 4.09),
        ("resnet101", 44_549_160, 7.80),
        ("resnext50", 25_028_904, 4.23),
        ("mobilenet_v2", 3_504_872, 0.30),
        ("alexnet", 61_100_840, 0.714),
        ("vgg16", 138_357_544, 15.47),
        ("vgg19", 143_667_240, 19.63),
        ("googlenet", 6_624_904, 1.498),
        ("vit_b_16", 86_567_656, 17.56),
    ],
)
def test_published_sizes(name: str, parameters: int, giga_mac: float) -> None:
    model = shipped.load(name)
    assert model.total_parameters == parameters
    assert model.forward_flop == pytest.approx(2e9 * giga_mac, rel=0.005)
    # The backward pass does twice the forward pass, but for the first layer's gradient by the image.
    first = model.flop[0]
    assert model.flop_per_sample == pytest.approx(3 * model.forward_flop - first, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("lenet5", 61_706),  # 156 + 2,416 + 48,120 + 10,164 + 850
        ("resnet20", 269_722),  # "0.27 M" in table 6 of the paper
        ("gpt2", 124_439_808),  # this and the following as Hugging Face's models count
        ("gpt2_medium", 354_823_168),
        ("gpt2_large", 774_030_080),
        ("gpt2_xl", 1_557_611_200),
        ("gpt_neo_125m", 125_198_592),
        ("gpt_neo_8m", 19_702_528),
        ("bert_base", 109_482_240 + 624_188),  # the encoder with its pooler, and the heads of pre-training
        ("bert_large", 335_141_888 + 1_084_220),
        ("sparse_mlp", 47_236 * 128 + 129 * 64 + 65 * 103),
    ],
)
def test_known_parameters(name: str, parameters: int) -> None:
    assert shipped.load(name).total_parameters == parameters


@pytest.mark.parametrize(
    ("name", "width", "depth"),
    [("gpt2", 768, 12), ("gpt2_xl", 1600, 48), ("gpt_neo_125m", 768, 12), ("gpt_neo_8m", 256, 8)],
)
def test_decoders_flop_are_six_a_weight_and_attention(name: str, width: int, depth: int) -> None:
    """A symbol: 6 FLOP for each weight of a product, the shared embedding among them, and 12 T W a layer."""
    symbols = shipped.MODELS[name].sample[0]
    weights = 12 * width**2 * depth + 50_257 * width
    assert shipped.load(name).flop_per_sample == symbols * (6 * weights + 12 * symbols * width * depth)


def test_the_acoustic_model_is_the_published_size() -> None:
    size = 4 * shipped.load("lstm_acoustic").total_parameters / 2**20
    assert size == pytest.approx(165, abs=0.5)  # "165 MB"


def test_retinanets_parts_are_published() -> None:
    """Torchvision's RetinaNet on ResNet-50, of 91 classes, is arranged alike; so is ResNeXt-50."""
    with torch.device("meta"):
        published = RetinaNet(91, 64, 1)
        backbone = resnext50()
        ours = RetinaNet(264, 128, 32)
    assert sum(p.numel() for p in published.parameters()) == 34_014_999
    norms = sum(
        p.numel() for m in backbone.modules() if isinstance(m, nn.BatchNorm2d) for p in m.parameters()
    )
    stages = sum(p.numel() for m in (ours.stem, ours.stages) for p in m.parameters())
    assert stages == 25_028_904 - norms - 1000 * 2049
    assert shipped.load("retinanet_resnext50").total_parameters == sum(p.numel() for p in ours.parameters())


def test_cells_are_torchs() -> None:
    """The model's layer and torch's LSTM: one output, one gradient."""
    torch.manual_seed(0)
    inputs, cells = 5, 7
    ours, theirs = Bidirectional(inputs, cells).double(), nn.LSTM(inputs, cells, bidirectional=True).double()
    with torch.no_grad():
        for place, end in enumerate(("", "_reverse")):
            for mine, name in ((ours.by_input, "weight_ih"), (ours.by_hidden, "weight_hh")):
                mine[place] = getattr(theirs, f"{name}_l0{end}").T
            for mine, name in ((ours.bias_input, "bias_ih"), (ours.bias_hidden, "bias_hh")):
                mine[place, 0] = getattr(theirs, f"{name}_l0{end}")
    x_TBI = torch.randn(4, 3, inputs, dtype=torch.float64)
    ones, others = ours(x_TBI), theirs(x_TBI)[0]
    assert torch.allclose(ones, others, atol=1e-12)
    weights = torch.randn_like(ones)
    (ones * weights).sum().backward()
    (others * weights).sum().backward()
    assert ours.by_input.grad is not None
    assert ours.by_hidden.grad is not None
    expected = {name: weight.grad for name, weight in theirs.named_parameters() if weight.grad is not None}
    assert torch.allclose(ours.by_input.grad[1], expected["weight_ih_l0_reverse"].T, atol=1e-12)
    assert torch.allclose(ours.by_hidden.grad[0], expected["weight_hh_l0"].T, atol=1e-12)


@pytest.mark.parametrize("name", ["lenet5", "resnet20", "gpt_neo_8m", "sparse_mlp", "mobilenet_v2"])
def test_modules_compute(name: str) -> None:
    """They are models, not only sizes: real numbers go through them."""
    model = shipped.MODELS[name]
    shape = (2, *model.sample)
    inputs = torch.randint(0, 100, shape) if model.tokens else torch.rand(shape)
    with torch.no_grad():
        assert bool(built(name, model)(inputs).isfinite().all())


@pytest.mark.parametrize(
    ("name", "problem"),
    [("digits_mlp", DigitsMlp()), ("digits_cnn", DigitsCnn()), ("char_transformer", CharTransformer())],
)
def test_proxies_are_the_problems_models(name: str, problem: Problem) -> None:
    model = shipped.load(name)
    assert model.total_parameters == problem.parameters
    assert model.flop_per_sample == pytest.approx(problem.flop_per_sample, rel=0.35)


class Branched(nn.Module):
    """Work outside of leaf modules, a shared layer, an in-place sum."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.shared = nn.Linear(8, 16), nn.Linear(16, 16)

    def forward(self, x_BI: torch.Tensor) -> torch.Tensor:
        h_BH = torch.tanh(self.first(x_BI))
        y_BH = self.shared(h_BH)
        y_BH += self.shared(y_BH * 2)
        return y_BH


def test_kernels_go_to_their_layers() -> None:
    model = trace(Branched, (8,))
    assert dict(zip(model.layers, model.parameters.tolist(), strict=True)) == {
        "first": 144,
        "model": 0,
        "shared": 272,
        "loss": 0,
    }
    flop = {layer: [0.0, 0.0] for layer in model.layers}
    for row in model.rows():
        flop[model.layers[row.layer]][row.backward] += row.flop
    assert flop["first"] == [2 * 8 * 16, 2 * 8 * 16]  # backward by the weights only
    assert flop["shared"] == [2 * 2 * 16 * 16, 2 * 4 * 16 * 16]
    assert flop["model"] == flop["loss"] == [0.0, 0.0]
    outside = [row for row in model.rows() if model.layers[row.layer] == "model"]
    assert sum(row.backward for row in outside) >= 2  # tanh and the product


def test_amounts_per_sample_and_fixed() -> None:
    linear = trace(lambda: nn.Sequential(nn.Linear(100, 50, bias=False)), (100,))
    forward = linear.rows()[0]
    assert (forward.kind, forward.flop) == ("matmul", 2 * 100 * 50)
    assert (forward.values, forward.fixed) == (100 + 50, 100 * 50)
    convolution = trace(
        lambda: nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 5, 3, padding=1), nn.Flatten()),
        (3, 8, 8),
    )
    backward = [row for row in convolution.rows() if row.backward and row.kind == "convolution"]
    by_input, by_weights, first = backward
    assert by_input.flop == by_weights.flop == 2 * 64 * 4 * 5 * 9
    assert by_input.values == by_weights.values == 64 * (4 + 5)
    assert (by_input.fixed, by_weights.fixed) == (180, 180 + 5)
    assert first.flop == 2 * 64 * 3 * 4 * 9


class Changing(nn.Module):
    """Runs something else for larger batches."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x_BI: torch.Tensor) -> torch.Tensor:
        return self.layer(x_BI) if len(x_BI) < 3 else self.layer(x_BI).tanh()


class Idle(nn.Module):
    """Has a layer that it does not use."""

    def __init__(self) -> None:
        super().__init__()
        self.used, self.unused = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x_BI: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.used(x_BI)
        return out


def test_modules_that_cannot_be_traced() -> None:
    with pytest.raises(ValueError, match="other operations at another batch size"):
        trace(Changing, (4,))
    with pytest.raises(ValueError, match="'unused' has parameters and runs no kernel"):
        trace(Idle, (4,))


def test_unknown_model() -> None:
    with pytest.raises(InputError, match="did you mean 'resnet18'"):
        shipped.load("resnet-18")
