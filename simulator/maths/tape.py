"""A tape of the values a run makes, so that it can be stopped and taken up again.

A run's control flow depends on sizes and draws, never on numbers. So it is taken up by running it again
without computing: values are made in the same order, empty, and numbered. At the event where it was stopped
those that are still held get the numbers that were saved, and the run goes on. This needs no knowledge of a
method's state, in whatever form it keeps it, and costs the time of a run without maths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, final
from weakref import WeakValueDictionary

from torch import Tensor

if TYPE_CHECKING:
    from simulator.maths.dense import Dense

__all__ = ["SKIPPED", "TAPE", "Tape", "recorded", "taping"]

TAPE: ContextVar[Tape | None] = ContextVar("tape", default=None)
"""The tape of the run under way, if it keeps one."""


@final
class Skipped:
    """Source of a value that the run before has computed."""

    def compute(self) -> Tensor:
        """Never.

        Raises:
            RuntimeError: the run looks at a number before the place where it was stopped.
        """
        raise RuntimeError("a run taken up again looks at a number that was not saved")


SKIPPED = Skipped()


@final
class Tape:
    """Numbers values in the order in which they are made.

    Attributes:
        skipping: whether values are made empty.
        made: how many there have been.
    """

    def __init__(self) -> None:
        self.skipping = False
        self.made = 0
        self._held: WeakValueDictionary[int, Dense] = WeakValueDictionary()

    def note(self, value: Dense) -> Dense:
        """Give a value its number."""
        self._held[self.made] = value
        self.made += 1
        return value

    def held(self) -> dict[int, Tensor]:
        """The numbers of all values that are still held, computed if need be; cancelled ones have none."""
        values = dict(self._held)
        return {number: value.data for number, value in values.items() if not value.cancelled}

    def fill(self, saved: dict[int, Tensor]) -> None:
        """Give the values held the numbers saved, and compute from now on."""
        self.skipping = False
        for number, value in dict(self._held).items():
            if number in saved:
                value.settle(saved[number])


def recorded(make: Callable[[], Dense], empty: Callable[[], Dense]) -> Dense:
    """A value of the run under way: made, or empty where its numbers are saved."""
    tape = TAPE.get()
    if tape is None:
        return make()
    return tape.note(empty() if tape.skipping else make())


@contextmanager
def taping(tape: Tape) -> Iterator[Tape]:
    """Let values be noted on a tape."""
    token = TAPE.set(tape)
    try:
        yield tape
    finally:
        TAPE.reset(token)
