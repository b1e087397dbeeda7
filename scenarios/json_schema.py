"""JSON Schema of scenario files, so that editors complete and check them.

# yaml-language-server: $schema=scenario.schema.json
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

from pydantic import Field, create_model
from pydantic.json_schema import PydanticJsonSchemaWarning

from scenarios.presets import PRESETS
from scenarios.schema import Scenario
from scenarios.study import Beside
from simulator.spec import Spec

_INCLUDE = {"type": "string", "pattern": r".+\.ya?ml(#.+)?$", "description": "a file that holds the mapping"}


def json_schema() -> dict[str, Any]:
    """The schema: what a file may hold, included files and overrides too."""
    keys = {name: (field.annotation, None) for name, field in Scenario.model_fields.items()}
    keys |= {name: (field.annotation, None) for name, field in Beside.model_fields.items()}
    keys |= {"extends": (str, None), "variants": (dict[str, dict[str, Any]], Field(None))}
    fields: dict[str, Any] = keys
    file = create_model("ScenarioFile", __base__=Spec, **fields)
    with warnings.catch_warnings():  # defaults in SI, where the schema has strings with units
        warnings.simplefilter("ignore", PydanticJsonSchemaWarning)
        schema = file.model_json_schema(by_alias=True)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "Paceline scenario"
    _with_presets(schema["$defs"]["Training"]["properties"]["strategy"])
    for definition in schema["$defs"].values():
        _with_includes(definition)
    _with_includes(schema)
    return schema


def _with_presets(strategy: dict[str, Any]) -> None:
    """A paper's name in place of a method's, with keys of the method that it stands for."""
    kind = {"enum": sorted(PRESETS), "type": "string"}
    strategy["oneOf"].append({"type": "object", "properties": {"kind": kind}, "required": ["kind"]})


def _with_includes(definition: dict[str, Any]) -> None:
    """FILE.yaml in place of every mapping that a key may hold; a name in place of a cluster or topology."""
    for name, value in definition.get("properties", {}).items():
        if name in ("cluster", "topology"):
            definition["properties"][name] = {"anyOf": [value, {"type": "string"}]}
        elif name == "profile" and value.get("type") == "string":
            definition["properties"][name] = {"anyOf": [value, {"type": "object"}]}
        elif _mapping(value):
            definition["properties"][name] = {"anyOf": [value, _INCLUDE]}


def _mapping(value: dict[str, Any]) -> bool:
    return bool({"$ref", "oneOf"} & set(value)) or any(_mapping(one) for one in value.get("anyOf", ()))


def write(path: Path) -> None:
    """Write the schema to a file."""
    path.write_text(json.dumps(json_schema(), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
