"""Typed verbs that complain when they are dropped.

Python drops a generator nobody iterates, so `w.push(g)` without `yield from` would silently do nothing. A
verb returns a `Step`: iterable (`yield from`), awaitable (so that mypy's `unused-awaitable` sees a dropped
one), and noted on its worker until it begins; the worker's next verb, or the end of its process, finds a
forgotten one and names it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, TypeAlias, TypeVar

from simulator.errors import VerbError

if TYPE_CHECKING:
    from simulator.line import Line

T = TypeVar("T")
P = ParamSpec("P")

Proc: TypeAlias = Generator[Any, Any, T]
"""A SimPy process: a generator of events that ends with a value of type T."""


class Guarded(Protocol):
    """Who has verbs: remembers the one that was called and has not begun."""

    dropped: str | None

    @property
    def who(self) -> str:
        """For messages: "worker 3"."""
        ...

    def main_line(self) -> Line:
        """The timeline that a plain `yield from` moves."""
        ...


W = TypeVar("W", bound=Guarded)


class Step(Generic[T]):
    """A verb that has been called and waits to begin: `yield from` it, or hand it to `w.start`."""

    __slots__ = ("_make", "_owner", "name")

    def __init__(self, owner: Guarded, name: str, make: Callable[[Line], Proc[T]]) -> None:
        self._owner = owner
        self._make = make
        self.name = name

    def __iter__(self) -> Proc[T]:
        self._owner.dropped = None
        return self._make(self._owner.main_line())

    __await__ = __iter__

    def begin(self, line: Line) -> Proc[T]:
        """Begin on another timeline than the worker's main one (`w.start`)."""
        self._owner.dropped = None
        return self._make(line)


def verb(
    function: Callable[Concatenate[W, Line, P], Proc[T]],
) -> Callable[Concatenate[W, P], Step[T]]:
    """Make a verb of a method that takes the timeline it moves as its first argument."""
    name = function.__name__

    @wraps(function)
    def call(self: W, *args: P.args, **kwargs: P.kwargs) -> Step[T]:
        complain_of_dropped(self)
        self.dropped = name
        return Step(self, name, lambda line: function(self, line, *args, **kwargs))

    return call  # type: ignore[return-value]  # `wraps` keeps the wider signature


def complain_of_dropped(owner: Guarded) -> None:
    """Raise if the verb called before was never begun.

    Raises:
        VerbError: names the verb and the cure.
    """
    if owner.dropped is not None:
        name, owner.dropped = owner.dropped, None
        raise VerbError(
            f"{owner.who} called `w.{name}(...)` and dropped it, so it did nothing: "
            f"write `yield from w.{name}(...)`, or `w.start(w.{name}(...))` to let it run beside"
        )
