"""Link schedules: bandwidth over time, as given or at random, the same for every method.

    network:
      schedule:
        - {where: {link: "h3->s0"}, at: [10 s, 20 s], bandwidth: [0.1, 1.0]}
        - {where: {link: "leaf*<->spine*"}, every: 60 s, duration: 5 s, factor: {kind: constant, value: 4}}

The first kind gives some links the share `bandwidth` of their own at each time `at`; with `repeat: 60 s` it
begins anew every minute. The second divides it by `factor`, from time to time (as bursts of stragglers, see
`renewal.py`; the two directions of a cable together, each cable on its own). Shares that meet multiply.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import inf
from typing import Annotated, Protocol, Self

import numpy as np
from pydantic import Field, model_validator

from simulator.distributions import Distribution
from simulator.fabric import Fabric, FloatArray, IntArray
from simulator.network import Network
from simulator.renewal import Renewal
from simulator.some_links import Links
from simulator.spec import Spec
from simulator.streams import Draws
from simulator.units import PositiveSeconds, Seconds

Share = Annotated[float, Field(ge=1e-6, le=1)]
LEAST_SHARE = 1e-6
"""A link is never slower than this share of its own bandwidth."""


class LinkChange(Spec):
    """One entry of `network.schedule`: `at` and `bandwidth`, or `every`, `duration` and `factor`."""

    where: Links
    at: tuple[Seconds, ...] | None = Field(None, min_length=1, description="times, rising")
    bandwidth: tuple[Share, ...] | None = Field(None, description="share of the links' own, from each on")
    repeat: PositiveSeconds | None = Field(None, description="begin anew after so long")
    every: PositiveSeconds | None = Field(None, description="mean from the start of a slow time to the next")
    duration: PositiveSeconds | None = Field(None, description="mean length of a slow time, below `every`")
    factor: Distribution | None = Field(None, description="how many times slower, one draw for each")

    @model_validator(mode="after")
    def _one_shape(self) -> Self:
        given = {key for key in ("at", "bandwidth", "repeat", "every", "duration", "factor")}
        given = {key for key in given if getattr(self, key) is not None}
        if given - {"repeat"} != {"at", "bandwidth"} and given != {"every", "duration", "factor"}:
            found = ", ".join(sorted(given)) or "neither"
            raise ValueError(
                f"found {found}, expected `at` and `bandwidth`, or `every`, `duration`, `factor`"
            )
        if self.at is not None and self.bandwidth is not None:
            self._check_times(self.at, self.bandwidth)
        if self.every is not None and self.duration is not None and self.duration >= self.every:
            raise ValueError("found a `duration` not below `every`, expected slow times with gaps between")
        return self

    def _check_times(self, at: tuple[float, ...], bandwidth: tuple[float, ...]) -> None:
        if len(at) != len(bandwidth):
            raise ValueError(
                f"found {len(at)} times and {len(bandwidth)} bandwidths, expected one bandwidth for each time"
            )
        if any(later <= earlier for earlier, later in pairwise(at)):
            raise ValueError("found times `at` out of order, expected each later than the one before")
        if self.repeat is not None and self.repeat <= at[-1] - at[0]:
            raise ValueError("found a `repeat` not longer than the times `at` span, expected a longer one")


class _Course(Protocol):
    """The share of its bandwidth that each member (some links) has, over time."""

    @property
    def members(self) -> Sequence[IntArray]:
        """The links of each."""
        ...

    def after(self, member: int, time: float) -> tuple[float, float]:
        """The share from `time` on, and when it changes next."""
        ...


class _Given:
    """Shares at given times: one member, all links."""

    def __init__(self, spec: LinkChange, links: IntArray) -> None:
        assert spec.at is not None
        assert spec.bandwidth is not None
        self.members: Sequence[IntArray] = [links]
        self._at, self._shares, self._repeat = spec.at, spec.bandwidth, spec.repeat
        self._next = 0  # changes made

    def after(self, member: int, time: float) -> tuple[float, float]:
        share = 1.0
        while (due := self._due(self._next)) <= time:
            share = self._shares[self._next % len(self._at)]
            self._next += 1
        return share, due

    def _due(self, number: int) -> float:
        turn, place = divmod(number, len(self._at))
        if not turn:
            return self._at[place]
        return inf if self._repeat is None else turn * self._repeat + self._at[place]


class _Random:
    """Slow times drawn by address: a member for each cable."""

    def __init__(self, spec: LinkChange, links: IntArray, fabric: Fabric, draws: Draws, purpose: str) -> None:
        assert spec.every is not None
        assert spec.duration is not None
        cable = np.array([_cable(fabric, link) for link in links.tolist()], dtype=np.int64)
        self._ids = np.unique(cable)
        self.members: Sequence[IntArray] = [links[cable == one] for one in self._ids]
        self._renewal = Renewal(purpose, spec.every, spec.duration, spec.factor, self._ids, draws)

    def after(self, member: int, time: float) -> tuple[float, float]:
        factor, until = self._renewal.at(int(self._ids[member]), time)
        return min(1.0, max(1.0 / factor, LEAST_SHARE)), until


def _cable(fabric: Fabric, link: int) -> int:
    """The number of a cable: the lower of its two links'; a link without a way back is its own."""
    back = link ^ 1
    turned = back < fabric.links and fabric.tail[back] == fabric.head[link]
    return min(link, back) if turned and fabric.head[back] == fabric.tail[link] else link


class LinkSchedule:
    """Changes the bandwidths of a network as the clock comes to each change.

    Args:
        specs: the entries.
        network: whose links change.
        draws: the run's random numbers.
    """

    def __init__(self, specs: Sequence[LinkChange], network: Network, draws: Draws) -> None:
        fabric = network.fabric
        self._network = network
        self._courses: list[_Course] = []
        for index, spec in enumerate(specs):
            links = spec.where.select(fabric)
            purpose = f"link_schedule/{index}"
            given = spec.at is not None
            self._courses.append(
                _Given(spec, links) if given else _Random(spec, links, fabric, draws, purpose)
            )
        self._own: FloatArray = fabric.bandwidth
        self._shares: dict[int, list[float]] = {}  # of each link that changes: one share an entry
        for course in self._courses:
            for links in course.members:
                self._shares |= {link: [1.0] * len(specs) for link in links.tolist()}

    def begin(self) -> None:
        """Put the first changes on the clock; those of this very time are made at once."""
        for entry, course in enumerate(self._courses):
            for member in range(len(course.members)):
                self._change(entry, member)

    def _change(self, entry: int, member: int) -> None:
        course, clock = self._courses[entry], self._network.clock
        share, until = course.after(member, clock.now)
        for link in course.members[member].tolist():
            self._set(entry, link, share)
        if until < inf:
            clock.aside(max(until, clock.now), lambda: self._change(entry, member))

    def _set(self, entry: int, link: int, share: float) -> None:
        shares = self._shares[link]
        shares[entry] = share
        together = 1.0
        for one in shares:
            together *= one
        bandwidth = float(self._own[link]) * max(together, LEAST_SHARE)
        if bandwidth != self._network.bandwidth[link]:
            self._network.set_bandwidth(link, bandwidth)
