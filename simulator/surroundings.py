"""What goes on around a run: links that change, background traffic, other jobs on the same network.

None of it depends on the engine of the run. Other jobs are timed only, run as a process per worker, and go on
until the run ends or they have taken their steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from simulator.activity import Activity, Message, Transfer
from simulator.background import background_of
from simulator.ledger import TICKS_PER_BYTE, Account
from simulator.link_schedule import LinkSchedule
from simulator.network import Network

if TYPE_CHECKING:
    from simulator.engine import Engine
    from simulator.job import Job


@dataclass(frozen=True)
class OtherJob:
    """A training that shares the network with the run, on devices of its own.

    Attributes:
        name: in the summary.
        job: what it is; without real maths. Its fabric is the run's.
        begin: seconds.
    """

    name: str
    job: Job
    begin: float = 0.0


class Shared:
    """A network as another job sees it: what that sends is counted apart."""

    def __init__(self, network: Network, account: Account) -> None:
        self._network, self._account = network, account

    def start(self, activity: Activity, at: float | None = None, **more: Any) -> Transfer:
        """See `Network.start`."""
        return self._network.start(activity, at, account=self._account, **more)

    def message(self, src_node: int, dst_node: int, nbytes: float, at: float | None = None) -> Message:
        """See `Network.message`."""
        return self._network.message(src_node, dst_node, nbytes, at, account=self._account)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._network, name)


@dataclass
class Other:
    """Another job under way.

    Attributes:
        spec: what it is.
        account: its bytes.
        engine: None until it begins.
    """

    spec: OtherJob
    account: Account
    engine: Engine | None = None


class Surroundings:
    """Everything around one run.

    Args:
        engine: the run.

    Attributes:
        background: the background traffic, by entry.
        others: the other jobs.
    """

    def __init__(self, engine: Engine) -> None:
        job, network = engine.job, engine.network
        self._engine = engine
        self._schedule = LinkSchedule(job.link_schedule, network, engine.draws)
        self.background = background_of(job.background, network, engine.draws)
        self.others = [Other(other, network.account()) for other in job.others]

    def begin(self) -> None:
        """Put the first of all that on the clock."""
        self._schedule.begin()
        for traffic in self.background:
            traffic.begin()
        for other in self.others:
            if other.spec.begin > 0:
                self._engine.clock.aside(other.spec.begin, lambda other=other: self._start(other))  # type: ignore[misc]
            else:
                self._start(other)

    def _start(self, other: Other) -> None:
        from simulator.engine import Engine
        from simulator.run import start_workers

        network = cast("Network", Shared(self._engine.network, other.account))
        other.engine = Engine(other.spec.job, self._engine.clock, network)
        start_workers(other.engine)

    def accounts(self) -> dict[str, Account]:
        """All bytes that are not the run's own: of the background, of other jobs."""
        network = self._engine.network
        return {
            "background": _sum(network, [one.account for one in self.background]),
            "others": _sum(network, [one.account for one in self.others]),
        }

    def summaries(self, cut: float) -> list[dict[str, Any]]:
        """What became of the other jobs until `cut`, seconds."""
        return [_summary(other, cut) for other in self.others]

    @property
    def keeps_clock_busy(self) -> bool:
        """Whether background flows are on the clock though the run may have nothing more to wait for."""
        return bool(self.background) and not self.others


def _sum(network: Network, accounts: list[Account]) -> Account:
    total = Account(network.fabric.links)
    for one in accounts:
        total.sent_ticks += one.sent_ticks
        total.received_ticks += one.received_ticks
        total.dropped_ticks += one.dropped_ticks
        total.link_ticks += one.link_ticks
    return total


def _summary(other: Other, cut: float) -> dict[str, Any]:
    found: dict[str, Any] = {"name": other.spec.name, "begin_s": other.spec.begin}
    found["bytes_sent"] = other.account.sent_ticks / TICKS_PER_BYTE
    engine = other.engine
    if engine is None:  # the run was over before
        return found | {"steps": 0, "samples_per_s": None, "step_time_s": None}
    for worker in engine.workers:
        worker.cut()
    recorder = engine.recorder
    recorder.close(cut)
    steps, seconds = int(recorder.steps_done.sum()), recorder.last_end - other.spec.begin
    samples = steps * engine.job.samples_costed
    return found | {
        "steps": steps,
        "samples_per_s": samples / seconds if seconds > 0 else None,
        "step_time_s": recorder.step_times.summary(),
    }
