"""A plan message by message, for the fidelity `flows`.

Within a part each member goes its own way: its send of round r + 1 waits for its own send of round r to
have ended and for what it received in round r. Between parts both ends meet: the first message from i to j
waits for the messages of both of the part before, since j posts its receive then (a large send is a
rendezvous). A ring begins when the last of its members is ready.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from simulator.collectives.plan import Plan, Step, part


@dataclass(slots=True)
class _Done:
    """What ends a step for its members: numbers of their last sends and receives."""

    sends: dict[int, list[int]] = field(default_factory=dict)
    receives: dict[int, list[int]] = field(default_factory=dict)
    single: int = -1


class _Unrolled:
    """Collects messages while the steps of a plan are walked in order."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.steps: list[Step] = []
        self.done: list[_Done] = []

    def before(self, i: int, member: int) -> tuple[set[int], set[int]]:
        """Messages that must have (arrived, left) before a member's first send in step i."""
        arrived: set[int] = set()
        left: set[int] = set()
        step = self.plan.steps[i]
        for j, waits_for_arrival in [(j, True) for j in step.arrived] + [(j, False) for j in step.left]:
            done = self.done[j]
            if done.single >= 0 and step.part.single:
                (arrived if waits_for_arrival else left).add(done.single)
            elif member in done.sends or member in done.receives:
                left.update(done.sends.get(member, ()))
                arrived.update(done.receives.get(member, ()))
            else:
                further = self.before(j, member)
                arrived |= further[0]
                left |= further[1]
        return arrived, left

    def meet(self, i: int, members: tuple[int, ...]) -> tuple[set[int], set[int]]:
        """A first message of step i waits for what these members do before."""
        waits = [self.before(i, m) for m in members]
        return set().union(*(w[0] for w in waits)), set().union(*(w[1] for w in waits))

    def unroll(self, i: int) -> None:
        """Add the messages of step i, round by round."""
        step = self.plan.steps[i]
        edges = list(zip(step.part.src.tolist(), step.part.dst.tolist(), strict=True))
        ring = tuple(sorted({m for edge in edges for m in edge})) if step.part.rounds > 1 else None
        all_ready = self.meet(i, ring) if ring else None
        last = _Done()
        for r in range(step.part.rounds):
            now = _Done(single=len(self.steps) if step.part.single else -1)
            waits = {}
            for src, dst in edges:
                if src not in waits:
                    waits[src] = (set(last.receives.get(src, ())), set(last.sends.get(src, ())))
                arrived, left = waits[src] if r else all_ready or self.meet(i, (src, dst))
                now.sends.setdefault(src, []).append(len(self.steps))
                now.receives.setdefault(dst, []).append(len(self.steps))
                one = part([src], [dst], step.part.share)
                before = tuple(sorted(arrived)), tuple(sorted(left))
                self.steps.append(Step(one, *before, step.stage, None if r else ring or step.members))
            last = now
        self.done.append(last)


def by_message(plan: Plan) -> Plan:
    """The same traffic with every message a step of its own."""
    unrolled = _Unrolled(plan)
    for i in range(len(plan.steps)):
        unrolled.unroll(i)
    return Plan(tuple(unrolled.steps), plan.together)
