"""What is shipped and can be named in a scenario: `paceline list KIND`.

Scenario and topology files say what they are in the comment that they open with (`Question:`, `Source:`,
`Finding:`); all else says it in its docstring.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from scenarios.include import SCENARIOS, TOPOLOGIES, shipped
from simulator import units
from simulator.annotations import kinds, models
from simulator.devices import DeviceProfile
from simulator.errors import InputError
from simulator.validation import did_you_mean
from simulator.yaml_source import read

Entry = dict[str, str]
"""name, summary, source."""

_HEADING = re.compile(r"(Question|Source|Finding|Expected): *")
_REFERENCE = re.compile(r"\b(19|20)\d\d\b")


def listing(kind: str) -> list[Entry]:
    """Everything of a kind, by name.

    Raises:
        InputError: no such kind.
    """
    if kind not in LISTS:
        hint = did_you_mean(kind, LISTS)
        raise InputError(f"one of {', '.join(LISTS)}", repr(kind), "list", hint)
    return sorted(LISTS[kind](), key=lambda entry: entry["name"])


def header(path: Path) -> dict[str, str]:
    """The comment that a file opens with: its parts by heading; `Question` is what stands before any."""
    parts: dict[str, str] = {}
    heading = "Question"
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        said = line.lstrip("# ").strip()
        if match := _HEADING.match(said):
            heading, said = match[1], said[match.end() :]
        parts[heading] = f"{parts.get(heading, '')} {said}".strip()
    return parts


def _scenarios() -> Iterator[Entry]:
    for name, path in shipped(SCENARIOS).items():
        said = header(path)
        yield _entry(name, said.get("Question", ""), said.get("Source", ""))


def _clusters() -> Iterator[Entry]:
    """Shipped topology files, each document by the name a scenario gives as `cluster`."""
    for stem, path in shipped(TOPOLOGIES).items():
        said = header(path)
        for number, document in enumerate(read(path)):
            kind = document.data.get("topology", {}).get("kind", "")
            name = f"{stem}#{document.data['name']}" if number else stem
            summary = said.get("Question", "") if not number else f"a {kind} topology"
            yield _entry(name, summary, said.get("Source", "") if not number else str(path.name))


def _topologies() -> Iterator[Entry]:
    import topologies

    yield from _specs(topologies.Topology)
    yield from _clusters()


def _strategies() -> Iterator[Entry]:
    from simulator.strategies import KINDS

    for name, strategy in KINDS.items():
        document = inspect.getdoc(sys.modules[strategy.__module__]) or ""
        yield _entry(name, _sentence(document).removeprefix(f"{name}: "), _reference(document))


def _presets() -> Iterator[Entry]:
    from scenarios.presets import PRESETS

    for name, preset in PRESETS.items():
        fields = ", ".join(f"{key}: {value}" for key, value in preset.strategy.items())
        yield _entry(name, f"{preset.summary}: {{{fields}}}", preset.source)


def _profiles() -> Iterator[Entry]:
    from calibration import profiles

    for name in profiles.names():
        profile = profiles.load(name)
        if isinstance(profile, DeviceProfile):
            yield _entry(name, _figures(profile), f"{profile.source.what}, {profile.source.date}")
    for alias, name in profiles.ALIASES.items():
        yield _entry(alias, f"the same as {name}", "alias")


def _figures(profile: DeviceProfile) -> str:
    memory, written = profile.memory, units.format
    size = f"{written(memory.size, 'bytes')}, {written(memory.bandwidth, 'bandwidth')}"
    peak = [f"{dtype} {written(speed, 'flops')}" for dtype, speed in profile.peak.items()]
    return f"{size}; {', '.join(peak)}"


def _prices() -> Iterator[Entry]:
    from topologies import prices

    for name in prices.names():
        said = header(prices.path_of(name))
        yield _entry(name, said.get("Question", ""), said.get("Source", ""))


def _models() -> Iterator[Entry]:
    from calibration import operations

    for name, model in operations.MODELS.items():
        yield _entry(name, model.summary, model.source)


def _specs(union: Any) -> Iterator[Entry]:
    """The members of a union of specs, by their kind."""
    for model in models(union):
        document = inspect.getdoc(model) or ""
        for name in sorted(kinds(model, ())):
            yield _entry(name, _sentence(document), _reference(document) or _reference(_module_doc(model)))


def _module_doc(model: type[BaseModel]) -> str:
    return inspect.getdoc(sys.modules[model.__module__]) or ""


def _entry(name: str, summary: str, source: str) -> Entry:
    return {"name": name, "summary": summary, "source": source}


def _sentence(document: str) -> str:
    """The first paragraph in one line."""
    return " ".join(document.split("\n\n", maxsplit=1)[0].split())


def _reference(document: str) -> str:
    """The first paragraph with a year in it: the paper."""
    paragraphs = (" ".join(part.split()) for part in document.split("\n\n")[1:])
    found = next((part for part in paragraphs if _REFERENCE.search(part)), "")
    return re.split(r" Differences:| Order and", found.removeprefix("Reference: "))[0]


def _lazily(module: str, name: str) -> Callable[[], Iterator[Entry]]:
    """The specs of a union that is imported when it is asked for."""

    def specs() -> Iterator[Entry]:
        from importlib import import_module

        yield from _specs(getattr(import_module(module), name))

    return specs


LISTS: dict[str, Callable[[], Iterator[Entry]]] = {
    "scenarios": _scenarios,
    "strategies": _strategies,
    "presets": _presets,
    "topologies": _topologies,
    "profiles": _profiles,
    "models": _models,
    "prices": _prices,
    "problems": _lazily("simulator.problems", "ProblemSpec"),
    "optimizers": _lazily("simulator.optimizers", "OptimizerSpec"),
    "schedules": _lazily("simulator.schedules", "ScheduleSpec"),
    "distributions": _lazily("simulator.distributions", "Distribution"),
    "gossip": _lazily("topologies.gossip", "Gossip"),
    "compressions": _lazily("simulator.compression", "CompressionSpec"),
    "splits": _lazily("simulator.problems.splits", "SplitSpec"),
}
"""What can be listed."""
