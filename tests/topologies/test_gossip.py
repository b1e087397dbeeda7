"""Gossip graphs: doubly stochastic, the right pairs, the spectral gaps."""

from __future__ import annotations

from math import cos, pi, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from simulator.streams import Draws
from topologies.gossip import Gossip
from topologies.links import Impossible

ADAPTER = TypeAdapter(Gossip)
GRAPHS = [
    "ring",
    "complete",
    "random_matching",
    "random_ring",
    "exponential",
    "one_peer_exponential",
    "torus",
    "star",
]
DRAWS = Draws(7)


def gossip(graph, **keys):
    return ADAPTER.validate_python({"graph": graph, **keys})


@settings(max_examples=150, deadline=None)
@given(
    graph=st.sampled_from(GRAPHS),
    n=st.integers(1, 40),
    step=st.integers(0, 1000),
    rule=st.sampled_from(["metropolis", "max_degree"]),
    lazy=st.sampled_from([0.0, 0.3]),
)
def test_mixing_is_doubly_stochastic(graph, n, step, rule, lazy):
    spec = gossip(graph, weights=rule, lazy=lazy)
    mixing = spec.mixing(step, n, DRAWS)
    w = mixing.matrix()
    assert (w >= -1e-15).all()
    np.testing.assert_allclose(w.sum(axis=0), 1, atol=1e-12)
    np.testing.assert_allclose(w.sum(axis=1), 1, atol=1e-12)
    there = mixing.peers >= 0
    assert (there[:, 1:] <= there[:, :-1]).all()  # padded at the end
    assert (mixing.weights[~there] == 0).all()
    for i, row in enumerate(mixing.peers):
        own = row[row >= 0]
        assert len(set(own.tolist()) | {i}) == len(own) + 1  # each peer once, never oneself


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 12])
def test_neighbours_are_those_one_sends_to(graph, n):
    spec = gossip(graph)
    for step in range(5):
        peers = spec.mixing(step, n, DRAWS).peers
        sends = {(int(j), i) for i in range(n) for j in peers[i] if j >= 0}
        named = {(i, int(j)) for i in range(n) for j in spec.neighbours(i, step, n, DRAWS)}
        assert sends == named


def test_matching_pairs_partners():
    spec = gossip("random_matching")
    for n in (8, 9):
        partners = spec.mixing(3, n, DRAWS).peers[:, 0]
        alone = np.flatnonzero(partners < 0)
        assert len(alone) == n % 2
        paired = np.flatnonzero(partners >= 0)
        assert (partners[partners[paired]] == paired).all()
    first, second = spec.mixing(3, 64, DRAWS), spec.mixing(4, 64, DRAWS)
    assert (first.peers != second.peers).any()
    assert (first.peers == spec.mixing(3, 64, Draws(7)).peers).all()
    assert (first.peers != spec.mixing(3, 64, Draws(8)).peers).any()


@pytest.mark.parametrize(("n", "gap"), [(16, 0.0507), (32, 0.0128), (64, 0.0032), (128, 0.0008)])
def test_gap_of_the_ring(n, gap):
    assert gossip("ring").spectral_gap(n) == pytest.approx(gap, abs=5e-5)
    assert gossip("ring").spectral_gap(n) == pytest.approx(1 - (1 + 2 * cos(2 * pi / n)) / 3, abs=1e-12)


@pytest.mark.parametrize(("n", "gap"), [(16, 0.4625), (32, 0.4416), (64, 0.4319), (128, 0.4272)])
def test_gap_of_the_random_ring(n, gap):
    assert gossip("random_ring").spectral_gap(n) == pytest.approx(gap, abs=5e-5)
    assert gossip("random_ring").spectral_gap(10**9) == pytest.approx(1 - 1 / sqrt(3), abs=1e-6)


@pytest.mark.parametrize("graph", ["random_ring", "random_matching"])
@pytest.mark.parametrize(("n", "lazy"), [(4, 0.0), (6, 0.0), (7, 0.0), (6, 0.4)])
def test_gap_of_random_graphs_is_that_of_their_mean_square(graph, n, lazy):
    spec = gossip(graph, lazy=lazy)
    squares = [w.T @ w for w in (spec.mixing(step, n, DRAWS).matrix() for step in range(6000))]
    rho = np.linalg.norm(np.mean(squares, axis=0) - 1 / n, 2)
    assert spec.spectral_gap(n) == pytest.approx(1 - sqrt(rho), abs=0.02)


def test_ring_contracts_as_its_second_eigenvalue():
    n = 12
    w = gossip("ring").mixing(0, n, DRAWS).matrix()
    slow = np.cos(2 * pi * np.arange(n) / n)
    np.testing.assert_allclose(w @ slow, (1 / 3 + 2 / 3 * cos(2 * pi / n)) * slow, atol=1e-14)


def test_complete_is_the_mean_at_once():
    x = np.random.default_rng(0).normal(size=(10, 3))
    w = gossip("complete").mixing(0, 10, DRAWS).matrix()
    np.testing.assert_allclose(w @ x, np.tile(x.mean(axis=0), (10, 1)), atol=1e-14)
    assert gossip("complete").spectral_gap(10) == pytest.approx(1)


def test_one_peer_exponential_is_exact_after_a_period():
    spec = gossip("one_peer_exponential")
    product = np.eye(16)
    for step in range(4):
        product = spec.mixing(step, 16, DRAWS).matrix() @ product
    np.testing.assert_allclose(product, 1 / 16, atol=1e-15)
    assert spec.spectral_gap(16) == 1
    assert spec.neighbours(3, 6, 16, DRAWS).tolist() == [7]  # 2^(6 mod 4) ahead


def test_star_weighs_by_the_larger_degree():
    mixing = gossip("star").mixing(0, 5, DRAWS)
    assert mixing.self_weight == pytest.approx([0.2, 0.8, 0.8, 0.8, 0.8])
    assert mixing.weights[0] == pytest.approx([0.2] * 4)


def test_custom_graph_and_its_errors():
    line = gossip("custom", edges=[[0, 1], [1, 2]])
    assert line.mixing(0, 3, DRAWS).self_weight == pytest.approx([2 / 3, 1 / 3, 2 / 3])
    with pytest.raises(Impossible, match="found worker 2 in the gossip edges, expected workers 0 to 1"):
        line.mixing(0, 2, DRAWS)
    with pytest.raises(Impossible, match="no way from worker 0 to worker 3"):
        line.mixing(0, 4, DRAWS)
    with pytest.raises(ValidationError, match="each edge once"):
        gossip("custom", edges=[[0, 1], [1, 0]])
    with pytest.raises(ValidationError, match="expected two workers"):
        gossip("custom", edges=[[1, 1]])


def test_torus_dims():
    assert gossip("torus").sides(12) == (3, 4)
    assert gossip("torus", dims=[2, 6]).mixing(0, 12, DRAWS).peers.shape == (12, 3)
    with pytest.raises(Impossible, match="product is the number of workers"):
        gossip("torus", dims=[2, 5]).mixing(0, 12, DRAWS)


def test_too_large_is_refused():
    with pytest.raises(Impossible, match="at most 30,000,000 pairs"):
        gossip("complete").mixing(0, 100_000, DRAWS)
