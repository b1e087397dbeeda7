"""A tree of minima over numbered keys, compiled: which number has the least key?

The second half of `tree` are its leaves, one a number, a power of two of them; node i is the minimum of nodes
2i and 2i + 1. Setting a key costs at most the height of the tree and usually little of it. Of equal keys the
lowest number comes first.
"""

from __future__ import annotations

import numpy as np

from simulator.compiled import compiled
from simulator.fabric import FloatArray


@compiled
def put(tree: FloatArray, number: int, key: float) -> None:
    """Set a key."""
    i = (len(tree) >> 1) + number
    tree[i] = key
    while i > 1:
        least = min(tree[i], tree[i ^ 1])
        i >>= 1
        if tree[i] == least:
            return
        tree[i] = least


@compiled
def key_of(tree: FloatArray, number: int) -> float:
    """The key of a number."""
    return float(tree[(len(tree) >> 1) + number])


@compiled
def first(tree: FloatArray) -> int:
    """The number with the least key; -1 if all are inf."""
    least, leaves, i = tree[1], len(tree) >> 1, 1
    if least == np.inf:
        return -1
    while i < leaves:
        i *= 2
        if tree[i] != least:
            i += 1
    return i - leaves


@compiled
def put_leaf(tree: FloatArray, number: int, key: float) -> None:
    """Set a key; `renew` must follow."""
    tree[(len(tree) >> 1) + number] = key


@compiled
def renew(tree: FloatArray) -> None:
    """Work out all minima."""
    for i in range((len(tree) >> 1) - 1, 0, -1):
        tree[i] = min(tree[2 * i], tree[2 * i + 1])
