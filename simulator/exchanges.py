"""Verbs of exchanges that are not everybody's: with neighbours, with a chosen peer, with a server."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from simulator.clock import AFTER_ALL
from simulator.line import Blocked, Line
from simulator.process import Proc, verb
from simulator.values import Vector

if TYPE_CHECKING:
    from simulator.engine import Engine
    from simulator.server import Request

MASS_BYTES = 8  # of the number that push-sum sends beside a value


class Exchanges(ABC):
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
    _mixed: int
    _pushed: Request | None

    @property
    @abstractmethod
    def who(self) -> str:
        """For messages."""

    @abstractmethod
    def main_line(self) -> Line:
        """The worker's own timeline."""

    @abstractmethod
    def _wait_for(
        self, line: Line, what: Blocked, event: Any, verb_name: str, size: float | None = None, peer: int = -1
    ) -> Proc[None]:
        """Wait on a line for an event, and account for it."""

    # verbs: peers

    @verb
    def neighbour_mean(self, line: Line, x: Vector) -> Proc[Vector]:
        """The weighted mean with this step's neighbours of the gossip graph, in lock step with them."""
        self._mixed += 1
        mixing = self._engine.mixing(self.step, self._mixed)
        mixing.arrive(self.rank, line.t, x)
        yield from self._wait_for(line, mixing, mixing.leaves(self.rank), "neighbour_mean")
        self.rounds += 1
        return mixing.mean(self.rank, self._engine.maths)

    @verb
    def push_sum(self, line: Line, x: Vector, mass: float) -> Proc[tuple[Vector, float]]:
        """Share x and its mass out evenly among this worker and its out-neighbours; what comes adds up.

        In lock step with this step's neighbours of the gossip graph. The mass travels along, 8 bytes.
        """
        self._mixed += 1
        mixing = self._engine.mixing(self.step, self._mixed, shared_out=True)
        mixing.arrive(self.rank, line.t, x.resized(x.nbytes + MASS_BYTES), mass)
        yield from self._wait_for(line, mixing, mixing.leaves(self.rank), "push_sum")
        self.rounds += 1
        total, mass = mixing.total(self.rank, self._engine.maths)
        return total.resized(x.nbytes), mass

    @verb
    def average_with(self, line: Line, peer: int) -> Proc[None]:
        """Average this worker's model and a peer's, atomically; the peer answers at once, whatever it does.

        Both models become their mean when they have crossed, whatever was applied to them meanwhile
        (AD-PSGD, papers.md 6).
        """
        yield from self._come_to(line)
        average = self._engine.averages.ask(self.rank, peer)
        yield from self._wait_for(line, average, average.done, "average_with")

    def draw_peer(self) -> int:
        """One of the step's candidate peers of the gossip graph; the worker's own rank if there is none."""
        return self._engine.draw_peer(self.rank, self.step)

    def chance(self, probability: float) -> bool:
        """Whether something happens that this worker does in a share of its steps; drawn once a step."""
        return self._engine.draws.one("chance", self.step, self.rank) < probability

    def mean(self, values: Sequence[Vector]) -> Vector:
        """The mean of values at hand, which costs nothing."""
        return self._engine.maths.mean(values)

    @verb
    def fetch(self, line: Line, peer: int) -> Proc[Vector]:
        """A peer's model, as it is when the request comes there; the peer goes on with what it does."""
        yield from self._come_to(line)
        fetch = self._engine.fetches.ask(self.rank, peer)
        yield from self._wait_for(line, fetch, fetch.done, "fetch", peer=peer)
        return fetch.value

    @verb
    def collect(self, line: Line) -> Proc[list[Vector]]:
        """What peers have sent to this worker and has arrived by now, in the order of their ranks."""
        clock = self._engine.clock
        yield clock.at(max(line.t, clock.now), priority=AFTER_ALL)  # with all that arrives at this instant
        return self._engine.collect(self.rank)

    @verb
    def send(self, line: Line, peer: int, x: Vector) -> Proc[None]:
        """Send x to a peer; ends when its bytes have left."""
        message = self._engine.post(self.rank, peer, x, line.t)
        yield from self._wait_for(line, message, message.left, "send", x.nbytes, peer)

    @verb
    def recv(self, line: Line, peer: int) -> Proc[Vector]:
        """The next value a peer has sent or will send to this worker."""
        message = self._engine.expect(peer, self.rank)
        yield from self._wait_for(line, message, message.arrived, "recv", 0.0, peer)
        return message.value

    # verbs: a parameter server

    @verb
    def push(self, line: Line, g: Vector, version: int) -> Proc[None]:
        """Hand g, computed on the model of that version, to the server; ends when it is applied."""
        self._pushed = yield from self._ask(line, "push", g, version, None)

    @verb
    def push_pull(self, line: Line, g: Vector, version: int, packed: bool = True) -> Proc[tuple[Vector, int]]:
        """Push g and pull the model that it makes, as one service: the server takes nobody else between.

        Args:
            line: the timeline that the verb moves; supplied by the verb's call.
            g: what is pushed.
            version: of the model it comes from.
            packed: in one message, not in one a layer, each when the one before has arrived.
        """
        self._pushed = yield from self._ask(line, "exchange", g, version, None, packed)
        assert self._pushed is not None
        assert self._pushed.reply is not None
        return self._pushed.reply, self._pushed.reply_version

    @verb
    def pull(self, line: Line, slack: int | None = None) -> Proc[tuple[Vector, int]]:
        """The server's model and its version.

        Args:
            line: the timeline that the verb moves; supplied by the verb's call.
            slack: answer only when every worker's pushes applied are at most so many behind this worker's.
        """
        request = yield from self._ask(line, "pull", None, 0, slack)
        self.rounds += slack == 0
        assert request.value is not None
        return request.value, request.version

    def _ask(
        self,
        line: Line,
        kind: str,
        value: Vector | None,
        version: int,
        slack: int | None,
        packed: bool = True,
    ) -> Proc[Any]:
        server = self._engine.the_server()
        yield from self._come_to(line)
        request = server.request(self.rank, kind, value, version, slack, packed)
        yield from self._wait_for(line, request, request.done, kind, request.sent, self.size)
        return request

    def _come_to(self, line: Line) -> Proc[None]:
        """Let the clock come to where the line is."""
        if line.t > self._engine.clock.now:
            yield self._engine.clock.at(line.t)
