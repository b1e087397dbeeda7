"""The report of a sweep: best values first, then charts over the keys swept, trade-offs, and every setting.

Written from the sweep's table alone, so it can be written again at any time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scenarios.files import write_text
from scenarios.report.figure import Figure
from scenarios.report.page import page, paragraph, place, section, table, text
from scenarios.report.sweep_charts import charts, tuned
from scenarios.report.sweep_front import trade_offs
from scenarios.report.sweep_verdict import verdict
from scenarios.report.sweeping import Sweeping, gather
from scenarios.sweeps.points import as_text, short_keys
from scenarios.sweeps.settings import Setting, ranked, said, title
from scenarios.sweeps.terminal import remark
from scenarios.words import listed, plural
from scenarios.yaml_text import as_yaml

#: Rows of the tables of the best, of all settings, and of failures.
BEST, MOST_SETTINGS, MOST_FAILURES = 10, 500, 50

#: Numbers shown of each setting, where there are any.
METRICS = (
    "time_to_target_s", "final_loss", "final_accuracy", "samples_per_s", "step_time_s.mean",
    "exposed_communication_fraction", "waiting_fraction", "bytes_sent", "cost_usd", "energy_kwh",
)  # fmt: skip


def write_sweep_report(root: Path, path: Path) -> tuple[str, int]:
    """Write the report of a sweep's directory; gives its headline and how many runs it is about.

    Raises:
        InputError: the directory holds no sweep.
    """
    sweeping = gather(root)
    name = str(sweeping.about["name"])
    headline, rest = verdict(sweeping)
    alike, over, traded = tuned(sweeping), charts(sweeping), trade_offs(sweeping)
    parts = [
        f"<h1>{text(name)}</h1>",
        paragraph(_meta(sweeping), "meta"),
        f'<div class="verdict"><p class="headline">{text(headline)}</p>{paragraph(rest)}</div>',
        _tuned(sweeping, alike),
        _best(sweeping),
        _over(sweeping, over),
        _traded(traded),
        _failures(sweeping),
        _all(sweeping),
        _swept(sweeping),
    ]
    body = "\n".join(part for part in parts if part)
    write_text(page(f"{name}: Paceline sweep", body, [*alike, *over, *traded]), path)
    return headline, len(sweeping.rows)


def _meta(sweeping: Sweeping) -> str:
    about, rows = sweeping.about, sweeping.rows
    counts = [(status, sum(row["status"] == status for row in rows)) for status in ("failed", "skipped")]
    runs = plural(len(rows), "run") + "".join(f", {count:,} {status}" for status, count in counts if count)
    axes = [f"{len(axis.points)} x {axis.title}" for axis in sweeping.axes]
    seeds, version = plural(len(about["seeds"]), "seed"), f"Paceline {about['paceline']}"
    return " · ".join(["Sweep", plural(len(sweeping.variants), "variant"), *axes, seeds, runs, version])


def _tuned(sweeping: Sweeping, figures: Sequence[Figure]) -> str:
    if not figures or sweeping.tuned is None:
        return ""
    across, up = sweeping.tuned
    note = (
        f"Each cell at its own best {short_keys(sweeping.keys)[sweeping.best['by']]}, which stands in it; "
        f"{sweeping.measure.better}. Framed: the best {up.title} of each {across.title}."
    )
    heading = f"{title(sweeping.measure.metric).capitalize()}, all tuned alike"
    return section(heading, *(place(figure) for figure in figures), paragraph(note, "note"))


def _best(sweeping: Sweeping) -> str:
    if sweeping.best:
        return _choices(sweeping.best)
    top = ranked(sweeping.settings, sweeping.measure)[:BEST]
    return section(f"The best {len(top)}", _settings(sweeping, top)) if len(top) > 1 else ""


def _choices(best: Mapping[str, Any]) -> str:
    """A row for each group tuned: the best value, and on the right all that were tried."""
    metric, by, within = str(best["metric"]), str(best["by"]), list(best["within"])
    short = short_keys([*within, by])
    values = dict.fromkeys(as_text(tried["value"]) for one in best["choices"] for tried in one["candidates"])
    head = [*(short[key] for key in within), f"best {short[by]}", title(metric), "", *values]
    rows = [_choice(one, metric, by, within, list(values)) for one in best["choices"]]
    note = (
        "Means over seeds and whatever else was swept; small: 95 % intervals. On the right every value "
        f"tried. Best is what lacks the {title(metric)} in the fewest runs, and of that the best mean."
    )
    return section(f"Best {short[by]}", table(head, rows), paragraph(note, "note"))


def _choice(
    one: Mapping[str, Any], metric: str, by: str, within: Sequence[str], values: Sequence[str]
) -> list[str]:
    chosen = "-" if one[by] is None else as_text(one[by])
    around = ""
    if one["ci_low"] is not None:
        around = f"<small>{text(said(metric, one['ci_low']))} to {text(said(metric, one['ci_high']))}</small>"
    tried = {as_text(candidate["value"]): candidate for candidate in one["candidates"]}
    return [
        *(text(as_text(one[key])) for key in within),
        f"<b>{text(chosen)}</b>",
        text(said(metric, one["mean"], "never")) + around,
        text(remark(one)),
        *(_candidate(metric, tried.get(value), value == chosen) for value in values),
    ]


def _candidate(metric: str, candidate: Mapping[str, Any] | None, best: bool) -> str:
    if candidate is None:
        return "-"
    cell = text(said(metric, candidate["mean"], "never"))
    if candidate["without"] and candidate["mean"] is not None:
        cell += f"<small>{candidate['without']} of {candidate['runs']} without</small>"
    return f"<b>{cell}</b>" if best else cell


def _over(sweeping: Sweeping, figures: Sequence[Figure]) -> str:
    if not figures:
        return ""
    measure = sweeping.measure
    heat = any(figure.name.startswith("heat") for figure in figures)
    more = (
        "Framed: the best of each map. Where a seed lacks it there is a word instead."
        if heat
        else "Bands: from the least to the greatest seed. Hollow: some seeds lack it, and do not count."
    )
    note = f"Means over seeds of {title(measure.metric)}; {measure.better}. {more}"
    kind = "pair" if len(figures) > 1 else ""
    whole = f'<div class="{kind}">{"".join(place(figure) for figure in figures)}</div>'
    over = listed([axis.title for axis in sweeping.drawn])
    heading = f"{title(measure.metric).capitalize()} over {over}"
    return section(heading, whole, paragraph(note, "note"))


def _traded(figures: Sequence[Figure]) -> str:
    note = (
        "A dot is a setting, mean over seeds. On the line: those that no other setting beats in both; "
        "whoever leaves it loses in one without gaining in the other."
    )
    places = [place(figure) for figure in figures]
    return section("What must be traded", *places, paragraph(note, "note")) if places else ""


def _failures(sweeping: Sweeping) -> str:
    failed, left_out = (_listing(sweeping, status) for status in ("failed", "skipped"))
    parts = [section("Runs that failed", failed)]
    if left_out:
        parts.append(f"<details><summary>Runs left out</summary>{left_out}</details>")
    return "\n".join(part for part in parts if part)


def _listing(sweeping: Sweeping, status: str) -> str:
    """Directories of the runs of a status, and why."""
    rows = [row for row in sweeping.rows if row["status"] == status]
    shown = [[text(row["run_dir"]), text(row["error"] or "")] for row in rows[:MOST_FAILURES]]
    more = f"and {len(rows) - MOST_FAILURES:,} more" if len(rows) > MOST_FAILURES else ""
    return table(["directory", "why"], shown, kind="words") + paragraph(more, "note") if rows else ""


def _all(sweeping: Sweeping) -> str:
    found, total = sweeping.settings[:MOST_SETTINGS], len(sweeping.settings)
    note = f"The first {len(found):,} of {total:,}; sweep.parquet has all." if total > len(found) else ""
    listing = _settings(sweeping, found) + paragraph(note, "note")
    return f"<details><summary>All {plural(total, 'setting')}</summary>{listing}</details>" if found else ""


def _settings(sweeping: Sweeping, found: Sequence[Setting]) -> str:
    """A table of settings with their main numbers."""
    short = short_keys(sweeping.keys)
    metrics = list(dict.fromkeys((sweeping.measure.metric, *METRICS)))
    metrics = [one for one in metrics if any(setting.numbers(one) for setting in sweeping.settings)]
    several = len(sweeping.variants) > 1 or not sweeping.keys
    named = [("variant", "")] * several + [(short[key], key) for key in sweeping.keys]
    head = [*(name for name, _ in named), *(title(one) for one in metrics)]
    rows = []
    for setting in found:
        cells = [_short(setting.values[key]) if key else setting.variant for _, key in named]
        rows.append([*map(text, cells), *(_cell(setting, one) for one in metrics)])
    return table(head, rows)


def _short(value: Any, longest: int = 60) -> str:
    shown = as_text(value)
    return shown if len(shown) <= longest else f"{shown[: longest - 3]}..."


def _cell(setting: Setting, metric: str) -> str:
    there = len(setting.numbers(metric))
    if there == len(setting.rows):
        return text(said(metric, setting.mean(metric)))
    return text("-") + (f"<small>{there} of {len(setting.rows)} seeds</small>" if there else "")


def _swept(sweeping: Sweeping) -> str:
    """The keys with their values, and the scenario of the first run."""
    about = sweeping.about
    values = [(key, ", ".join(map(_short, values))) for key, values in about["keys"].items()]
    values += [(f"case {name}: ", _short(body, 200)) for name, body in about["cases"].items()]
    values += [("seeds", ", ".join(map(str, about["seeds"]))), ("file", about["file"])]
    scenario = {key: value for key, value in (about["scenario"] or {}).items() if value is not None}
    return section(
        "What was swept",
        table(["key", "values"], [[text(key), text(shown)] for key, shown in values], kind="words"),
        "<details><summary>Scenario of the first run, all defaults filled in</summary>"
        f"<pre>{text(as_yaml(scenario))}</pre></details>",
    )
