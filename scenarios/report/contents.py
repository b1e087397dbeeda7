"""What stands in the report, section by section."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from scenarios.compare import interval, pick, ratio, values_of
from scenarios.report import charts, timeline, waiting
from scenarios.report.figure import Figure, colour
from scenarios.report.gather import MAX_VARIANTS, Findings, Group
from scenarios.report.page import paragraph, place, section, table, text
from scenarios.report.simulated import counts, simulated
from scenarios.report.verdict import Verdict, judge
from scenarios.words import factor, listed, nbytes, number, percent, plural, seconds


def contents(findings: Findings) -> tuple[str, str, list[Figure]]:
    """Title, body and figures of the report."""
    verdict = judge(findings)
    name = str(findings.scenario.get("name") or "run")
    drawn = _Drawn([])
    parts = [
        f"<h1>{text(name)}</h1>",
        paragraph(_about(findings), "meta"),
        _verdict(verdict),
        *(paragraph(said) for said in counts(findings)),
        _summary(findings, verdict),
        _learning(findings, drawn),
        _breakdown(findings, drawn),
        _timeline(findings, drawn),
        _waiting(findings, drawn),
        _links(findings, drawn),
        simulated(findings),
    ]
    return f"{name}: Paceline report", "\n".join(part for part in parts if part), drawn.figures


@dataclass
class _Drawn:
    """The figures placed so far."""

    figures: list[Figure]

    def place(self, figure: Figure | None) -> str:
        """The figure's place in the page; nothing if there is no figure."""
        if figure is None:
            return ""
        self.figures.append(figure)
        return place(figure)


def _about(findings: Findings) -> str:
    made = findings.groups[0].first.manifest
    seeds = sorted({run.seed for run in findings.runs})
    shown = listed([str(seed) for seed in seeds]) if len(seeds) <= 5 else f"{seeds[0]} to {seeds[-1]}"
    parts = [
        plural(len(findings.groups), "variant"),
        f"{'seed' if len(seeds) == 1 else 'seeds'} {shown}",
        f"Paceline {made.get('paceline', '')}".strip(),
        str(made.get("created", ""))[:10],
    ]
    return " · ".join(part for part in parts if part)


def _verdict(verdict: Verdict) -> str:
    headline = f'<p class="headline">{text(verdict.headline)}</p>'
    return f'<div class="verdict">{headline}{paragraph(verdict.rest)}</div>'


@dataclass(frozen=True)
class _Metric:
    """A column of the summary table."""

    title: str
    key: str
    write: Callable[[float | None], str]
    spread: bool = False  # with its interval over seeds
    more: bool = False  # in the second table


METRICS = (
    _Metric("time to target", "time_to_target_s", lambda value: seconds(value, "never"), True),
    _Metric("final loss", "final_loss", number, True),
    _Metric("accuracy", "final_accuracy", percent),
    _Metric("samples/s", "samples_per_s", number, True),
    _Metric("step", "step_time_s.mean", seconds),
    _Metric("waiting", "waiting_fraction", percent),
    _Metric("samples computed", "samples", number),
    _Metric("samples costed", "samples_costed", number),
    _Metric("simulated", "simulated_s", seconds, more=True),
    _Metric("steps", "steps", number, more=True),
    _Metric("step, p50", "step_time_s.p50", seconds, more=True),
    _Metric("step, p95", "step_time_s.p95", seconds, more=True),
    _Metric("staleness", "staleness_mean", number, more=True),
    _Metric("samples wasted", "samples_wasted", number, more=True),
    _Metric("bytes sent", "bytes_sent", nbytes, more=True),
    _Metric("busiest link", "bytes_per_link_max", nbytes, more=True),
    _Metric("cost (USD)", "cost_usd", number, more=True),
    _Metric("energy (kWh)", "energy_kwh", number, more=True),
    _Metric("peak memory", "memory_peak_bytes", nbytes, more=True),
    _Metric("MFU", "mfu", percent, more=True),
)


def _summary(findings: Findings, verdict: Verdict) -> str:
    marks = ["winner" if group.variant == verdict.winner else "" for group in findings.groups]
    shown = [metric for metric in METRICS if _there(findings, metric)]
    first, second = ([one for one in shown if one.more == more] for more in (False, True))
    many = any(len(group.runs) > 1 for group in findings.groups)
    note = "Means over seeds; small: 95 % intervals (Student's t; ratios paired by seed)." if many else ""
    more = _metrics_table(findings, second, verdict.measure.metric, marks) if second else ""
    return (
        _metrics_table(findings, first, verdict.measure.metric, marks)
        + paragraph(note, "note")
        + (f"<details><summary>More numbers</summary>{more}</details>" if more else "")
    )


def _metrics_table(findings: Findings, shown: list[_Metric], measure: str, marks: list[str]) -> str:
    head = ["variant"]
    for metric in shown:
        head.append(metric.title)
        if metric.key == measure and len(findings.groups) > 1:
            head.append(f"ratio to {findings.groups[0].variant}")
    rows = [_row(findings, group, shown, measure) for group in findings.groups]
    return table(head, rows, marks)


def _there(findings: Findings, metric: _Metric) -> bool:
    if metric.key == "time_to_target_s":
        return findings.target is not None
    values = [pick(run.summary, metric.key) for run in findings.runs]
    if metric.key in ("staleness_mean", "samples_wasted"):
        return any(values)
    if metric.key == "samples" and not any(run.scenario.get("problem") for run in findings.runs):
        return False  # nothing was computed
    return any(value is not None for value in values)


def _row(findings: Findings, group: Group, shown: list[_Metric], measure: str) -> list[str]:
    key = f'<span class="key" style="background:{colour(group.number)}"></span>'
    cells = [f"{key}{text(group.variant)}"]
    for metric in shown:
        cells.append(_cell(group, metric))
        if metric.key == measure and len(findings.groups) > 1:
            cells.append(_ratio(group, findings.groups[0], measure))
    return cells


def _cell(group: Group, metric: _Metric) -> str:
    values = [pick(run.summary, metric.key) for run in group.runs]
    there = [value for value in values if value is not None]
    if len(there) < len(values):
        reached = f"<small>{len(there)} of {len(values)} seeds</small>" if there else ""
        return text(metric.write(None)) + reached
    around = interval(there)
    if not metric.spread or around.low is None or around.low == around.high:
        return text(metric.write(around.mean))
    return f"{text(metric.write(around.mean))}<small>{text(_range(metric, around.low, around.high))}</small>"


def _range(metric: _Metric, low: float, high: float | None) -> str:
    return f"{metric.write(low)} to {metric.write(high)}"


def _ratio(group: Group, base: Group, measure: str) -> str:
    if group is base:
        return "1"
    found = ratio(values_of(group.runs, measure), values_of(base.runs, measure))
    if found is None:
        return "-"
    if found.low is None or found.high is None:
        return factor(found.mean)
    return f"{factor(found.mean)}<small>{factor(found.low)} to {factor(found.high)}</small>"


def _learning(findings: Findings, drawn: _Drawn) -> str:
    parts = []
    for metric in ("loss", "accuracy"):
        pair = [drawn.place(charts.learning(findings, metric, over)) for over in ("time_s", "samples")]
        if any(pair):
            parts.append(f'<div class="pair">{"".join(pair)}</div>')
    many = any(len(group.runs) > 1 for group in findings.groups)
    band = "Lines: mean over seeds; bands: from the least to the greatest seed. " if many else ""
    mark = "Diamond: target reached." if findings.target else ""
    note = paragraph(f"{band}{mark}".strip(), "note") if parts else ""
    few = paragraph(_few(findings), "note") if parts else ""
    return section("Loss against time and against samples", *parts, note, few)


def _few(findings: Findings) -> str:
    hidden = len(findings.groups) - MAX_VARIANTS
    return f"Charts show the first {MAX_VARIANTS} variants of {len(findings.groups)}." if hidden > 0 else ""


def _breakdown(findings: Findings, drawn: _Drawn) -> str:
    note = (
        "Shares of worker time, mean over workers and seeds. Where spans overlap, compute counts before "
        "communication, and communication before waiting. Waiting: blocked until the last needed peer has "
        "come or the server has begun to serve."
    )
    return section("Where the time goes", drawn.place(charts.breakdown(findings)), paragraph(note, "note"))


def _timeline(findings: Findings, drawn: _Drawn) -> str:
    lanes = timeline.lanes_of(findings)
    if not lanes:
        return section("Timeline", paragraph("Spans were not recorded (run with --record all).", "note"))
    sampled = any(len(lane.workers) < lane.total for lane in lanes)
    rows = ", a sample of workers from the one that waits least to the one that waits most" if sampled else ""
    left = len(findings.groups) - len(lanes)
    detail = timeline.detail(findings, lanes)
    note = (
        f"The first {seconds(timeline.window(lanes))} of seed {lanes[0].group.first.seed}{rows}. "
        "Rows are workers. Every span of the run: open trace.json.gz of the run directory in ui.perfetto.dev."
    )
    if left > 0:
        note += f" {plural(left, 'variant')} not drawn."
    waits = any(one >= LEAST_WAIT for one in _waits(findings))
    over_time = drawn.place(timeline.waiting_map(findings, lanes)) if waits else ""
    return section(
        "Timeline",
        paragraph(note, "note"),
        drawn.place(detail),
        "<h3>Who waits when, over the whole run</h3>" if waits else "",
        over_time,
    )


#: Waiting below this share is none.
LEAST_WAIT = 5e-4


def _waits(findings: Findings) -> list[float]:
    """The share of its time that the most waiting worker of each variant waits."""
    tables = [group.first.columns("workers", ("waiting_fraction",)) for group in findings.shown]
    return [
        float(np.asarray(table["waiting_fraction"]).max(initial=0.0)) for table in tables if table is not None
    ]


def _waiting(findings: Findings, drawn: _Drawn) -> str:
    waits = _waits(findings)
    if not waits or max(waits) < LEAST_WAIT:
        return section("Waiting per worker", paragraph("No worker waits." if waits else "", "note"))
    figure = drawn.place(waiting.per_worker(findings))
    seed = findings.groups[0].first.seed
    rows = []
    for group in findings.shown:
        said = dict(waiting.extremes(group))
        rows.append([text(group.variant), text(said.get("least", "-")), text(said.get("most", "-"))])
    extremes = table(["variant", "wait least (the others wait for them)", "wait most"], rows, kind="words")
    note = paragraph(f"Seed {seed}; worker (host): share of its time.", "note")
    return section("Waiting per worker", figure, extremes, note)


def _links(findings: Findings, drawn: _Drawn) -> str:
    figures = [drawn.place(figure) for figure in waiting.links(findings)]
    note = "Bytes of all senders / (bandwidth x simulated time), per direction; the peak is in the tooltip."
    return section("Load per link", *figures, paragraph(note, "note") if figures else "")
