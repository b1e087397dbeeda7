"""Batched gradients are single gradients, and a gradient's bits do not depend on its company."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

from simulator.maths import pending, stacked
from simulator.maths.dense import Dense
from simulator.maths.dense_net import DenseNet
from simulator.maths.pending import Pending
from simulator.maths.task import Task
from simulator.maths.torch_maths import TorchMaths
from simulator.problems import (
    CharLstm,
    CharTransformer,
    DigitsCnn,
    DigitsMlp,
    LeastSquares,
    LogisticRegression,
    Mnist1dCnn,
    Problem,
    Quadratic,
    SparseMultilabel,
)
from simulator.problems.digits import Classified, digits
from simulator.streams import Draws

K = 64
DTYPES = ["float32", "float64"]
PROBLEMS: list[Problem] = [
    DigitsMlp(),
    DigitsMlp(hidden=(33, 7), batch=5),
    LeastSquares(l2=0.1),
    LogisticRegression(batch=7),
    LogisticRegression(rows="power_law", nonzeros=5),
    Quadratic(noise=0.5),
    DigitsCnn(channels=2, batch=3),
    CharTransformer(width=8, heads=2, depth=1, context=6, batch=2),
    CharLstm(cells=7, embedding=5, context=6, batch=2),
    Mnist1dCnn(channels=3, batch=3),
    SparseMultilabel(n_samples=300, n_test=70, features=100, classes=7, hidden=(5,), batch=3),
]
LOOPED = (DigitsCnn, CharTransformer, CharLstm, Mnist1dCnn, SparseMultilabel)


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def spread_out(m: TorchMaths, k: int, scale: float = 0.1) -> list[Dense]:
    """Models that differ from worker to worker."""
    generator = torch.Generator().manual_seed(0)
    x = m.initial().data
    return [
        Dense(x + scale * torch.randn(x.shape, generator=generator, dtype=x.dtype), 1.0) for _ in range(k)
    ]


def computed(m: TorchMaths, models: list[Dense], order: list[int], draw: int = 2) -> dict[int, torch.Tensor]:
    """Gradients of the workers in `order`, begun in that order and computed together."""
    begun = {worker: m.gradient(models[worker], worker, draw) for worker in order}
    return {worker: gradient.data for worker, gradient in begun.items()}


def few(problem: Problem) -> int:
    """Workers enough to show a dependence; few where gradients are computed one by one anyway."""
    return 9 if isinstance(problem, LOOPED) else K + 6


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("problem", PROBLEMS, ids=repr)
def test_bits_do_not_depend_on_the_company(problem: Problem, dtype: str) -> None:
    n = few(problem)
    m = TorchMaths(problem, n, Draws(1), 1.0, dtype)
    models = spread_out(m, n)
    full = computed(m, models, list(range(n)))
    rng = np.random.default_rng(0)
    for size in (1, 2, 3, 7, n // 2, n):
        part = rng.permutation(n)[:size].tolist()
        for worker, gradient in computed(m, models, part).items():
            assert torch.equal(gradient, full[worker]), (size, worker)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("problem", PROBLEMS, ids=repr)
def test_one_model_for_all_or_equal_copies(problem: Problem, dtype: str) -> None:
    n = few(problem)
    m = TorchMaths(problem, n, Draws(1), 1.0, dtype)
    shared = spread_out(m, 1)[0]
    same = computed(m, [shared] * n, list(range(n)))
    copies = computed(m, [shared * 1.0 for _ in range(n)], list(range(n)))
    cohort = m.gradients(shared, 2)
    rows = m.gradients(Dense(shared.data.expand(n, -1).contiguous(), 1.0), 2)
    for worker in range(n):
        assert torch.equal(same[worker], copies[worker])
        assert torch.equal(same[worker], cohort.data[worker])
        assert torch.equal(same[worker], rows.data[worker])


@pytest.mark.parametrize("chunk", [1, 5, 64])
def test_bits_do_not_depend_on_the_chunk(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    m = TorchMaths(DigitsMlp(), 13, Draws(1), 1.0, "float32")
    models = spread_out(m, 13)
    usual = computed(m, models, list(range(13)))
    monkeypatch.setattr(m, "pending", Pending(m._compute, chunk))
    for worker, gradient in computed(m, models, list(range(13))).items():
        assert torch.equal(gradient, usual[worker])


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(2, 130), min_size=2, max_size=4),
    batch=st.integers(1, 40),
    size=st.integers(1, K - 1),
    dtype=st.sampled_from(DTYPES),
    seed=st.integers(0, 2**16),
)
def test_dense_nets_of_any_shape(sizes: list[int], batch: int, size: int, dtype: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = Classified(
        rng.normal(size=(50, sizes[0])), rng.integers(0, sizes[-1], 50), *[np.zeros((0, 0))] * 2
    )
    net = DenseNet(tuple(sizes), data, dtype)
    d = sum((wide + 1) * narrow for wide, narrow in pairwise(sizes))
    models = list(torch.tensor(0.3 * rng.normal(size=(K, d))).to(getattr(torch, dtype)).unbind())
    samples = rng.integers(0, 50, (K, batch))
    full = net.gradients(models, samples, range(K))
    some = rng.permutation(K)[:size]
    part = net.gradients([models[i] for i in some], samples[some], some.tolist())
    assert torch.equal(part, full[torch.from_numpy(some)])


def reference(
    problem: Problem, task: Task, x: torch.Tensor, samples: np.ndarray, worker: int
) -> torch.Tensor:
    """The gradient by autograd, of the loss written as in the textbook."""
    x = x.clone().requires_grad_()
    torch.autograd.backward(_loss(problem, task, x, torch.from_numpy(samples), worker))
    assert x.grad is not None
    return x.grad


def _loss(problem: Problem, task: Task, x: torch.Tensor, samples: torch.Tensor, worker: int) -> torch.Tensor:
    if isinstance(problem, Quadratic):
        a, c = (torch.tensor(part[worker]) for part in problem.functions(worker + 1))
        return 0.5 * (a * (x - c) ** 2).sum()
    if isinstance(problem, DigitsMlp):
        return _mlp_loss(problem, x, samples)
    assert isinstance(problem, LeastSquares | LogisticRegression)
    rows = problem.data()
    dense = torch.zeros(problem.samples, problem.features, dtype=torch.float64)
    if rows.columns is None:
        dense += torch.tensor(rows.values)
    else:
        dense.scatter_add_(1, torch.tensor(rows.columns), torch.tensor(rows.values))
    margins, y = dense[samples] @ x, torch.tensor(rows.targets)[samples]
    logistic = isinstance(problem, LogisticRegression)
    losses = torch.log1p(torch.exp(-y * margins)) if logistic else 0.5 * (margins - y) ** 2
    return losses.mean() + 0.5 * problem.l2 * (x @ x)


def _mlp_loss(problem: DigitsMlp, x: torch.Tensor, samples: torch.Tensor) -> torch.Tensor:
    sizes = problem.sizes
    weights = [wide * narrow for wide, narrow in pairwise(sizes)]
    parts = torch.split(x, [*weights, *sizes[1:]])
    layer = torch.tensor(digits().train)[samples]
    for number, (weight, bias) in enumerate(zip(parts[: len(weights)], parts[len(weights) :], strict=True)):
        layer = layer @ weight.view(sizes[number], -1) + bias
        layer = layer.relu() if number < len(weights) - 1 else layer
    return cross_entropy(layer, torch.tensor(digits().train_labels)[samples])


@pytest.mark.parametrize("problem", [p for p in PROBLEMS if not isinstance(p, LOOPED)], ids=repr)
def test_stacked_gradients_are_autograds(problem: Problem) -> None:
    n = 5
    quiet = problem.model_copy(update={"noise": 0.0})
    m = TorchMaths(quiet, n, Draws(1), 1.0, "float64")
    models = spread_out(m, n)
    batches = quiet.batches(n, Draws(1))
    for worker, gradient in computed(m, models, list(range(n))).items():
        expected = reference(quiet, m._task, models[worker].data, batches.one(worker, 2), worker)
        assert (gradient - expected).abs().max() <= 1e-12 * expected.abs().max()


@pytest.mark.parametrize(
    "problem", [DigitsCnn(channels=2), CharTransformer(width=8, heads=2, depth=1)], ids=repr
)
def test_looped_gradients_are_slopes_of_the_evaluated_loss(problem: Problem) -> None:
    m = TorchMaths(problem, 1, Draws(1), 1.0, "float64")
    x, samples = m.initial().data, problem.train_size(1)
    step = -(-samples // 256) if isinstance(problem, CharTransformer) else 1  # what an evaluation looks at
    gradient = m._task.gradients([x], np.arange(0, samples, step)[None], [0])[0]
    direction = torch.randn(x.shape, generator=torch.Generator().manual_seed(1), dtype=x.dtype)
    direction /= direction.norm()
    up, down = (m.evaluate(Dense(x + step * direction, 1.0), "train").loss for step in (1e-5, -1e-5))
    # ReLUs that switch between the two points leave a relative error of the step's size.
    assert (up - down) / 2e-5 == pytest.approx(float(gradient @ direction), rel=1e-4)


def test_noise_is_addressed_and_of_the_given_size() -> None:
    exact, noisy = (
        TorchMaths(Quadratic(dimension=1000, noise=s), 3, Draws(1), 1.0, "float64") for s in (0, 0.3)
    )
    x = exact.initial()
    noise = torch.stack(
        [noisy.gradient(x, w, k).data - exact.gradient(x, w, k).data for w in range(3) for k in range(4)]
    )
    assert abs(float(noise.std()) / 0.3 - 1) < 0.03
    assert abs(float(noise.mean())) < 0.01
    assert float(torch.corrcoef(noise).fill_diagonal_(0).abs().max()) < 0.15
    alone = TorchMaths(Quadratic(dimension=1000, noise=0.3), 7, Draws(1), 1.0, "float64")
    assert torch.equal(alone.gradient(x, 2, 3).data - exact.gradient(x, 2, 3).data, noise[-1])


def test_full_batches_of_unlike_size_are_grouped() -> None:
    problem = DigitsMlp(batch="full", split={"kind": "dirichlet", "alpha": 0.5})
    m = TorchMaths(problem, 6, Draws(1), 1.0, "float64")
    sizes = {len(problem.batches(6, Draws(1)).one(worker, 0)) for worker in range(6)}
    assert len(sizes) > 1
    together = m.gradients(m.initial(), 0)
    for worker in range(6):
        assert torch.equal(m.gradient(m.initial(), worker, 0).data, together.data[worker])


def test_matrices_begin_on_cache_lines() -> None:
    stack = stacked.empty((3, 5, 7), torch.float32)
    assert stack.shape == (3, 5, 7)
    assert all(matrix.data_ptr() % stacked.LINE == 0 for matrix in stack)
    odd = torch.arange(3 * 5 * 7.0).view(3, 5, 7)
    assert torch.equal(stacked.aligned(odd), odd)
    assert all(matrix.data_ptr() % stacked.LINE == 0 for matrix in stacked.aligned(odd))
    assert all(row.data_ptr() % stacked.LINE == 0 for row in stacked.models([odd[0, 0], odd[1, 1]]))
    assert list(pending.chunks([4] * 130, 64))[-1] == [128, 129]
