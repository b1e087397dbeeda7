"""Hashes of routes: integer arithmetic only, so the same on every machine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simulator.fabric import IntArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def hashed(src: IntArray, dst: IntArray, seed: int) -> IntArray:
    """63 mixed bits of (src, dst, seed), shape (n,).

    The mixer is the finaliser of splitmix64 (Steele, Lea, Flood 2014), once for each part.

    >>> hashed(np.array([0, 1]), np.array([1, 0]), 0).tolist()
    [1700482428262628912, 2482289063980384216]
    """
    word = _mix(np.full(len(src), seed % 2**64, dtype=np.uint64))
    word = _mix(word ^ src.astype(np.uint64))
    word = _mix(word ^ dst.astype(np.uint64))
    return (word >> np.uint64(1)).astype(np.int64)


def remixed(word: IntArray) -> IntArray:
    """The next 63 bits, for the next hop."""
    return (_mix(word.astype(np.uint64)) >> np.uint64(1)).astype(np.int64)


def _mix(word: NDArray[np.uint64]) -> NDArray[np.uint64]:
    word = word + _GOLDEN
    word = (word ^ (word >> np.uint64(30))) * _MIX_1
    word = (word ^ (word >> np.uint64(27))) * _MIX_2
    mixed: NDArray[np.uint64] = word ^ (word >> np.uint64(31))
    return mixed
