"""The verdict in a sentence: which variant wins, by what factor, how sure.

The measure is the time to the target if there is one, else the final loss, else samples per second. The
winner is set against the runner-up: a lead over the second is what a reader may rely on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scenarios.compare import Interval, has_target, interval, pick, ratio, values_of
from scenarios.report.gather import Findings, Group
from scenarios.words import factor, listed, number, percent, plural, seconds

#: Two variants whose measures differ by a smaller factor are equal: it would decide nothing.
EQUAL = 1.01


@dataclass(frozen=True)
class Measure:
    """What decides.

    Attributes:
        metric: the summary key.
        least: whether less is better.
        wins: what the winner does, with {goal} and {value}.
        than: how far it is ahead, with {factor} and {other}.
    """

    metric: str
    least: bool
    wins: str
    than: str

    def text(self, value: float | None) -> str:
        """A value in words."""
        if self.metric == "time_to_target_s":
            return seconds(value, "never")
        return number(value) + (" samples/s" if self.metric.endswith("samples_per_s") else "")


TIME = Measure(
    "time_to_target_s", True, "reaches {goal} first, after {value}", "{factor} times sooner than {other}"
)
LOSS = Measure(
    "final_loss", True, "ends with the lowest loss, {value}", "{factor} times lower than that of {other}"
)
RATE = Measure("samples_per_s", False, "is fastest, {value}", "{factor} times as fast as {other}")
USEFUL = Measure(
    "useful_samples_per_s",
    False,
    "is fastest, {value} of gradients that were used",
    "{factor} times as fast as {other}",
)


@dataclass(frozen=True)
class Verdict:
    """The sentences on top of a report, as plain text.

    Attributes:
        headline: the verdict.
        rest: what a reader must know beside it: who never got there, how the others did.
        winner: name of the winning variant, None if nobody clearly wins.
        measure: what decided.
    """

    headline: str
    rest: str
    winner: str | None
    measure: Measure


def measure_of(findings: Findings) -> Measure:
    """What decides in this findings."""
    if has_target(findings.runs):
        return TIME
    if findings.learns:
        return LOSS
    wasted = any(pick(run.summary, "samples_wasted") for run in findings.runs)
    known = all(pick(run.summary, USEFUL.metric) is not None for run in findings.runs)
    return USEFUL if wasted and known else RATE


def goal_of(findings: Findings) -> str:
    """The target in words: `accuracy 0.95`."""
    target = findings.target or {}
    return listed([f"{name} {value}" for name, value in target.items()]) if target else "the target"


def judge(findings: Findings) -> Verdict:
    """The verdict over all variants of a findings."""
    measure = measure_of(findings)
    ranked = rank(findings.groups, measure)
    if len(findings.groups) == 1:
        return Verdict(_alone(findings, measure), _seeds_of(findings), None, measure)
    rest = _rest(findings, ranked, measure, 1)
    if not ranked:
        what = f"reaches {goal_of(findings)}" if measure is TIME else f"has a {measure.metric}"
        return Verdict(f"No variant {what} in every seed.", rest, None, measure)
    if len(ranked) == 1:
        claim = measure.wins.format(
            goal=goal_of(findings), value=measure.text(ranked[0].mean(measure.metric))
        )
        return Verdict(
            f"{ranked[0].variant} {claim}; no other does in every seed.", rest, ranked[0].variant, measure
        )
    return _contest(findings, ranked, measure, rest)


def rank(groups: Sequence[Group], measure: Measure) -> list[Group]:
    """The variants that have the measure in every seed, best first."""
    known = [(value, group) for group in groups if (value := group.mean(measure.metric)) is not None]
    sign = 1 if measure.least else -1
    return [group for _, group in sorted(known, key=lambda pair: (sign * pair[0], pair[1].number))]


def lead(winner: Group, second: Group, measure: Measure) -> Interval | None:
    """By what factor the winner is ahead of the second: above one."""
    ours, theirs = values_of(winner.runs, measure.metric), values_of(second.runs, measure.metric)
    return ratio(theirs, ours) if measure.least else ratio(ours, theirs)


def _contest(findings: Findings, ranked: Sequence[Group], measure: Measure, rest: str) -> Verdict:
    first, second = ranked[0], ranked[1]
    ahead = lead(first, second, measure)
    values = [measure.text(group.mean(measure.metric)) for group in (first, second)]
    if ahead is not None and ahead.low is not None and ahead.low <= 1:
        headline = (
            f"No clear winner: {first.variant} ({values[0]}) and {second.variant} ({values[1]}) differ by a "
            f"factor of {factor(ahead.mean)} ({_sure(ahead, first)})."
        )
        return Verdict(headline, rest, None, measure)
    if ahead is not None and ahead.mean < EQUAL:
        equal = _equals(ranked, measure)
        rest = _rest(findings, ranked, measure, len(equal))
        return Verdict(_equal(findings, equal, measure), rest, None, measure)
    claim = f"{first.variant} {measure.wins.format(goal=goal_of(findings), value=values[0])}"
    if ahead is None:
        return Verdict(f"{claim}; {second.variant}: {values[1]}.", rest, first.variant, measure)
    than = measure.than.format(factor=factor(ahead.mean), other=f"{second.variant}, the next")
    return Verdict(f"{claim}: {than} ({_sure(ahead, first)}).", rest, first.variant, measure)


def _equals(ranked: Sequence[Group], measure: Measure) -> list[Group]:
    """Who shares the first place: those next to the best, until one is further off."""
    equal = [ranked[0]]
    for group in ranked[1:]:
        ahead = lead(ranked[0], group, measure)
        if ahead is None or ahead.mean >= EQUAL:
            break
        equal.append(group)
    return equal


def _equal(findings: Findings, equal: Sequence[Group], measure: Measure) -> str:
    best, names = equal[0].mean(measure.metric), [group.variant for group in equal]
    goal = f" to {goal_of(findings)}" if measure is TIME else ""
    within = f"within {100 * (EQUAL - 1):.0f} %"
    return f"No clear winner{goal}: {listed(names)} are equal {within} ({measure.text(best)})."


def _sure(ahead: Interval, group: Group) -> str:
    if ahead.low is None or ahead.high is None:
        return "one seed, so no interval"
    return f"95 % interval {factor(ahead.low)} to {factor(ahead.high)}, {plural(len(group.runs), 'seed')}"


def _rest(findings: Findings, ranked: Sequence[Group], measure: Measure, named: int) -> str:
    """What stands behind the headline: how those did that it does not name, and who has no number."""
    parts = (_others(ranked[named:], measure), _missing(findings, measure))
    return " ".join(part for part in parts if part)


def _others(ranked: Sequence[Group], measure: Measure) -> str:
    others = [f"{group.variant} {measure.text(group.mean(measure.metric))}" for group in ranked[:7]]
    return f"The others: {listed(others)}." if len(others) > 1 else ""


def _missing(findings: Findings, measure: Measure) -> str:
    """Who has no number: never reached, or diverged."""
    said = []
    for group in findings.groups:
        lacking = sum(pick(run.summary, measure.metric) is None for run in group.runs)
        if lacking:
            seeds = f" in {lacking} of {len(group.runs)} seeds" if len(group.runs) > 1 else ""
            said.append(f"{group.variant}{seeds}")
    verb = f"Never reached {goal_of(findings)}" if measure is TIME else f"Without a finite {measure.metric}"
    return f"{verb}: {listed(said)}." if said else ""


def _alone(findings: Findings, measure: Measure) -> str:
    group = findings.groups[0]
    value = group.mean(measure.metric)
    waits = f"its workers wait {percent(group.mean('waiting_fraction'))} of their time"
    if measure is TIME:
        did = f"reaches {goal_of(findings)} after {seconds(value)}" if value is not None else (
            f"never reaches {goal_of(findings)}" + (" in every seed" if len(group.runs) > 1 else "")
        )  # fmt: skip
    elif measure is LOSS:
        did = f"ends with a loss of {number(value)}"
    else:
        did = f"processes {number(value)} samples/s, a step takes {seconds(group.mean('step_time_s.mean'))}"
    return f"{group.variant} {did}{_spread(group, measure)}; {waits}."


def _spread(group: Group, measure: Measure) -> str:
    values = [value for run in group.runs if (value := pick(run.summary, measure.metric)) is not None]
    if len(values) < len(group.runs) or len(values) < 2:
        return ""
    around = interval(values)
    return f" (95 % interval {measure.text(around.low)} to {measure.text(around.high)})"


def _seeds_of(findings: Findings) -> str:
    runs = len(findings.groups[0].runs)
    return "One seed, so no interval." if runs == 1 else f"{plural(runs, 'seed')}."
