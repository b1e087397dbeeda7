"""Plain data as YAML text that reads back as the same data: in blocks, what holds scalars only in one line.

A general YAML library does this in pure Python at the cost of a small run; a sweep writes thousands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

#: Columns that a mapping or list in one line may fill.
WIDTH = 110

_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./+%()~-]*( [A-Za-z0-9_./+%()~-]+)*")
_QUANTITY = re.compile(r"-?[0-9][0-9.]*(e[-+]?[0-9]+)? [A-Za-z]+(/[a-z]+)?")
_OTHER_TYPE = re.compile(r"true|false|yes|no|on|off|null|y|n|~", re.IGNORECASE)
_UNPRINTABLE = re.compile(
    r"[^\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]|[\u2028\u2029]"
)


def as_yaml(document: Mapping[str, Any]) -> str:
    """A document as YAML text.

    >>> print(as_yaml({"name": "x", "stop": {"steps": 3, "time": None}, "link": {"at": {"rate": "1 GB/s"}}}))
    name: x
    stop: {steps: 3, time: null}
    link:
      at: {rate: 1 GB/s}
    <BLANKLINE>
    """
    return "".join(f"{line}\n" for line in _lines(document, WIDTH)) or "{}\n"


def _lines(value: Any, width: int) -> Iterator[str]:
    """A mapping or a list that is not empty, or a scalar."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from _entry(f"{_text(key)}:", below, width)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _item(item, width)
    else:
        yield _scalar(value)


def _entry(key: str, value: Any, width: int) -> Iterator[str]:
    inline = _inline(value, width - len(key) - 1)
    if inline is not None:
        yield f"{key} {inline}"
    else:
        yield key
        indent = "  " if isinstance(value, Mapping) else ""
        yield from (f"{indent}{line}" for line in _lines(value, width - len(indent)))


def _item(value: Any, width: int) -> Iterator[str]:
    inline = _inline(value, width - 2)
    if inline is not None:
        yield f"- {inline}"
    else:
        for number, line in enumerate(_lines(value, width - 2)):
            yield f"{'  ' if number else '- '}{line}"


def _inline(value: Any, width: int) -> str | None:
    """A scalar, or a mapping or list of scalars that fits into `width` in one line; else None."""
    if isinstance(value, Mapping) and not any(map(_is_deep, value.values())):
        inner = ", ".join(f"{_text(key)}: {_scalar(below)}" for key, below in value.items())
        written = f"{{{inner}}}"
    elif isinstance(value, list | tuple) and not any(map(_is_deep, value)):
        written = f"[{', '.join(map(_scalar, value))}]"
    else:
        return None if _is_deep(value) else _scalar(value)
    return written if len(written) <= width or not value else None


def _is_deep(value: Any) -> bool:
    return isinstance(value, Mapping | list | tuple)


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    written = repr(value)
    # Readers of YAML 1.1 want a point in a number with an exponent.
    return written.replace("e", ".0e") if isinstance(value, float) and "." not in written else written


def _text(value: str) -> str:
    """A text as it stands where nothing else could be meant, else in double quotes."""
    plain = _PLAIN.fullmatch(value) and not _OTHER_TYPE.fullmatch(value)
    if plain or _QUANTITY.fullmatch(value):
        return value
    return _UNPRINTABLE.sub(lambda found: f"\\U{ord(found[0]):08x}", json.dumps(value, ensure_ascii=False))
