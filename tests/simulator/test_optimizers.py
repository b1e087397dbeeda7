"""Optimisers against torch.optim, in float64; on ghosts; on cohorts; schedules at their corners."""

from __future__ import annotations

import doctest
import math
from collections.abc import Callable

import pytest
import torch
from pydantic import TypeAdapter, ValidationError

from simulator import schedules
from simulator.maths.dense import Dense
from simulator.optimizers import Adam, AdamW, Momentum, Nesterov, Optimizer, OptimizerSpec, Qhm, Sgd
from simulator.schedules import Constant, Cosine, Piecewise, Schedule
from simulator.values import Ghost

D, STEPS = 7, 30
Torch = Callable[[list[torch.Tensor]], torch.optim.Optimizer]

CASES: list[tuple[Optimizer, Torch]] = [
    (Sgd(lr=0.1), lambda p: torch.optim.SGD(p, lr=0.1)),
    (Sgd(lr=0.1, momentum=0.9), lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)),
    (Sgd(lr=0.1, weight_decay=0.02), lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.02)),
    (
        Momentum(lr=0.05, momentum=0.8, weight_decay=0.1),
        lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.8, weight_decay=0.1),
    ),
    (
        Nesterov(lr=0.05, momentum=0.8, weight_decay=0.1),
        lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.8, weight_decay=0.1, nesterov=True),
    ),
    (Adam(lr=0.03), lambda p: torch.optim.Adam(p, lr=0.03)),
    (
        Adam(lr=0.03, beta1=0.8, beta2=0.9, eps=1e-3, weight_decay=0.1),
        lambda p: torch.optim.Adam(p, lr=0.03, betas=(0.8, 0.9), eps=1e-3, weight_decay=0.1),
    ),
    (AdamW(lr=0.03), lambda p: torch.optim.AdamW(p, lr=0.03)),
    (
        AdamW(lr=0.03, weight_decay=0.3),
        lambda p: torch.optim.AdamW(p, lr=0.03, weight_decay=0.3),
    ),
]
OURS = [ours for ours, _ in CASES] + [Qhm(lr=0.1)]


def slope(x: torch.Tensor) -> torch.Tensor:
    """Gradient of a wavy function, so that moments vary."""
    return x + torch.sin(3 * x) * torch.arange(1.0, x.shape[-1] + 1, dtype=x.dtype)


def start() -> torch.Tensor:
    return torch.linspace(-1, 2, D, dtype=torch.float64)


def run(optimizer: Optimizer, start: Dense, schedule: Schedule | None = None) -> Dense:
    x, state = start, optimizer.initial()
    for t in range(1, STEPS + 1):
        lr = optimizer.lr * (schedule.factor(t) if schedule else 1.0)
        moved, state = optimizer.apply(x, Dense(slope(x.data), x.nbytes), state, lr)
        assert isinstance(moved, Dense)
        x = moved
    return x


@pytest.mark.parametrize(("ours", "theirs"), CASES)
@pytest.mark.parametrize("schedule", [Constant(), Cosine(steps=STEPS, warmup_steps=5)])
def test_same_path_as_torch(ours: Optimizer, theirs: Torch, schedule: Schedule) -> None:
    x = start().requires_grad_()
    reference = theirs([x])
    for t in range(1, STEPS + 1):
        for group in reference.param_groups:
            group["lr"] = ours.lr * schedule.factor(t)
        x.grad = slope(x.detach())
        reference.step()
    found = run(ours, Dense(start(), 1.0), schedule).data
    assert torch.linalg.norm(found - x.detach()) <= 1e-12 * torch.linalg.norm(x.detach())


def test_qhm_is_the_papers_recursion() -> None:
    lr, momentum, nu = 0.05, 0.9, 0.7
    x, m = start(), torch.zeros(D, dtype=torch.float64)
    for _ in range(STEPS):
        g = slope(x)
        m = momentum * m + (1 - momentum) * g
        x = x - lr * ((1 - nu) * g + nu * m)
    found = run(Qhm(lr=lr, momentum=momentum, nu=nu), Dense(start(), 1.0)).data
    assert torch.allclose(found, x, rtol=1e-12, atol=0)


def test_qhm_is_quasi_global_momentum_on_a_complete_graph() -> None:
    rate, beta, mu = 0.01, 0.9, 0.9
    a = mu + (1 - mu) * beta
    x, m = start(), torch.zeros(D, dtype=torch.float64)
    for _ in range(STEPS):
        g = slope(x)
        x = x - rate * (beta * m + g)
        m = a * m + (1 - mu) * g
    c = (1 - mu) / (1 - a)
    b = c * beta / (1 + c * beta)
    found = run(Qhm(lr=rate / (1 - b), momentum=a, nu=b / a), Dense(start(), 1.0)).data
    assert torch.allclose(found, x, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("optimizer", OURS, ids=repr)
def test_a_cohorts_rows_have_the_bits_of_single_workers(optimizer: Optimizer) -> None:
    rows = torch.stack([start() * k for k in (1.0, -0.5, 2.0)])
    together = run(optimizer, Dense(rows, 1.0)).data
    for row, alone in zip(together, rows, strict=True):
        assert torch.equal(row, run(optimizer, Dense(alone, 1.0)).data)


@pytest.mark.parametrize("optimizer", OURS, ids=repr)
def test_ghosts_keep_their_size_and_old_values_stay(optimizer: Optimizer) -> None:
    x, state = optimizer.apply(Ghost(8.0), Ghost(8.0), optimizer.initial())
    x, state = optimizer.apply(x, Ghost(8.0), state)
    assert (x.nbytes, state.steps) == (8.0, 2)
    assert optimizer.initial().first is None
    old = start()
    before = old.clone()
    optimizer.apply(Dense(old, 1.0), Dense(slope(old), 1.0), optimizer.initial())
    assert torch.equal(old, before)


@pytest.mark.parametrize(
    ("optimizer", "passes"),
    [(Sgd(lr=1), 3), (Sgd(lr=1, momentum=0.5), 5), (Nesterov(lr=1), 5), (Qhm(lr=1), 5), (AdamW(lr=1), 7)],
)
def test_passes_count_vectors_read_and_written(optimizer: Optimizer, passes: int) -> None:
    assert optimizer.passes == passes


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "sgd"},
        {"kind": "sgd", "lr": -1},
        {"kind": "sgd", "lr": 0.1, "momentum": 1.0},
        {"kind": "adam", "lr": 0.1, "momentum": 0.9},
        {"kind": "adagrad", "lr": 0.1},
    ],
)
def test_wrong_optimizers_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(OptimizerSpec).validate_python(wrong)


def test_warm_up_is_linear_and_reaches_one() -> None:
    assert [Constant(warmup_steps=4).factor(t) for t in range(1, 7)] == [0.25, 0.5, 0.75, 1, 1, 1]
    warmed = Piecewise(at=(3,), values=(0.5,), warmup_steps=4)
    assert [warmed.factor(t) for t in (1, 2, 3, 4)] == [0.25, 0.5, 0.375, 0.5]


def test_piecewise_borders() -> None:
    two = Piecewise(at=(30, 60), values=(0.1, 0.01))
    assert [two.factor(t) for t in (1, 29, 30, 59, 60, 1000)] == [1, 1, 0.1, 0.1, 0.01, 0.01]
    three = Piecewise(at=(30, 60), values=(2.0, 0.1, 0.01))
    assert [three.factor(t) for t in (1, 30, 60)] == [2.0, 0.1, 0.01]


def test_cosine_ends() -> None:
    down = Cosine(steps=100, warmup_steps=20, final=0.1)
    assert down.factor(20) == 1.0
    assert math.isclose(down.factor(60), 0.55)
    assert math.isclose(down.factor(100), 0.1)
    assert down.factor(500) == down.factor(100)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Piecewise(at=(30, 20), values=(1.0, 0.1)),
        lambda: Piecewise(at=(30,), values=(1.0, 0.1, 0.01)),
        lambda: Cosine(steps=10, warmup_steps=10),
        lambda: Constant(warmup_steps=-1),
    ],
)
def test_wrong_schedules_are_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(ValidationError):
        wrong()


def test_examples_in_docstrings() -> None:
    results = doctest.testmod(schedules)
    assert results.attempted > 0
    assert results.failed == 0
