"""What every file of ours opens with, and the kinds of names in them."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from simulator.spec import Spec


def _no_file(name: str) -> str:
    """A variant's runs lie in a folder of its name, beside the study's files."""
    if name in ("summary.json", "report.html", "manifest.json", "scenario.yaml", "trace.json.gz"):
        raise ValueError(f"found {name!r}, expected a name that is not a file's of a run directory")
    return name


Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.+=-]*$", max_length=80)]
"""A name that can be a folder's."""

VariantName = Annotated[Name, AfterValidator(_no_file)]
"""A variant's name."""

Seed = Annotated[int, Field(ge=0, lt=2**63)]


def _version(value: int) -> int:
    if value != 1:
        raise ValueError(f"found {value}, expected 1 (the version of the format that this release reads)")
    return value


# No Literal: to that, true and 1.0 are 1.
Version = Annotated[int, AfterValidator(_version), Field(json_schema_extra={"const": 1})]
"""Of the scenario format: the key `paceline` of every file."""


class Header(Spec):
    """The keys that any file may open with."""

    paceline: Version = 1
    name: Name | None = None
