"""What a lone worker may do and a cohort may not: each of these raises, naming the cure."""

from __future__ import annotations

from typing import Any, NoReturn

from simulator.errors import CohortError
from simulator.values import Vector


class LoneVerbs:
    """Facts and verbs of `Worker` that make workers differ, so that one process cannot act for all."""

    @property
    def rank(self) -> int:
        """Not in a cohort."""
        self._not_here("w.rank", "control flow may not depend on the rank")

    @property
    def kind(self) -> str:
        """Not in a cohort."""
        self._not_here("w.kind", "control flow may not depend on the device's class")

    @property
    def model(self) -> Vector:
        """Not in a cohort."""
        self._not_here("w.model", "peers change one another's models at any time")

    @model.setter
    def model(self, x: Vector) -> None:
        self._not_here("w.model", "peers change one another's models at any time")

    def draw_peer(self) -> int:
        """Not in a cohort."""
        self._not_here("w.draw_peer", "every worker draws its own peer")

    def neighbour_mean(self, x: Vector) -> NoReturn:
        """Not in a cohort."""
        self._not_here("w.neighbour_mean", "neighbours meet apart from the others")

    def chance(self, probability: float) -> bool:
        """Not in a cohort."""
        self._not_here("w.chance", "every worker draws for itself")

    def push_sum(self, x: Vector, mass: float) -> NoReturn:
        """Not in a cohort."""
        self._not_here("w.push_sum", "neighbours meet apart from the others")

    def fetch(self, peer: int) -> NoReturn:
        """Not in a cohort."""
        self._not_here("w.fetch", "a chosen peer is one worker's own affair")

    def collect(self) -> NoReturn:
        """Not in a cohort."""
        self._not_here("w.collect", "every worker has its own letters")

    def average_with(self, peer: int) -> NoReturn:
        """Not in a cohort."""
        self._not_here("w.average_with", "peers change one another's models at any time")

    def push(self, g: Vector, version: int) -> NoReturn:
        """Not in a cohort."""
        self._not_here("w.push", "a server answers workers one by one")

    def missed_round(self) -> NoReturn:
        """Not in a cohort."""
        self._not_here("w.missed_round", "a late worker takes fewer steps than the others")

    def push_pull(self, g: Vector, version: int, packed: bool = True, kept: bool = False) -> NoReturn:
        """Not in a cohort."""
        self._not_here("w.push_pull", "a server answers workers one by one")

    def pull(self, slack: int | None = None) -> NoReturn:
        """Not in a cohort."""
        self._not_here("w.pull", "a server answers workers one by one")

    def send(self, peer: int, x: Vector) -> NoReturn:
        """Not in a cohort."""
        self._not_here("w.send", "a chosen peer is one worker's own affair")

    def recv(self, peer: int) -> NoReturn:
        """Not in a cohort."""
        self._not_here("w.recv", "a chosen peer is one worker's own affair")

    def reduce(self, x: Vector, root: Any = 0, packed: bool = True) -> NoReturn:
        """Not in a cohort."""
        self._not_here("w.reduce", "members leave it at different times")

    def broadcast_and_reduce(self, x: Vector, mine: Vector, root: Any = 0, packed: bool = True) -> NoReturn:
        """Not in a cohort."""
        self._not_here("w.broadcast_and_reduce", "members leave it at different times")

    def broadcast(self, x: Vector, root: Any = 0, packed: bool = True) -> NoReturn:
        """Not in a cohort."""
        self._not_here("w.broadcast", "members leave it at different times")

    def barrier(self) -> NoReturn:
        """Not in a cohort."""
        self._not_here("w.barrier", "use all_mean")

    def _not_here(self, name: str, why: str) -> NoReturn:
        raise CohortError(name, why)
