"""Reads YAML 1.2 so that every key and value knows its file, line and column.

Only the core schema: strings, integers, floats, booleans, null, lists, mappings. No duplicate keys, tags,
merge keys, infinite numbers. A file is bounded in size, nesting and values, aliases counted as often as they
stand, so that none can hang the reader.
"""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from ruamel.yaml.reader import ReaderError

from simulator.errors import InputError, InputErrors

LARGEST = 1_000_000  # bytes of a file
DEEPEST = 64  # levels of nesting
MOST = 50_000  # values in a document, counted again at every alias
ENOUGH = 50  # errors after which reading stops

_NULL = re.compile(r"null|Null|NULL|~|")
_BOOL = re.compile(r"(true|True|TRUE)|false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_LARGEST_INT = 2**63 - 1


Path = tuple[str | int, ...]
"""Keys and list indices from a document down to a value."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in a file; lines and columns from 1 (`line` None: not from a file, e.g. `--set`)."""

    file: str | None
    line: int | None = None
    column: int | None = None

    def error(self, expected: str, found: str = "", field: str = "", hint: str = "") -> InputError:
        """An error about what stands here."""
        return InputError(expected, found, field, hint, self.file, self.line, self.column)


@dataclass(frozen=True, slots=True)
class Node:
    """A value with its place.

    Attributes:
        content: dict of str to Node, list of Nodes, or a plain scalar.
        at: where the value stands.
        key: where its key stands; the value's own place for items of lists and for documents.
    """

    content: Any
    at: Mark
    key: Mark

    @property
    def data(self) -> Any:
        """Plain Python: dict, list, str, int, float, bool, None."""
        if isinstance(self.content, dict):
            return {key: node.data for key, node in self.content.items()}
        if isinstance(self.content, list):
            return [node.data for node in self.content]
        return self.content

    def get(self, key: str) -> Node | None:
        """The value of `key`, None if this is no mapping or has no such key."""
        return self.content.get(key) if isinstance(self.content, dict) else None

    def find(self, path: Path) -> tuple[Node, Path]:
        """The deepest node on `path`, and the part of the path that it has reached."""
        node = self
        for depth, step in enumerate(path):
            below = node.content
            known = isinstance(below, dict) and step in below
            if not known and not (isinstance(below, list) and isinstance(step, int) and step < len(below)):
                return node, path[:depth]
            node = below[step]
        return node, path

    def error(
        self, path: Path, *, expected: str, found: str = "", hint: str = "", key: bool = False
    ) -> InputError:
        """An error about the value at `path`; about its key with `key`, or if it ends early."""
        node, reached = self.find(path)
        mark = node.key if key or reached != path else node.at
        return mark.error(expected, found, dotted(path), hint)


class Source(Node):
    """A document of a file: a Node that is the whole document."""

    __slots__ = ()

    @property
    def file(self) -> str:
        """The path that was read."""
        return self.at.file or ""


def dotted(path: Path) -> str:
    """A path as users write it: `stragglers.0.where`."""
    return ".".join(str(step) for step in path)


def shown(value: Any, longest: int = 60) -> str:
    """A plain value as a message shows it, in YAML's spelling."""
    if isinstance(value, dict):
        return f"a mapping with {', '.join(map(str, list(value)[:4])) or 'nothing in it'}"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    words = {"None": "nothing", "True": "true", "False": "false"}
    text = repr(value) if isinstance(value, str) else words.get(str(value), str(value))
    return text if len(text) <= longest else text[:longest] + "..."


def read(path: str | pathlib.Path) -> list[Source]:
    """The documents of a YAML file, empty ones left out.

    Raises:
        InputError: the file cannot be read, is no YAML, or holds nothing.
    """
    return parse(_text(pathlib.Path(path)), str(path))


def parse(text: str, file: str) -> list[Source]:
    """The documents of YAML text; `file` is what errors call it."""
    documents = _Composer(file).documents(text)
    if not documents:
        raise InputError("a YAML mapping", "an empty file", file=file)
    return documents


def _text(path: pathlib.Path) -> str:
    """The file's text, or an InputError that says why not."""
    name = str(path)
    try:
        if not path.is_dir() and path.exists() and not path.is_file():
            raise InputError("a regular file", "a device or a pipe", file=name)
        with path.open("rb") as stream:
            raw = stream.read(LARGEST + 1)
    except IsADirectoryError:
        raise InputError("a YAML file", "a directory", file=name) from None
    except FileNotFoundError:
        raise InputError("a YAML file", "no such file", file=name) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        said = getattr(error, "strerror", None) or str(error)
        raise InputError("a readable file", said.lower(), file=name) from None
    if len(raw) > LARGEST:
        raise InputError(f"a YAML file of at most {LARGEST // 1000} kB", "a larger file", file=name)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        found = f"the byte 0x{raw[error.start]:02x}"
        raise InputError("text in UTF-8", found, file=name, line=line, column=column) from None


class _Composer:
    """Builds Nodes from the parser's events."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[InputError] = []
        self.anchors: dict[str, tuple[Node, int, int] | None] = {}
        self.events: Iterator[Any] = iter(())

    def documents(self, text: str) -> list[Source]:
        self.events = YAML(typ="safe", pure=True).parse(text)
        found = []
        try:
            for event in self.events:
                if isinstance(event, DocumentStartEvent):
                    self.anchors = {}
                    node, _, _ = self.node(next(self.events), 1)
                    if node.content is not None:
                        found.append(Source(node.content, node.at, node.at))
        except MarkedYAMLError as error:
            self.problems.append(self._syntax(error))
        except ReaderError as error:
            before = text[: error.position]
            line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
            found_there = f"the control character 0x{error.character:02x}"
            self.problems.append(InputError("text", found_there, file=self.file, line=line, column=column))
        except YAMLError as error:
            self.problems.append(InputError("YAML 1.2", str(error), file=self.file))
        if self.problems:
            raise InputErrors(self.problems)
        return found

    def _syntax(self, error: MarkedYAMLError) -> InputError:
        mark = error.problem_mark or error.context_mark
        said = (error.problem or "").replace("\t", "\\t").removeprefix("found ")
        place = (mark.line + 1, mark.column + 1) if mark else (None, None)
        hint = "YAML indents with blanks, never with tabs" if "\\t" in said else error.context or ""
        return InputError("YAML 1.2", said, "", hint, self.file, *place)

    def _mark(self, event: Any) -> Mark:
        return Mark(self.file, event.start_mark.line + 1, event.start_mark.column + 1)

    def _fail(self, mark: Mark, expected: str, found: str, hint: str = "") -> None:
        self.problems.append(mark.error(expected, found, hint=hint))
        if len(self.problems) >= ENOUGH:
            raise InputErrors(self.problems)

    def node(self, event: Any, depth: int) -> tuple[Node, int, int]:
        """The node that begins with `event`, the number of values in it and its own depth."""
        mark = self._mark(event)
        if depth > DEEPEST:
            raise self._end(mark, f"at most {DEEPEST} levels of nesting", "more")
        if isinstance(event, AliasEvent):
            return self._alias(event.anchor, mark, depth)
        if event.tag not in (None, "!") and not str(event.tag).startswith("tag:yaml.org,2002:str"):
            self._fail(mark, "a plain value", f"the tag {event.tag}", "tags are not used in scenario files")
        if event.anchor:
            self.anchors[event.anchor] = None  # until it is whole
        if isinstance(event, ScalarEvent):
            whole = Node(self._scalar(event, mark), mark, mark), 1, 1
        elif isinstance(event, SequenceStartEvent):
            whole = self._list(mark, depth)
        else:
            assert isinstance(event, MappingStartEvent)
            whole = self._mapping(mark, depth)
        if event.anchor:
            self.anchors[event.anchor] = whole
        return whole

    def _end(self, mark: Mark, expected: str, found: str) -> InputErrors:
        self._fail(mark, expected, found)
        return InputErrors(self.problems)

    def _alias(self, anchor: str, mark: Mark, depth: int) -> tuple[Node, int, int]:
        whole = self.anchors.get(anchor)
        if whole is None:
            raise self._end(mark, "an alias of something that stands whole before it", f"*{anchor}")
        if depth + whole[2] > DEEPEST:
            raise self._end(mark, f"at most {DEEPEST} levels of nesting", "more")
        return Node(whole[0].content, mark, mark), whole[1], whole[2]

    def _list(self, mark: Mark, depth: int) -> tuple[Node, int, int]:
        items: list[Node] = []
        size, deepest = 1, 0
        while not isinstance(event := next(self.events), SequenceEndEvent):
            item, more, below = self.node(event, depth + 1)
            items.append(item)
            size, deepest = self._grown(size + more, mark), max(deepest, below)
        return Node(items, mark, mark), size, deepest + 1

    def _grown(self, size: int, mark: Mark) -> int:
        if size > MOST:
            raise self._end(mark, f"at most {MOST} values", "more")
        return size

    def _mapping(self, mark: Mark, depth: int) -> tuple[Node, int, int]:
        entries: dict[str, Node] = {}
        size, deepest = 1, 0
        while not isinstance(event := next(self.events), MappingEndEvent):
            key_at, key = self._mark(event), self._key(event, depth)
            value, more, below = self.node(next(self.events), depth + 1)
            size, deepest = self._grown(size + more, mark), max(deepest, below)
            if key in entries:
                first = entries[key].key.line
                self._fail(key_at, "each key once", f"{key!r} again", f"first in line {first}")
            elif key is not None:
                # An empty value has its mark behind the blanks, lines further down.
                entries[key] = Node(value.content, key_at if value.content is None else value.at, key_at)
        return Node(entries, mark, mark), size, deepest + 1

    def _key(self, event: Any, depth: int) -> str | None:
        """A key as text, as written; None for what cannot be one."""
        if isinstance(event, ScalarEvent) and event.value != "":
            if event.value == "<<" and event.style is None:
                self._fail(self._mark(event), "a key", "a merge key", "use `extends`, or write the keys out")
            return str(event.value)
        found = "an empty key" if isinstance(event, ScalarEvent) else "a list or a mapping"
        self._fail(self._mark(event), "a key", found)
        if not isinstance(event, ScalarEvent):
            self.node(event, depth + 1)
        return None

    def _scalar(self, event: ScalarEvent, mark: Mark) -> str | int | float | bool | None:
        """A scalar by the rules of YAML 1.2's core schema."""
        text = event.value
        if event.style is not None or event.tag is not None:
            return str(text)
        if _NULL.fullmatch(text):
            return None
        if match := _BOOL.fullmatch(text):
            return match[1] is not None
        if _INT.fullmatch(text):
            return self._int(text, mark)
        if _NOT_FINITE.fullmatch(text):
            self._fail(mark, "a finite number", text)
        elif _FLOAT.fullmatch(text):
            value = float(text)
            if abs(value) == float("inf"):
                self._fail(mark, "a number below 1.8e308", text[:60])
            return value
        return str(text)

    def _int(self, text: str, mark: Mark) -> int:
        value = int(text, {"0o": 8, "0x": 16}.get(text[:2], 10)) if len(text) < 40 else _LARGEST_INT + 1
        if abs(value) > _LARGEST_INT:
            self._fail(mark, "an integer of at most 63 bits", text[:60])
        return value
