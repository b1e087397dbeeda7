"""The laws, one by one: what no other test covers. Where the rest of each is tested:

1. one digest: `test_every_strategy`, `simulator/test_engines`; batched and single gradients
   `simulator/test_maths_batching`; here random jobs.
2. repeatable, other seeds: `test_every_strategy`; here a run that begins late.
3. bytes and time: `test_every_strategy`; bounds by the busiest port are asserted in the product.
4. identities: `validation/test_identities`. 5. real runs: `validation/test_real_gloo`.
6. scaling: `test_every_strategy`; here what more bandwidth does.
7. break-downs: `test_every_strategy`.
8. closed forms: `validation/test_closed_forms`, `simulator/test_server`; here the maximum at a barrier.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from simulator.compression import PowerSgd, Qsgd, RandomK, Sign, TopK
from simulator.errors import CohortError
from simulator.job import Job, Stop, Target
from simulator.placement import Workers
from simulator.problems import Quadratic
from simulator.run import run
from simulator.strategies import DiLoCo, LocalSGD, ParameterServer, SlowMo, SyncSGD
from simulator.strategies.base import Proc, Strategy
from simulator.values import Ghost
from topologies import Placement
from topologies.graph import Graph

COMPRESSORS = (None, None, None, TopK(), RandomK(), Sign(), Qsgd(), PowerSgd())
COLLECTIVES = (None, "ring", "halving_doubling", "tree", "double_tree", "hierarchical", "direct")


def anything(seed: int) -> dict[str, Any]:
    """Arguments of a job: a synchronous method under whatever can happen to it."""
    r = random.Random(seed)
    n = r.choice([2, 3, 4, 5, 8])
    method: Any = r.choice(["buckets", "backup", "local", "slowmo", "diloco"])
    collective = r.choice(COLLECTIVES)
    strategies = {
        "buckets": lambda: SyncSGD(bucket_bytes=r.choice(["1 MB", "5 MB", "1 TB"]), collective=collective),
        "backup": lambda: SyncSGD(backup=r.randint(1, n - 1), collective=collective, late="finish"),
        "slowmo": lambda: SlowMo(h=r.randint(1, 6)),
        "diloco": lambda: DiLoCo(h=r.randint(1, 6)),
        "local": lambda: LocalSGD(h=r.randint(1, 6), start_step=r.choice([0, 0, 3, 7])),
    }
    slow = {"where": {"worker": r.randrange(n)}, "per": "run"}
    stragglers = [
        {"per": "step", "factor": {"kind": "lognormal", "mean": 1.0, "sigma": 0.3}},
        slow | {"factor": {"kind": "constant", "value": r.choice([1.5, 3.0, 6.0])}},
        {
            "per": "burst",
            "every": "500 ms",
            "duration": "100 ms",
            "factor": {"kind": "constant", "value": 3.0},
        },
        {"per": "pause", "every": "800 ms", "duration": "100 ms"},
    ]
    limits: dict[str, Any] = {
        "steps": lambda: {"steps": r.randint(1, 25)},
        "time": lambda: {"time": r.uniform(0.1, 4.0)},
        "samples": lambda: {"samples": r.randint(1, 25 * n)},
        "target": lambda: {"target": Target(loss=r.uniform(0.5, 3.0)), "steps": 25},
        "all": lambda: {
            "steps": r.randint(1, 25),
            "time": r.uniform(0.5, 4.0),
            "samples": r.randint(1, 25 * n),
        },
    }
    kind = r.choice(list(limits))
    learns = kind == "target" or r.random() < 0.5
    return {
        "strategy": strategies[method](), "n": n, "nbytes": r.choice([1e3, 40e6]),
        "stop": Stop(**limits[kind]()),
        "stragglers": tuple(s for s in stragglers if r.random() < 0.5),
        "fidelity": r.choice(["flows", "bundles", "closed_form"]),
        "send_ends": r.choice(["left", "arrived"]), "latency": r.choice(["0 s", "10 us", "5 ms"]),
        "bandwidth": r.choice(["100 MB/s", "1 GB/s"]),
        "optimizer_seconds": np.full(n, r.choice([0.0, 0.002])),
        "problem": Quadratic(dimension=5) if learns else None, "evaluate_every": r.choice([None, 0.05, 0.3]),
        "compression": r.choice(COMPRESSORS), "pass_seconds": np.full(n, r.choice([0.0, 0.001])),
    }  # fmt: skip


def as_cohort(job: Job) -> Any:
    """The cohort's result; None where one cannot keep the law and says so, as with trees."""
    try:
        return run(job, "cohort")
    except CohortError:
        return None


def test_law_1_engines_agree_on_anything(make_job):
    """60 random jobs; digests, tables and curves. Most run as cohorts."""
    agreed = 0
    for seed in range(60):
        job = make_job(**anything(seed))
        cohort = as_cohort(job)
        if cohort is None:
            continue
        process = run(job, "process")
        assert cohort.summary["digest"] == process.summary["digest"], seed
        for name, table in process.tables().items():
            for column, values in table.items():
                if isinstance(values, np.ndarray) and values.dtype.kind in "if":
                    other = cohort.tables()[name][column]
                    np.testing.assert_allclose(
                        other, values, rtol=1e-9, atol=1e-11, err_msg=f"{seed} {column}"
                    )
        agreed += 1
    assert agreed > 45


class Late(Strategy):
    """Another method, begun a million seconds late."""

    kind: str = "late"
    method: Any
    by: float = 1e6

    def worker(self, w: Any) -> Proc[None]:
        yield from w.charge(self.by)
        yield from self.method.worker(w)


@pytest.mark.parametrize("engine", ["process", "cohort"])
@pytest.mark.parametrize(
    "method", [SyncSGD(bucket_bytes="5 MB"), SyncSGD(backup=1, late="finish"), LocalSGD(h=3)], ids=repr
)
def test_law_2_a_run_that_begins_late_takes_as_long(make_job, method, engine):
    """Durations to 1e-9 s, at 1e6 s from the start, where times themselves are 1e-10 s apart."""
    fields = {"stragglers": (), "stop": Stop(steps=8)}
    soon, late = (run(make_job(Late(method=method, by=by), **fields), engine) for by in (1.0, 1e6))
    for column in ("communication_s", "waiting_s"):
        np.testing.assert_allclose(late.steps[column], soon.steps[column], atol=1e-9)
    first = soon.steps["step"] == 1
    for result, by in ((soon, 1.0), (late, 1e6)):
        np.testing.assert_allclose(result.steps["compute_s"] - by * first, 0.102, atol=1e-9)


# law 6


ONE_AT_A_TIME = [SyncSGD(bucket_bytes="1 TB"), LocalSGD(h=3), ParameterServer(bound=0)]


def one_at_a_time(job: Job) -> bool:
    """Whether at most one transfer is under way at a time."""
    transfers = run(job).transfers
    order = np.argsort(transfers["begin_s"])
    begin, end = transfers["begin_s"][order], transfers["end_s"][order]
    return bool((begin[1:] >= end[:-1] - 1e-12).all())


@pytest.mark.parametrize("method", ONE_AT_A_TIME, ids=repr)
def test_law_6_more_bandwidth_never_lengthens_a_run_of_single_transfers(make_job, method):
    factors = ({"per": "step", "factor": {"kind": "lognormal", "mean": 1.0, "sigma": 0.5}},)
    base = make_job(method, stragglers=factors, stop=Stop(steps=9))
    unlike = base.fabric.bandwidth * np.random.default_rng(1).uniform(0.5, 2.0, base.fabric.links)

    def took(bandwidth: np.ndarray) -> float:
        job = replace(base, fabric=replace(base.fabric, bandwidth=bandwidth))
        assert one_at_a_time(job)
        return float(run(job).summary["simulated_s"])

    before, shorter = took(unlike), 0
    for link in range(base.fabric.links):
        for more in (1.1, 4.0):
            after = took(np.where(np.arange(base.fabric.links) == link, more * unlike, unlike))
            assert after <= before * (1 + 1e-12)
            shorter += after < before * (1 - 1e-6)
    assert shorter
    assert took(2 * unlike) < before


class TwoFlows(Strategy):
    """A: 20 units over L1 and L2. B: 90 units over L2, then 20 s of compute."""

    kind: str = "two_flows"

    def worker(self, w: Any) -> Proc[None]:
        for _ in w.steps():
            if w.rank == 0:
                yield from w.send(2, Ghost(20.0))
            elif w.rank == 1:
                yield from w.send(2, Ghost(90.0))
                yield from w.charge(20.0)


def test_law_6_more_bandwidth_may_lengthen_a_run_of_several(make_job):
    """L2 = 10; with L1 = 1 it takes 30 s, with L1 = 10 it takes 31 s."""
    took = []
    for first in (1, 10):
        host = {"kind": "host", "devices": {"count": 1}}
        spec = {
            "kind": "graph",
            "nodes": [{"name": name, **host} for name in "abc"] + [{"name": "s", "kind": "switch"}],
            "links": [
                {"between": ["a", "s"], "bandwidth": f"{first} B/s", "latency": "0 s"},
                {"between": ["b", "s"], "bandwidth": "1000 B/s", "latency": "0 s"},
                {"between": ["s", "c"], "bandwidth": "10 B/s", "latency": "0 s"},
            ],
        }
        fabric = Graph.model_validate(spec).build()
        workers = Workers.of(fabric, Placement(workers=3).place(fabric))
        job = make_job(TwoFlows(), 3, fabric=fabric, workers=workers, stragglers=(), stop=Stop(steps=1))
        took.append(run(job).summary["simulated_s"])
    assert took == pytest.approx([30.0, 31.0], rel=1e-9)


# law 8


@pytest.mark.parametrize("n", [1, 2, 8, 32])
def test_law_8_the_slowest_of_exponential_workers(make_job, n):
    """At a barrier the mean step is H_n = 1 + 1/2 + ... + 1/n means; the others wait (H_n - 1) of it."""
    steps = 4000
    factor = ({"per": "step", "factor": {"kind": "exponential", "mean": 1.0}},)
    job = make_job(
        SyncSGD(bucket_bytes="1 TB"), n, 1.0, latency="0 s", stragglers=factor, record="summary",
        optimizer_seconds=np.zeros(n), stop=Stop(steps=steps),
    )  # fmt: skip
    summary = run(job, "cohort").summary
    harmonic = float((1 / np.arange(1, n + 1)).sum())
    deviation = float(np.sqrt((1 / np.arange(1, n + 1) ** 2).sum() / steps))
    assert summary["step_time_s"]["mean"] / 0.1 == pytest.approx(harmonic, abs=4 * deviation)
    assert summary["waiting_fraction"] == pytest.approx(1 - 1 / harmonic, abs=0.02)


def test_law_8_a_barrier_waits_for_the_slowest(make_job):
    """The verb itself: all leave together, with the last that came, and its messages' latencies."""

    class Barrier(Strategy):
        kind: str = "barrier"

        def worker(self, w: Any) -> Proc[None]:
            for _ in w.steps():
                yield from w.charge(0.1 * (w.rank + 1))
                yield from w.barrier()

    found = run(make_job(Barrier(), 4, latency="0 s", stragglers=(), stop=Stop(steps=3)))
    assert found.summary["simulated_s"] == pytest.approx(3 * 0.4, rel=1e-9)
    np.testing.assert_allclose(found.workers["waiting_fraction"], [0.75, 0.5, 0.25, 0.0], atol=1e-9)
    assert found.summary["bytes_sent"] == 0
    assert found.summary["rounds"] == 3
