"""Edges of a bundle that shares links: their pace, their run-ahead, their course."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from simulator.clock import Clock
from simulator.collectives import Group
from simulator.collectives.edges import rates
from simulator.collectives.progress import Progress, progress
from simulator.fabric import Fabric
from simulator.network import Network
from simulator.steering import Crowd

B, A = 1e9, 1e-6


class Star:
    """Node i sends on link i and receives on link n + i."""

    def __init__(self, n: int) -> None:
        node = np.arange(n)
        self.n = n
        self.fabric = Fabric(
            node_names=(*(f"h{i}" for i in range(n)), "s"),
            node_kinds=("host",) * n + ("switch",),
            tail=np.concatenate([node, np.full(n, n)]),
            head=np.concatenate([np.full(n, n), node]),
            bandwidth=np.full(2 * n, B),
            latency=np.full(2 * n, A / 2),
            hosts=node,
            devices=(),
            router=self,
        )

    def paths(self, src: np.ndarray, dst: np.ndarray) -> np.ndarray:
        return np.stack([src, self.n + dst], axis=1)


def ring_load(n, op="all_reduce", algorithm="ring"):
    fabric = Star(n).fabric
    group = Group(Network(Clock(), fabric), fabric.hosts, hosts=fabric.hosts)
    return group.plan(op, algorithm).loads[0]


def crowd(links=(), mean=(), idle=None, busy=None):
    mean = np.array(mean, dtype=float)
    idle = mean if idle is None else np.array(idle, dtype=float)
    busy = mean if busy is None else np.array(busy, dtype=float)
    return Crowd(np.array(links, dtype=np.int64), mean, idle, busy)


def test_the_least_share_is_the_mean_over_all_states():
    rng = np.random.default_rng(1)
    k, hops, edges = 4, 3, 5
    for _ in range(200):
        busy = rng.uniform(0.1, 0.5, k)
        idle = busy + rng.choice([0.0, 1.0], k) * rng.uniform(0.0, 0.5, k)
        mean = busy + rng.uniform(0, 1, k) * (idle - busy)
        busy[0] = busy[1]  # equal thresholds
        met = np.stack([rng.permutation(k + hops)[:hops] for _ in range(edges)])
        place = np.array([0, 1, 2, 3, -1, -1, -1])
        alone, found = rng.uniform(0.2, 1.0, edges), np.empty(edges)
        rates(found, alone, met, place, mean, idle, busy)
        for e in range(edges):
            links = [m for m in met[e] if m < k]
            assert found[e] == pytest.approx(over_all_states(links, alone[e], mean, idle, busy), rel=1e-12)


def over_all_states(links, alone, mean, idle, busy):
    want = 0.0
    for state in product([0, 1], repeat=len(links)):
        chance, least = 1.0, alone
        for link, is_idle in zip(links, state, strict=True):
            gap = idle[link] - busy[link]
            q = (mean[link] - busy[link]) / gap if gap > 0 else 1.0
            chance *= q if is_idle else 1 - q
            share = mean[link] if gap <= 0 else idle[link] if is_idle else busy[link]
            least = min(least, share)
        want += chance * least
    return want


def test_alone_the_course_is_the_formula():
    load = ring_load(8)
    chunk = 1e6 / 8
    course = Progress(load, chunk, "left", 2.0).steer(2.0, crowd(), 0.0)
    assert course.left == pytest.approx(14 * (A + chunk / B))
    assert course.rate == pytest.approx(chunk / (A + chunk / B))
    assert course.look == np.inf
    later = Progress(load, chunk, "left", 2.0)
    assert later.steer(2.0005, crowd(), 0.0).left == pytest.approx(course.left - 0.0005)


def test_no_edge_is_more_than_a_chunk_ahead_of_the_one_before():
    """Against small steps of the same equations."""
    n, chunk = 6, 1.0
    rng = np.random.default_rng(4)
    steered = Progress(ring_load(n), chunk, "left", 0.0)
    for _ in range(20):
        steered._moved = np.zeros(n)
        steered._speed = rng.uniform(0.2, 1.0, n)
        moved, dt = np.zeros(n), 1e-3
        for _ in range(3000):
            step = moved + steered._speed * dt
            for _ in range(n):
                step = np.minimum(step, np.roll(step, 1) + chunk)
            moved = np.minimum(step, 2 * (n - 1) * chunk)
        assert steered.moved_after(3.0) == pytest.approx(moved, rel=1e-9)
        ahead = moved - np.roll(moved, 1)
        assert ahead.max() <= chunk * (1 + 1e-9)


def sail(steered, begin, end, others):
    """Follow a course from `begin` to `end`, s, among the same others, asked again whenever it says so."""
    now, course = begin, steered.steer(begin, others, 0.0)
    while now < end:
        then = min(end, now + course.look)
        course = steered.steer(then, others, course.rate * (then - now))
        now = then
    return course


def test_links_that_are_slow_one_after_the_other_do_not_add_up():
    """Edge 0 at half speed, then edge 5 as long: edge 5 has run ahead meanwhile, and the ring loses less."""
    n = 6
    chunk = 1e6
    steered = Progress(ring_load(n), chunk, "left", 0.0)
    total = 10 * chunk / B
    assert steered.steer(0.0, crowd([0], [B / 2]), 0.0).left == pytest.approx(2 * total, rel=1e-2)
    sail(steered, 0.0, 0.5 * total, crowd([0], [B / 2]))
    sail(steered, 0.5 * total, total, crowd([5], [B / 2]))
    end = total + steered.steer(total, crowd(), 0.0).left
    assert end == pytest.approx(1.301 * total, rel=0.05)  # message by message 1.301; all at one rate 1.5


def test_edges_have_moved_what_they_have_loaded():
    """The books of the network and of the edges agree, or a link would carry too much."""
    rng = np.random.default_rng(8)
    n, chunk = 5, 1e6
    load = ring_load(n)
    steered = Progress(load, chunk, "left", 0.0)
    now, carried = 0.0, np.zeros(2 * n)
    everything = np.arange(2 * n)
    course = steered.steer(now, crowd(everything, rng.uniform(0.2, 1, 2 * n) * B), 0.0)
    while course.left > 1e-12:
        step = min(course.left, course.look, rng.exponential(chunk / B))
        moved = course.rate * step * rng.uniform(0.7, 1.0)  # at times less than it could have had
        carried += course.weights * moved
        now += step
        course = steered.steer(now, crowd(everything, rng.uniform(0.2, 1, 2 * n) * B), moved)
    assert carried == pytest.approx(np.full(2 * n, 2 * (n - 1) * chunk), rel=1e-4)


def test_weights_follow_the_edges_speeds():
    n, chunk = 4, 1e6
    steered = Progress(ring_load(n), chunk, "left", 0.0)
    course = steered.steer(0.0, crowd([0, 1, n + 1], [B / 4, B / 2, B / 2]), 0.0)
    assert course.rate == pytest.approx(B / 4, rel=1e-2)
    first, second, third = course.weights
    assert first == pytest.approx(1.0, rel=1e-2)
    assert 1.0 < second <= 2.0  # edge 1 runs ahead of edge 0, by a chunk at the most
    assert third == pytest.approx(first)  # edge 0 arrives at member 1


def test_messages_of_an_all_to_all_wait_for_nobody():
    n = 4
    load = ring_load(n, "all_to_all", "direct")
    steered = Progress(load, 1e6, "left", 0.0)
    assert not steered.pauses
    slow = crowd([0], [B / 12])
    assert steered.steer(0.0, slow, 0.0).left == pytest.approx(12e-3)
    course = sail(steered, 0.0, 12e-3, slow)
    assert course.left == pytest.approx(0.0, abs=1e-12)
    assert steered.moved_after(0.0) == pytest.approx(np.full(12, 1e6))


def test_a_large_ring_keeps_one_rate_and_rests():
    steered = Progress(ring_load(300), 1e6, "left", 0.0)
    course = steered.steer(0.0, crowd([0, 1], [B / 4, B / 2]), 0.0)
    assert course.rate == pytest.approx(B / 4, rel=1e-2)
    assert course.weights.tolist() == [1.0, 1.0]
    assert course.left == pytest.approx(4 * 598e6 / B, rel=1e-2)
    assert course.look == np.inf
    assert 0 < course.rest < course.left / 10


def test_what_has_no_course():
    ring = ring_load(4)
    assert progress(ring, 0.0, "left", 0.0) is None
    assert progress(ring_load(2, "broadcast", "binomial"), 1.0, "left", 0.0) is None
    assert progress(ring_load(330, "all_to_all", "direct"), 1.0, "left", 0.0) is None
    assert isinstance(progress(ring, 1.0, "left", 0.0), Progress)
