"""The common bench: what every training method must keep. A new method: one line in `METHODS`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from simulator.compression import Compression, PowerSgd, Qsgd, RandomK, Sign, TopK
from simulator.errors import CohortError
from simulator.job import Job, Stop
from simulator.maths.resumable import Checkpoint
from simulator.optimizers import Momentum, Nesterov, Sgd
from simulator.problems import DigitsMlp, Quadratic
from simulator.result import FRACTIONS, Result
from simulator.run import run
from simulator.strategies import (
    ADPSGD,
    D2,
    DPSGD,
    EASGD,
    KINDS,
    SGP,
    DiLoCo,
    Gossip,
    GradientTracking,
    LocalSGD,
    ParameterServer,
    SlowMo,
    Strategy,
    SyncSGD,
)
from topologies.gossip import CompleteGraph, OnePeerExponential, RandomMatching, RingGraph, StarGraph

N, STEPS, S = 4, 12, 40e6
BURSTS = {
    "per": "burst", "every": "500 ms", "duration": "100 ms", "factor": {"kind": "constant", "value": 3.0},
}  # fmt: skip
LOGNORMAL = {"per": "step", "factor": {"kind": "lognormal", "mean": 1.0, "sigma": 0.3}}
SLOW = {"where": {"worker": 2}, "per": "run", "factor": {"kind": "constant", "value": 2.0}}
ROUGH = (LOGNORMAL, SLOW, BURSTS)


@dataclass(frozen=True)
class Method:
    """A row of the bench.

    Attributes:
        strategy: the method.
        wire: all bytes sent by n workers (and the server) in so many steps, with values of s bytes.
        own: of these, those that the workers' own spans account for: without what a server, or a peer that
            answers, sends; None: all.
        one_way: nobody waits until what was sent last has arrived.
        gossip: its graph, if it needs one.
        compression: of values on their way.
        cohort: whether it runs as one.
        exact: one worker is plain SGD bit for bit; else up to rounding.
        alone: with which fields that is so, if not with the row's.
        lr: a learning rate at which it reads digits.
        loss: how near it comes to the optimum of a quadratic.
    """

    strategy: Strategy
    wire: Callable[[int, int, float], float]
    gossip: Any = None
    compression: Compression | None = None
    own: Callable[[int, int, float], float] | None = None
    one_way: bool = False
    cohort: bool = False
    exact: bool = True
    alone: Strategy | None = None
    lr: float = 0.2
    loss: float = 1e-6

    def __repr__(self) -> str:
        parts = [spec for spec in (self.strategy, self.compression) if spec is not None]
        return " ".join(
            f"{spec.kind} "
            + " ".join(f"{k}={v}" for k, v in spec.model_dump(mode="json", exclude_defaults=True).items())  # type: ignore[attr-defined]
            for spec in parts
        ).strip()


def all_reduces(every: int) -> Callable[[int, int, float], float]:
    """A ring all-reduce of s bytes each so many steps: 2 (n - 1) s."""
    return lambda n, steps, s: steps // every * 2 * (n - 1) * s


def round_trips(every: int) -> Callable[[int, int, float], float]:
    """A first pull, then a push and a pull each so many steps."""
    return lambda n, steps, s: n * s + steps // every * 2 * n * s


def pushes(every: int) -> Callable[[int, int, float], float]:
    """What the workers send of round trips."""
    return lambda n, steps, s: steps // every * n * s


def exchanges(n: int, steps: int, s: float) -> float:
    """A push and its answer each step, without a first pull."""
    return steps * 2 * n * s


def tree(n: int, steps: int, s: float) -> float:
    """Broadcast and reduce over n workers and a master: each worker receives once and sends once."""
    return steps * 2 * n * s


def tree_below(n: int, steps: int, s: float) -> float:
    """Without what the master itself sends, to log2 (n + 1) children, rounded up."""
    return tree(n, steps, s) - steps * n.bit_length() * s


METHODS = [
    Method(SyncSGD(), all_reduces(1), cohort=True),
    Method(SyncSGD(bucket_bytes="1 MB"), all_reduces(1), cohort=True),
    Method(SyncSGD(collective="halving_doubling"), all_reduces(1), cohort=True),
    Method(SyncSGD(backup=1, late="finish"), all_reduces(1), cohort=True, alone=SyncSGD()),
    Method(LocalSGD(h=4), all_reduces(4), cohort=True),
    Method(LocalSGD(h=3, start_step=4), lambda n, steps, s: (steps + 8) // 3 * 2 * (n - 1) * s, cohort=True),
    Method(LocalSGD(h=2, h_by_class={"cpu": 3}, weights="steps"), all_reduces(3)),
    Method(SlowMo(h=4, beta=0.5), all_reduces(4), cohort=True, exact=False, alone=SlowMo(h=4, beta=0)),
    Method(DiLoCo(h=4, outer=Nesterov(lr=0.7, momentum=0.5)), all_reduces(4), cohort=True, exact=False,
           alone=DiLoCo(h=4, outer=Sgd(lr=1))),
    Method(ParameterServer(), round_trips(1), own=pushes(1)),
    Method(ParameterServer(bound=0), round_trips(1), own=pushes(1)),
    Method(ParameterServer(bound=2), round_trips(1), own=pushes(1)),
    Method(ParameterServer(n_sync=4), round_trips(4), own=pushes(4), exact=False, lr=0.05),
    Method(ParameterServer(discipline="processor_sharing"), round_trips(1), own=pushes(1)),
    Method(ParameterServer(bound=2, discipline="processor_sharing"), round_trips(1), own=pushes(1)),
    Method(ParameterServer(discipline="round_robin"), round_trips(1), own=pushes(1)),
    Method(ParameterServer(discipline="lock_free"), round_trips(1), own=pushes(1)),
    Method(EASGD(), exchanges, own=pushes(1), alone=EASGD(beta=0)),
    Method(EASGD(discipline="round_robin", momentum=0.5), exchanges, own=pushes(1), alone=EASGD(beta=0)),
    Method(EASGD(discipline="lock_free", packed=False), exchanges, own=pushes(1), alone=EASGD(beta=0)),
    Method(EASGD(sync_stage=1), tree, own=tree_below, alone=EASGD(sync_stage=1, beta=0)),
    Method(EASGD(sync_stage=1, packed=False), tree, own=tree_below, alone=EASGD(sync_stage=1, beta=0)),
    Method(EASGD(sync_stage=2), lambda n, steps, s: steps * 2 * (n - 1) * s, alone=EASGD(beta=0)),
    Method(EASGD(sync_stage=3, every=3), lambda n, steps, s: steps // 3 * 2 * (n - 1) * s,
           alone=EASGD(beta=0)),
    Method(DPSGD(), lambda n, steps, s: steps * 2 * n * s, RingGraph()),
    Method(DPSGD(order="mix_then_step"), lambda n, steps, s: steps * n * s, OnePeerExponential()),
    Method(DPSGD(delay=1), lambda n, steps, s: steps * n * (n - 1) * s, CompleteGraph()),
    Method(D2(), lambda n, steps, s: steps * 2 * n * s, RingGraph(lazy=0.2)),
    Method(GradientTracking(), lambda n, steps, s: steps * 2 * n * 2 * s, RingGraph()),
    Method(ADPSGD(), lambda n, steps, s: steps * 2 * n * s, RandomMatching(), own=pushes(1)),
    Method(ADPSGD(overlap=False), lambda n, steps, s: steps * 2 * n * s, RingGraph(), own=pushes(1)),
    Method(SGP(), lambda n, steps, s: steps * n * (s + 8), OnePeerExponential()),
    Method(SGP(), lambda n, steps, s: steps * 2 * (n - 1) * (s + 8), StarGraph()),
    Method(Gossip(), pushes(1), CompleteGraph(), own=lambda n, steps, s: 0.0),
    Method(Gossip(every=3), pushes(3), RingGraph(), own=lambda n, steps, s: 0.0),
    Method(Gossip(direction="push"), pushes(1), CompleteGraph(), one_way=True),
]  # fmt: skip
ENTRIES = S / 4  # of a value, 4 bytes each


def all_gathers(code: float) -> Callable[[int, int, float], float]:
    """Every worker's code goes to every other."""
    return lambda n, steps, s: steps * n * (n - 1) * code


def reduced(*codes: float) -> Callable[[int, int, float], float]:
    """Codes that add up, one after the other, by all-reduces."""
    return lambda n, steps, s: steps * 2 * (n - 1) * sum(codes)


def pushed(code: float) -> Callable[[int, int, float], float]:
    """A code up and the model down, after a first pull."""
    return lambda n, steps, s: n * s + steps * n * (code + s)


TOP, SIGN, BYTE = ENTRIES * 0.25 * 8, ENTRIES / 8 + 4, ENTRIES + -(-ENTRIES // 512) * 4
SIDE = 3163  # of the matrix that holds the entries
TENTH, QUARTER = RandomK(share=0.1), TopK(share=0.25)
COMPRESSED = [
    Method(SyncSGD(), all_gathers(TOP), compression=QUARTER, cohort=True),
    Method(SyncSGD(bucket_bytes="10 MB"), reduced(ENTRIES * 0.1 * 4), compression=TENTH, cohort=True),
    Method(SyncSGD(bucket_bytes="1 TB"), all_gathers(SIGN), compression=Sign(), cohort=True),
    Method(SyncSGD(backup=1, late="finish"), all_gathers(BYTE), compression=Qsgd(), cohort=True,
           alone=SyncSGD()),
    Method(SyncSGD(bucket_bytes="1 TB"), reduced(2 * SIDE * 4, 2 * (SIDE - 1) * 4),
           compression=PowerSgd(rank=2), cohort=True),
    Method(LocalSGD(h=4), lambda n, steps, s: all_gathers(TOP)(n, steps // 4, s), compression=QUARTER,
           cohort=True),
    Method(SlowMo(h=4, beta=0.5), lambda n, steps, s: all_gathers(BYTE)(n, steps // 4, s),
           compression=Qsgd(), cohort=True, exact=False, alone=SlowMo(h=4, beta=0)),
    Method(ParameterServer(), pushed(SIGN), compression=Sign(), own=lambda n, steps, s: steps * n * SIGN),
    Method(EASGD(), lambda n, steps, s: steps * n * (TOP + s), compression=QUARTER,
           own=lambda n, steps, s: steps * n * TOP, alone=EASGD(beta=0), loss=1e-5),
    Method(DPSGD(), lambda n, steps, s: steps * 2 * n * TOP, RingGraph(), compression=QUARTER),
    Method(ADPSGD(), lambda n, steps, s: steps * 2 * n * BYTE, CompleteGraph(), compression=Qsgd(),
           own=lambda n, steps, s: steps * n * BYTE),
    Method(SGP(), lambda n, steps, s: steps * n * (BYTE + 8), OnePeerExponential(), compression=Qsgd()),
    Method(Gossip(), lambda n, steps, s: steps * n * BYTE, CompleteGraph(), compression=Qsgd(),
           own=lambda n, steps, s: 0.0, loss=1e-5),
    Method(Gossip(direction="push"), lambda n, steps, s: steps * n * BYTE, CompleteGraph(),
           compression=Qsgd(), one_way=True),
]  # fmt: skip
METHODS += COMPRESSED
every_method = pytest.mark.parametrize("method", METHODS, ids=repr)


@pytest.fixture
def make(make_job) -> Callable[..., Job]:
    """Makes a job of a row: 12 steps of 4 workers among stragglers; fields as in `make_job`."""

    def of(method: Method, n: int = N, **fields: Any) -> Job:
        given = {
            "gossip": method.gossip,
            "compression": method.compression,
            "stragglers": ROUGH,
            "stop": Stop(steps=STEPS),
            "server_seconds": 1e-3,
            "pass_seconds": np.full(n, 0.5e-3),
        }
        return make_job(method.strategy, n, S, **(given | fields))

    return of


def test_the_bench_has_every_shipped_method():
    assert {method.strategy.kind for method in METHODS} == set(KINDS)


@every_method
def test_timing_and_real_maths_give_one_digest(make, method):
    timing = run(make(method)).summary
    real = run(make(method, problem=Quadratic(batch=32))).summary
    assert real["digest"] == timing["digest"]
    assert real["final_loss"] is not None
    learning = ("final_loss", "final_train_loss", "consensus_distance")
    assert timing == real | dict.fromkeys(learning)


@every_method
def test_both_engines_give_one_digest(make, method):
    job = make(method, problem=Quadratic(batch=32), evaluate_every=0.15)
    if not method.cohort:
        with pytest.raises(CohortError, match="--engine process"):
            run(job, "cohort")
        return
    process, cohort = run(job, "process"), run(job, "cohort")
    assert cohort.summary["digest"] == process.summary["digest"]
    assert cohort.summary["final_loss"] == pytest.approx(process.summary["final_loss"], rel=1e-12)
    for column in ("time_s", "samples", "steps", "loss"):
        np.testing.assert_allclose(cohort.curve[column], process.curve[column], rtol=1e-12, err_msg=column)


@every_method
def test_a_run_repeats(make, method):
    job = make(method, problem=Quadratic(), evaluate_every=0.3)
    first, second = run(job), run(job)
    assert first.summary == second.summary
    for name, table in first.tables().items():
        for column, values in table.items():
            np.testing.assert_array_equal(plain(second.tables()[name][column]), plain(values), err_msg=column)
    assert run(replace(job, seed=2)).summary["digest"] != first.summary["digest"]


class Dying(Checkpoint):
    """Saves a run after so many events, and kills it there."""

    dies: int = 0

    def after_event(self, events: int) -> None:
        super().after_event(events)
        if events == self.dies:
            self.save(events)
            raise KeyboardInterrupt


@every_method
@pytest.mark.parametrize("dies", [29, 58])
def test_a_run_that_is_stopped_goes_on_where_it_was(make, method, tmp_path, dies):
    """All that methods, verbs and compressors remember is kept."""
    job = make(method, problem=Quadratic(batch=32), optimizer=Momentum(lr=0.1))
    checkpoint = Dying(tmp_path / "x.npz", "job", 1e9)
    checkpoint.dies = dies
    with pytest.raises(KeyboardInterrupt):
        run(job, "process", checkpoint=checkpoint)
    resumed = run(job, "process", checkpoint=Checkpoint(tmp_path / "x.npz", "job", 1e9))
    assert resumed.summary == run(job, "process").summary


def plain(column: Any) -> np.ndarray:
    """A column as an array, texts written out."""
    return column.texts() if hasattr(column, "texts") else column


@every_method
@pytest.mark.parametrize("optimizer_seconds", [0.0, 0.002])
def test_the_order_of_ties_decides_nothing(make, method, shuffled_ties, optimizer_seconds):
    """Equal workers on equal links: everything happens at once; models and losses included."""
    job = make(
        method, stragglers=(), problem=Quadratic(), evaluate_every=0.1,
        optimizer_seconds=np.full(N, optimizer_seconds), server_seconds=optimizer_seconds,
        optimizer=Momentum(lr=0.1, weight_decay=0.1),
    )  # fmt: skip
    plain_order = run(job, "process")
    for seed in range(3):
        shuffled = run(job, "process", clock=shuffled_ties(seed))
        assert shuffled.summary == plain_order.summary
        np.testing.assert_array_equal(shuffled.curve["loss"], plain_order.curve["loss"])


@every_method
def test_it_solves_a_quadratic(make, method):
    """All workers have one function: whatever is averaged when, the optimum is the same, with loss 0."""
    problem = Quadratic(spread=0, condition=4)
    found = run(make(method, problem=problem, optimizer=Sgd(lr=0.2), stop=Stop(steps=200)))
    assert found.curve["loss"][0] > 1
    assert found.summary["final_loss"] < method.loss


@every_method
def test_it_reads_digits(make, method):
    problem = DigitsMlp(hidden=(32,), batch=32)
    found = run(make(method, problem=problem, optimizer=Sgd(lr=method.lr), stop=Stop(steps=120))).summary
    assert found["final_accuracy"] > 0.85
    assert found["final_accuracy_worker_mean"] > 0.8


@every_method
def test_one_worker_is_plain_sgd(make, method, finished):
    """Bit for bit: one worker's gradients are computed alone."""
    method = replace(method, strategy=method.alone or method.strategy)
    job = make(
        method, n=1, problem=DigitsMlp(hidden=(8,), batch=16), stop=Stop(steps=20),
        stragglers=(LOGNORMAL,), optimizer=Momentum(lr=0.1),
    )  # fmt: skip
    if not method.exact:
        job = replace(job, optimizer=Momentum(lr=0.1, momentum=0.0))
    engine = finished(job)
    maths, optimizer = job.maths(engine.draws), job.optimizer
    x, state = maths.initial(), optimizer.initial()
    for step in range(20):
        x, state = optimizer.apply(x, maths.gradient(x, 0, step), state)
    (own,) = engine.models_now()
    got, want = own.data, x.data
    assert (got == want).all() if method.exact else float((got - want).norm() / want.norm()) < 1e-12


@every_method
def test_bytes_on_the_wire(make, method):
    """As the formula; all have arrived, or wait for a latency to pass; a byte passes two links of a star."""
    found = run(make(method))
    wire, own = method.wire(N, STEPS, S), (method.own or method.wire)(N, STEPS, S)
    summary = found.summary
    assert summary["bytes_sent"] == pytest.approx(wire, rel=1e-9)
    assert summary["bytes_received"] + summary["bytes_in_flight"] == summary["bytes_sent"]
    assert summary["bytes_dropped"] == 0
    assert summary["bytes_in_flight"] <= method.one_way * S
    assert found.links["bytes"].sum() == pytest.approx(2 * wire, rel=1e-6)
    assert summary["bytes_per_link_max"] == pytest.approx(found.links["bytes"].max())
    assert found.workers["bytes_sent"].sum() == pytest.approx(own, rel=1e-9)
    assert found.steps["bytes_sent"].sum() == pytest.approx(found.workers["bytes_sent"].sum(), rel=1e-9)


@every_method
@pytest.mark.parametrize("time", [1.13, 1.71])
def test_bytes_are_conserved_when_a_run_is_cut(make, method, time):
    summary = run(make(method, stop=Stop(time=time))).summary
    after = summary["bytes_received"] + summary["bytes_dropped"] + summary["bytes_in_flight"]
    assert summary["bytes_sent"] == pytest.approx(after, rel=1e-9)
    assert summary["bytes_sent"] > 0
    assert summary["simulated_s"] <= time


@every_method
def test_everything_k_times_faster(make, method):
    """Law 6: bandwidths and speeds times k, latencies and fixed times divided by k."""
    k, bursts = 3, BURSTS | {"every": f"{500 / 3!r} ms", "duration": f"{100 / 3!r} ms"}
    slow = run(make(method))
    fast = run(
        make(
            method, seconds=0.1 / k, bandwidth=f"{k} GB/s", latency=f"{10 / k!r} us", server_seconds=1e-3 / k,
            optimizer_seconds=np.full(N, 0.002 / k), pass_seconds=np.full(N, 0.5e-3 / k),
            stragglers=(LOGNORMAL, SLOW, bursts),
        )
    )  # fmt: skip
    assert fast.summary["simulated_s"] * k == pytest.approx(slow.summary["simulated_s"], rel=1e-9)
    assert len(fast.spans["start_s"]) == len(slow.spans["start_s"])
    for column in ("start_s", "end_s"):
        np.testing.assert_allclose(fast.spans[column] * k, slow.spans[column], rtol=1e-9, atol=1e-9)
    for name in FRACTIONS:
        assert fast.summary[name] == pytest.approx(slow.summary[name], abs=1e-9)


@every_method
@pytest.mark.parametrize("stop", [Stop(steps=STEPS), Stop(time=1.13), Stop(samples=900)], ids=repr)
def test_a_worker_does_one_thing_at_a_time(make, method, stop):
    """Law 7: shares sum to one, for each worker and the run. Law 3: time never goes back."""
    found = run(make(method, stop=stop))
    assert sum(found.summary[name] for name in FRACTIONS) == pytest.approx(1, abs=1e-9)
    np.testing.assert_allclose(sum(found.workers[name] for name in FRACTIONS), 1, atol=1e-9)
    for worker in range(N):
        one_thing_at_a_time(found, worker)


def one_thing_at_a_time(found: Result, worker: int) -> None:
    """Spans that are not hidden fill a worker's time without overlap; each step begins where one ended."""
    spans, steps = found.spans, found.steps
    mine = (spans["worker"] == worker) & ~spans["hidden"]
    start, end = spans["start_s"][mine], spans["end_s"][mine]
    assert (end > start).all()
    assert (start[1:] >= end[:-1] - 1e-12).all()
    assert (end - start).sum() == pytest.approx(found.summary["simulated_s"], rel=1e-9)
    own = steps["worker"] == worker
    assert (steps["start_s"][own][1:] == steps["end_s"][own][:-1]).all()
    parts = sum(
        steps[f"{kind}_s"][own] for kind in ("compute", "communication", "waiting", "bubble", "other")
    )
    np.testing.assert_allclose(parts, (steps["end_s"] - steps["start_s"])[own], rtol=1e-9)
    assert steps["other_s"][own].max(initial=0) < 1e-9


@every_method
def test_adding_a_worker_moves_nobodys_draws(make, method):
    """What slows worker i at its gradient k is the same with one worker more (bursts: at the same time)."""
    stragglers = (LOGNORMAL, SLOW)
    free = {n: np.zeros(n) for n in (N, N + 2)}  # what all send takes longer to decode where more send
    few, many = (run(make(method, n=n, stragglers=stragglers, pass_seconds=free[n])) for n in free)
    for worker in range(N):
        np.testing.assert_allclose(compute(many, worker), compute(few, worker), rtol=1e-9)


def compute(found: Result, worker: int) -> np.ndarray:
    """Seconds computed in each of a worker's steps."""
    return np.asarray(found.steps["compute_s"][found.steps["worker"] == worker])
