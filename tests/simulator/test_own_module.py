"""Problems made of a torch module of the user's: measured, started, trained; what is refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from scenarios import cli
from simulator.maths.dense import Dense
from simulator.maths.torch_maths import TorchMaths
from simulator.optimizers import Momentum
from simulator.problems import DigitsMlp
from simulator.problems.digits import digits
from simulator.problems.own_module import Classified, ModuleProblem
from simulator.streams import Draws

EXAMPLE = Path(__file__).parents[2] / "notebooks" / "own_code"


class OwnDigits(ModuleProblem):
    """The network of `digits_mlp` as a module."""

    kind: str = "own"
    hidden: int = 16

    def module(self) -> nn.Module:
        return nn.Sequential(nn.Linear(64, self.hidden), nn.ReLU(), nn.Linear(self.hidden, 10))

    def data(self) -> Classified:
        return digits()


class Line(ModuleProblem):
    """A regression."""

    kind: str = "line"
    classifies: ClassVar[bool] = False

    def module(self) -> nn.Module:
        return nn.Linear(3, 1)

    def data(self) -> Classified:
        x = np.arange(60.0).reshape(20, 3) / 60
        return Classified(x, x.sum(1), x, x.sum(1))

    def loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        return (outputs[:, 0] - labels).square().mean()


class Convolutions(ModuleProblem):
    """Weights of a module that is no leaf, one used twice."""

    kind: str = "convolutions"

    class Net(nn.Module):
        """Its scale is its own."""

        def __init__(self) -> None:
            super().__init__()
            self.first, self.again = nn.Conv2d(1, 4, 3), nn.Conv2d(4, 4, 3, padding=1)
            self.norm, self.out = nn.GroupNorm(2, 4), nn.Linear(144, 10, bias=False)
            self.scale = nn.Parameter(torch.ones(1))

        def forward(self, x: Tensor) -> Tensor:
            x = self.again(self.again(self.first(x.view(-1, 1, 8, 8)))) * self.scale
            scores: Tensor = self.out(self.norm(x).flatten(1))
            return scores

    def module(self) -> nn.Module:
        return self.Net()

    def data(self) -> Classified:
        return digits()


def maths(problem: ModuleProblem | DigitsMlp, seed: int = 1) -> TorchMaths:
    return TorchMaths(problem, 2, Draws(seed), 1.0, "float64")


def test_costs_are_those_of_the_shipped_problem() -> None:
    own, shipped = OwnDigits(), DigitsMlp(hidden=(16,))
    assert own.parameters == shipped.parameters
    assert [(a.parameters, a.flop, a.elements) for a in own.layers()] == [
        (a.parameters, a.flop, a.elements) for a in shipped.layers() if a.parameters
    ]


def test_each_part_costs_its_own() -> None:
    layers = {layer.name: layer for layer in Convolutions().layers()}
    assert {name: (a.kind, a.parameters, a.flop) for name, a in layers.items()} == {
        "module": ("matmul", 1, 0.0),
        "first": ("convolution", 40, 2.0 * 36 * 9 * 4),
        "again": ("convolution", 148, 2 * 2.0 * 36 * 9 * 16),
        "norm": ("normalisation", 8, 0.0),
        "out": ("matmul", 1440, 2.0 * 1440),
    }


def test_gradients_are_those_of_the_shipped_problem() -> None:
    """The same numbers in either order of weights and biases."""
    own, shipped = maths(OwnDigits()), maths(DigitsMlp(hidden=(16,)))
    x = shipped.initial().data
    first, second, bias1, bias2 = x[:1024].view(64, 16), x[1024:1184].view(16, 10), x[1184:1200], x[1200:]
    as_module = torch.cat([first.T.flatten(), bias1, second.T.flatten(), bias2])
    theirs = shipped.gradient(Dense(x, 1.0), 0, 3).data
    ours = own.gradient(Dense(as_module, 1.0), 0, 3).data
    assert torch.allclose(ours[1024:1040], theirs[1184:1200], atol=1e-14)
    assert torch.allclose(ours[:1024].view(16, 64).T, theirs[:1024].view(64, 16), atol=1e-14)
    told = own.evaluate(Dense(as_module, 1.0), "test")
    assert told.loss == pytest.approx(shipped.evaluate(Dense(x, 1.0), "test").loss, rel=1e-12)


def test_the_seed_decides_how_it_starts_and_nothing_else_does() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    starts = [maths(OwnDigits(), seed).initial().data for seed in (1, 1, 2)]
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(starts[0], starts[1])
    assert not torch.equal(starts[0], starts[2])


def test_a_regression_has_no_accuracy() -> None:
    problem, optimizer = Line(), Momentum(lr=0.1)
    m = maths(problem)
    x, state = m.initial(), optimizer.initial()
    for step in range(300):
        x, state = optimizer.apply(x, m.cohort_mean(m.gradients(x, step)), state)  # type: ignore[assignment]
    told = m.evaluate(x, "test")
    assert problem.metrics == ("loss",)
    assert told.accuracy is None
    assert told.loss < 1e-4


def problem_of(build: Any, data: Any = digits) -> type[ModuleProblem]:
    class Wrong(ModuleProblem):
        kind: str = "wrong"

        def module(self) -> nn.Module:
            module: nn.Module = build()
            return module

        def data(self) -> Classified:
            found: Classified = data()
            return found

    return Wrong


def frozen() -> nn.Module:
    module = nn.Linear(64, 10)
    module.bias.requires_grad_(False)
    return module


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: nn.Sequential(nn.Linear(64, 10), nn.BatchNorm1d(10)), r"1 \(BatchNorm1d\) normalises over"),
        (lambda: nn.Sequential(nn.Dropout(0.5), nn.Linear(64, 10)), r"0 \(Dropout\) drops out at random"),
        (nn.ReLU, "no parameters"),
        (frozen, "'bias' does not require a gradient"),
        (lambda: nn.Linear(63, 10), "wrong cannot be measured: RuntimeError"),
        (lambda: 1 / 0, "wrong cannot be measured: ZeroDivisionError"),
    ],
)
def test_modules_that_cannot_be_are_told(build: Any, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        problem_of(build)()


def test_labels_must_be_as_many_as_samples() -> None:
    data = digits()
    wrong = problem_of(lambda: nn.Linear(64, 10), lambda: data._replace(test_labels=data.test_labels[:3]))
    with pytest.raises(ValidationError, match="360 samples and 3 labels"):
        wrong()


def test_the_worked_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    for name in ("flowers.py", "flowers.yaml", "iris.csv"):
        shutil.copy(EXAMPLE / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(SystemExit) as refused:
        cli.main(["run", "flowers.yaml", "--out", "out"])
    assert refused.value.code == 2
    assert "--allow-code lets a scenario load code" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        cli.main(["run", "flowers.yaml", "--allow-code", "--out", "out"])
    assert ended.value.code == 0
    assert "apart reaches accuracy 0.95 first" in capsys.readouterr().out
