"""The network: messages, activities, instants, counters, laws."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from itertools import permutations

import numpy as np
import pytest

from simulator.clock import Clock
from simulator.fabric import Fabric, IntArray
from simulator.network import Activity, LawError, Network, Transfer

B, A = 1e9, 2e-6  # bytes/s of a port, latency of a link


class StarPaths:
    """Link i goes up from host i, link n + i down to it."""

    def __init__(self, hosts: int) -> None:
        self.hosts = hosts

    def paths(self, src: IntArray, dst: IntArray) -> IntArray:
        return np.where((src == dst)[:, None], -1, np.stack([src, self.hosts + dst], axis=1))


def star(hosts: int, bandwidth: float = B, latency: float = A) -> Fabric:
    ids = np.arange(hosts)
    hub = np.full(hosts, hosts)
    return Fabric(
        node_names=(*(f"h{i}" for i in ids), "hub"),
        node_kinds=(*["host"] * hosts, "switch"),
        tail=np.concatenate([ids, hub]),
        head=np.concatenate([hub, ids]),
        bandwidth=np.full(2 * hosts, bandwidth),
        latency=np.full(2 * hosts, latency),
        hosts=ids,
        devices=(),
        router=StarPaths(hosts),
    )


def links_of(*bandwidths: float) -> Fabric:
    """Links by number, for activities that name them."""
    nowhere = np.zeros(len(bandwidths), np.int64)
    latency = np.zeros(len(bandwidths))
    bandwidth = np.array(bandwidths)
    return Fabric(
        ("n",), ("switch",), nowhere, nowhere, bandwidth, latency, nowhere[:0], (), StarPaths(len(bandwidths))
    )


def over(links: list[int], size: float, **more: float) -> Activity:
    return Activity(np.array(links), np.ones(len(links)), size, **more)


def test_a_message_takes_bandwidth_then_latency() -> None:
    clock = Clock()
    network = Network(clock, star(4), message_overhead=5e-6)
    message = network.message(0, 1, 1e6, at=0.25)
    clock.run()
    assert message.left.value == 0.25 + 5e-6 + 1e6 / B
    assert message.arrived.value == message.left.value + 2 * A


def test_a_message_within_a_node_takes_no_time() -> None:
    clock = Clock()
    network = Network(clock, star(2), message_overhead=5e-6)
    message = network.message(1, 1, 1e6, at=0.25)
    clock.run()
    assert message.left.value == message.arrived.value == 0.25
    assert network.link_bytes.sum() == 0
    assert network.sent_ticks == network.received_ticks == 64 * 10**6


def test_an_empty_message_takes_the_latency() -> None:
    clock = Clock()
    message = Network(clock, star(2)).message(0, 1, 0.0)
    clock.run()
    assert (message.left.value, message.arrived.value) == (0.0, 2 * A)


def test_incoming_messages_share_the_port() -> None:
    """Two to one port: half of it each; when the shorter is done the other has it alone."""
    clock = Clock()
    network = Network(clock, star(3))
    long, short = network.message(0, 2, 3e9), network.message(1, 2, 1e9)
    clock.run()
    assert short.left.value == 2.0
    assert long.left.value == 4.0
    assert network.link_bytes.tolist() == [3e9, 1e9, 0, 0, 0, 4e9]
    assert network.busy_seconds.tolist() == [4, 2, 0, 0, 0, 4]
    assert network.peak_utilisation.tolist() == [1, 0.5, 0, 0, 0, 1]


def test_a_bundle_loads_links_by_its_weights_and_keeps_to_its_cap() -> None:
    clock = Clock()
    network = Network(clock, links_of(10.0, 10.0))
    doubled = network.start(Activity(np.array([0, 1]), np.array([1.0, 2.0]), 10.0))
    clock.run()
    capped = network.start(over([0], 10.0, cap=4.0))
    clock.run()
    assert doubled.value == 2.0
    assert capped.value == 4.5
    assert network.link_bytes.tolist() == [20, 20]


def test_weights_decide_the_parts_of_a_contended_link() -> None:
    clock = Clock()
    network = Network(clock, links_of(4.0))
    heavy, light = network.start(over([0], 6.0, weight=3.0)), network.start(over([0], 6.0))
    clock.run()
    assert (heavy.value, light.value) == (2.0, 3.0)


def test_case_26_two_flows_and_a_weight_halved_on_the_way() -> None:
    """cases.md 26: 1 kB each over 1 kB/s end at 2 s; with B's weight halved after 1 s, A at 1.75 s."""
    for halve, right in ((False, [2.0, 2.0]), (True, [1.75, 2.0])):
        clock = Clock()
        network = Network(clock, links_of(1000.0))
        a, b = network.start(over([0], 1000.0)), network.start(over([0], 1000.0))
        if halve:
            clock.call_at(1.0, lambda: network.set_weight(b, 0.5))  # noqa: B023
        clock.run()
        assert [a.value, b.value] == pytest.approx(right, rel=1e-12)
        assert network.link_bytes.tolist() == [2000]
        network.check_laws()


@pytest.mark.parametrize("crowded", [False, True])
def test_a_bandwidth_changes_on_the_way(crowded: bool) -> None:
    """10 units at 2/s for 2 s, then at 6/s: done at 3 s, alone or as one of two on twice the link."""
    clock = Clock()
    network = Network(clock, links_of(2.0 + 2.0 * crowded, 100.0))
    transfers = [network.start(over([0, 1], 10.0)) for _ in range(1 + crowded)]
    clock.call_at(2.0, lambda: network.set_bandwidth(0, 6.0 + 6.0 * crowded))
    clock.run()
    assert [transfer.value for transfer in transfers] == pytest.approx([3.0] * len(transfers), rel=1e-12)
    network.check_laws()


def test_a_slower_link_slows_messages_to_come() -> None:
    clock = Clock()
    network = Network(clock, star(2))
    network.message(0, 1, 1e9)
    clock.run()
    network.set_bandwidth(0, B / 2)
    again = network.message(0, 1, 1e9)
    clock.run()
    assert again.left.value == pytest.approx(3.0 + 2 * A, rel=1e-12)
    assert network.link_bytes.tolist() == [2e9, 0, 0, 2e9]


def test_without_sharing_each_takes_the_time_it_would_take_alone() -> None:
    clock = Clock()
    network = Network(clock, star(3), fidelity="closed_form")
    messages = [network.message(src, 2, 1e9) for src in (0, 1)]
    clock.run()
    assert [message.left.value for message in messages] == [1.0, 1.0]
    assert network.busy_seconds.tolist() == [1, 1, 0, 0, 0, 1]
    network.check_laws()


def traffic(
    network: Network, rng: np.random.Generator, hosts: int, count: int, begin: float
) -> list[Transfer]:
    """Random messages and bundles, many at the same times and of the same size."""
    transfers = []
    for _ in range(count):
        at = begin + float(rng.choice([0.0, 0.001, 0.0025])) + float(rng.integers(3)) * 0.004
        size = float(rng.choice([1e6, 2e6])) if rng.random() < 0.5 else float(rng.uniform(1e5, 4e6))
        if rng.random() < 0.8:
            src, dst = rng.choice(hosts, 2, replace=False).tolist()
            transfers.append(network.message(src, dst, size, at).left)
        else:
            links = np.sort(rng.choice(2 * hosts, 5, replace=False))
            activity = Activity(links, rng.choice([1.0, 2.0], 5), size, total_bytes=5 * size)
            transfers.append(network.start(activity, at))
    return transfers


def durations(begin: float, scale: float = 1.0, seed: int = 0) -> np.ndarray:
    clock = Clock(initial_time=begin)
    network = Network(clock, star(6, B * scale, A / scale))
    rng = np.random.default_rng(seed)
    transfers = []
    for at, size, src, dst in zip(
        rng.choice([0.0, 0.001, 0.0025], 60),
        rng.uniform(1e5, 4e6, 60),
        rng.integers(6, size=60),
        rng.integers(6, size=60),
        strict=True,
    ):
        transfers.append(network.message(int(src), int(dst), float(size), begin + float(at) / scale))
    clock.run()
    return np.array([message.arrived.value - message.left.begin for message in transfers])


@pytest.mark.parametrize("seed", range(5))
def test_a_run_that_starts_later_takes_as_long(seed: int) -> None:
    """Law 2: shifted to 1e6 s, the same durations to 1e-9 s."""
    assert durations(1e6, seed=seed) == pytest.approx(durations(0.0, seed=seed), rel=0, abs=1e-9)


@pytest.mark.parametrize("scale", [3.0, 1024.0, 1e-3])
def test_a_network_so_many_times_faster_takes_that_much_less(scale: float) -> None:
    """Law 6."""
    assert durations(0.0, scale) * scale == pytest.approx(durations(0.0), rel=1e-9)


def test_a_faster_link_may_lengthen_a_run() -> None:
    """Law 6: A has 20 units over L1 and L2, B 90 units over L2 and then 20 s of compute; L2 = 10.

    L1 = 1: A slows B little, 30 s in all. L1 = 10: they halve L2, B is late, 31 s.
    """
    for slow, right in ((1.0, 30.0), (10.0, 31.0)):
        clock = Clock()
        network = Network(clock, links_of(slow, 10.0))
        a, b = network.start(over([0, 1], 20.0)), network.start(over([1], 90.0))
        clock.run()
        assert max(a.value, b.value + 20.0) == pytest.approx(right, rel=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_bytes_are_conserved(seed: int) -> None:
    """Law 3, on the way and at the end: sent = received + dropped + in flight, links = sum of flows."""
    rng = np.random.default_rng(seed)
    clock = Clock()
    network = Network(clock, star(6), log=True)
    transfers = traffic(network, rng, 6, 80, 0.0)
    clock.run(until=float(rng.uniform(0.001, 0.02)))
    network.check_laws()
    assert network.sent_ticks == network.received_ticks + network.in_flight_ticks
    assert network.in_flight_ticks > 0
    under_way = [t for t in transfers if not t.triggered and t.begin < clock.now]
    lost = under_way[::3]
    for transfer in lost:
        network.drop(transfer)
    clock.run()
    network.check_laws()
    assert network.in_flight_ticks == 0
    assert network.dropped_ticks == sum(transfer.ticks for transfer in lost) > 0
    assert not any(transfer.triggered for transfer in lost)
    carried = np.zeros(12, np.int64)
    for transfer in transfers:
        if transfer not in lost:
            it = transfer.activity
            carried[it.links] += np.rint(it.weights * it.size * 64).astype(int)
    assert network.link_ticks.tolist() == carried.tolist()
    assert network.log is not None
    assert len(network.log) == 80 - len(lost)
    assert [record.end for record in network.log] == sorted(record.end for record in network.log)


def test_what_is_lost_gives_its_links_back() -> None:
    clock = Clock()
    network = Network(clock, links_of(2.0))
    kept, lost = network.start(over([0], 4.0)), network.start(over([0], 4.0))
    clock.call_at(1.0, lambda: network.drop(lost))
    clock.run()
    assert kept.value == 2.5
    with pytest.raises(ValueError, match="only a transfer"):
        network.drop(kept)


def start_all(network: Network, order: tuple[int, ...]) -> dict[int, Transfer]:
    """Five transfers at one instant, two a moment later, in any order of the calls."""
    sizes = [0.3, 0.7, 0.7, 1.1, 0.9]
    paths = [[0, 1], [0, 2], [1, 2], [0, 1], [2, 0]]
    started = {i: network.start(over(paths[i], sizes[i] / 3)) for i in order}
    late = {5 + i: network.start(over(paths[i], sizes[i] / 7), at=0.05) for i in order if i < 2}
    return started | late


def test_order_within_an_instant_does_not_matter() -> None:
    """Finish times to the last bit, and the order in which they fire."""
    seen = set()
    for order in permutations(range(5)):
        clock = Clock()
        network = Network(clock, links_of(0.7, 1.3, 0.9), log=True)
        started = start_all(network, order)
        clock.run()
        assert network.log is not None
        fired = tuple((record.end, record.activity.size) for record in network.log)
        times = tuple(started[i].value for i in range(7))
        seen.add((times, fired, tuple(network.busy_seconds), tuple(network.peak_utilisation)))
    assert len(seen) == 1


def test_an_instant_is_solved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """100 messages leave and 100 follow them at the same instant: one solve each for begin, middle, end."""
    clock = Clock()
    network = Network(clock, star(100))
    network.message(0, 2, 1.0)
    network.message(1, 2, 1.0)
    clock.run()
    solved = []
    solve: Callable[[float], None] = network._shares.solve
    monkeypatch.setattr(network._shares, "solve", lambda now: (solved.append(now), solve(now)))
    start = clock.now
    for i in range(100):
        message = network.message(i, (i + 1) % 100, 1e6)
        assert message.left.callbacks is not None
        message.left.callbacks.append(lambda _, i=i: network.message(i, (i + 2) % 100, 1e6))
    clock.run()
    assert solved == pytest.approx([start, start + 1e-3, start + 2e-3], rel=1e-12)


def test_transfers_that_are_due_together_leave_together() -> None:
    """Mathematically at 1 s both, not so in floating point: 0.1 + 9 * 0.1 against 1."""
    clock = Clock()
    network = Network(clock, links_of(0.1, 1.0, 0.3))
    third = network.start(over([2], 0.3 * 0.7), at=0.3)
    first, second = network.start(over([0], 0.1)), network.start(over([1], 0.9), at=0.1)
    clock.run()
    assert first.value == second.value == third.value


def test_a_transfer_cannot_begin_in_the_past() -> None:
    clock = Clock(initial_time=5.0)
    network = Network(clock, star(2))
    with pytest.raises(ValueError, match="cannot begin at 4"):
        network.start(over([0], 1.0), at=4.0)
    with pytest.raises(ValueError, match="cannot begin at 4"):
        network.message(0, 1, 1.0, at=4.0)


@pytest.mark.parametrize("bad", [float("nan"), -1.0, float("inf")])
def test_sizes_are_finite_and_not_negative(bad: float) -> None:
    with pytest.raises(ValueError, match="an activity of size"):
        over([0], bad)


def test_the_law_of_the_busiest_port_is_checked() -> None:
    """A transfer that ends too early is a fault of ours, and is found."""
    clock = Clock()
    network = Network(clock, links_of(1.0))
    network.start(over([0], 10.0))
    clock.call_at(0.0, lambda: network._best.fill(0.5))
    with pytest.raises(LawError, match="its busiest link alone needs 20"):
        clock.run()


def test_the_laws_of_counters_are_checked() -> None:
    clock = Clock()
    network = Network(clock, star(2))
    network.message(0, 1, 1e6)
    clock.run()
    network.check_laws()
    network.received_ticks -= 1
    with pytest.raises(LawError, match="are accounted for"):
        network.check_laws()
    network.received_ticks += 1
    network._link_ticks[0] += 10**9
    with pytest.raises(LawError, match="h0->hub carried"):
        network.check_laws()


def test_a_quiet_run_does_not_import_numba() -> None:
    program = """
import sys
import numpy as np
from simulator.clock import Clock
from simulator.fabric import Fabric
from simulator.network import Activity, Network
none = np.zeros(2, np.int64)
fabric = Fabric(("n",), ("switch",), none, none, np.ones(2), np.zeros(2), none[:0], (), None)
clock = Clock()
network = Network(clock, fabric)
for at in (0.0, 1.0, 2.0):
    network.start(Activity(np.array([0, 1]), np.ones(2), 1.0), at)
clock.run()
assert clock.now == 3.0
sys.exit("numba" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
