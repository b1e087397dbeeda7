"""Verbs of exchanges that are not everybody's: with neighbours, with a chosen peer, with a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from simulator.acting import Acting
from simulator.clock import AFTER_ALL
from simulator.line import Line
from simulator.process import Proc, verb
from simulator.values import Vector

if TYPE_CHECKING:
    from simulator.server import Request

MASS_BYTES = 8  # of the number that push-sum sends beside a value


class Exchanges(Acting):
    """A part of `Worker`."""

    _mixed: int
    _pushed: Request | None

    # verbs: neighbours

    @verb
    def neighbour_mean(self, line: Line, x: Vector) -> Proc[Vector]:
        """The weighted mean with this step's neighbours of the gossip graph, in lock step with them."""
        self._mixed += 1
        mixing, coding = self._engine.mixing(self.step, self._mixed), self._engine.coding
        self._encode(line, coding.encode_seconds(x.nbytes))
        copy = coding.copy(f"neighbour_mean {self._mixed}", self.rank, x)
        mixing.arrive(self.rank, line.t, copy, coding.size(x.nbytes))
        yield from self._wait_for(line, mixing, mixing.leaves(self.rank), "neighbour_mean")
        self.rounds += 1
        self._decode(line, coding.decode_seconds(x.nbytes, mixing.receives(self.rank)))
        return coding.towards(x, copy, mixing.mean(self.rank, self._engine.maths))

    @verb
    def push_sum(self, line: Line, x: Vector, mass: float) -> Proc[tuple[Vector, float]]:
        """Share x and its mass out evenly among this worker and its out-neighbours; what comes adds up.

        In lock step with this step's neighbours of the gossip graph. The mass travels along, 8 bytes.
        """
        self._mixed += 1
        mixing = self._engine.mixing(self.step, self._mixed, shared_out=True)
        coding = self._engine.coding
        self._encode(line, coding.encode_seconds(x.nbytes))
        sent = coding.model("push_sum", self.rank, x)
        mixing.arrive(self.rank, line.t, sent, coding.size(x.nbytes) + MASS_BYTES, mass)
        yield from self._wait_for(line, mixing, mixing.leaves(self.rank), "push_sum")
        self.rounds += 1
        self._decode(line, coding.decode_seconds(x.nbytes, mixing.receives(self.rank)))
        return mixing.total(self.rank, self._engine.maths)

    # verbs: a chosen peer

    @verb
    def average_with(self, line: Line, peer: int) -> Proc[None]:
        """Average this worker's model and a peer's, atomically; the peer answers at once, whatever it does.

        Both models become their mean when they have crossed, whatever was applied to them meanwhile
        (AD-PSGD, papers.md 6). The peer's coding takes none of its time.
        """
        coding, nbytes = self._engine.coding, self._engine.maths.initial().nbytes
        self._encode(line, coding.encode_seconds(nbytes))
        yield from self._come_to(line)
        average = self._engine.averages.ask(self.rank, peer)
        yield from self._wait_for(line, average, average.done, "average_with")
        self._decode(line, coding.decode_seconds(nbytes))

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
        self._decode(line, self._engine.coding.decode_seconds(fetch.value.nbytes))
        return fetch.value

    @verb
    def send(self, line: Line, peer: int, x: Vector) -> Proc[None]:
        """Send x, a model, to a peer; ends when its bytes have left."""
        coding = self._engine.coding
        self._encode(line, coding.encode_seconds(x.nbytes))
        sent, nbytes = coding.model(f"send to {peer}", self.rank, x), coding.size(x.nbytes)
        message = self._engine.post(self.rank, peer, sent, nbytes, line.t)
        yield from self._wait_for(line, message, message.left, "send", nbytes, peer)

    @verb
    def recv(self, line: Line, peer: int) -> Proc[Vector]:
        """The next value a peer has sent or will send to this worker."""
        message = self._engine.expect(peer, self.rank)
        yield from self._wait_for(line, message, message.arrived, "recv", 0.0, peer)
        self._decode(line, self._engine.coding.decode_seconds(message.value.nbytes))
        return message.value

    @verb
    def collect(self, line: Line) -> Proc[list[Vector]]:
        """What peers have sent to this worker and has arrived by now, in the order of their ranks."""
        clock, coding = self._engine.clock, self._engine.coding
        yield clock.at(max(line.t, clock.now), priority=AFTER_ALL)  # with all that arrives at this instant
        arrived = self._engine.collect(self.rank)
        for x in arrived:
            self._decode(line, coding.decode_seconds(x.nbytes))
        return arrived

    # verbs: a parameter server

    @verb
    def push(self, line: Line, g: Vector, version: int) -> Proc[None]:
        """Hand g, computed on the model of that version, to the server; ends when it is applied."""
        self._pushed = yield from self._give(line, "push", g, version)

    @verb
    def push_pull(
        self, line: Line, g: Vector, version: int, packed: bool = True, kept: bool = False
    ) -> Proc[tuple[Vector, int]]:
        """Push g and pull the model that it makes, as one service: the server takes nobody else between.

        Args:
            line: the timeline that the verb moves; supplied by the verb's call.
            g: what is pushed.
            version: of the model it comes from.
            packed: in one message, not in one a layer, each when the one before has arrived.
            kept: g is a model that this worker keeps: if values are compressed, the server has a copy, and
                the difference travels.
        """
        self._pushed = pushed = yield from self._give(line, "exchange", g, version, packed, kept)
        assert pushed.reply is not None
        return pushed.reply, pushed.reply_version

    @verb
    def pull(self, line: Line, slack: int | None = None) -> Proc[tuple[Vector, int]]:
        """The server's model and its version; whole, whatever the compression.

        Args:
            line: the timeline that the verb moves; supplied by the verb's call.
            slack: answer only when every worker's pushes applied are at most so many behind this worker's.
        """
        yield from self._come_to(line)
        request = self._engine.the_server().request(self.rank, "pull", slack=slack)
        yield from self._asked(line, request)
        self.rounds += slack == 0
        assert request.value is not None
        return request.value, request.version

    def _give(
        self,
        line: Line,
        kind: str,
        value: Vector,
        version: int,
        packed: bool = True,
        kept: bool = False,
    ) -> Proc[Request]:
        coding = self._engine.coding
        self._encode(line, coding.encode_seconds(value.nbytes))
        yield from self._come_to(line)
        if kept:
            given = coding.copy("push", self.rank, value, self._engine.maths.initial())
        else:
            given = coding.change("push", self.rank, value)
        server, nbytes = self._engine.the_server(), coding.size(value.nbytes)
        request = server.request(self.rank, kind, given, version, packed=packed, nbytes=nbytes)
        yield from self._asked(line, request)
        return request

    def _asked(self, line: Line, request: Request) -> Proc[None]:
        yield from self._wait_for(line, request, request.done, request.kind, request.sent, self.size)

    def _come_to(self, line: Line) -> Proc[Any]:
        """Let the clock come to where the line is."""
        if line.t > self._engine.clock.now:
            yield self._engine.clock.at(line.t)
