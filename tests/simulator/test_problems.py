"""Problems: known optima, who gets which samples, sizes and costs, that they can be learned."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter, ValidationError

from simulator.maths.dense import Dense
from simulator.maths.torch_maths import TorchMaths
from simulator.optimizers import Adam, Momentum, Optimizer
from simulator.problems import (
    CharLstm,
    CharTransformer,
    DigitsCnn,
    DigitsMlp,
    LeastSquares,
    LogisticRegression,
    Mnist1dCnn,
    Problem,
    ProblemSpec,
    Quadratic,
    SparseMultilabel,
)
from simulator.problems.base import DataProblem
from simulator.problems.batches import Batches
from simulator.problems.digits import digits
from simulator.problems.mnist1d_series import mnist1d
from simulator.problems.splits import Dirichlet, Iid, Label, Shards, Split
from simulator.streams import Draws

ALL: list[Problem] = [
    Quadratic(),
    LeastSquares(),
    LogisticRegression(),
    LogisticRegression(rows="power_law", n_samples=500, features=200),
    DigitsMlp(),
    DigitsMlp(hidden=()),
    DigitsCnn(),
    CharTransformer(),
    CharLstm(),
    CharLstm(depth=2, cells=16, context=20),
    Mnist1dCnn(),
    SparseMultilabel(),
    SparseMultilabel(hidden=(16, 8), classes=5, nonzeros=10),
]
CONVEX = [
    LeastSquares(),
    LeastSquares(l2=0.1, metric="duality_gap"),
    LogisticRegression(metric="primal"),
    LogisticRegression(rows="power_law", n_samples=500, features=200, l2=0.01, metric="duality_gap"),
]


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def maths(problem: Problem, n: int = 4, seed: int = 1, dtype: str = "float64") -> TorchMaths:
    return TorchMaths(problem, n, Draws(seed), 1.0, dtype)


# common to all


@pytest.mark.parametrize("problem", ALL, ids=repr)
def test_sizes_and_specs_agree(problem: Problem) -> None:
    m = maths(problem, dtype="float32")
    assert m.initial().data.shape == (problem.parameters,)
    assert sum(layer.parameters for layer in problem.layers()) == problem.parameters
    assert TypeAdapter(ProblemSpec).validate_python(problem.model_dump(mode="json")) == problem
    told = m.evaluate(m.initial(), "test")
    assert np.isfinite(told.loss)
    assert (told.accuracy is not None) == ("accuracy" in problem.metrics)
    assert (m.batch, m.train_samples) == (problem.batch_size(4), problem.train_size(4))


@pytest.mark.parametrize("problem", ALL, ids=repr)
def test_the_seed_decides(problem: Problem) -> None:
    same, again, other = (
        maths(problem, seed=s).gradient(maths(problem, seed=s).initial(), 1, 3).data for s in (1, 1, 2)
    )
    assert torch.equal(same, again)
    assert not torch.equal(same, other)


@pytest.mark.parametrize("problem", ALL, ids=repr)
def test_float32_is_near_float64(problem: Problem) -> None:
    one, two = (maths(problem, dtype=dtype) for dtype in ("float32", "float64"))
    single, double = (m.gradient(m.initial(), 0, 0).data for m in (one, two))
    assert (single.dtype, double.dtype) == (torch.float32, torch.float64)
    assert (single.double() - double).abs().max() <= 2e-5 * double.abs().max()
    assert one.evaluate(one.initial(), "test").loss == pytest.approx(
        two.evaluate(two.initial(), "test").loss, rel=1e-5
    )


@pytest.mark.parametrize(
    ("problem", "optimizer", "steps", "loss", "accuracy"),
    [
        (DigitsMlp(), Momentum(lr=0.1), 100, 0.2, 0.93),
        (DigitsCnn(), Momentum(lr=0.05), 60, 0.25, 0.92),
        (CharTransformer(), Adam(lr=5e-3), 60, 2.9, 0.3),
        (LogisticRegression(), Momentum(lr=0.5), 100, 0.42, 0.8),
        (CharLstm(), Adam(lr=1e-2), 60, 2.9, 0.3),
        (Mnist1dCnn(), Adam(lr=1e-2), 300, 0.5, 0.8),
        (SparseMultilabel(), Adam(lr=1e-2), 100, 0.15, 0.8),
    ],
    ids=repr,
)
def test_problems_can_be_learned(
    problem: Problem, optimizer: Optimizer, steps: int, loss: float, accuracy: float
) -> None:
    m = maths(problem, dtype="float32")
    x, state = m.initial(), optimizer.initial()
    for step in range(steps):
        x, state = optimizer.apply(x, m.cohort_mean(m.gradients(x, step)), state)  # type: ignore[assignment]
    told = m.evaluate(x, "test")
    assert told.loss < loss
    assert told.accuracy is not None
    assert told.accuracy > accuracy


def test_mnist1d_is_the_published_data() -> None:
    """Numbers made by the authors' package (mnist1d 0.0.2.post1)."""
    data = mnist1d()
    assert (data.train.shape, data.test.shape) == ((4000, 40), (1000, 40))
    expected = [-0.33200566736939013, -0.4719103656557236, -0.778697076293495]
    assert data.train[0, :3] == pytest.approx(expected, rel=1e-12)
    assert np.abs(data.train).sum() == pytest.approx(118338.29510719894, rel=1e-12)
    assert data.test_labels[:10].tolist() == [2, 6, 3, 9, 4, 3, 1, 9, 5, 2]
    assert Mnist1dCnn().parameters == 5210  # as the authors' network


def test_documents_have_what_they_should() -> None:
    data = SparseMultilabel(n_samples=3000, n_test=10).data()
    assert (data.train_labels.sum(1) == 3).all()
    counts = data.train_labels.sum(0)
    assert counts[0] > 10 * counts[-10:].mean()
    for row in data.train[:50]:
        told = row[row >= 0]
        assert len(set(told.tolist())) == len(told) > 5
    assert data.train.max() < 2000


# optima


def test_the_quadratics_optimum_is_where_the_mean_gradient_is_zero() -> None:
    problem = Quadratic()
    m = maths(problem, n=8)
    best, least = problem.optimum(8)
    x = Dense(torch.tensor(best), 1.0)
    gradients = m.gradients(x, 0)
    assert gradients.data.mean(0).abs().max() < 1e-14
    assert gradients.data.abs().max() > 0.1
    assert m.evaluate(x, "test").loss == pytest.approx(least, rel=1e-12)
    assert m.evaluate(x + 0.1, "test").loss > least


def test_quadratics_shared_and_of_more_workers() -> None:
    curvatures, optima = Quadratic(spread=0.0, condition=50.0).functions(5)
    assert np.ptp(curvatures, axis=0).max() == 0
    assert not optima.any()
    assert curvatures.max() / curvatures.min() == pytest.approx(50.0)
    few, many = Quadratic().functions(3), Quadratic().functions(30)
    assert all(np.array_equal(a, b[:3]) for a, b in zip(few, many, strict=True))
    assert np.ptp(few[0], axis=0).max() > 0


@pytest.mark.parametrize("problem", CONVEX, ids=repr)
def test_linear_models_optima(problem: LeastSquares | LogisticRegression) -> None:
    m = maths(problem.model_copy(update={"batch": "full"}), n=1)
    x = Dense(torch.tensor(problem.optimum()), 1.0)
    assert m.gradient(x, 0, 0).data.norm() < 1e-8
    nearby = [m.evaluate(x + step, "train").loss for step in (-1e-3, 0.0, 1e-3)]
    primal = maths(problem.model_copy(update={"metric": "primal"}), n=1)
    values = [primal.evaluate(x + step, "train").loss for step in (-1e-3, 0.0, 1e-3)]
    assert values[1] < min(values[0], values[2])
    if problem.metric == "duality_gap":
        assert nearby[1] < 1e-9
        for gap, value in zip(nearby, values, strict=True):
            assert gap >= value - values[1] - 1e-12


def test_metrics_are_what_they_say() -> None:
    problem = LeastSquares(l2=0.3)
    w = np.linspace(-1, 1, problem.features)
    x = Dense(torch.tensor(w), 1.0)
    rows = problem.data()
    loss = 0.5 * np.mean((rows.values @ w - rows.targets) ** 2)
    assert maths(problem).evaluate(x, "test").loss == pytest.approx(loss)
    primal = maths(LeastSquares(l2=0.3, metric="primal")).evaluate(x, "test").loss
    assert primal == pytest.approx(loss + 0.15 * w @ w)


def test_sparse_rows() -> None:
    problem = LogisticRegression(rows="power_law", n_samples=4000, features=1000, nonzeros=20)
    rows = problem.data()
    assert rows.columns is not None
    lengths = (rows.values > 0).sum(1)
    assert 12 < lengths.mean() < 24
    assert lengths.max() > 4 * lengths.mean()
    assert np.allclose((rows.values**2).sum(1), 1.0)
    counts = np.bincount(rows.columns[rows.values > 0], minlength=1000)
    assert counts[0] > 20 * np.median(counts)
    for row, values in zip(rows.columns[:50], rows.values[:50], strict=True):
        assert len(set(row[values > 0])) == (values > 0).sum()
    balance = (rows.targets > 0).mean()
    assert 0.2 < balance < 0.8


# the data and who gets them


def test_digits_are_split_once_for_all() -> None:
    data = digits()
    assert (data.train.shape, data.test.shape) == ((1437, 64), (360, 64))
    assert data.train.max() == 1.0
    assert len(np.unique(np.vstack([data.train, data.test]), axis=0)) == 1797
    assert min(Counter(data.test_labels.tolist()).values()) > 20


SPLITS: list[Split] = [Shards(), Label(), Label(pieces=3), Dirichlet(alpha=0.3), Dirichlet(alpha=100.0)]


@pytest.mark.parametrize("n", [1, 7, 64])
@pytest.mark.parametrize("split", SPLITS, ids=repr)
def test_shares_are_disjoint_and_all(split: Split, n: int) -> None:
    problem = DigitsMlp(split=split)
    shares = split.shares(problem.labels, problem.samples, n, Draws(1))
    assert len(shares) == n
    assert np.array_equal(np.sort(np.concatenate(shares)), np.arange(problem.samples))
    assert min(map(len, shares)) >= 1
    if not isinstance(split, Dirichlet):
        assert np.ptp([len(share) for share in shares]) <= (split.pieces if isinstance(split, Label) else 1)


@pytest.mark.parametrize("split", [Iid(), *SPLITS], ids=repr)
def test_more_workers_than_samples(split: Split) -> None:
    shares = split.shares(lambda: np.arange(10) % 2, 10, 25, Draws(1))
    assert len(shares) == 25
    assert all(len(share) >= 1 for share in shares)
    assert set(np.concatenate(shares)) == set(range(10))


def test_how_unlike_the_shares_are() -> None:
    def classes(split: Split) -> float:
        """Mean number of classes that fill half of a worker's share."""
        labels = digits().train_labels
        counts = [
            np.sort(np.bincount(labels[share], minlength=10))[::-1]
            for share in split.shares(lambda: labels, len(labels), 10, Draws(1))
        ]
        return float(np.mean([1 + np.searchsorted(np.cumsum(c), c.sum() / 2) for c in counts]))

    assert (
        classes(Label()) < classes(Dirichlet(alpha=0.1)) < classes(Dirichlet(alpha=1.0)) < classes(Shards())
    )
    assert classes(Shards()) > 3.5
    assert classes(Label()) < 1.5


def taken(batches: Batches, worker: int, draws: int) -> np.ndarray:
    return np.concatenate([batches.one(worker, k) for k in range(draws)])


def test_iid_deals_every_sample_once_an_epoch() -> None:
    n, batch = 3, 10
    problem = LeastSquares(n_samples=300, batch=batch)
    batches = problem.batches(n, Draws(1))
    epochs = [
        np.concatenate([batches.one(w, 10 * e + k) for k in range(10) for w in range(n)]) for e in (0, 1)
    ]
    for epoch in epochs:
        assert np.array_equal(np.sort(epoch), np.arange(300))
    assert not np.array_equal(epochs[0], epochs[1])
    assert set(taken(batches, 0, 10)) != set(taken(batches, 0, 20)[100:])


def test_n_workers_take_what_one_with_n_fold_batch_takes() -> None:
    many = DigitsMlp(batch=24).batches(8, Draws(5))
    one = DigitsMlp(batch=8 * 24).batches(1, Draws(5))
    for k in (0, 3, 7, 8, 40):
        assert np.array_equal(np.concatenate([many.one(w, k) for w in range(8)]), one.one(0, k))


def test_own_shares_are_gone_through_without_replacement() -> None:
    problem = LeastSquares(n_samples=100, batch=8, split=Shards())
    batches = problem.batches(4, Draws(1))
    share = set(problem.split.shares(problem.labels, 100, 4, Draws(1))[2].tolist())
    stream = taken(batches, 2, 100)
    for epoch in range(32):
        assert set(stream[25 * epoch : 25 * (epoch + 1)].tolist()) == share
    assert not np.array_equal(stream[:25], stream[25:50])


@pytest.mark.parametrize("split", [Iid(), Shards()], ids=repr)
def test_batches_are_a_function_of_the_address(split: Split) -> None:
    problem = DigitsMlp(batch=100, split=split)
    forward, backward = (problem.batches(30, Draws(1)) for _ in range(2))
    addresses = [(worker, draw) for worker in (0, 7, 29) for draw in (0, 1, 50, 51)]
    one = {address: forward.one(*address) for address in addresses}
    other = {address: backward.one(*address) for address in reversed(addresses)}
    assert all(len(one[a]) == 100 and np.array_equal(one[a], other[a]) for a in addresses)
    for draw in (0, 50):
        assert all(np.array_equal(b, forward.one(w, draw)) for w, b in enumerate(backward.all(draw, 30)))


def test_full_batches_are_the_share() -> None:
    problem = LeastSquares(n_samples=100, batch="full")
    batches = problem.batches(8, Draws(1))
    assert problem.batch_size(8) == 13
    assert sorted(len(batches.one(worker, 0)) for worker in range(8)) == [12] * 4 + [13] * 4
    assert np.array_equal(batches.one(3, 0), batches.one(3, 9))
    together = np.sort(np.concatenate([batches.one(worker, 0) for worker in range(8)]))
    assert np.array_equal(together, np.arange(100))


@pytest.mark.parametrize(
    "problem", [LeastSquares(n_samples=400, batch="full"), DigitsMlp(n_samples=1400, batch="full")], ids=repr
)
def test_the_mean_of_equal_shards_full_gradients_is_the_full_gradient(problem: DataProblem) -> None:
    many, one = maths(problem, n=8), maths(problem, n=1)
    x = many.initial() + 0.3
    mean, whole = many.cohort_mean(many.gradients(x, 0)).data, one.gradient(x, 0, 0).data
    assert (mean - whole).abs().max() <= 1e-13 * whole.abs().max()


# wrong specs


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "least_squares", "metric": "duality_gap"},
        {"kind": "least_squares", "metric": "accuracy"},
        {"kind": "digits_mlp", "batch": 0},
        {"kind": "digits_mlp", "batch": "half"},
        {"kind": "digits_mlp", "split": {"kind": "dirichlet"}},
        {"kind": "digits_mlp", "split": {"kind": "dirichlet", "alpha": 0}},
        {"kind": "digits_mlp", "width": 3},
        {"kind": "digits_mlp", "hidden": [0]},
        {"kind": "digits_cnn", "channels": 3},
        {"kind": "char_transformer", "width": 30, "heads": 4},
        {"kind": "quadratic", "condition": 0.5},
        {"kind": "quadratic", "noise": -1},
        {"kind": "mnist"},
        {"kind": "char_lstm", "cells": 0},
        {"kind": "mnist1d_cnn", "n_samples": 4001},
        {"kind": "sparse_multilabel", "classes": 2, "labels_per_sample": 3},
        {"kind": "sparse_multilabel", "hidden": []},
    ],
)
def test_wrong_problems_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(ProblemSpec).validate_python(wrong)


def test_data_are_generated_by_their_own_seed() -> None:
    one, other = (LeastSquares(data_seed=seed).data().values for seed in (0, 1))
    assert not np.array_equal(one, other)
    assert all(issubclass(type(p), DataProblem) for p in ALL[1:])
