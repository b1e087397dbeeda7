"""Time and bytes of methods against arithmetic: the exact timing claims of claims.csv for what exists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from simulator.job import Stop
from simulator.run import run
from simulator.strategies import DiLoCo, Gossip, LocalSGD, SlowMo, SyncSGD
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
