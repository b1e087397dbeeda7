"""Models fetched from peers, one-sided: a peer sends what it holds when the request comes, whatever it does.

Ties are decided here: all that is asked for at one instant is read at its end, so that a model that is sent
has seen every step that ends there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simpy.events import Event

from simulator.neighbours import follow
from simulator.values import Vector

if TYPE_CHECKING:
    from simulator.engine import Engine


class Fetches:
    """All fetches of a run: those whose requests have come at this instant wait for its end."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._asked: list[Fetch] = []

    def ask(self, rank: int, peer: int) -> Fetch:
        """A worker asks for a peer's model, now; the request itself has no size."""
        fetch = Fetch(self._engine, rank, peer)
        here, there = fetch.nodes
        request = self._engine.network.message(here, there, 0.0)
        assert request.arrived.callbacks is not None
        request.arrived.callbacks.append(lambda _: self._come(fetch))
        return fetch

    def _come(self, fetch: Fetch) -> None:
        if not self._asked:
            self._engine.clock.end_of_instant(self._answer)
        self._asked.append(fetch)

    def _answer(self) -> None:
        asked, self._asked = sorted(self._asked, key=lambda fetch: fetch.rank), []
        for fetch in asked:
            fetch.read()
        for fetch in asked:
            fetch.answer()


class Fetch:
    """One model on its way to who asked for it."""

    def __init__(self, engine: Engine, rank: int, peer: int) -> None:
        self._engine = engine
        self._began = engine.clock.now
        self.rank, self.peer = rank, peer
        self.value: Vector
        self.done = Event(engine.clock)

    @property
    def nodes(self) -> tuple[int, int]:
        """Of who asks and of the peer."""
        here, there = self._engine.job.workers.node[[self.rank, self.peer]].tolist()
        return here, there

    def read(self) -> None:
        """Take the peer's model as it is; what arrives of it."""
        model = self._engine.workers[self.peer].model_at(self._engine.clock.now)
        self.value = self._engine.coding.model("fetch", self.peer, model)

    def answer(self) -> None:
        """Send it. Its coding delays it, but takes none of the peer's time."""
        (here, there), coding, nbytes = self.nodes, self._engine.coding, self.value.nbytes
        at = self._engine.clock.now + float(coding.encode_seconds(nbytes)[self.peer])
        follow(self._engine.network.message(there, here, coding.size(nbytes), at).arrived, self.done)

    def sent_by(self, rank: int) -> float:
        """Bytes the worker that asks sends: none."""
        return 0.0

    def began_for(self, rank: int) -> float:
        """The peer answers at once: nobody waits."""
        return self._began

    def waits_for(self, rank: int) -> str:
        """See `line.Blocked`."""
        return f"the model of worker {self.peer}"
