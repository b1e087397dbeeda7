"""What was simulated, in words: what a gradient computes and costs, the cluster, how the variants differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from scenarios.compare import pick
from scenarios.report.gather import Findings, Group
from scenarios.report.page import paragraph, section, table, text
from scenarios.store import Run
from scenarios.words import listed, plural, seconds
from scenarios.yaml_text import as_yaml

#: Runs listed one by one.
MAX_RUNS = 200
#: Letters for what sets a variant apart.
MAX_LETTERS = 400


def counts(findings: Findings) -> list[str]:
    """What a gradient computes and what it is charged for: a sentence for all variants that do alike."""
    said: dict[str, list[str]] = {}
    for group in findings.groups:
        said.setdefault(_counted(group), []).append(group.variant)
    if len(said) == 1:
        return list(said)
    return [
        f"{listed(variants[:8])}: {sentence[0].lower()}{sentence[1:]}" for sentence, variants in said.items()
    ]


def _counted(group: Group) -> str:
    scenario, summary = group.first.scenario, group.first.summary
    problem, workload = part(scenario, "problem"), part(scenario, "workload")
    costed = summary.get("costed") or workload.get("model")
    charge = _samples(workload.get("batch") or problem.get("batch"), costed, "the workload")
    if not problem:
        return f"Timing only: each gradient is charged the time of {charge}; nothing is computed."
    work = _samples(problem.get("batch"), summary.get("executed") or problem.get("kind"), "the problem")
    return f"Each gradient really computes {work} and is charged the time of {charge}."


def part(scenario: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """A mapping of a scenario, empty if there is none."""
    value = scenario.get(key)
    return value if isinstance(value, Mapping) else {}


def _samples(batch: object, model: object, role: str) -> str:
    size = f"{batch:,} samples" if isinstance(batch, int) else "its samples"
    return f"{size} of {model} ({role})" if model else f"{size} ({role})"


def simulated(findings: Findings) -> str:
    """The last section of the report."""
    runs = [_run_row(run) for run in findings.runs[:MAX_RUNS]]
    document = {key: value for key, value in findings.scenario.items() if value is not None}
    first = text(findings.groups[0].variant)
    digests = table(["variant", "seed", "digest", "engine", "took", "directory"], runs, kind="words")
    validated = all(run.summary.get("validated") for run in findings.runs)
    warning = (
        "" if validated else "Some features used here are not backed by a measurement (validated: false)."
    )
    return section(
        "What was simulated",
        _facts(findings.scenario),
        _differences(findings),
        paragraph(warning, "note"),
        f"<details><summary>Scenario of {first}, all defaults filled in</summary>"
        f"<pre>{text(as_yaml(document))}</pre></details>",
        f"<details><summary>{plural(len(findings.runs), 'run')}</summary>{digests}</details>",
    )


def _run_row(run: Run) -> list[str]:
    took, engine = seconds(pick(run.manifest, "wall_s")), run.manifest.get("engine", "-")
    cells = (run.variant, run.seed, run.summary.get("digest"), engine, took, run.path or "-")
    return [text(cell) for cell in cells]


def _facts(scenario: Mapping[str, Any]) -> str:
    cluster = part(scenario, "cluster")
    facts = {
        "cluster": _said(part(cluster, "topology"), ("kind", "hosts")),
        "workers": str(part(cluster, "placement").get("workers", "")),
        "workload": _said(part(scenario, "workload"), ("model", "batch", "dtype")),
        "problem": _said(part(scenario, "problem"), ("kind", "batch")) or "none (timing only)",
        "method": _said(part(part(scenario, "training"), "strategy"), ("kind",)),
        "network": _said(part(scenario, "network"), ("fidelity", "send_ends")),
        "links that change": _each(part(scenario, "network").get("schedule")),
        "background": _each(part(scenario, "network").get("background")),
        "other jobs": _each(scenario.get("others"), ("name", "workload", "begin")),
        "stragglers": _each(scenario.get("stragglers")) or "none",
        "stop": flat(part(scenario, "stop")),
    }
    items = "".join(f"<dt>{name}</dt><dd>{text(said)}</dd>" for name, said in facts.items() if said)
    return f"<dl>{items}</dl>"


def _each(entries: Any, keys: tuple[str, ...] = ()) -> str:
    """The entries of a list, or some keys of each, on one line."""
    return "; ".join(_said(entry, keys or tuple(entry)) for entry in entries or [])


def _said(found: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    return flat({key: found[key] for key in keys if found.get(key) is not None})


def flat(value: object) -> str:
    """A part of a scenario on one line.

    >>> flat({"kind": "sgd", "lr": 0.1, "where": {"worker": 5}, "x": None})
    'kind sgd, lr 0.1, where (worker 5)'
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_inner(one)}" for key, one in value.items() if one is not None)
    return str(value)


def _inner(value: object) -> str:
    return f"({flat(value)})" if isinstance(value, Mapping) else str(value)


def _differences(findings: Findings) -> str:
    """A table of what sets the variants apart; nothing if there is one."""
    leaves = [dict(_leaves(group.first.scenario)) for group in findings.groups]
    known = list(dict.fromkeys(key for one in leaves for key in one))
    apart = [key for key in known if len({one.get(key) for one in leaves}) > 1]
    if len(leaves) < 2 or not apart:
        return ""
    rows = [
        [text(group.variant), text(_listed(one, apart))]
        for group, one in zip(findings.groups, leaves, strict=True)
    ]
    return "<h3>How the variants differ</h3>" + table(["variant", "what differs"], rows, kind="words")


def _listed(leaves: Mapping[str, str], keys: list[str]) -> str:
    said = ", ".join(f"{key} {leaves[key]}" for key in keys if key in leaves)
    return said if len(said) <= MAX_LETTERS else f"{said[:MAX_LETTERS]} ..."


def _leaves(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Dotted key and text of every value that is given, without what names the run."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            if path or key not in ("name", "variant", "seed"):
                yield from _leaves(one, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and any(isinstance(one, (Mapping, list)) for one in value):
        yield path, "; ".join(flat(one) for one in value)
    elif value is not None:
        yield path, str(value)
