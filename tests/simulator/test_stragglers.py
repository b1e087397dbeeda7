"""Stragglers: pure functions of (worker, draw, start), the same bits for one worker and for a vector."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from simulator.errors import InputError
from simulator.placement import Workers
from simulator.stragglers import Slowdown, StragglerSpec
from simulator.streams import Draws

ADAPTER: TypeAdapter[list[StragglerSpec]] = TypeAdapter(list[StragglerSpec])
LOGNORMAL = {"kind": "lognormal", "mean": 1.0, "sigma": 0.3}
GAMMA = {"kind": "gamma", "mean": 1.5, "cv": 0.4}
THRICE = {"kind": "constant", "value": 3.0}
EVERYTHING = [
    {"where": "all", "per": "step", "factor": LOGNORMAL},
    {"where": {"workers": [1, 5, 6]}, "per": "step", "factor": GAMMA},
    {"where": {"share": 0.25}, "per": "run", "factor": {"kind": "two_point", "p": 0.5, "low": 1, "high": 4}},
    {"where": {"host": "h3"}, "per": "run", "factor": THRICE},
    {"where": "all", "per": "burst", "factor": GAMMA, "every": "9 s", "duration": "2 s"},
    {"where": {"share": 0.5}, "per": "burst", "factor": THRICE, "every": "4 s", "duration": "1 s"},
    {"where": {"class": "gpu"}, "per": "pause", "every": "20 s", "duration": "500 ms"},
]


def slowdown(entries: list[dict[str, Any]], n: int = 16, seed: int = 1) -> Slowdown:
    return Slowdown(ADAPTER.validate_python(entries), Draws(seed), Workers.alike(n))


@pytest.mark.parametrize("n", [1, 3, 16, 4_097, 9_000])
@pytest.mark.parametrize("entries", [EVERYTHING[:4], EVERYTHING[:1], EVERYTHING], ids=["steps", "one", "all"])
def test_one_worker_and_all_workers_get_the_same_bits(n: int, entries: list[dict[str, Any]]) -> None:
    entries = [
        entry for entry in entries if n > 6 or entry["where"] not in ({"workers": [1, 5, 6]}, {"host": "h3"})
    ]
    vector, scalar = slowdown(entries, n), slowdown(entries, n)
    chosen = np.unique(np.linspace(0, n - 1, min(n, 200)).astype(int)).tolist()
    clock, rng = np.zeros(n), np.random.default_rng(n)
    for draw in range(40):
        start = clock + rng.exponential(0.2, n)  # communication and waiting between gradients
        work = rng.choice([0.0, 0.05, 0.4, 3.0], n)
        clock = vector.finish_all(draw, start, work)
        factors = vector.factors(draw)
        for worker in chosen:
            assert scalar.finish(worker, draw, float(start[worker]), float(work[worker])) == clock[worker]
            assert scalar.factor(worker, draw) == factors[worker]
    assert (clock > start).any()


def test_any_order_of_questions_gives_the_same_answers() -> None:
    asked = [(w, k, t) for w in range(16) for k in range(5) for t in (0.0, 1.0, 50.0, 3_000.0, 1e5)]
    ahead, back = slowdown(EVERYTHING), slowdown(EVERYTHING)
    answers = [ahead.finish(w, k, t, 2.0) for w, k, t in asked]
    assert [back.finish(w, k, t, 2.0) for w, k, t in reversed(asked)] == answers[::-1]
    start = np.array([1e5, 0.0] * 8)
    jumped = back.finish_all(3, start, 2.0)
    assert jumped.tolist() == [ahead.finish(w, 3, start[w], 2.0) for w in range(16)]
    assert back.finish_all(3, start[::-1].copy(), 2.0)[0] == ahead.finish(0, 3, 0.0, 2.0)


def test_a_boundary_met_exactly() -> None:
    """Work that ends, begins or is interrupted at the very start or end of a burst."""
    one = slowdown([{"per": "burst", "factor": THRICE, "every": "10 s", "duration": "3 s"}], n=1)
    renewal = one._renewals[0]
    factor, burst = renewal.at(0, 0.0)
    if factor != 1.0:
        factor, burst = renewal.at(0, burst)
    inside, end = renewal.at(0, burst)
    assert (factor, inside) == (1.0, 3.0)
    work = (end - burst) / 3.0
    for start in (burst, np.nextafter(burst, 0), np.nextafter(burst, 99), end, np.nextafter(end, 0)):
        for seconds in (work, np.nextafter(work, 0), np.nextafter(work, 9), 1e-9, 5.0):
            alone = one.finish(0, 0, float(start), float(seconds))
            assert one.finish_all(0, np.array([start]), float(seconds))[0] == alone
    assert one.finish(0, 0, burst, work) == pytest.approx(end, rel=1e-12)
    assert one.finish(0, 0, burst, work + 1.0) == pytest.approx(end + 1.0, rel=1e-12)
    assert one.finish(0, 0, burst - 1.0, 1.0 + work / 2) == pytest.approx((burst + end) / 2, rel=1e-9)


def test_work_is_conserved_through_bursts_and_pauses() -> None:
    """Against a plain sum over the intervals: progress is the integral of 1 / factor."""
    entries = [*EVERYTHING[4:]]
    slow = slowdown(entries, n=4)
    for worker in range(4):
        begin, work = 0.3, 60.0
        end = slow.finish(worker, 0, begin, work)
        progress, time = 0.0, begin
        while time < end:
            factor, until = 1.0, end
            for renewal in slow._renewals:
                value, holds = renewal.at(worker, time)
                factor, until = factor * value, min(until, holds)
            progress, time = progress + (until - time) / factor, until
        assert progress == pytest.approx(work, rel=1e-9)


def test_long_run_share_of_bursts_and_pauses() -> None:
    """In the steady state a worker is disturbed for duration / every of the time, from time 0 on."""
    n = 4_000
    bursts = slowdown([{"per": "burst", "factor": THRICE, "every": "10 s", "duration": "2 s"}], n)
    ranks = np.arange(n)
    for time in (0.0, 0.1, 7.0, 1_000.0):
        factor, until = bursts._renewals[0].at_all(ranks, np.full(n, time))
        assert np.mean(factor == 3.0) == pytest.approx(0.2, abs=4 * np.sqrt(0.16 / n))
        assert np.mean(until[factor == 3.0] - time) == pytest.approx(2.0, rel=0.15)
        assert np.mean(until[factor == 1.0] - time) == pytest.approx(8.0, rel=0.08)
    pauses = slowdown([{"per": "pause", "every": "10 s", "duration": "2 s"}], n)
    assert np.mean(pauses.finish_all(0, np.zeros(n), 800.0)) == pytest.approx(1_000.0, rel=0.01)


def test_a_new_worker_moves_nobody() -> None:
    entries = [entry for entry in EVERYTHING if "share" not in str(entry["where"])]
    few, more = slowdown(entries, 16), slowdown(entries, 5_003)
    start = np.linspace(0.0, 500.0, 5_003)
    for draw in (0, 1, 77):
        assert np.array_equal(few.factors(draw), more.factors(draw)[:16])
        assert np.array_equal(few.finish_all(draw, start[:16], 3.0), more.finish_all(draw, start, 3.0)[:16])


def test_another_seed_other_stragglers_same_seed_same() -> None:
    start = np.arange(16.0)
    first = slowdown(EVERYTHING).finish_all(2, start, 1.0)
    assert np.array_equal(slowdown(EVERYTHING).finish_all(2, start, 1.0), first)
    assert not np.array_equal(slowdown(EVERYTHING, seed=2).finish_all(2, start, 1.0), first)


def test_factors_that_meet_multiply() -> None:
    both = [
        {"where": {"worker": 2}, "per": "run", "factor": THRICE},
        {"where": "all", "per": "run", "factor": {"kind": "constant", "value": 2.0}},
    ]
    slow = slowdown(both)
    assert slow.factors(0).tolist() == [2.0, 2.0, 6.0] + [2.0] * 13
    assert slow.finish(2, 9, 1.0, 0.5) == 4.0
    step = slowdown([both[0], EVERYTHING[0]])
    alone = slowdown([EVERYTHING[1], EVERYTHING[0]])  # the entry's index is part of the address
    assert step.factor(2, 4) == 3.0 * alone.factor(2, 4)


def test_no_stragglers_no_difference() -> None:
    none = slowdown([])
    assert none.none
    assert none.finish(3, 0, 1.5, 0.1) == 1.5 + 0.1
    assert none.finish_all(0, np.full(16, 1.5), 0.1).tolist() == [1.5 + 0.1] * 16
    assert not slowdown(EVERYTHING).none


def test_waiting_at_a_barrier_for_the_slowest_of_n_exponentials() -> None:
    """The mean step of n workers with exponential times of mean 1 is H_n, which needs the mean to be kept."""
    n, steps = 32, 3_000
    slow = slowdown([{"per": "step", "factor": {"kind": "exponential", "mean": 1.0}}], n)
    clock = np.zeros(n)
    for draw in range(steps):
        clock[:] = slow.finish_all(draw, clock, 1.0).max()
    harmonic = sum(1 / k for k in range(1, n + 1))
    error = np.sqrt(sum(1 / k**2 for k in range(1, n + 1)) / steps)
    assert abs(clock[0] / steps - harmonic) < 4 * error


def test_selection() -> None:
    workers = Workers(
        node=np.arange(6),
        host=np.array([0, 0, 0, 1, 1, 1]),
        device=np.array([0, 1, 2] * 2),
        kind=("gpu",) * 4 + ("cpu",) * 2,
        profile=("p100_sxm2",) * 6,
        host_names=("h0", "h1", "idle"),
    )
    spec = ADAPTER.validate_python

    def ranks(where: Any) -> list[int]:
        (entry,) = spec([{"where": where, "per": "run", "factor": THRICE}])
        return workers.select(entry.where, Draws(1), "share").tolist()

    assert ranks("all") == [0, 1, 2, 3, 4, 5]
    assert ranks({"worker": 3}) == [3]
    assert ranks({"workers": [4, 0, 4]}) == [0, 4]
    assert ranks({"host": "h1"}) == [3, 4, 5]
    assert ranks({"class": "cpu"}) == [4, 5]
    assert len(ranks({"share": 0.5})) == 3
    assert len(ranks({"share": 0.01})) == 1
    assert ranks({"share": 1.0}) == [0, 1, 2, 3, 4, 5]
    for where, said in (
        ({"worker": 6}, "worker from 0 to 5"),
        ({"host": "h11"}, "did you mean 'h1'"),
        ({"host": "x"}, "a host: h0, h1, idle"),
        ({"host": "idle"}, "no workers on it"),
        ({"class": "tpu"}, "cpu, gpu"),
    ):
        with pytest.raises(InputError, match=said):
            ranks(where)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"per": "pause", "factor": THRICE, "every": "2 s", "duration": "1 s"}, "found a `factor`"),
        ({"per": "burst", "factor": THRICE, "every": "2 s"}, "found no `duration`"),
        ({"per": "step", "factor": THRICE, "every": "2 s"}, "found a `every`"),
        ({"per": "run"}, "found no `factor`"),
        ({"per": "burst", "factor": THRICE, "every": "2 s", "duration": "2 s"}, "not below `every`"),
        ({"per": "burst", "factor": THRICE, "every": 2, "duration": "1 s"}, "a unit is missing"),
        ({"where": {"link": "h0->*"}, "per": "run", "factor": THRICE}, "slows workers, not links"),
        ({"where": {"worker": 1, "host": "h0"}, "per": "run", "factor": THRICE}, "expected one of"),
        ({"where": {}, "per": "run", "factor": THRICE}, "expected one of"),
        ({"where": "some", "per": "run", "factor": THRICE}, "'all'"),
        ({"where": "all", "per": "run", "factor": {"kind": "constant", "value": -1}}, "greater than 0"),
    ],
)
def test_wrong_entries_are_refused(entry: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        ADAPTER.validate_python([entry])


def test_entries_survive_a_round_trip() -> None:
    read = ADAPTER.validate_python(EVERYTHING)
    assert ADAPTER.validate_python(ADAPTER.dump_python(read, mode="json")) == read
