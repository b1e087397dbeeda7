"""Files of the user's: where they are, and reading them without trust: plain bytes, in bounded number."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationInfo

MOST_BYTES = 2**30
"""Largest content that is read, after unpacking."""


def _absolute(value: object, info: ValidationInfo) -> object:
    """Relative to the `folder` of the validation context (the scenario file's), else the working folder."""
    if not isinstance(value, str):
        return value
    return str((Path((info.context or {}).get("folder", ".")) / Path(value).expanduser()).resolve())


UserPath = Annotated[str, BeforeValidator(_absolute), Field(min_length=1)]
"""A path in a scenario, relative to its file; kept absolute."""


def content(path: Path, most: int = MOST_BYTES) -> bytes:
    """The bytes of a file, of a `.gz` what it unpacks to.

    Raises:
        ValueError: it cannot be read, is damaged, or holds more than `most` bytes.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            found = file.read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise ValueError(f"{path} cannot be read: {said}") from None
    if len(found) > most:
        raise ValueError(f"{path} holds more than the {most} bytes expected")
    return found
