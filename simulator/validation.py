"""Turns nodes of a YAML file into specs, and what pydantic finds wrong into errors with line and column.

Validation is strict (no text taken for a number, no boolean for an integer) and reports everything at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from simulator.annotations import keys, kinds
from simulator.errors import InputError, InputErrors
from simulator.yaml_source import Node, Path, dotted, shown

T = TypeVar("T")

_WANTED = {  # what pydantic's types of errors ask for
    "int_type": "an integer",
    "int_parsing": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "string_type": "text",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "dict_type": "a mapping",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
    "none_required": "nothing",
}
_BOUNDS = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}
MISSING = "no such key"
"""What an error has `found` where a required key is missing."""

_SENTENCE = re.compile(r"found (?P<found>.*)[,;] expected (?P<expected>.*?)(?: \((?P<hint>.*)\))?", re.DOTALL)


def validate(spec: type[T], node: Node, context: Any = None) -> T:
    """The spec (a pydantic model, or a union of them) that `node` describes.

    Raises:
        InputErrors: everything that is wrong, each with its place in the file.
    """
    try:
        valid: T = _adapter(cast("Any", spec)).validate_python(
            _tuples(node.data), strict=True, context=context
        )
    except ValidationError as error:
        raise InputErrors(complaints(spec, error, node)) from None
    return valid


def _tuples(data: Any) -> Any:
    """Lists as tuples, which frozen specs have: strict validation takes no list for a tuple."""
    if isinstance(data, dict):
        return {key: _tuples(value) for key, value in data.items()}
    return tuple(map(_tuples, data)) if isinstance(data, list) else data


@lru_cache(maxsize=64)
def _adapter(spec: Any) -> TypeAdapter[Any]:
    return TypeAdapter(spec)


def complaints(spec: Any, error: ValidationError, node: Node) -> list[InputError]:
    """The errors of a validation of `node` as `spec`, one for each wrong value, in order of the file."""
    details = error.errors(include_url=False)
    found: dict[tuple[Path, str], list[ErrorDetails]] = {}
    for one in details:
        found.setdefault(_subject(one, node), []).append(one)
    said = [_say(spec, node, path, name, group) for (path, name), group in _relevant(found)]
    return sorted(said, key=lambda one: (one.file or "", one.line or 0, one.column or 0))


def _walk(node: Node, loc: Iterable[int | str]) -> Path:
    """The part of a pydantic location that the file has: names of branches of unions are skipped."""
    path: Path = ()
    for step in loc:
        whole = node.find((*path, step))[1]
        if len(whole) == len(path) + 1:
            path = whole
    return path


def _subject(one: ErrorDetails, node: Node) -> tuple[Path, str]:
    """Which value an error is about: its path, and the missing or unknown key in it."""
    loc = one["loc"]
    if one["type"] == "missing":
        return _walk(node, loc[:-1]), str(loc[-1])
    if one["type"] == "extra_forbidden":
        return _walk(node, loc)[:-1], str(loc[-1])
    path = _walk(node, (*loc, *getattr(one.get("ctx", {}).get("error"), "at", ())))
    tag = one.get("ctx", {}).get("discriminator", "").strip("'")
    if one["type"] == "union_tag_invalid" and len(node.find((*path, tag))[1]) > len(path):
        return (*path, tag), ""
    return path, ""


def _relevant(
    found: dict[tuple[Path, str], list[ErrorDetails]],
) -> Iterator[tuple[tuple[Path, str], list[ErrorDetails]]]:
    """Without the branches of a union that the value was never meant to be: a mapping is no failed number."""
    subjects = list(found)
    for (path, name), group in found.items():
        deeper = any(
            other[: len(path)] == path and (len(other) > len(path) or missing) for other, missing in subjects
        )
        if name or not deeper or not all(one["type"].endswith("_type") for one in group):
            yield (path, name), group


def _say(spec: Any, node: Node, path: Path, name: str, group: list[ErrorDetails]) -> InputError:
    """One error about one value, from all that pydantic has against it."""
    first = group[0]
    if first["type"] == "missing":
        return _missing(spec, node, path, name, first)
    if first["type"] == "extra_forbidden":
        return _unknown(spec, node, path, name, first)
    if first["type"] == "union_tag_not_found" and (close := _misspelt_tag(node, path, first)):
        return close
    wanted = [_wanted(spec, one) for one in group]
    expected = " or ".join(dict.fromkeys(one[0] for one in wanted))
    found = next((one[1] for one in wanted if one[1]), "")
    hint = next((one[2] for one in wanted if one[2]), "")
    return node.error(path, expected=expected, found=found, hint=hint)


def _missing(spec: Any, node: Node, path: Path, name: str, one: ErrorDetails) -> InputError:
    place = node.error(path, expected="", key=True)
    field = dotted((*path, name))
    return InputError(f"the key {name!r}", MISSING, field, "", place.file, place.line, place.column)


def _unknown(spec: Any, node: Node, path: Path, name: str, one: ErrorDetails) -> InputError:
    kind = node.find((*path, "kind"))[0].content
    own = isinstance(kind, str) and ":" in kind  # a class of the user's own: its keys are not in `spec`
    known = [] if own else sorted(keys(spec, one["loc"][:-1]))
    hint = did_you_mean(name, known)
    expected = f"one of the keys {', '.join(known)}" if known else "a key of that class"
    return node.error(
        (*path, name), expected=expected, found=f"the unknown key {name!r}", hint=hint, key=True
    )


def _misspelt_tag(node: Node, path: Path, one: ErrorDetails) -> InputError | None:
    """A mapping without its tag may have it misspelt."""
    tag = one["ctx"]["discriminator"].strip("'")
    below = node.find(path)[0].content
    for key in below if isinstance(below, dict) else ():
        if did_you_mean(key, [tag]):
            hint = did_you_mean(key, [tag])
            found = f"the unknown key {key!r}"
            return node.error((*path, key), expected=f"the key {tag!r}", found=found, hint=hint, key=True)
    return None


def _wanted(spec: Any, one: ErrorDetails) -> tuple[str, str, str]:
    """What one error of pydantic expected, found and hints."""
    kind, context, value = one["type"], one.get("ctx", {}), one["input"]
    found = shown(value)
    if kind == "value_error":
        return _raised(context["error"], value)
    if kind in ("literal_error", "enum"):
        return str(context["expected"]), found, did_you_mean(value, _quoted(context["expected"]))
    if kind == "union_tag_invalid":
        tags = context["expected_tags"]
        return f"one of {tags}", repr(context["tag"]), did_you_mean(context["tag"], _quoted(tags))
    if kind == "union_tag_not_found":
        tags = ", ".join(sorted(kinds(spec, one["loc"])))
        return f"a mapping with the key {context['discriminator']}" + (f": {tags}" if tags else ""), found, ""
    if kind in _BOUNDS:
        word, key = _BOUNDS[kind]
        return f"{word} {context[key]}", found, ""
    if kind in ("too_short", "too_long"):
        return _length(context), found, ""
    return _WANTED.get(kind, one["msg"][:1].lower() + one["msg"][1:]), found, _type_hint(kind, value)


def _raised(error: Exception, value: Any) -> tuple[str, str, str]:
    """The sentence that a validator of ours raised; a UnitError brings its parts."""
    if hasattr(error, "expected"):
        return error.expected, getattr(error, "found", ""), getattr(error, "hint", "")
    if match := _SENTENCE.fullmatch(str(error)):
        return match["expected"], match["found"], match["hint"] or ""
    return str(error), "" if isinstance(value, dict) else shown(value), ""


def _length(context: dict[str, Any]) -> str:
    if "min_length" in context:
        return f"at least {context['min_length']} items"
    return f"at most {context['max_length']} items"


def _type_hint(kind: str, value: Any) -> str:
    """How to mend a value of the wrong type."""
    if kind.startswith(("int", "float")) and isinstance(value, str):
        return "a number stands without quotes and unit"
    if kind == "int_from_float" and isinstance(value, float) and value.is_integer():
        return f"write {int(value)}"
    if kind == "int_type" and isinstance(value, float) and value.is_integer():
        return f"write {int(value)}"
    if kind == "string_type" and isinstance(value, int | float):
        return "write it in quotes"
    return ""


def did_you_mean(found: Any, known: Iterable[str]) -> str:
    """A hint with the closest of the names that are known, or none."""
    names = list(known)
    family = str(found).lower().partition("_")[0]  # h100_sxm is meant to be an h100, not an h200_sxm
    kin = [name for name in names if name.lower().partition("_")[0] == family]
    names = kin or names
    folded = {name.lower(): name for name in names}
    close = get_close_matches(str(found).lower(), folded, n=1, cutoff=0.6)
    return f"did you mean {folded[close[0]]!r}?" if close else ""


def _quoted(listed: str) -> list[str]:
    """The names in pydantic's "'a', 'b' or 'c'"."""
    return listed.split("'")[1::2]
