"""What every training method is: a frozen spec with a worker's side, and perhaps a server's."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal

from simulator.process import Proc
from simulator.spec import Spec

if TYPE_CHECKING:
    from simulator.server import Server
    from simulator.worker import Worker

__all__ = ["Proc", "Strategy"]


class Strategy(Spec):
    """A training method. Its fields are the keys of `training.strategy` in a scenario.

    Attributes:
        needs_math: it branches on numbers, so a timing-only run is refused.
        needs_gossip: it asks for neighbours, so `training.gossip` must name a graph.
        mixes: it asks for the graph's mixing matrix, not only for peers: `gossip.lazy` and `weights` tell.
        has_server: it has a parameter server.
        sends: what compression may do to what it sends: `changes` can be sent in part, the rest later;
            `models` that a receiver knows nothing of must survive it; `whole`: it compresses nothing.
    """

    needs_math: ClassVar[bool] = False
    needs_gossip: ClassVar[bool] = False
    mixes: ClassVar[bool] = True
    has_server: ClassVar[bool] = False
    sends: ClassVar[Literal["changes", "models", "whole"]] = "changes"

    @abstractmethod
    def worker(self, w: Worker) -> Proc[None]:
        """What each worker does, as a process: `yield from` verbs of `w`."""

    def server(self, s: Server) -> Proc[None]:
        """What the server does, where there is one."""
        raise TypeError(f"{type(self).__name__} says has_server, but has no method server(self, s)")
