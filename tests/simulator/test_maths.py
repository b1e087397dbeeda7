"""Values and means: lazily computed, immutable, the same bits for processes and cohorts."""

from __future__ import annotations

import doctest
import gc
import subprocess
import sys
import weakref

import numpy as np
import pytest
import torch

from simulator.maths import Maths, pending
from simulator.maths.dense import Dense
from simulator.maths.ghost import GhostMaths
from simulator.maths.torch_maths import TorchMaths
from simulator.optimizers import Sgd
from simulator.problems import DigitsMlp, LeastSquares, LogisticRegression, Problem, Quadratic
from simulator.streams import Draws
from simulator.values import Ghost, Vector

N = 8


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def maths(problem: Problem | None = None, n: int = N, dtype: str = "float64") -> TorchMaths:
    return TorchMaths(problem or DigitsMlp(hidden=(16,)), n, Draws(3), 100.0, dtype)


def numbers(value: Vector) -> torch.Tensor:
    assert isinstance(value, Dense)
    return value.data


# values


def test_arithmetic_is_elementwise_and_leaves_operands_alone() -> None:
    a, b = Dense(torch.tensor([1.0, 4.0]), 10.0), Dense(torch.tensor([2.0, 8.0]), 10.0)
    assert numbers(a + b).tolist() == [3.0, 12.0]
    assert numbers(b - a).tolist() == [1.0, 4.0]
    assert numbers(0.5 * (a * b) / b).tolist() == [0.5, 2.0]
    assert numbers((a * 2).sqrt() + 1.0).tolist() == pytest.approx([1 + 2**0.5, 1 + 8**0.5])
    assert (a.data.tolist(), (a + b).nbytes) == ([1.0, 4.0], 10.0)


def test_rows_and_single_models_broadcast() -> None:
    rows, one = Dense(torch.arange(6.0).view(2, 3), 1.0), Dense(torch.ones(3), 1.0)
    assert numbers(rows - one).tolist() == [[-1, 0, 1], [2, 3, 4]]
    assert numbers(one + rows).shape == (2, 3)


@pytest.mark.parametrize("sizes", [(100.0,), (25.0, 75.0), (10.0,) * 10, (99.0, 0.5, 0.5), (1.0, 99.0)])
@pytest.mark.parametrize("shape", [(13,), (3, 13)])
def test_parts_follow_their_bytes_and_make_the_whole(
    sizes: tuple[float, ...], shape: tuple[int, ...]
) -> None:
    value = Dense(torch.randn(shape, generator=torch.Generator().manual_seed(0)), 100.0)
    parts = value.split(sizes)
    assert [part.nbytes for part in parts] == list(sizes)
    for part, size in zip(parts, sizes, strict=True):
        assert abs(numbers(part).shape[-1] - 13 * size / 100) <= 1
    whole = maths().concat(parts)
    assert torch.equal(whole.data, value.data)
    assert whole.nbytes == 100.0


def test_equal_parts_are_joined_once() -> None:
    m = maths()
    parts = m.initial().split((60.0, 40.0))
    joined = m.concat(parts)
    assert m.concat(list(parts)) is joined
    assert m.concat(m.initial().split((60.0, 40.0))) is not joined


# lazy gradients


def test_nothing_is_computed_before_it_is_looked_at() -> None:
    m = maths()
    gradients = [m.gradient(m.initial(), worker, 0) for worker in range(N)]
    parts = gradients[0].split((50.0, 50.0))
    assert len(m.pending) == N
    assert all(value.pending for value in (*gradients, *parts))
    assert parts[1].data.shape[0] > 0
    assert len(m.pending) == 0
    assert not any(gradient.pending for gradient in gradients)


def test_a_gradient_is_that_of_the_model_it_began_with() -> None:
    m = maths()
    x = m.initial()
    early = m.gradient(x, 0, 0)
    y = x - 0.5 * m.gradient(x, 1, 0)
    x = x - 0.1 * y
    alone = maths()
    assert torch.equal(early.data, alone.gradient(alone.initial(), 0, 0).data)


def test_cancelled_and_forgotten_gradients_are_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    m = maths()
    asked: list[int] = []
    compute = m.pending._compute

    def counting(models, samples, workers, draws):  # type: ignore[no-untyped-def]
        asked.extend(workers)
        return compute(models, samples, workers, draws)

    monkeypatch.setattr(m.pending, "_compute", counting)
    gradients = [m.gradient(m.initial(), worker, 0) for worker in range(N)]
    m.cancel(gradients[2])
    cancelled = gradients[2]
    del gradients[5]
    assert gradients[0].data is not None
    assert asked == [0, 1, 3, 4, 6, 7]
    with pytest.raises(ValueError, match="cancelled"):
        _ = cancelled.data


def test_snapshots_are_released_once_the_numbers_exist() -> None:
    m = maths()
    x = m.initial() * 1.5
    gradient = m.gradient(x, 0, 0)
    held = weakref.ref(x.data)
    del x
    gc.collect()
    assert held() is not None
    assert gradient.data is not None
    gc.collect()
    assert held() is None


def test_sent_values_are_never_written_to() -> None:
    m = maths()
    x, state = m.initial(), Sgd(lr=0.1, momentum=0.9).initial()
    version = x.data._version
    g = m.mean([m.gradient(x, worker, 0) for worker in range(N)])
    Sgd(lr=0.1, momentum=0.9).apply(x, g, state)
    m.mean([x, x * 1.0])
    m.evaluate(x, "test")
    assert x.data._version == version


# means


def test_a_mean_is_the_mean_in_rank_order() -> None:
    rows = torch.randn(5, 33, generator=torch.Generator().manual_seed(1))
    values = [Dense(row, 1.0) for row in rows]
    m = maths()
    total = rows[0]
    for row in rows[1:]:
        total = total + row
    assert torch.equal(m.mean(values).data, total / 5)
    weights = [0.5, 1.0, 2.0, 0.25, 0.25]
    expected = sum(w * row.double() for w, row in zip(weights, rows, strict=True)) / 4.0
    assert torch.allclose(m.mean(values, weights).data.double(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n", [2, 3, 9, 37, 64, 65, 200])
@pytest.mark.parametrize("d", [1, 2, 3, 16, 101])
@pytest.mark.parametrize("weighted", [False, True])
def test_cohort_and_process_means_have_the_same_bits(n: int, d: int, weighted: bool) -> None:
    rows = torch.randn(n, d + 5, generator=torch.Generator().manual_seed(1))[:, :d]
    values, cohort, m = [Dense(row.clone(), 1.0) for row in rows], Dense(rows, 1.0), maths()
    weights = [0.1 + worker % 3 for worker in range(n)] if weighted else None
    mean = m.mean(values, weights).data
    total = values[0].data * (weights[0] if weights else 1.0)
    for worker in range(1, n):
        total = total + values[worker].data * (weights[worker] if weights else 1.0)
    assert torch.equal(mean, total / (sum(weights) if weights else n))
    if weights is None:
        assert torch.equal(mean, m.cohort_mean(cohort).data)
        keep = np.arange(n) % 3 > 0
        kept = [value for value, kept in zip(values, keep, strict=True) if kept]
        assert torch.equal(m.mean(kept).data, m.cohort_mean(cohort, keep).data)
    halves = [m.mean([v.split((0.3, 0.7))[part] for v in values], weights) for part in (0, 1)]
    assert torch.equal(m.concat(halves).data, mean)


def test_the_mean_of_equal_models_is_the_model() -> None:
    x = Dense(torch.full((5,), 0.1, dtype=torch.float32), 1.0)
    m = maths()
    assert torch.equal(m.mean([x * 1.0 for _ in range(7)]).data, x.data)
    assert torch.equal(m.mean([x * 1.0 for _ in range(7)], [0.3] * 7).data, x.data)
    assert m.cohort_mean(x).data is x.data
    assert torch.equal(m.cohort_mean(Dense(x.data.expand(7, -1), 1.0)).data, x.data)


def test_consensus_distance() -> None:
    m = maths()
    apart = [Dense(torch.tensor([1.0, 0.0]), 1.0), Dense(torch.tensor([3.0, 0.0]), 1.0)]
    assert m.distance(apart) == pytest.approx(0.5)
    assert m.distance(Dense(torch.stack([v.data for v in apart]), 1.0)) == pytest.approx(0.5)
    assert m.distance([apart[0], apart[0]]) == 0.0


# whole runs: processes and a cohort


def as_processes(m: TorchMaths, steps: int, h: int) -> list[torch.Tensor]:
    models, optimizer = [m.initial()] * m.n_workers, Sgd(lr=0.2, momentum=0.9)
    states = [optimizer.initial()] * m.n_workers
    for t in range(steps):
        gradients = [m.gradient(x, worker, t) for worker, x in enumerate(models)]
        moved = [optimizer.apply(x, g, state) for x, g, state in zip(models, gradients, states, strict=True)]
        models, states = [x for x, _ in moved], [state for _, state in moved]  # type: ignore[misc]
        if (t + 1) % h == 0:
            models = [m.mean(models)] * m.n_workers
    return [m.row(x, worker).data for worker, x in enumerate(models)]


def as_cohort(m: TorchMaths, steps: int, h: int) -> list[torch.Tensor]:
    x, optimizer = m.initial(), Sgd(lr=0.2, momentum=0.9)
    state = optimizer.initial()
    for t in range(steps):
        x, state = optimizer.apply(x, m.gradients(x, t), state)  # type: ignore[assignment]
        if (t + 1) % h == 0:
            x = m.cohort_mean(x)
    return [m.row(x, worker).data for worker in range(m.n_workers)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [3, 70])
@pytest.mark.parametrize("problem", [DigitsMlp(), Quadratic(noise=0.1), LeastSquares(batch="full")], ids=repr)
def test_local_sgd_of_processes_and_of_a_cohort_is_one(problem: Problem, n: int, dtype: str) -> None:
    one = as_processes(maths(problem, n, dtype), steps=7, h=3)
    other = as_cohort(maths(problem, n, dtype), steps=7, h=3)
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
    assert not torch.equal(one[0], one[1])


# evaluation


def test_evaluations_of_means_and_of_workers() -> None:
    m = maths()
    x = m.initial()
    rows = Dense(torch.stack([x.data, x.data * 2]), 1.0)
    middle = m.evaluate(Dense(x.data * 1.5, 1.0), "test")
    assert m.evaluate(rows, "test") == middle
    each = [m.evaluate(m.row(rows, worker), "test") for worker in (0, 1)]
    mean = m.evaluate_each(rows, "test")
    assert mean == m.evaluate_each([m.row(rows, 0), m.row(rows, 1)], "test")
    assert mean.loss == pytest.approx((each[0].loss + each[1].loss) / 2)
    assert mean.accuracy == pytest.approx((each[0].accuracy + each[1].accuracy) / 2)  # type: ignore[operator]
    assert m.evaluate_each(Dense(x.data, 1.0), "train") == m.evaluate(x, "train")


@pytest.mark.parametrize(
    "problem", [DigitsMlp(hidden=(16,)), Quadratic(), LeastSquares(), LogisticRegression()], ids=repr
)
def test_diverging_runs_end_in_infinities_without_warnings(problem: Problem) -> None:
    m = maths(problem, n=3, dtype="float32")
    x = m.initial() + 1.0
    for step in range(6):
        x = x - 1e30 * m.cohort_mean(m.gradients(x, step))
    told = m.evaluate(x, "test")
    assert not np.isfinite(told.loss)
    m.mean([Dense(torch.tensor([huge, 1.0]), 1.0) for huge in (np.inf, -np.inf, 3e38)])
    assert not np.isfinite(m.distance([x, m.initial()]))


def test_evaluations_do_not_depend_on_where_the_model_lies() -> None:
    m = maths(dtype="float32")
    x = m.initial().data
    for offset in range(9):
        moved = torch.empty(len(x) + offset)[offset:].copy_(x)
        assert m.evaluate(Dense(moved, 1.0), "test") == m.evaluate(m.initial(), "test")


# ghosts


def test_ghosts_answer_all_that_torch_does() -> None:
    m: Maths = GhostMaths(100.0, batch=4, train_samples=40)
    x = m.initial()
    g = m.gradient(x, 0, 0)
    m.cancel(g)
    assert (m.batch, m.train_samples, m.metrics) == (4, 40, ())
    assert {v.nbytes for v in (x, g, m.gradients(x, 0), m.mean([x, g]), m.cohort_mean(g))} == {100.0}
    assert m.concat(x.split((30.0, 70.0))).nbytes == 100.0
    assert m.row(x, 3) is x
    assert m.evaluate(x, "test") is m.evaluate_each([x], "test") is None
    assert m.distance([x]) is None
    assert isinstance(x, Ghost)


def test_dense_and_ghosts_do_not_mix() -> None:
    with pytest.raises(TypeError, match="dense values"):
        maths().mean([Ghost(1.0)])


def test_specs_need_no_torch() -> None:
    code = """
import sys
from simulator.maths.ghost import GhostMaths
from simulator.optimizers import Adam
from simulator.problems import CharLstm, CharTransformer, DigitsCnn, DigitsMlp, Mnist1dCnn, SparseMultilabel
from simulator.problems import LeastSquares, LogisticRegression, Quadratic
from simulator.schedules import Cosine
small = (CharTransformer, CharLstm, DigitsCnn, DigitsMlp, Mnist1dCnn, SparseMultilabel)
for kind in (*small, LeastSquares, LogisticRegression, Quadratic):
    problem = kind()
    assert sum(layer.parameters for layer in problem.layers()) == problem.parameters, kind
    assert problem.flop_per_sample > 0 and problem.train_size(4) > 0 and problem.batch_size(4) > 0
heavy = {"torch", "sklearn", "pandas", "scipy.optimize"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_examples_in_docstrings() -> None:
    assert doctest.testmod(pending) == doctest.TestResults(failed=0, attempted=1)
