"""Max-min fair rates by water filling: the definition, for reading, and the oracle of the fast solver.

Raise all rates together. A link that is full, or an activity's own cap, stops the activities it limits; the
others rise on. An activity loads link l with `weight` times its rate: rates count per unit of weight.
Bertsekas and Gallager, "Data Networks", 2nd edition, section 6.5.2.
"""

from __future__ import annotations

import numpy as np

from simulator.fabric import FloatArray, IntArray

TIE = 1e-12  # relative: levels as near as this count as one


def water_filling(
    capacity: FloatArray, activity: IntArray, link: IntArray, weight: FloatArray, cap: FloatArray
) -> FloatArray:
    """Max-min fair rates, shape (activities,).

    Args:
        capacity: bytes/s of each link, shape (links,).
        activity: who loads a link: one entry for each pair of activity and link, shape (entries,).
        link: which link, shape (entries,).
        weight: how many times its rate, shape (entries,).
        cap: each activity's own limit, bytes/s, may be inf; shape (activities,).

    >>> one, two = np.array([0, 1]), np.array([0, 0])
    >>> water_filling(np.array([1000.0]), one, two, np.ones(2), np.full(2, np.inf))
    array([500., 500.])
    """
    rate = np.full(len(cap), np.inf)
    while True:
        rising = np.isinf(rate)
        if not rising.any():
            return rate
        level = _levels(capacity, activity, link, weight, rate)
        own = np.where(rising, cap, np.inf)
        lowest = min(level.min(initial=np.inf), own.min(initial=np.inf))
        if np.isinf(lowest):
            return rate
        own_stop = own <= lowest * (1 + TIE)
        rate[own_stop] = own[own_stop]
        stopped = activity[level[link] <= lowest * (1 + TIE)]
        rate[stopped] = np.minimum(rate[stopped], lowest)


def _levels(
    capacity: FloatArray, activity: IntArray, link: IntArray, weight: FloatArray, rate: FloatArray
) -> FloatArray:
    """Per link the rate at which its rising activities fill it, inf if none rises, shape (links,)."""
    rising = np.isinf(rate[activity])
    taken = np.bincount(link, np.where(rising, 0.0, weight * rate[activity]), len(capacity))
    share = np.bincount(link, np.where(rising, weight, 0.0), len(capacity))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(share > 0, np.maximum(capacity - taken, 0.0) / share, np.inf)
