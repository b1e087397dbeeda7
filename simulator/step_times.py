"""Mean and quantiles of step times: exact up to a million intervals, from narrow bins above that."""

from __future__ import annotations

import numpy as np

from simulator.fabric import FloatArray

EXACT = 1_000_000
_BINS_PER_E = 1000.5  # a bin is exp(1/1000.5) - 1 < 1e-3 wide


class StepTimes:
    """Intervals between successive step ends, seconds; read with `summary`."""

    def __init__(self) -> None:
        self._kept: list[FloatArray] = []
        self._bins: dict[int, int] = {}
        self._count = self._keeps = 0
        self._sum = 0.0

    def add(self, intervals: FloatArray) -> None:
        """Take in intervals, shape (n,)."""
        self._count += len(intervals)
        self._sum += float(intervals.sum())
        self._kept.append(intervals)
        self._keeps += len(intervals)
        if self._keeps > EXACT:
            self._to_bins()

    def _to_bins(self) -> None:
        values = np.concatenate(self._kept)
        self._kept, self._keeps = [], 0
        with np.errstate(divide="ignore"):
            logs = np.maximum(np.log(values), -700.0)
        bins = np.floor(logs * _BINS_PER_E).astype(np.int64)
        lowest = int(bins.min())
        counts = np.bincount(bins - lowest)
        for key in np.flatnonzero(counts).tolist():
            self._bins[lowest + key] = self._bins.get(lowest + key, 0) + int(counts[key])

    def _quantile(self, q: float) -> float:
        if not self._bins:
            return float(np.quantile(np.concatenate(self._kept), q))
        keys = np.array(sorted(self._bins))
        reached = np.cumsum([self._bins[int(key)] for key in keys])
        key = keys[np.searchsorted(reached, q * self._count)]
        return float(np.exp((key + 0.5) / _BINS_PER_E))

    def summary(self) -> dict[str, float | None]:
        """`{mean, p50, p95}` in seconds; None where no worker finished two steps."""
        if not self._count:
            return {"mean": None, "p50": None, "p95": None}
        if self._bins and self._kept:
            self._to_bins()
        return {
            "mean": self._sum / self._count,
            "p50": self._quantile(0.50),
            "p95": self._quantile(0.95),
        }
