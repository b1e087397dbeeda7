"""Time and bytes of methods against arithmetic: the exact timing claims of claims.csv for what exists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from simulator.cost import StepTime
from simulator.job import Stop
from simulator.run import run
from simulator.strategies import EASGD, DiLoCo, Gossip, LocalSGD, SlowMo, SyncSGD
from topologies.gossip import CompleteGraph

FREE = {"bandwidth": "1000000 Gbit/s", "latency": "0 s"}
GAMMA = {"per": "step", "factor": {"kind": "gamma", "mean": 1.0, "cv": 1.0}}


@pytest.fixture
def timed(make_job) -> Callable[..., dict[str, Any]]:
    """The summary of a timing-only run of equal workers without stragglers; fields as in `make_job`."""

    def of(strategy: Any, n: int, steps: int, **fields: Any) -> dict[str, Any]:
        given = {
            "stragglers": (),
            "optimizer_seconds": np.zeros(n),
            "stop": Stop(steps=steps),
            "record": "summary",
        }
        return run(make_job(strategy, n, **(given | fields))).summary

    return of


def step(summary: dict[str, Any]) -> float:
    return float(summary["step_time_s"]["mean"])


def test_nobody_waits_for_the_slowest_in_gossip(timed):
    """p07a: with exponential step times the maximum of 16 is H_16 = 3.38 times their mean."""
    fields = {"stragglers": (GAMMA,), **FREE}
    sync = timed(SyncSGD(), 16, 1000, **fields)
    gossip = timed(Gossip(), 16, 1000, gossip=CompleteGraph(), **fields)
    assert 3.25 < step(sync) / step(gossip) < 3.51


def test_gossip_every_tenth_step_sends_a_nineteenth_of_all_reduce(timed):
    """p07b: 2 (p - 1) / p S a step against S / 10."""
    sync = timed(SyncSGD(), 16, 20)
    gossip = timed(Gossip(every=10), 16, 20, gossip=CompleteGraph())
    assert sync["bytes_sent"] / gossip["bytes_sent"] == pytest.approx(18.75, rel=1e-9)


def test_gossip_by_chance_exchanges_as_often(timed):
    regular, drawn = (
        timed(Gossip(every=10, at_random=r), 16, 500, gossip=CompleteGraph())["bytes_sent"]
        for r in (False, True)
    )
    assert drawn == pytest.approx(regular, rel=0.1)
    assert drawn != regular


@pytest.mark.parametrize("make", [lambda h: LocalSGD(h=h), lambda h: SlowMo(h=h), lambda h: DiLoCo(h=h)])
def test_the_cost_of_communication_falls_as_1_over_h(timed, make):
    """p11c and p11d: c + A / H; the first interval is left out, so 799 averages against 100."""
    one, h1, h8 = timed(SyncSGD(), 1, 800), timed(make(1), 16, 800), timed(make(8), 16, 800)
    assert (step(h1) - step(one)) / (step(h8) - step(one)) == pytest.approx(799 / 100, rel=1e-9)
    assert h1["bytes_sent"] / h8["bytes_sent"] == pytest.approx(8, rel=1e-9)


def test_diloco_pays_a_thirty_second_of_the_all_reduce(timed):
    """p13c: an all-reduce of a third of a step, c = 0.1 s: (4 / 3) / (1 + 1 / 96) = 1.3196."""
    reduce = 0.1 / 3
    bandwidth = f"{6 * 40e6 / 4 / reduce!r} B/s"
    ddp, diloco = (
        timed(s, 4, 960, bandwidth=bandwidth, latency="0 s")
        for s in (SyncSGD(bucket_bytes="1 TB"), DiLoCo(h=32))
    )
    assert step(ddp) / step(diloco) == pytest.approx((4 / 3) / (1 + 1 / 96), rel=2e-3)


P, S, B = 7, 40e6, 1e9  # workers, bytes of the model, bytes/s
M = 20e-6 + S / B  # one message from host to host, seconds


def test_turn_by_turn_costs_fourteen_messages_where_the_tree_costs_six(timed):
    """p12a: 7 workers and a master; a saturated queue of exchanges, 7 x 2 m, against log2 8 x 2 m."""
    one, rr, sync = (
        timed(SyncSGD(), 1, 30),
        timed(EASGD(discipline="round_robin"), P, 30),
        timed(EASGD(sync_stage=1), P, 30),
    )
    # Whose models have left computes on: the last latency to the master is hidden.
    assert step(sync) - step(one) == pytest.approx(6 * M - 20e-6, rel=1e-9)
    assert step(rr) == pytest.approx(14 * M, rel=2e-3)  # the last latency of each service is the wire's
    assert step(rr) / (step(sync) - step(one)) == pytest.approx(14 / 6, rel=2e-3)


def test_the_centre_at_a_worker_saves_the_master_and_overlap_the_rest(timed):
    """Stage 2: a tree over 8 workers of ceil(log2 8) rounds each way, as long as stage 1 takes for 7."""
    one, second, third = (
        timed(SyncSGD(), 1, 30),
        timed(EASGD(sync_stage=2), 8, 30),
        timed(EASGD(sync_stage=3), 8, 30),
    )
    assert step(second) - step(one) == pytest.approx(6 * M, rel=1e-9)
    assert step(third) == pytest.approx(max(step(one), 6 * M), rel=1e-9)
    short = timed(EASGD(sync_stage=3), 8, 30, bandwidth="10 GB/s")
    assert step(short) == pytest.approx(step(one), rel=1e-9)  # hidden behind the gradient


def test_packing_saves_a_latency_a_layer_and_round(timed):
    """p12b: 8 layers one after another, 7 x 6 rounds x 100 us."""
    layers = np.array([0.1, 0.2, 0.5, 1, 2, 4, 16, 16.2]) * 1e6
    cost = StepTime.of(0.03, 0.1, np.linspace(0.04, 0.1, 8), layers)
    fields = {"latency": "50 us", "nbytes": layers.sum()}
    for stage, n in ((1, P), (2, 8)):  # log2 8 rounds each way
        fields["costs"] = (cost,) * n
        packed, unpacked = (timed(EASGD(sync_stage=stage, packed=p), n, 10, **fields) for p in (True, False))
        assert step(unpacked) - step(packed) == pytest.approx(7 * 6 * 100e-6, rel=1e-6)
        assert unpacked["bytes_sent"] == pytest.approx(packed["bytes_sent"], rel=1e-12)


def test_unpacked_exchanges_pay_their_latencies_in_turn(timed):
    """A queue of two workers with 4 layers each: 3 more latencies up and 3 down in each of the services."""
    fields = {"seconds": 1e-3, "latency": "500 us"}
    packed, unpacked = (timed(EASGD(packed=p), 2, 20, **fields) for p in (True, False))
    assert step(unpacked) - step(packed) == pytest.approx(2 * 6 * 1e-3, rel=1e-6)
