"""A cohort's communication beside its own line: stretches of all workers at once, and how they are accounted.

As in `line.lay_under`: what lies before a worker's time was hidden behind computation, the rest is exposed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from simulator.fabric import FloatArray
from simulator.line import Handle, Line
from simulator.recorder import COMMUNICATION, WAITING

FOREVER = float("inf")

Record = Callable[[int, FloatArray, FloatArray, int, FloatArray | None, bool], None]
"""kind, start, end, name, size, hidden."""


class Stretches(NamedTuple):
    """A collective: when each worker's communication began and ended (seconds), and what it sent (bytes)."""

    name: int
    began: FloatArray
    end: FloatArray
    size: FloatArray


@dataclass(slots=True)
class Beside(Line):
    """A timeline beside the cohort's own.

    Attributes:
        at: where each worker's clock stood when it began, seconds, shape (n,).
        here: up to where each worker's process had come then: a gradient in buckets lies ahead of it.
        done: what has ended on it.
    """

    at: FloatArray = field(default_factory=lambda: np.zeros(0))
    here: FloatArray = field(default_factory=lambda: np.zeros(0))
    done: list[Stretches] = field(default_factory=list)

    def so_far(self, name: Callable[[str], int]) -> list[Stretches]:
        """What has ended, and what is under way; `name` numbers spans' names."""
        return self.done if self.blocked is None else [*self.done, under_way(self.blocked, name)]


def lines_of(handles: Sequence[Handle[Any]]) -> list[Beside]:
    """The lines of what runs beside a cohort."""
    return [handle.line for handle in handles if isinstance(handle.line, Beside)]


def under_way(meeting: Any, name: Callable[[str], int]) -> Stretches:
    """A collective under way: some may have left it, others not even come."""
    call = meeting.call
    began = np.where(np.isnan(call.began), FOREVER, np.maximum(call.began, call.arrivals))
    end = np.where(np.isnan(call.left), FOREVER, call.left)
    return Stretches(name(meeting.want.op), began, end, np.where(end < FOREVER, call.bytes_sent, 0.0))


def lay_under(t: FloatArray, stretches: Sequence[Stretches], record: Record, idle_name: int) -> FloatArray:
    """Lay stretches, none of which overtakes another, under main lines that have come to `t`, shape (n,).

    Returns:
        The time when each worker's last stretch ends, or `t`.
    """
    cursor = t
    # Of several lines; the last began and ended also tell the order where some workers are not there yet.
    stretches = sorted(stretches, key=lambda s: (s.began.max(), s.end.max()))
    hide(t, stretches, record)
    for name, began, end, size in stretches:
        late = end > cursor
        start = np.maximum(began, cursor)
        record(WAITING, cursor, np.where(late, start, cursor), idle_name, None, False)
        exposed = np.where(began < t, 0.0, size)
        record(COMMUNICATION, start, np.where(late, end, start), name, exposed, False)
        cursor = np.maximum(cursor, end)
    return cursor


def hide(t: FloatArray, stretches: Sequence[Stretches], record: Record) -> None:
    """Record what of background communication lies before `t`, hidden behind main lines that are there."""
    for name, began, end, size in stretches:
        early = began < t
        hidden_end = np.where(early, np.minimum(end, t), began)
        record(COMMUNICATION, began, hidden_end, name, np.where(early, size, 0.0), True)
