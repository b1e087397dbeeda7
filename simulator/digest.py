"""The digest of a run: a hash over every worker's finished spans and every link's bytes.

A worker's spans enter as an order-free sum of mixed 64-bit words, so that neither the order of ties, nor
the record level, nor the engine (a process per worker, or one vector of clocks) changes it. Not
cryptographic: it finds differences, not forgers.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from simulator.fabric import FloatArray, IntArray

Words = NDArray[np.uint64]

_START, _END, _SIZE, _KIND = (
    np.uint64(word)
    for word in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93)
)
_S29, _S31, _S32 = np.uint64(29), np.uint64(31), np.uint64(32)


def span_words(
    code: NDArray[np.integer] | int, start: FloatArray, end: FloatArray, size: FloatArray
) -> Words:
    """One mixed word a span; a span of no length counts nothing.

    Args:
        code: kind and whether hidden, as a small integer, shape (n,) or a scalar.
        start: seconds, shape (n,), contiguous.
        end: likewise.
        size: bytes, shape (n,), contiguous.

    Returns:
        Words, shape (n,).
    """
    word = start.view(np.uint64) * _START
    word ^= word >> _S29
    word += end.view(np.uint64) * _END
    word ^= word >> _S31
    word += size.view(np.uint64) * _SIZE + np.asarray(code, dtype=np.uint64) * _KIND
    word ^= word >> _S32
    word *= _START
    word ^= word >> _S29
    word[end <= start] = 0
    return word


def finish(per_worker: Words, link_bytes: IntArray) -> str:
    """The digest in hexadecimal: workers in rank order, then links' bytes (fixed-point) in link order."""
    state = blake2b(digest_size=16)
    state.update(per_worker.tobytes())
    state.update(link_bytes.astype(np.int64, copy=False).tobytes())
    return state.hexdigest()
