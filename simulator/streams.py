"""Addressed random numbers: a draw is a pure function of (seed, purpose, draw index, entity).

Counter-based blocks: word i of Philox with key (seed, purpose) and counter (0, draw, 0, 0) belongs to entity
i. So adding a worker moves nobody's draws, two methods under one seed meet the same stragglers, and a vector
of workers draws the same numbers as one worker at a time. Only uniform numbers are drawn; distributions are
inverse transforms of them (`distributions.py`), since ziggurat methods eat a variable number of words.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b

import numpy as np
from numpy.random import Generator, Philox

from simulator.fabric import FloatArray

CHUNK = 4096  # entities drawn together for single reads
CACHED = 512  # chunks kept
_BELOW_ONE = 1.0 - 2.0**-53
_HALF_STEP = 2.0**-54  # `random` gives multiples of 2^-53, among them 0: move into the open interval


class Draws:
    """Uniform numbers in (0, 1), addressed.

    Args:
        seed: the run's seed.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._keys: dict[str, np.ndarray] = {}
        self._chunks: OrderedDict[tuple[str, int, int], FloatArray] = OrderedDict()

    def _key(self, purpose: str) -> np.ndarray:
        key = self._keys.get(purpose)
        if key is None:
            word = int.from_bytes(blake2b(purpose.encode(), digest_size=8).digest(), "little")
            key = self._keys[purpose] = np.array([self.seed & (2**64 - 1), word], dtype=np.uint64)
        return key

    def block(self, purpose: str, draw: int, n: int, first: int = 0) -> FloatArray:
        """Draw number `draw` of the entities `first` .. `first + n - 1`, shape (n,)."""
        start = first - first % 4  # a Philox counter holds four words
        bits = Philox(key=self._key(purpose), counter=[0, draw, 0, 0])
        bits.advance(start // 4)
        draws: FloatArray = Generator(bits).random(first - start + n)[first - start :]
        return np.minimum(draws + _HALF_STEP, _BELOW_ONE)

    def one(self, purpose: str, draw: int, entity: int) -> float:
        """Draw number `draw` of one entity: the same number as in a block, from a chunk kept at hand."""
        address = (purpose, draw, entity // CHUNK)
        chunk = self._chunks.get(address)
        if chunk is None:
            # Workers 0..n-1 of small clusters are read one after the other: short chunks first.
            chunk = self.block(purpose, draw, CHUNK, entity // CHUNK * CHUNK)
            self._chunks[address] = chunk
            if len(self._chunks) > CACHED:
                self._chunks.popitem(last=False)
        return float(chunk[entity % CHUNK])

    def choice(self, purpose: str, draw: int, entity: int, among: int) -> int:
        """One of 0 .. `among` - 1, all equally likely."""
        return min(int(self.one(purpose, draw, entity) * among), among - 1)

    def permutation(self, purpose: str, draw: int, n: int) -> np.ndarray:
        """A random order of 0 .. n-1, shape (n,)."""
        return np.argsort(self.block(purpose, draw, n), kind="stable")
