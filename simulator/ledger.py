"""What is counted of a network beside its own totals: the bytes of some transfers, the bytes links offer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from simulator.fabric import FloatArray, IntArray

if TYPE_CHECKING:
    from simulator.activity import Activity

TICKS_PER_BYTE = 64
"""Byte counters are fixed-point integers: their sums do not depend on order."""


def ticks_on_links(activity: Activity) -> IntArray:
    """What an activity puts on each of its links, in units of the counters, shape (k,)."""
    load = activity.weights * (activity.size * TICKS_PER_BYTE)
    return np.rint(load).astype(np.int64)


@dataclass(eq=False)
class Account:
    """Bytes of some transfers, counted apart: of background traffic, of another job. All in ticks.

    Attributes:
        links: of the fabric.
        sent_ticks, received_ticks, dropped_ticks: handed to the network; arrived; lost.
        link_ticks: carried by each link for transfers that have ended, shape (links,).
    """

    links: int
    sent_ticks: int = 0
    received_ticks: int = 0
    dropped_ticks: int = 0
    link_ticks: IntArray = field(init=False)

    def __post_init__(self) -> None:
        self.link_ticks = np.zeros(self.links, dtype=np.int64)

    @property
    def in_flight_ticks(self) -> int:
        """Sent, and neither arrived nor lost."""
        return self.sent_ticks - self.received_ticks - self.dropped_ticks


class Supply:
    """Bytes that links could have carried while their bandwidths changed.

    Args:
        bandwidth: of each link from time 0 on, bytes/s, shape (links,).
    """

    def __init__(self, bandwidth: FloatArray) -> None:
        self._bytes = np.zeros(len(bandwidth))
        self._since = np.zeros(len(bandwidth))

    def change(self, link: int, before: float, now: float) -> None:
        """A link has had the bandwidth `before` (bytes/s) until now."""
        self._bytes[link] += before * (now - self._since[link])
        self._since[link] = now

    def until(self, time: float, bandwidth: FloatArray) -> FloatArray:
        """Bytes from time 0 to `time`, with the present bandwidths since the last change, (links,)."""
        return np.asarray(self._bytes + bandwidth * (time - self._since))
