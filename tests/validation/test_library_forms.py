"""Closed forms of libraries' collectives on the quiet star, to 1e-9 in all three fidelities."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from simulator.clock import Clock
from simulator.collectives import Call, Group, closed_forms
from simulator.network import Network
from topologies.star import Star

B, A = 1e9, 3e-6
FIDELITIES = ["flows", "bundles", "closed_form"]
SIZES = [1, 2, 3, 4, 5, 7, 8, 16]
BYTES = [0.0, 2e4, 1e6]  # a segment is shorter than the latency, or longer
RINGS = {
    ("all_reduce", "gloo_ring"): closed_forms.gloo_all_reduce,
    ("reduce_scatter", "gloo_ring"): closed_forms.gloo_all_reduce,
    ("all_gather", "gloo_ring"): closed_forms.gloo_half,
    ("reduce", "gloo_ring"): closed_forms.gloo_reduce,
}
OTHERS = {
    ("broadcast", "gloo_broadcast"): closed_forms.gloo_broadcast,
    ("all_to_all", "gloo_direct"): closed_forms.gloo_all_to_all,
    ("barrier", "gloo_dissemination"): lambda n, s, b, a: closed_forms.gloo_barrier(n, a),
}


def run(
    n: int,
    op: str,
    algorithm: str,
    nbytes: float,
    fidelity: str,
    *,
    send_ends: str = "left",
    hosts: np.ndarray | None = None,
    cohort: bool = True,
    at: np.ndarray | None = None,
    root: int = 0,
    hosts_per_group: int = 1,
) -> Call:
    fabric = Star(hosts=n, link={"bandwidth": "8 Gbit/s", "latency": "1.5 us"}).build()
    clock = Clock()
    group = Group(
        Network(clock, fabric, fidelity=fidelity, send_ends=send_ends),
        fabric.hosts,
        hosts=np.arange(n) if hosts is None else hosts,
        algorithms={"hosts_per_group": hosts_per_group},
    )
    call = group.call(op, nbytes, algorithm=algorithm, root=root)
    arrivals = np.zeros(n) if at is None else at
    if cohort:
        call.arrive_all(arrivals)
    else:
        for m in range(n):
            clock.call_at(float(arrivals[m]), partial(call.arrive, m, float(arrivals[m])))
    clock.run()
    return call


@pytest.mark.parametrize("fidelity", FIDELITIES)
@pytest.mark.parametrize("send_ends", ["left", "arrived"])
@pytest.mark.parametrize(("op", "algorithm"), RINGS)
def test_gloo_rings(op, algorithm, send_ends, fidelity):
    for n in SIZES:
        for nbytes in BYTES:
            want = RINGS[op, algorithm](n, nbytes, B, A, send_ends)
            call = run(n, op, algorithm, nbytes, fidelity, send_ends=send_ends, root=n // 2)
            assert call.left == pytest.approx(np.full(n, want), rel=1e-9), (n, nbytes)


@pytest.mark.parametrize("fidelity", FIDELITIES)
@pytest.mark.parametrize(("op", "algorithm"), OTHERS)
def test_gloo_others(op, algorithm, fidelity):
    for n in SIZES:
        for nbytes in BYTES:
            want = OTHERS[op, algorithm](n, nbytes, B, A)
            call = run(n, op, algorithm, nbytes, fidelity, root=n // 2)
            assert call.left.max() == pytest.approx(want, rel=1e-9), (n, nbytes)


def test_gloo_forms_of_powers_of_two():
    for levels in (1, 2, 3, 5):
        want = (levels + 1) * A + levels * (levels + 1) / 2 * 1e6 / B
        assert closed_forms.gloo_broadcast(2**levels, 1e6, B, A) == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("fidelity", FIDELITIES)
def test_an_exchange_and_a_message_are_a_rendezvous(fidelity):
    want = closed_forms.rendezvous(1e6, B, A)
    for n in (2, 4, 8):
        assert run(n, "exchange", "gloo_pairs", 1e6, fidelity).left == pytest.approx(
            np.full(n, want), rel=1e-9
        )
    assert run(2, "broadcast", "gloo_broadcast", 1e6, fidelity).left.max() == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize("fidelity", FIDELITIES)
def test_a_notice_goes_before_a_late_sender_has_come(fidelity):
    late = np.array([1e-3, 0.0])
    for op, algorithm in (("broadcast", "gloo_broadcast"), ("exchange", "gloo_pairs")):
        taken = run(2, op, algorithm, 1e6, fidelity, at=late).left[1] - 1e-3
        assert taken == pytest.approx(A + 1e6 / B, rel=1e-9)  # one latency, not two
        taken = run(2, op, algorithm, 1e6, fidelity, at=late[::-1]).left.max() - 1e-3
        assert taken == pytest.approx(closed_forms.rendezvous(1e6, B, A), rel=1e-9)


@pytest.mark.parametrize("fidelity", FIDELITIES)
@pytest.mark.parametrize(("op", "algorithm"), [*RINGS, *OTHERS, ("exchange", "gloo_pairs")])
def test_one_by_one_and_all_together_are_the_same_bits(op, algorithm, fidelity):
    at = np.random.default_rng(2).uniform(0, 1e-3, 6)
    one = run(6, op, algorithm, 1e5, fidelity, at=at, cohort=False)
    all_at_once = run(6, op, algorithm, 1e5, fidelity, at=at)
    assert (one.left == all_at_once.left).all()
    assert (one.began == all_at_once.began).all()


def test_gloo_sends_what_the_bed_measured():
    """Bytes a member sends: all-reduce 2 (n-1)/n S, so does reduce-scatter; reduce too, but for the root."""
    for op in ("all_reduce", "reduce_scatter"):
        sent = run(8, op, "gloo_ring", 8e6, "bundles").bytes_sent
        assert sent == pytest.approx(np.full(8, 14e6), rel=1e-12)
    assert run(8, "reduce", "gloo_ring", 8e6, "bundles").bytes_sent == pytest.approx([7e6] + [8e6] * 7)
    assert run(8, "all_gather", "gloo_ring", 8e6, "bundles").bytes_sent == pytest.approx([7e6] * 8)


@pytest.mark.parametrize("fidelity", FIDELITIES)
@pytest.mark.parametrize("shape", [(1, 4), (4, 1), (2, 2), (3, 2), (2, 4)])
def test_nccl_on_the_star(shape, fidelity):
    m, g = shape
    n, hosts = m * g, np.repeat(np.arange(m), g)
    ring = run(n, "all_reduce", "nccl_ring", 1e6, fidelity, hosts=hosts)
    assert ring.left == pytest.approx(np.full(n, closed_forms.ring_all_reduce(n, 1e6, B, A)), rel=1e-9)
    switch = run(n, "all_reduce", "in_switch", 1e6, fidelity, hosts=hosts)
    want = closed_forms.switch_all_reduce(m, g, 1e6, B, A)
    assert switch.left == pytest.approx(np.full(n, want), rel=1e-9)


@pytest.mark.parametrize("fidelity", FIDELITIES)
@pytest.mark.parametrize("shape", [(2, 2, 2), (3, 2, 2), (1, 2, 3), (2, 1, 3), (2, 3, 1), (1, 1, 4)])
def test_three_levels(shape, fidelity):
    m, h, g = shape
    n = m * h * g
    call = run(
        n,
        "all_reduce",
        "hierarchical_3",
        1e6,
        fidelity,
        hosts=np.repeat(np.arange(m * h), g),
        hosts_per_group=h,
    )
    want = closed_forms.three_level_all_reduce(m, h, g, 1e6, B, A)
    assert call.left == pytest.approx(np.full(n, want), rel=1e-9)


def test_the_choice_by_size_is_the_algorithm_it_names():
    for nbytes, named in ((4e3, "halving_doubling"), (1e6, "ring")):
        chosen = run(8, "all_reduce", "auto", nbytes, "bundles")
        assert (chosen.left == run(8, "all_reduce", named, nbytes, "bundles").left).all()
    for nbytes, named in ((4e3, "double_tree"), (1e6, "nccl_ring")):
        chosen = run(16, "all_reduce", "nccl_auto", nbytes, "bundles")
        assert (chosen.left == run(16, "all_reduce", named, nbytes, "bundles").left).all()
