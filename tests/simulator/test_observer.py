"""Evaluations: when they are made, what they see, what they cost; and how they end a run, in both engines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from simulator.job import Stop, Target
from simulator.optimizers import Sgd
from simulator.problems import DigitsMlp, Quadratic
from simulator.result import Result
from simulator.run import run
from simulator.strategies import ADPSGD, DPSGD, LocalSGD, ParameterServer, SyncSGD
from simulator.streams import Draws
from topologies.gossip import CompleteGraph, RingGraph

LOGNORMAL = {"per": "step", "factor": {"kind": "lognormal", "mean": 1.0, "sigma": 0.3}}
SLOW = {"where": {"worker": 2}, "per": "run", "factor": {"kind": "constant", "value": 2.0}}
METHODS = [
    *(SyncSGD(), SyncSGD(backup=1, late="finish"), LocalSGD(h=4)),
    *(ParameterServer(), ParameterServer(bound=0), DPSGD(), ADPSGD()),
]
every_method = pytest.mark.parametrize("strategy", METHODS, ids=repr)
COHORTS = [
    SyncSGD(),
    SyncSGD(bucket_bytes="1 MB"),
    SyncSGD(backup=1, late="finish"),
    LocalSGD(h=4),
    LocalSGD(h=3, start_step=4),
]


@pytest.fixture
def learn(make_job):
    """Runs a method on a quadratic, evaluated every 0.25 s."""

    def of(strategy: Any, engine: str = "auto", **fields: Any) -> Result:
        given = {"problem": Quadratic(dimension=8), "gossip": RingGraph(), "stragglers": (LOGNORMAL, SLOW)}
        return run(make_job(strategy, **(given | {"evaluate_every": 0.25} | fields)), engine)

    return of


def seen(found: Result, model: str = "method", split: str = "test") -> np.ndarray:
    """Rows of the curve."""
    curve = found.curve
    return (curve["model"].texts() == model) & (curve["split"].texts() == split)


@every_method
def test_at_the_start_every_so_often_and_at_the_end(learn, strategy):
    found = learn(strategy, stop=Stop(steps=10))
    times = found.curve["time_s"][seen(found)]
    end = found.summary["simulated_s"]
    assert times.tolist() == [*np.arange(0.0, end, 0.25).tolist(), end]
    problem = Quadratic(dimension=8)
    a, c = problem.functions(4)
    start = problem.initial(Draws(1))
    assert found.curve["loss"][0] == pytest.approx(0.5 * (a * (start - c) ** 2).sum(1).mean(), rel=1e-12)
    assert (found.curve["steps"][0], found.curve["samples"][0]) == (0, 0)


@every_method
def test_evaluations_take_no_time(learn, strategy):
    runs = [learn(strategy, evaluate_every=every, stop=Stop(steps=10)) for every in (None, 0.03, 0.25)]
    assert len({r.summary["digest"] for r in runs}) == 1
    assert len({r.summary["final_loss"] for r in runs}) == 1
    assert [int(seen(r).sum()) for r in runs[:1]] == [2]


@every_method
def test_counts_are_of_the_steps_that_have_ended(learn, strategy):
    found = learn(strategy, evaluate_every=0.07, stop=Stop(steps=10))
    ends, curve = np.sort(found.steps["end_s"]), found.curve
    assert curve["steps"].tolist() == np.searchsorted(ends, curve["time_s"], side="right").tolist()
    assert curve["samples"].tolist() == curve["steps"].tolist()
    np.testing.assert_allclose(curve["epoch"], curve["samples"] / 4)


@pytest.mark.parametrize("engine", ["process", "cohort"])
def test_what_happens_at_the_very_time_is_seen(learn, engine):
    """Steps of 1/4 s, exact in binary: at k / 4 s the model of step k is evaluated, in any engine."""
    fields = {"stragglers": (), "nbytes": 1e-30, "latency": "0 s", "optimizer_seconds": np.zeros(4)}
    found = learn(LocalSGD(h=100), engine, seconds=0.25, stop=Stop(steps=6), **fields)
    loss = found.curve["loss"][seen(found)]
    problem = Quadratic(dimension=8)
    a, c = map(torch.from_numpy, problem.functions(4))
    x = torch.from_numpy(problem.initial(Draws(1))).repeat(4, 1)
    for step in range(7):
        expected = float(0.5 * (a * (x.mean(0) - c) ** 2).sum(1).mean())
        assert loss[step] == pytest.approx(expected, rel=1e-12)
        x = x - 0.1 * a * (x - c)
    assert found.curve["steps"][seen(found)].tolist() == [4 * k for k in range(7)]


@pytest.mark.parametrize("stop", [Stop(time=1.0), Stop(steps=7), Stop(samples=9), Stop(time=1.1)], ids=repr)
@every_method
def test_the_end_is_evaluated_once(learn, strategy, stop):
    """Also where an evaluation was due at that very time."""
    found = learn(strategy, stop=stop)
    times = found.curve["time_s"][seen(found)]
    assert (np.diff(times) > 0).all()
    assert found.summary["final_loss"] == found.curve["loss"][seen(found)][-1]
    if stop.time is not None:
        assert times[-1] == stop.time
    assert found.summary["final_train_loss"] == found.curve["loss"][seen(found, split="train")][-1]


# the target


@every_method
def test_the_first_evaluation_that_meets_the_target_ends_the_run(learn, strategy):
    free = learn(strategy, stop=Stop(steps=40))
    loss, times = free.curve["loss"][seen(free)], free.curve["time_s"][seen(free)]
    target = Target(loss=float(loss[4]))
    first = int(np.argmax(loss <= target.loss))
    ended = learn(strategy, stop=Stop(steps=40, target=target))
    summary = ended.summary
    assert summary["time_to_target_s"] == times[first] == first * 0.25
    assert summary["samples_to_target"] == free.curve["samples"][seen(free)][first]
    assert times[first] - 0.25 < summary["simulated_s"] <= times[first]
    assert ended.curve["loss"][seen(ended)].tolist() == loss[: first + 1].tolist()
    assert summary["final_loss"] <= target.loss


def test_a_target_that_is_never_met(learn):
    summary = learn(SyncSGD(), stop=Stop(steps=5, target=Target(loss=0.0))).summary
    assert summary["time_to_target_s"] is summary["samples_to_target"] is None
    assert summary["steps"] == 20


def test_a_target_met_at_the_start(learn):
    for engine in ("process", "cohort"):
        summary = learn(SyncSGD(), engine, stop=Stop(steps=5, target=Target(loss=1e9))).summary
        assert summary["time_to_target_s"] == summary["simulated_s"] == summary["steps"] == 0
        assert summary["idle_fraction"] == 1


def test_a_target_of_two_parts_wants_both(learn):
    """Loss is met long before accuracy, or the other way round."""
    fields = {"problem": DigitsMlp(hidden=(16,), batch=16), "optimizer": Sgd(lr=0.5)}
    times = [
        learn(SyncSGD(), stop=Stop(time=20.0, target=target), **fields).summary["time_to_target_s"]
        for target in (Target(loss=1.9), Target(accuracy=0.8), Target(accuracy=0.8, loss=1.9))
    ]
    assert times[0] != times[1]
    assert times[2] == max(times[0], times[1])


STOPS = [
    Stop(steps=40, target=Target(loss=2.0)),
    Stop(steps=40, samples=61, target=Target(loss=1.0)),
    Stop(time=2.345),
    Stop(time=2.345, steps=9),
    Stop(samples=37),
    Stop(samples=37, time=1.0),
    Stop(samples=37, steps=10),
]


@pytest.mark.parametrize("stop", STOPS, ids=repr)
@pytest.mark.parametrize("every", [None, 0.05, 0.4])
@pytest.mark.parametrize("strategy", COHORTS, ids=repr)
def test_both_engines_end_and_see_alike(learn, strategy, stop, every):
    process, cohort = (
        learn(strategy, engine, stop=stop, evaluate_every=every) for engine in ("process", "cohort")
    )
    for key in (
        "digest",
        "simulated_s",
        "steps",
        "samples",
        "rounds",
        "time_to_target_s",
        "samples_to_target",
    ):
        assert cohort.summary[key] == process.summary[key], key
    for key in ("final_loss", "final_train_loss", "consensus_distance"):
        assert cohort.summary[key] == pytest.approx(process.summary[key], rel=1e-10), key
    for column in ("time_s", "samples", "steps", "epoch", "loss", "accuracy"):
        np.testing.assert_allclose(cohort.curve[column], process.curve[column], rtol=1e-10, err_msg=column)


@pytest.mark.parametrize("engine", ["process", "cohort"])
@pytest.mark.parametrize("samples", [1, 5, 8])
def test_what_ends_at_the_same_instant_as_the_last_sample_counts(learn, engine, samples):
    """Four equal workers end their steps together."""
    found = learn(LocalSGD(h=3), engine, stragglers=(), stop=Stop(samples=samples)).summary
    assert found["samples"] == found["steps"] == -(-samples // 4) * 4


# whose model it is


@pytest.mark.parametrize("strategy", [LocalSGD(h=4), DPSGD(), ADPSGD()], ids=repr)
def test_the_methods_model_is_the_workers_mean(make_job, finished, learn, strategy):
    """And the consensus distance is sqrt(mean |x_i - mean|^2) / |mean|."""
    fields = {"gossip": RingGraph(), "stop": Stop(steps=7), "stragglers": (LOGNORMAL,)}
    problem = Quadratic(dimension=8)
    engine = finished(make_job(strategy, problem=problem, **fields))
    models = torch.stack([engine.workers[w].model.data for w in range(4)])
    mean = models.mean(0)
    a, c = map(torch.from_numpy, problem.functions(4))
    summary = learn(strategy, **fields).summary
    assert summary["final_loss"] == pytest.approx(float(0.5 * (a * (mean - c) ** 2).sum(1).mean()), rel=1e-12)
    apart = float(((models - mean) ** 2).sum(1).mean().sqrt() / mean.norm())
    assert apart > 1e-3
    assert summary["consensus_distance"] == pytest.approx(apart, rel=1e-9)


def test_a_servers_model_is_the_methods(make_job, finished, learn):
    fields = {"stop": Stop(steps=7), "stragglers": (LOGNORMAL,)}
    engine = finished(make_job(ParameterServer(), problem=Quadratic(dimension=8), **fields))
    a, c = map(torch.from_numpy, Quadratic(dimension=8).functions(4))
    x = engine.the_server().model.data
    loss = float(0.5 * (a * (x - c) ** 2).sum(1).mean())
    assert learn(ParameterServer(), **fields).summary["final_loss"] == pytest.approx(loss, rel=1e-12)


def test_workers_own_models_are_evaluated_at_the_end(learn):
    """The mean of their accuracies, which is not the accuracy of their mean."""
    problem = DigitsMlp(hidden=(16,), batch=16, split={"kind": "label"})
    fields = {"problem": problem, "stop": Stop(steps=30), "optimizer_seconds": np.zeros(4)}
    found = learn(LocalSGD(h=40), **fields)
    own = found.curve["accuracy"][seen(found, "worker_mean")]
    assert own.tolist() == [found.summary["final_accuracy_worker_mean"]]
    assert found.summary["final_accuracy"] > own[0] + 0.02


def test_the_split_asked_for(learn):
    problem = DigitsMlp(hidden=(16,), batch=16)
    for split in ("train", "test"):
        found = learn(SyncSGD(), problem=problem, evaluate_split=split, stop=Stop(steps=10))
        assert seen(found, split=split).sum() > 2
        assert seen(found, split="train")[-2]  # the end is evaluated on both
        assert found.summary["final_loss"] == found.curve["loss"][seen(found, split="test")][-1]
        assert found.summary["final_train_loss"] == found.curve["loss"][seen(found, split="train")][-1]


def test_a_timing_only_run_has_no_curve(make_job):
    found = run(make_job(SyncSGD(), evaluate_every=0.1))
    assert found.curve is None
    assert found.summary["final_loss"] is None


def test_models_are_not_kept(make_job, finished):
    """However long a run without evaluations is, a worker keeps what may still be asked for."""
    for stop in (Stop(steps=50), Stop(samples=200), Stop(time=5.0)):
        fields = {"problem": Quadratic(dimension=8), "stop": stop, "gossip": CompleteGraph()}
        for strategy in (LocalSGD(h=8), ADPSGD(), ParameterServer()):
            engine = finished(make_job(strategy, **fields))
            assert max(len(worker._models) for worker in engine.workers) <= 3
        assert len(finished(make_job(LocalSGD(h=8), **fields), "cohort").cohort._models) <= 20
