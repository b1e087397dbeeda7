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
from simulator.steering import NOBODY, SEVERAL, Crowd

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


def crowd(links=(), mean=(), idle=None, busy=None, who=None):
    mean = np.array(mean, dtype=float)
    idle = mean if idle is None else np.array(idle, dtype=float)
    busy = mean if busy is None else np.array(busy, dtype=float)
    who = np.full(len(mean), NOBODY) if who is None else np.array(who)
    return Crowd(np.array(links, dtype=np.int64), mean, idle, busy, who)


@pytest.mark.parametrize("who", [[SEVERAL] * 4, [7, 3, 7, 3], [5, 5, 5, 5], [9, SEVERAL, 9, SEVERAL]])
def test_the_least_share_is_the_mean_over_all_states(who):
    """Links of one ring are idle together, by one draw for all of them; others by a draw each."""
    rng = np.random.default_rng(1)
    k, hops, edges = 4, 3, 5
    for _ in range(100):
        busy = rng.uniform(0.1, 0.5, k)
        busy[0] = busy[1]  # equal levels
        idle = busy + rng.choice([0.0, 1.0], k) * rng.uniform(0.0, 0.5, k)
        mean = busy + rng.uniform(0, 1, k) * (idle - busy)
        met = np.stack([rng.permutation(k + hops)[:hops] for _ in range(edges)])
        place = np.array([0, 1, 2, 3, -1, -1, -1])
        alone, found = rng.uniform(0.2, 1.0, edges), np.empty(edges)
        rates(found, alone, met, place, np.stack([mean, idle, busy]), np.array(who))
        for e in range(edges):
            links = [m for m in met[e] if m < k]
            want = over_all_states(links, alone[e], mean, idle, busy, who)
            assert found[e] == pytest.approx(want, rel=1e-12)


def over_all_states(links, alone, mean, idle, busy, who):
    """Cut each draw's range where a link's state changes, and sum over all cells."""
    gap = idle - busy
    q = np.where(gap > 0, (mean - busy) / np.where(gap > 0, gap, 1), 1.0)
    draws = [who[m] if who[m] >= 0 else ("own", m) for m in links]
    cuts = {
        d: sorted({0.0, 1.0, *(q[m] for m, o in zip(links, draws, strict=True) if o == d)}) for d in draws
    }
    want = 0.0
    for cell in product(*(range(len(cut) - 1) for cut in cuts.values())):
        at = {d: (cuts[d][i], cuts[d][i + 1]) for d, i in zip(cuts, cell, strict=True)}
        least = alone
        for m, d in zip(links, draws, strict=True):
            state = idle[m] if at[d][1] <= q[m] else busy[m]
            least = min(least, mean[m] if gap[m] <= 0 else state)
        want += least * np.prod([b - a for a, b in at.values()])
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


def test_edges_are_held_back_by_those_before():
    """One slow edge: the k-th after it runs k chunks ahead, less what is under way."""
    n, chunk = 6, 1.0
    steered = Progress(ring_load(n), chunk, "left", 0.0)
    steered._speed = np.full(n, 1.0)
    steered._speed[2] = 0.25
    under_way = (1 + 0.25) / 2
    after = steered.moved_after(8.0)
    assert after[2] == 2.0
    for k in range(1, n):
        assert after[(2 + k) % n] == pytest.approx(min(8.0, 2.0 + k - under_way))


def test_edges_do_not_go_back_and_not_beyond_the_end():
    rng = np.random.default_rng(4)
    n, chunk = 6, 1.0
    steered = Progress(ring_load(n), chunk, "left", 0.0)
    for _ in range(200):
        steered._moved = rng.uniform(0, 9, n)
        steered._speed = rng.uniform(0.2, 1.0, n)
        after = steered.moved_after(rng.exponential(3.0))
        assert (after >= steered._moved).all()
        assert (after <= steered._total).all()


def test_equal_edges_keep_abreast():
    steered = Progress(ring_load(5), 1.0, "left", 0.0)
    steered._speed = np.full(5, 0.5)
    assert steered.moved_after(3.0).tolist() == [1.5] * 5


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
    assert end == pytest.approx(1.301 * total, rel=0.10)  # message by message 1.301; all at one rate 1.5


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
