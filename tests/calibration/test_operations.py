"""Lists of operations: stored ones equal fresh traces; published sizes; each layer gets its own kernels."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from calibration import operations as shipped
from calibration.operations.__main__ import traced
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
        ("vgg16", 138_357_544, 15.47),
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
