"""What the parts of a worker that hold its verbs need of the whole."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from simulator.fabric import FloatArray
from simulator.line import Blocked, Line
from simulator.process import Proc

if TYPE_CHECKING:
    from simulator.engine import Engine


class Acting(ABC):
    """A part of `Worker`.

    Attributes:
        rank, size, step, rounds, line, dropped: see `Worker`.
    """

    rank: int
    size: int
    step: int
    rounds: int
    line: Line
    dropped: str | None
    _engine: Engine

    @property
    @abstractmethod
    def who(self) -> str:
        """For messages."""

    @abstractmethod
    def main_line(self) -> Line:
        """The worker's own timeline."""

    @abstractmethod
    def spend(self, seconds: float, name: str) -> None:
        """Add compute to the worker's own line."""

    @abstractmethod
    def communicated(self, line: Line, name: int, began: float, end: float, size: float, peer: int) -> None:
        """Account for a communication that waited from the line's time to `began` and went on to `end`."""

    @abstractmethod
    def _wait_for(
        self, line: Line, what: Blocked, event: Any, verb_name: str, size: float | None = None, peer: int = -1
    ) -> Proc[None]:
        """Wait on a line for an event, and account for it."""

    def _encode(self, line: Line, seconds: FloatArray) -> None:
        """Spend the time of a code's making, before what is sent beside the worker's own line too."""
        if mine := float(seconds[self.rank]):
            self.spend(mine, "encode")
            if not line.main:
                line.t = self.line.t

    def _decode(self, line: Line, seconds: FloatArray) -> None:
        """Spend the time of decoding: at once, or when what runs beside is joined."""
        if not (mine := float(seconds[self.rank])):
            return
        if line.main:
            self.spend(mine, "decode")
        else:
            line.owed += mine
