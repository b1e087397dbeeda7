"""Who averages with whom: what decentralised methods ask of the gossip graphs of `topologies`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from simulator.fabric import FloatArray, IntArray
from simulator.streams import Draws


@dataclass(frozen=True)
class Mixing:
    """One step's mixing matrix W by rows.

    Worker i takes `self_weight[i] x[i] + sum over j of weights[i, j] x[peers[i, j]]`. Rows and
    columns of W sum to one, so that the mean of all models is kept.

    Attributes:
        peers: whose values each worker mixes in, shape (n, k); rows padded with -1 at the end.
        weights: of those values, 0 where padded, shape (n, k).
        self_weight: of the worker's own value, shape (n,).
    """

    peers: IntArray
    weights: FloatArray
    self_weight: FloatArray

    def shared_out(self) -> Mixing:
        """Each worker's value in even shares among itself and those that mix it in: columns sum to one.

        Rows do so only if all send to equally many.
        """
        n = len(self.self_weight)
        sends = np.bincount(self.peers[self.peers >= 0], minlength=n)
        share = np.asarray(1.0 / (1.0 + sends), dtype=np.float64)
        return Mixing(self.peers, np.where(self.peers >= 0, share[self.peers], 0.0), share)

    def matrix(self) -> FloatArray:
        """W, shape (n, n), for tests and small graphs."""
        n = len(self.self_weight)
        w = np.diag(self.self_weight)
        rows, columns = np.nonzero(self.peers >= 0)
        np.add.at(w, (rows, self.peers[rows, columns]), self.weights[rows, columns])
        return w.reshape(n, n)


class PeerGraph(Protocol):
    """A gossip graph: a pure function of (step, number of workers, seed)."""

    def neighbours(self, worker: int, step: int, n: int, draws: Draws) -> IntArray:
        """Workers that `worker` may send to at its step, of `n`; empty where it has none."""
        ...

    def mixing(self, step: int, n: int, draws: Draws) -> Mixing:
        """The step's mixing matrix."""
        ...
