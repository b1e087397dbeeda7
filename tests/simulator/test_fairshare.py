"""The ripple against water filling, and water filling against the definition of max-min fairness."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.fabric import FloatArray, IntArray
from simulator.fairshare import FairShare
from simulator.unshared import Shares, Unshared
from simulator.water_filling import water_filling

INF = float("inf")


@dataclass(frozen=True)
class Demand:
    links: IntArray
    weights: FloatArray
    size: float
    cap: float


def oracle(capacity: FloatArray, demands: list[Demand]) -> FloatArray:
    who = np.repeat(np.arange(len(demands)), [len(d.links) for d in demands])
    links = np.concatenate([d.links for d in demands])
    weights = np.concatenate([d.weights for d in demands])
    return water_filling(capacity, who, links, weights, np.array([d.cap for d in demands]))


def random_demand(rng: np.random.Generator, links: int, ties: bool) -> Demand:
    k = int(rng.integers(1, min(links, 4) + 1))
    chosen = np.sort(rng.choice(links, k, replace=False))
    weights = np.ones(k) if rng.random() < 0.6 else rng.choice([0.5, 1.0, 2.0, 3.0], k)
    size = rng.choice([1.0, 2.0, 4.0]) if ties else rng.uniform(0.1, 5)
    cap = INF if rng.random() < 0.7 else rng.choice([0.25, 0.5, 1.0, 2.0])
    return Demand(chosen, weights, float(size), float(cap))


def random_capacity(rng: np.random.Generator, links: int) -> FloatArray:
    if rng.random() < 0.7:
        return rng.choice([1.0, 2.0, 3.0, 4.0, 10.0], links)
    return rng.uniform(0.5, 10, links)


def add(shares: Shares, demand: Demand, now: float) -> int:
    return shares.add(demand.links, demand.weights, demand.size, demand.cap, now, now)


def worst_error(seed: int) -> float:
    """A random history of arrivals, departures, ends and bandwidth changes; rates against the oracle's."""
    rng = np.random.default_rng(seed)
    links, ties = int(rng.integers(1, 9)), bool(rng.random() < 0.7)
    capacity = random_capacity(rng, links)
    shares, live, now, worst = FairShare(Unshared(capacity)), {}, 0.0, 0.0
    for step in range(int(rng.integers(3, 16))):
        gone = shares.due(now)
        if len(live) > len(gone) and rng.random() < 0.3:
            gone.append(int(rng.choice(sorted(live.keys() - set(gone)))))
        for number in gone:
            shares.remove(number, now)
            del live[number]
        if rng.random() < 0.15:
            link = int(rng.integers(links))
            capacity[link] = rng.choice([1.0, 2.0, 5.0])
            shares.set_capacity(link, float(capacity[link]), now)
        for _ in range(int(rng.integers(0, 4)) if step else int(rng.integers(1, 7))):
            demand = random_demand(rng, links, ties)
            live[add(shares, demand, now)] = demand
        shares.solve(now)
        if live:
            right = oracle(capacity, list(live.values()))
            rates = np.array([shares.rate(number) for number in live])
            worst = max(worst, float((np.abs(rates - right) / right).max()))
        finish = shares.next_finish()
        now = finish if finish < INF and rng.random() < 0.8 else min(now + 0.25, finish)
    return worst


@pytest.mark.parametrize("block", range(8))
def test_ripple_is_water_filling_where_much_ties(block: int) -> None:
    """4,000 histories of some nine events each: equal capacities, sizes, starts, weights, caps."""
    errors = [worst_error(seed) for seed in range(500 * block, 500 * (block + 1))]
    assert max(errors) < 1e-12


@pytest.mark.parametrize("seed", range(12))
def test_ripple_is_water_filling_on_a_crowded_network(seed: int) -> None:
    """Hundreds of flows over tens of links: long chains of settles and releases."""
    rng = np.random.default_rng(seed)
    links = int(rng.integers(10, 40))
    capacity = np.full(links, 8.0) if seed % 2 else rng.uniform(1, 9, links)
    shares, live, now = FairShare(Unshared(capacity)), {}, 0.0
    for _ in range(300):
        for number in shares.due(now):
            shares.remove(number, now)
            del live[number]
        for _ in range(int(rng.integers(0, 4 if len(live) < 250 else 2))):
            k = int(rng.integers(2, 7))
            demand = Demand(rng.choice(links, k, replace=False), np.ones(k), float(rng.uniform(1, 50)), INF)
            live[add(shares, demand, now)] = demand
        shares.solve(now)
        if live:
            right = oracle(capacity, list(live.values()))
            assert [shares.rate(number) for number in live] == pytest.approx(right, rel=1e-12)
        now = min(shares.next_finish(), now + 0.3)


def finish_times(shares: Shares, arrivals: list[tuple[float, Demand]]) -> list[float]:
    """When each arrival is done; arrivals in order of time."""
    finish, who, waiting = [INF] * len(arrivals), {}, list(range(len(arrivals)))
    while waiting or who:
        now = min(shares.next_finish(), arrivals[waiting[0]][0] if waiting else INF)
        for number in shares.due(now):
            finish[who.pop(number)] = now
            shares.remove(number, now)
        while waiting and arrivals[waiting[0]][0] == now:
            i = waiting.pop(0)
            who[add(shares, arrivals[i][1], now)] = i
        shares.solve(now)
    return finish


def finish_times_by_definition(capacity: FloatArray, arrivals: list[tuple[float, Demand]]) -> list[float]:
    """The same with all rates from scratch at each event."""
    finish, left, now = [INF] * len(arrivals), {}, 0.0
    waiting = list(range(len(arrivals)))
    while waiting or left:
        rates = oracle(capacity, [arrivals[i][1] for i in left]) if left else np.zeros(0)
        ends = [now + size / rate for size, rate in zip(left.values(), rates, strict=True)]
        then = min([*ends, arrivals[waiting[0]][0] if waiting else INF])
        for i, end, rate in zip(list(left), ends, rates, strict=True):
            left[i] -= rate * (then - now)
            if end <= then * (1 + 1e-13):
                finish[i] = then
                del left[i]
        now = then
        while waiting and arrivals[waiting[0]][0] == now:
            i = waiting.pop(0)
            left[i] = arrivals[i][1].size
    return finish


@pytest.mark.parametrize("seed", range(150))
def test_finish_times_are_those_of_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    links, ties = int(rng.integers(2, 9)), bool(seed % 3)
    capacity = random_capacity(rng, links)
    starts = np.sort(rng.choice([0.0, 0.5, 1.0, 1.5], 12) if ties else rng.uniform(0, 3, 12))
    arrivals = [(float(at), random_demand(rng, links, ties)) for at in starts]
    got = finish_times(FairShare(Unshared(capacity)), arrivals)
    assert got == pytest.approx(finish_times_by_definition(capacity, arrivals), rel=1e-12)


networks = st.integers(1, 6).flatmap(
    lambda links: st.tuples(
        st.lists(st.sampled_from([1.0, 2.0, 3.0, 7.5]), min_size=links, max_size=links),
        st.lists(
            st.tuples(
                st.dictionaries(st.integers(0, links - 1), st.sampled_from([0.5, 1.0, 2.0, 3.0]), min_size=1),
                st.sampled_from([INF, INF, 0.3, 1.0]),
            ),
            min_size=1,
            max_size=12,
        ),
    )
)


@given(networks)
@settings(max_examples=400, deadline=None)
def test_rates_are_max_min_fair(network: tuple[list[float], list[tuple[dict[int, float], float]]]) -> None:
    """Feasible; and each activity is at its cap, or on a full link where no other has a higher rate."""
    capacity = np.array(network[0])
    demands = [
        Demand(np.array(sorted(loads)), np.array([loads[link] for link in sorted(loads)]), 1.0, cap)
        for loads, cap in network[1]
    ]
    shares = FairShare(Unshared(capacity))
    numbers = [add(shares, demand, 0.0) for demand in demands]
    shares.solve(0.0)
    for rates in (oracle(capacity, demands), np.array([shares.rate(number) for number in numbers])):
        load, highest = np.zeros(len(capacity)), np.zeros(len(capacity))
        for demand, rate in zip(demands, rates, strict=True):
            load[demand.links] += demand.weights * rate
            highest[demand.links] = np.maximum(highest[demand.links], rate)
        full = load >= capacity * (1 - 1e-9)
        assert (load <= capacity * (1 + 1e-9)).all()
        for demand, rate in zip(demands, rates, strict=True):
            assert rate <= demand.cap
            limits = full[demand.links] & (rate >= highest[demand.links] * (1 - 1e-9))
            assert rate == demand.cap or limits.any()


def test_a_lone_activity_has_the_same_bits_with_and_without_the_ripple() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        capacity = rng.uniform(1, 10, 6)
        arrivals = []
        for i in range(3):  # two links each: nobody meets
            weights, cap = rng.uniform(0.3, 3, 2), float(rng.choice([INF, 1.0]))
            demand = Demand(np.array([2 * i, 2 * i + 1]), weights, float(rng.uniform(0, 9)), cap)
            arrivals.append((float(i), demand))
        assert finish_times(Unshared(capacity), arrivals) == finish_times(
            FairShare(Unshared(capacity)), arrivals
        )


def test_the_ripple_takes_over_in_the_middle() -> None:
    """Two activities meet only later: the same bits as if the ripple had been there from the start."""
    capacity = np.array([10.0, 7.0, 3.0])
    apart, shares = Unshared(capacity), FairShare(Unshared(capacity))
    demands = [Demand(np.array([i]), np.ones(1), 5.0 + i, INF) for i in range(3)]
    crossing = Demand(np.array([0, 2]), np.ones(2), 1.3, INF)
    for one in (apart, shares):
        for demand in demands:
            add(one, demand, 0.1)
        one.solve(0.1)
    later = FairShare(apart)
    finishes = []
    for one in (later, shares):
        number = add(one, crossing, 0.37)
        one.solve(0.37)
        ends = []
        while one.next_finish() < INF:
            ends.append(one.next_finish())
            for done in one.due(ends[-1]):
                one.remove(done, ends[-1])
            one.solve(ends[-1])
        finishes.append((number, ends, one.busy_seconds(9.0).tolist(), one.peaks().tolist()))
    assert finishes[0] == finishes[1]
    assert len(finishes[0][1]) == 4


def test_an_event_costs_what_is_contended_not_the_length_of_a_bundle() -> None:
    """A bundle over 4,623 links, and messages that cross three of them."""
    links = 4_623
    shares = FairShare(Unshared(np.full(links, 1e9)))
    bundle = Demand(np.arange(links), np.ones(links), 1e9, 5e8)
    add(shares, bundle, 0.0)
    shares.solve(0.0)
    before = shares.work()
    now = 0.0
    for _ in range(200):
        number = add(shares, Demand(np.array([7, 70, 700]), np.ones(3), 1e5, INF), now)
        shares.solve(now)
        assert shares.users(70) == [0, number]
        now = shares.next_finish()
        assert shares.due(now) == [number]
        shares.remove(number, now)
        shares.solve(now)
        assert shares.users(70) == [0]
    handled, changed = (after - then for after, then in zip(shares.work(), before, strict=True))
    assert handled <= 200 * 2 * 3
    assert changed <= 200 * 3


def test_busy_seconds_and_peaks() -> None:
    """Two flows of 4 bytes meet on link 0 (2 bytes/s) for 2 s, then one runs alone."""
    shares = FairShare(Unshared(np.array([2.0, 8.0, 8.0])))
    add(shares, Demand(np.array([0, 1]), np.ones(2), 4.0, INF), 0.0)
    add(shares, Demand(np.array([0]), np.ones(1), 2.0, INF), 0.0)
    shares.solve(0.0)
    for now in (2.0, 3.0):
        assert shares.next_finish() == now
        for number in shares.due(now):
            shares.remove(number, now)
        shares.solve(now)
    assert shares.busy_seconds(5.0).tolist() == [3.0, 3.0, 0.0]
    assert shares.peaks().tolist() == [1.0, 0.25, 0.0]


def test_a_full_link_of_demands_that_just_fit_is_no_endless_search() -> None:
    """Limits whose sum is the capacity but for rounding: the water level is not defined more closely."""
    capacity = np.array([0.1 + 0.2 + 0.3, 1.0])
    shares = FairShare(Unshared(capacity))
    demands = [Demand(np.array([0]), np.ones(1), 1.0, cap) for cap in (0.1, 0.2, 0.3, INF)]
    for demand in demands[:3]:
        add(shares, demand, 0.0)
    shares.solve(0.0)
    last = add(shares, demands[3], 0.0)
    shares.solve(0.0)
    assert shares.rate(last) == pytest.approx(oracle(capacity, demands)[3], rel=1e-12)


def test_links_of_any_layout_are_compiled_for_once() -> None:
    from simulator import ripple

    shares = FairShare(Unshared(np.array([2.0, 8.0, 8.0])))
    add(shares, Demand(np.array([0, 1]), np.ones(2), 4.0, INF), 0.0)
    shares.solve(0.0)
    signatures = len(ripple.join.signatures)  # type: ignore[attr-defined]
    frozen = np.array([0, 2])
    frozen.flags.writeable = False
    for links in (frozen, np.array([0, 9, 2, 9])[::2], np.array([0, 2], np.int32)):
        add(shares, Demand(links, np.ones(2, int), 4.0, INF), 0.0)
    shares.solve(0.0)
    assert [shares.rate(number) for number in range(4)] == [0.5] * 4
    assert len(ripple.join.signatures) == signatures  # type: ignore[attr-defined]


def test_where_nothing_can_be_kept_on_disk_code_is_compiled_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from simulator import compiled

    def no_directory(cache: bool = False, **options: Any) -> Any:
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(compiled.numba, "njit", no_directory)
    assert compiled.compiled(len)("abc") == 3


def test_importing_the_network_does_not_import_numba() -> None:
    program = "import sys, simulator.network; sys.exit('numba' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)
