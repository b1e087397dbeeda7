"""MNIST-1D: 5,000 noisy series of 40 numbers in ten classes, made anew from the published recipe.

Greydanus, Kobak, "Scaling down deep learning with MNIST-1D", ICML 2024 (arXiv 2011.14439), and its package's
code: a template of twelve points a class is padded, stretched, scaled, shifted, sheared, and noise added.
Numbers are drawn as there (the frozen legacy generator of NumPy, seed 42), so these are the published series:
4,000 for training, 1,000 for tests.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from simulator.fabric import FloatArray
from simulator.problems.digits import Classified

__all__ = ["LENGTH", "SERIES", "TEST_SERIES", "mnist1d"]

SERIES, TEST_SERIES, LENGTH = 4000, 1000, 40
_TEMPLATES = (
    (5, 6, 6.5, 6.75, 7, 7, 7, 7, 6.75, 6.5, 6, 5),
    (5, 3, 3, 3.4, 3.8, 4.2, 4.6, 5, 5.4, 5.8, 5, 5),
    (5, 6, 6.5, 6.5, 6, 5.25, 4.75, 4, 3.5, 3.5, 4, 5),
    (5, 6, 6.5, 6.5, 6, 5, 5, 6, 6.5, 6.5, 6, 5),
    (5, 4.4, 3.8, 3.2, 2.6, 2.6, 5, 5, 5, 5, 5, 5),
    (5, 3, 3, 3, 3, 5, 6, 6.5, 6.5, 6, 4.5, 5),
    (5, 4, 3.5, 3.25, 3, 3, 3, 3, 3.25, 3.5, 4, 5),
    (5, 7, 7, 6.6, 6.2, 5.8, 5.4, 5, 4.6, 4.2, 5, 5),
    (5, 4, 3.5, 3.5, 4, 5, 5, 4, 3.5, 3.5, 4, 5),
    (5, 4, 3.5, 3.5, 4, 5, 5, 5, 5, 4.7, 4.3, 5),
)
_PADDING, _SHIFTS = (36, 60), 48  # points added behind a template, from and to; points it may be shifted by
_LONG = len(_TEMPLATES[0]) + _PADDING[1]
_SCALE, _SHEAR, _CORRELATED, _INDEPENDENT = 0.4, 0.75, 0.25, 0.02


@cache
def mnist1d() -> Classified:
    """The series, of mean 0 and standard deviation 1 over all."""
    draws = np.random.RandomState(42)  # by which the data set is defined
    shapes = np.array(_TEMPLATES)
    shapes -= shapes.mean(1, keepdims=True)
    shapes /= shapes.std(1, keepdims=True)
    shapes = (shapes - shapes[:, :1]) / 6.0
    each = (SERIES + TEST_SERIES) // len(shapes)
    series = np.stack([_drawn(shape, draws) for shape in shapes for _ in range(each)])
    order = draws.permutation(len(series))
    series, labels = series[order], np.repeat(np.arange(len(shapes)), each)[order]
    series = (series - series.mean()) / series.std()
    return Classified(series[:SERIES], labels[:SERIES], series[SERIES:], labels[SERIES:])


def _drawn(shape: FloatArray, draws: np.random.RandomState) -> FloatArray:
    """One series, shape (LENGTH,), of a template (12,)."""
    from scipy.ndimage import gaussian_filter

    low, high = _PADDING
    padded = np.concatenate([shape + 1e-8, np.zeros(low + int(draws.rand() * (high - low + 1)))])
    x = _stretched(padded, _LONG) * (1 + _SCALE * (draws.rand() - 0.5))
    x = np.roll(x, int(draws.choice(_SHIFTS)))
    x = np.where(x != 0, x, gaussian_filter(_CORRELATED * draws.randn(_LONG), 2))
    x = x + _INDEPENDENT * draws.randn(_LONG)
    x = x - _SHEAR * (draws.rand() - 0.5) * np.linspace(-0.5, 0.5, _LONG)
    return _stretched(x, LENGTH)


def _stretched(x: FloatArray, points: int) -> FloatArray:
    """The same curve at so many points."""
    return np.interp(np.linspace(0, 1, points), np.linspace(0, 1, len(x)), x)
