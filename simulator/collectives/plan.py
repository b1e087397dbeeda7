"""How an algorithm is described: a graph of steps, each a part of the traffic that moves side by side.

A plan is written once per group, algorithm and operation, for a buffer of one byte: sizes are shares of the
buffer, so that a call of another size re-uses it. Members are numbered 0 .. n-1 in the order of the group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simulator.fabric import IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Messages that move side by side at one rate: a bundle.

    Attributes:
        src, dst: members at the two ends of each edge, shape (edges,).
        share: bytes an edge carries in one round, as a share of the buffer.
        rounds: how often every edge is used, one round after the other (a ring: 2 (n - 1)).
        relay: a member sends in a round what it received in the one before; else it has all it sends.
    """

    src: IntArray
    dst: IntArray
    share: float
    rounds: int = 1
    relay: bool = True

    @property
    def single(self) -> bool:
        """One message only."""
        return len(self.src) == 1 and self.rounds == 1


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A part that begins when its members have come and the steps before it have ended.

    Attributes:
        part: what moves.
        arrived: earlier steps whose bytes must have arrived.
        left: earlier steps whose bytes must have left (a port that is still busy).
        stage: steps of one stage may be under way at the same time; without sharing between activities
            (`closed_form`) each counts the links' load of its whole stage.
        members: those whose arrival it waits for; default: those at the ends of its edges.
    """

    part: Part
    arrived: tuple[int, ...] = ()
    left: tuple[int, ...] = ()
    stage: int = 0
    members: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Steps in an order in which each comes after those it waits for.

    Attributes:
        steps: the steps.
        together: all begin with the last member and leave with the last step; else each member begins as it
            comes
            and leaves when its own sends have ended and its own receives have arrived.
    """

    steps: tuple[Step, ...]
    together: bool = False


def part(src: Sequence[int] | IntArray, dst: Sequence[int] | IntArray, share: float, rounds: int = 1) -> Part:
    """A part from lists of members."""
    return Part(np.asarray(src, dtype=np.int64), np.asarray(dst, dtype=np.int64), share, rounds)


def in_phases(parts: Sequence[Part]) -> Plan:
    """One part after the other with a barrier between; everybody begins and leaves together."""
    return Plan(
        tuple(Step(p, arrived=(i - 1,) if i else (), stage=i) for i, p in enumerate(parts)), together=True
    )
