"""Python's own help texts (`pydoc_data.topics`) as windows of characters.

They come with Python and differ a little from version to version; the alphabet is fixed, so sizes do not.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from simulator.problems.batches import IntArray

__all__ = ["EVALUATED", "SYMBOLS", "windows"]

ALPHABET = "\n" + "".join(map(chr, range(32, 127)))  # all else becomes one further symbol
SYMBOLS = len(ALPHABET) + 1
EVALUATED = 256  # windows at most that an evaluation looks at, evenly spaced


@cache
def windows(context: int) -> tuple[IntArray, IntArray]:
    """Symbols of consecutive windows and the character after, (windows, context + 1): train, test."""
    from pydoc_data.topics import topics

    places = {symbol: number for number, symbol in enumerate(ALPHABET)}
    text = "\n".join(topics[name] for name in sorted(topics))
    symbols = np.array([places.get(symbol, SYMBOLS - 1) for symbol in text])
    begins = np.arange(0, len(symbols) - context, context)
    windows = symbols[begins[:, None] + np.arange(context + 1)]
    cut = len(windows) * 9 // 10
    return windows[:cut], windows[cut:]
