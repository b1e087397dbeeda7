"""The resolved scenario as a document: every default shown, quantities with units; loads back unchanged."""

from __future__ import annotations

from typing import Any

from scenarios import yaml_text
from scenarios.manifest import scenario_hash
from scenarios.schema import Scenario

_FIRST = ("kind", "graph")


def document(scenario: Scenario) -> dict[str, Any]:
    """The scenario as plain data: what its `scenario.yaml` holds. Loading it gives an equal scenario."""
    ordered: dict[str, Any] = _ordered(scenario.model_dump(mode="json", by_alias=True))
    return ordered


def _ordered(value: Any) -> Any:
    """What a mapping is (`kind`) before its details."""
    if isinstance(value, list):
        return [_ordered(item) for item in value]
    if not isinstance(value, dict):
        return value
    first = [key for key in _FIRST if key in value]
    return {key: _ordered(value[key]) for key in (*first, *(key for key in value if key not in first))}


def hash_of(scenario: Scenario) -> str:
    """Hash of everything that the scenario says, 64 hexadecimal digits."""
    return scenario_hash(document(scenario))


def as_yaml(scenario: Scenario) -> str:
    """The document as YAML text."""
    return yaml_text.as_yaml(document(scenario))
