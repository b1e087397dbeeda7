"""JSON, YAML and text files of a run: they appear whole or not at all, and are read within bounds."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from simulator.errors import InputError

#: JSON files of ours are far smaller; a larger one is not read (bytes).
MAX_JSON_BYTES = 64_000_000


def write_json(value: Any, path: Path) -> None:
    """Write JSON to a file that appears whole or not at all."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_text(text, path)


def write_text(text: str, path: Path) -> None:
    """Write a text file that appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(name, 0o644)
    os.replace(name, path)


def read_bytes(path: Path) -> bytes:
    """Read a file of bounded size.

    Raises:
        InputError: not there, or too large.
    """
    try:
        if path.stat().st_size > MAX_JSON_BYTES:
            raise InputError(f"at most {MAX_JSON_BYTES} bytes", "a larger file", file=str(path))
        return path.read_bytes()
    except OSError as error:
        raise InputError("a file that can be read", str(error), file=str(path)) from error


def read_json(path: Path) -> dict[str, Any]:
    """Read one of our JSON files.

    Raises:
        InputError: not there, too large, not JSON, or not an object.
    """
    try:
        value = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise InputError("JSON that a run has written", str(error), file=str(path)) from error
    if not isinstance(value, dict):
        raise InputError("a JSON object", type(value).__name__, file=str(path))
    return value


def read_yaml(path: Path) -> dict[str, Any]:
    """Read the `scenario.yaml` of a run.

    Raises:
        InputError: not there, too large, or not YAML.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        value = YAML(typ="safe", pure=True).load(read_bytes(path).decode())
    except (ValueError, YAMLError, RecursionError) as error:
        raise InputError("the scenario of a run", str(error), file=str(path)) from error
    return value if isinstance(value, dict) else {}
