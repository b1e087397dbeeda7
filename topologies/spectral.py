"""Spectral gaps: how fast repeated mixing makes all values equal."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from simulator.streams import Draws
from topologies.links import Impossible

if TYPE_CHECKING:
    from topologies.gossip import GossipGraph

MOST_WORKERS = 4096
"""For gaps found from the matrix itself."""
_ZERO = 1e-12  # a factor below is rounding of 0, and its L-th root would not be small


def gap_over_a_period(graph: GossipGraph, n: int) -> float:
    """1 - (second singular value of the product of a period's matrices)^(1 / period)."""
    if n > MOST_WORKERS:
        raise Impossible(f"{n} workers", f"at most {MOST_WORKERS} for a spectral gap from the matrix")
    draws, period = Draws(0), graph.period(n) or 1
    product = np.eye(n) - 1.0 / n
    for step in range(period):
        product = graph.mixing(step, n, draws).matrix() @ product
    factor = float(np.linalg.norm(product, 2))
    return 1.0 - (factor ** (1.0 / period) if factor > _ZERO else 0.0)


def gap_of_moments(first: float, second: float, lazy: float) -> float:
    """1 - sqrt(rho) where W is drawn anew at each step.

    Args:
        first: second eigenvalue of E[T], T the mixing matrix before it is made lazy.
        second: second eigenvalue of E[T^T T].
        lazy: s of W = s I + (1 - s) T.
    """
    return 1.0 - sqrt(lazy**2 + 2 * lazy * (1 - lazy) * first + (1 - lazy) ** 2 * second)
