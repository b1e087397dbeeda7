"""Bundles that are not simply as fast as their share: what they are told, and what they answer.

An activity with a `Steering` shares links with others, its *crowd*. Whenever the crowd has changed it is
asked for its *course*: how fast it goes, how it loads each shared link, when it will be done.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from simulator.fabric import FloatArray, IntArray

if TYPE_CHECKING:
    from simulator.activity import Activity, Transfer
    from simulator.fairshare import FairShare
    from simulator.unshared import Shares


NOBODY, SEVERAL = -1, -2


class Crowd(NamedTuple):
    """The links that an activity shares, and the rate (bytes/s) each of its members could have there.

    Activities that are steered and `pause` between messages are there part of the time, those of the own team
    whenever it is there itself.

    Attributes:
        links: ids, shape (k,).
        mean: with all others at their present rates, shape (k,).
        idle: with those that pause away, shape (k,).
        busy: with those that pause sending as fast as they can, shape (k,).
        who: number of the one that pauses there; SEVERAL, or NOBODY, shape (k,).
    """

    links: IntArray
    mean: FloatArray
    idle: FloatArray
    busy: FloatArray
    who: IntArray


class Course(NamedTuple):
    """How an activity goes on from here.

    Attributes:
        rate: what it means to have, bytes/s per unit of weight.
        most: the most it can make use of, bytes/s per unit of weight.
        weights: load per unit of rate on each of the crowd's links, shape (k,).
        left: seconds to its end if the crowd stays as it is.
        look: seconds after which to ask again; inf: not needed.
        rest: seconds for which changes of the crowd are not worth asking.
    """

    rate: float
    most: float
    weights: FloatArray
    left: float
    look: float
    rest: float = 0.0


class Steering(Protocol):
    """Sets the course of one activity under way.

    Attributes:
        pauses: whether it is idle between its messages.
        team: above 0, a number common to those that pause at the same times.
    """

    pauses: bool
    team: int

    def steer(self, now: float, crowd: Crowd, moved: float) -> Course:
        """The course from `now` on; `moved`: bytes per unit of weight since the last, if it had a crowd."""
        ...

    def refit(self, now: float, bandwidth: FloatArray) -> float:
        """Links have other bandwidths (bytes/s, shape (links,)) from `now` on; -> its largest rate alone."""
        ...


@dataclass(slots=True)
class _Helm:
    """What one steered activity was last told and answered."""

    activity: Activity
    steering: Steering
    crowd: Crowd | None = None  # None: it has never had one
    look: float = math.inf  # when to ask again, s
    rest: float = -math.inf  # not to be asked before, s
    size: float = 0.0  # bytes per unit of weight it had left then


class Steered:
    """The steered activities under way, by number."""

    def __init__(self) -> None:
        self._helms: dict[int, _Helm] = {}

    def __len__(self) -> int:
        """How many."""
        return len(self._helms)

    def add(self, transfer: Transfer) -> None:
        """One more comes, which may be steered."""
        steering = transfer.activity.steering
        if steering is not None:
            self._helms[transfer.number] = _Helm(transfer.activity, steering)

    def remove(self, number: int) -> None:
        """This one goes, if it was steered."""
        self._helms.pop(number, None)

    def refit(self, shares: Shares, bandwidth: FloatArray, now: float) -> None:
        """Links have other bandwidths."""
        for number, helm in self._helms.items():
            cap = helm.steering.refit(now, bandwidth)
            helm.activity.cap = max(helm.activity.cap, cap)  # what the law of the port allows
            helm.look = helm.rest = now
            shares.set_cap(number, cap, now)

    def steer(self, shares: FairShare, now: float) -> float:
        """New courses for those whose crowds have changed, new rates; -> when to look again, s."""
        for number, helm in self._helms.items():
            if helm.crowd is None and helm.steering.pauses:
                shares.note_pauses(number, helm.steering.team)
        courses = [
            (number, helm, self._ask(number, helm, shares, now)) for number, helm in self._helms.items()
        ]
        asked = [(number, helm, course) for number, helm, course in courses if course is not None]
        for number, _, course in asked:
            shares.set_course(number, course)
        if asked:
            shares.solve(now)
        for number, helm, course in asked:
            helm.look, helm.rest = now + course.look, now + course.rest
            if helm.look <= now:  # sooner than the clock can tell
                helm.look = math.inf
            helm.size = course.rate * course.left
            shares.set_remaining(number, helm.size, now)
        return min((helm.look for helm in self._helms.values()), default=math.inf)

    def _ask(self, number: int, helm: _Helm, shares: FairShare, now: float) -> Course | None:
        """Its new course; None if there is nothing to ask."""
        if now < helm.rest:
            helm.look = min(helm.look, helm.rest)
            return None
        crowd, last = shares.crowd(number), helm.crowd
        if last is None and not len(crowd.links):
            helm.look = math.inf
            return None
        if last is not None and now < helm.look and all(map(np.array_equal, last, crowd)):
            return None
        helm.crowd = crowd
        moved = helm.size - shares.remaining(number, now)
        return helm.steering.steer(now, crowd, moved)
