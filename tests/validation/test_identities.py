"""Law 4: methods that are one map, run on the engine, in float64: 50 steps, models equal to 1e-10 or better.

8 workers, a quadratic with an optimum and curvatures for each, exact gradients, stopped far from the optimum,
as in the identity claims p05i, p06i, p06j, p11j and p14i; cases 27 and 28 of the peers' bug reports.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from simulator.job import Job, Stop
from simulator.optimizers import Adam, Momentum, Nesterov, Optimizer, Sgd
from simulator.problems import DigitsMlp, Quadratic
from simulator.run import run
from simulator.strategies import ADPSGD, DPSGD, LocalSGD, ParameterServer, SyncSGD
from simulator.strategies.base import Proc, Strategy
from simulator.streams import Draws
from topologies.gossip import CompleteGraph, RandomMatching, RingGraph

N, STEPS = 8, 50
ROUGH = (
    {"per": "step", "factor": {"kind": "lognormal", "mean": 1.0, "sigma": 0.3}},
    {"where": {"worker": 2}, "per": "run", "factor": {"kind": "constant", "value": 3.0}},
)
PLAIN = Sgd(lr=0.05)
DRAWS = Draws(1)  # of a job's default seed


@pytest.fixture
def model(make_job, finished) -> Callable[..., torch.Tensor]:
    """What a method has learned: the final model of its run."""

    def of(strategy: Strategy, n: int = N, *, engine: str = "process", **fields: Any) -> torch.Tensor:
        return finished(job(make_job, strategy, n, **fields), engine).model_now().data

    return of


def job(make_job: Any, strategy: Strategy, n: int = N, **fields: Any) -> Job:
    given = {"problem": Quadratic(dimension=10), "optimizer": PLAIN, "stop": Stop(steps=STEPS)}
    # What is learned does not hang on the network; closed forms are the quickest.
    given |= {"stragglers": ROUGH, "fidelity": "closed_form"}
    return make_job(strategy, n, **(given | fields))


def apart(first: torch.Tensor, second: torch.Tensor) -> float:
    return float((first - second).norm() / second.norm())


def large_batch(optimizer: Optimizer, problem: Quadratic, n: int = N) -> torch.Tensor:
    """Plain descent on the mean of the first n workers' functions, with torch's own arithmetic."""
    a, c = map(torch.from_numpy, problem.functions(n))
    x = torch.from_numpy(problem.initial(DRAWS)).clone().requires_grad_()
    kinds = {
        "sgd": lambda p: torch.optim.SGD(p, lr=optimizer.lr),
        "momentum": lambda p: torch.optim.SGD(p, lr=optimizer.lr, momentum=0.9),
        "nesterov": lambda p: torch.optim.SGD(p, lr=optimizer.lr, momentum=0.9, nesterov=True),
        "adam": lambda p: torch.optim.Adam(p, lr=optimizer.lr),
    }
    descent = kinds[optimizer.kind]([x])  # type: ignore[attr-defined]
    for _ in range(STEPS):
        descent.zero_grad()
        (0.5 * (a * (x - c) ** 2).sum(1).mean()).backward()
        descent.step()
    return x.detach()


@pytest.mark.parametrize("engine", ["process", "cohort"])
@pytest.mark.parametrize("optimizer", [PLAIN, Momentum(lr=0.02), Nesterov(lr=0.02), Adam(lr=0.02)], ids=repr)
def test_all_reduce_is_large_batch_sgd(model, optimizer, engine):
    learned = model(SyncSGD(), optimizer=optimizer, engine=engine)
    assert apart(learned, large_batch(optimizer, Quadratic(dimension=10))) < 1e-10


def test_all_reduce_of_batches_is_one_large_batch(model):
    """On data: the mean of the workers' gradients is the gradient of their samples together."""
    problem, lr = DigitsMlp(hidden=(12,), batch=8), 0.2
    learned = model(SyncSGD(bucket_bytes="1 MB"), 4, problem=problem, optimizer=Sgd(lr=lr))
    batches, task = problem.batches(4, DRAWS), problem.task("float64", 4)
    x = torch.from_numpy(problem.initial(DRAWS))
    for step in range(STEPS):
        samples = np.concatenate([batches.one(worker, step) for worker in range(4)])
        x = x - lr * task.gradients([x], samples[None], [0])[0]
    assert apart(learned, x) < 1e-10


def test_buckets_change_no_bit(model):
    whole, cut = (model(SyncSGD(bucket_bytes=size)) for size in ("1 TB", "3 MB"))
    assert (whole == cut).all()


@pytest.mark.parametrize("engine", ["process", "cohort"])
@pytest.mark.parametrize("optimizer", [PLAIN, Momentum(lr=0.02)], ids=repr)
def test_local_sgd_with_h_1_is_synchronous(model, optimizer, engine):
    """The mean of local heavy balls is the heavy ball of the mean gradient, so it holds with momentum too."""
    local = model(LocalSGD(h=1), optimizer=optimizer, engine=engine)
    assert apart(local, model(SyncSGD(), optimizer=optimizer)) < 1e-10


@pytest.mark.parametrize("optimizer", [PLAIN, Momentum(lr=0.02), Adam(lr=0.02)], ids=repr)
def test_post_local_that_starts_after_the_end_is_synchronous(model, optimizer):
    late = model(LocalSGD(h=8, start_step=1000), optimizer=optimizer)
    assert apart(late, model(SyncSGD(), optimizer=optimizer)) < 1e-10
    early = model(LocalSGD(h=8, start_step=10), optimizer=optimizer)
    assert apart(early, late) > 1e-3


def test_equal_h_of_both_classes_is_local_sgd(make_job, finished):
    """p01i, and unequal h with weights by steps as written out."""
    classes = ("fast",) * 4 + ("slow",) * 4

    def learned(strategy: Strategy) -> torch.Tensor:
        base = job(make_job, strategy)
        return finished(replace(base, workers=replace(base.workers, kind=classes))).model_now().data

    assert apart(learned(LocalSGD(h_by_class={"fast": 8, "slow": 8})), learned(LocalSGD(h=8))) < 1e-10
    h = {"fast": 10, "slow": 4}
    a, c = map(torch.from_numpy, Quadratic(dimension=10).functions(N))
    x = torch.from_numpy(Quadratic(dimension=10).initial(DRAWS))
    for _ in range(STEPS // h["fast"]):
        rows = [x.clone() for _ in range(N)]
        for worker, kind in enumerate(classes):
            for _ in range(h[kind]):
                rows[worker] -= PLAIN.lr * a[worker] * (rows[worker] - c[worker])
        x = sum(h[kind] * row for kind, row in zip(classes, rows, strict=True)) / sum(h[k] for k in classes)
    assert apart(learned(LocalSGD(h_by_class=h, weights="steps")), x) < 1e-10
    assert apart(learned(LocalSGD(h_by_class=h)), x) > 1e-3


def test_classes_of_unlike_h_average_equally_often(make_job):
    """Whatever the number of steps: else some would wait for ever."""
    classes = ("fast",) * 2 + ("slow",) * 2
    for steps in (8, 13, 23, 49):
        for method in (
            LocalSGD(h_by_class={"fast": 7, "slow": 2, "absent": 9}),
            LocalSGD(h=7, h_by_class={"slow": 2}),
            LocalSGD(h=2, h_by_class={"fast": 7}),
        ):
            base = job(make_job, method, 4, problem=None, stop=Stop(steps=steps))
            summary = run(replace(base, workers=replace(base.workers, kind=classes))).summary
            assert summary["rounds"] == steps // 7
            assert summary["steps_per_worker_max"] == steps
            assert summary["steps_per_worker_min"] == steps * 2 // 7


def test_gossip_on_a_complete_graph_is_all_reduce(model):
    """p06i, case 28. The other order is another map."""
    sync = model(SyncSGD())
    assert apart(model(DPSGD(), gossip=CompleteGraph()), sync) < 1e-10
    assert apart(model(DPSGD(order="mix_then_step"), gossip=CompleteGraph()), sync) > 1e-4


@pytest.mark.parametrize("graph", [RingGraph(), CompleteGraph()], ids=repr)
def test_delay_by_one_is_mix_then_step(make_job, model, graph):
    """p06j: W T - lr G(W) in both; only the time differs."""
    delayed, plain = DPSGD(delay=1), DPSGD(order="mix_then_step")
    assert (model(delayed, gossip=graph) == model(plain, gossip=graph)).all()
    times = [run(job(make_job, s, gossip=graph)).summary["simulated_s"] for s in (delayed, plain)]
    assert times[0] < times[1]


@pytest.mark.parametrize("optimizer", [PLAIN, Momentum(lr=0.02), Adam(lr=0.02)], ids=repr)
def test_a_server_with_bound_0_is_synchronous(model, optimizer):
    """Bit for bit: both add up in rank order, whoever comes first."""
    server = model(ParameterServer(bound=0), optimizer=optimizer)
    assert (server == model(SyncSGD(), optimizer=optimizer)).all()


@pytest.mark.parametrize("n_sync", [2, 5])
def test_a_server_with_bound_0_and_local_steps_is_local_sgd(model, n_sync):
    """The mean of the changes since the last pull is the change of the mean."""
    assert apart(model(ParameterServer(bound=0, n_sync=n_sync)), model(LocalSGD(h=n_sync))) < 1e-10


@pytest.mark.parametrize("bound", [0, 3, "none"])
@pytest.mark.parametrize("n_sync", [1, 5, 10])
def test_one_client_is_plain_sgd_for_every_n_sync(model, n_sync, bound):
    """p05i."""
    client = model(ParameterServer(n_sync=n_sync, bound=bound), 1, stragglers=())
    assert apart(client, model(SyncSGD(), 1, stragglers=())) < 1e-12


class AveragedAsWell(Strategy):
    """Gradients averaged each step, and models every fourth: case 27 (pytorch issue 74157)."""

    kind: str = "averaged_as_well"

    def worker(self, w: Any) -> Proc[None]:
        x, opt = w.initial_model(), w.optimizer()
        for t in w.steps():
            g = yield from w.gradient(x)
            g = yield from w.all_mean(g)
            x, opt = w.apply(x, g, opt)
            if t % 4 == 0:
                x = yield from w.all_mean(x)
            w.report(x)


@pytest.mark.parametrize("engine", ["process", "cohort"])
@pytest.mark.parametrize("problem", [Quadratic(dimension=10), DigitsMlp(hidden=(12,), batch=8)], ids=repr)
def test_averaging_equal_models_changes_no_bit(model, problem, engine):
    fields = {"problem": problem, "optimizer": Momentum(lr=0.05), "engine": engine}
    assert (model(AveragedAsWell(), **fields) == model(SyncSGD(), **fields)).all()


class OnlyMixing(Strategy):
    """Workers start along the slowest mode of a ring, and mix."""

    needs_gossip = True
    kind: str = "only_mixing"

    def worker(self, w: Any) -> Proc[None]:
        x = w.initial_model() * float(np.cos(2 * np.pi * w.rank / w.size))
        for _ in w.steps():
            x = yield from w.neighbour_mean(x)
            w.report(x)


@pytest.mark.parametrize("n", [4, 5, 8])
def test_a_ring_contracts_as_its_second_eigenvalue(make_job, finished, n):
    """Case 28: 1/3 + 2/3 cos(2 pi / n) a step."""
    size = {}
    for steps in (1, 4):
        engine = finished(job(make_job, OnlyMixing(), n, gossip=RingGraph(), stop=Stop(steps=steps)))
        size[steps] = torch.stack([w.model.data for w in engine.workers]).norm()
    factor = 1 / 3 + 2 / 3 * np.cos(2 * np.pi / n)
    assert float(size[4] / size[1]) == pytest.approx(factor**3, rel=1e-12)


# backup workers: a late worker's gradient is dropped, it takes the others' mean and goes on


@pytest.mark.parametrize("engine", ["process", "cohort"])
@pytest.mark.parametrize("late", [1, 3])
def test_backup_workers_leave_out_who_is_late(make_job, finished, engine, late):
    """The last ranks are always late, so the others' large batch is what is learned, by all."""
    always = [
        {"where": {"worker": N - 1 - k}, "per": "run", "factor": {"kind": "constant", "value": 5.0}}
        for k in range(late)
    ]
    base = job(make_job, SyncSGD(backup=late, late="finish"), stragglers=(ROUGH[0], *always))
    engine_of_run = finished(base, engine)
    wanted = large_batch(PLAIN, Quadratic(dimension=10), N - late)
    assert apart(engine_of_run.model_now().data, wanted) < 1e-10
    summary = run(base, engine).summary
    assert summary["consensus_distance"] == 0
    assert summary["samples_wasted"] == late * STEPS
    assert summary["samples"] == N * STEPS


def test_of_equal_workers_the_last_ranks_are_late(model):
    """Ties by rank."""
    learned = model(SyncSGD(backup=2, late="finish"), stragglers=())
    assert apart(learned, large_batch(PLAIN, Quadratic(dimension=10), N - 2)) < 1e-10


def test_a_late_worker_goes_on_at_once(make_job):
    """It neither waits nor is waited for: its steps take its gradients' time, the others' theirs."""
    slow = {"where": {"worker": 3}, "per": "run", "factor": {"kind": "constant", "value": 10.0}}
    found = run(job(make_job, SyncSGD(backup=1, late="finish"), 4, stragglers=(slow,), problem=None))
    steps, late = found.steps, found.steps["worker"] == 3
    length = steps["end_s"] - steps["start_s"]
    np.testing.assert_allclose(length[late], 10 * (0.1 + 0.002), rtol=1e-12)
    exchange = 2 * 3 * (20e-6 + 40e6 / (4 * 1e9))
    np.testing.assert_allclose(length[~late], 0.1 + exchange + 0.002, rtol=1e-9)


class OnlyAverages(Strategy):
    """Unlike models, each averaged with the next worker's, all at once."""

    kind: str = "only_averages"

    def worker(self, w: Any) -> Proc[None]:
        w.model = w.initial_model() * float(w.rank**2)
        for _ in w.steps():
            yield from w.average_with((w.rank + 1) % w.size)


@pytest.mark.parametrize("n", [2, 5, 8])
def test_pair_averages_are_atomic(make_job, finished, n):
    """One after the other, ties by rank: the mean stays, and two that ask each other end at their mean."""
    averages = job(
        make_job, OnlyAverages(), n, stop=Stop(steps=3), stragglers=(), optimizer_seconds=np.zeros(n)
    )
    engine = finished(averages)
    rows = np.arange(n) ** 2.0
    for _ in range(3):
        for rank in range(n):
            peer = (rank + 1) % n
            rows[[rank, peer]] = rows[[rank, peer]].mean()
    start = engine.maths.initial().data
    for worker, row in zip(engine.workers, rows, strict=True):
        assert apart(worker.model.data, start * row) < 1e-12
    assert rows.mean() == pytest.approx((np.arange(n) ** 2).mean())


@pytest.mark.parametrize("graph", [CompleteGraph(), RingGraph(), RandomMatching()], ids=repr)
def test_asynchronous_gossip_stays_together(make_job, graph):
    """Equal workers all ask at once, and the network is slower than they: averages overlap, and hold."""
    asked = job(make_job, ADPSGD(), 16, gossip=graph, stragglers=(), bandwidth="200 MB/s")
    assert run(asked).summary["consensus_distance"] < 1


def test_a_late_worker_skips_to_the_round_under_way(make_job, finished):
    """One worker is 5.5 times slower: nobody waits for it, its gradients are dropped, it takes the means."""
    slow = {"where": {"worker": 3}, "per": "run", "factor": {"kind": "constant", "value": 5.5}}
    base = job(make_job, SyncSGD(backup=1), 4, stragglers=(slow,))
    found, result = finished(base), run(base)
    *fast, late = result.workers["steps"].tolist()
    assert fast == [STEPS] * 3
    assert 6 <= late <= STEPS / 3
    assert result.summary["samples_wasted"] == late * found.batch
    assert result.summary["simulated_s"] < 0.25 * STEPS  # the others' steps, not the slow one's
    models = [worker.model_at(1e9).data for worker in found.workers]
    assert all(apart(own, models[0]) == 0 for own in models)
    assert apart(models[0], large_batch(PLAIN, Quadratic(dimension=10), 3)) < 1e-10
