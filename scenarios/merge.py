"""Lays overrides over a scenario: `extends`, `variants`, `--set`. Every value keeps its place in its file.

A mapping that has a `kind`, a `stop` and a `target` replace the old one whole, other mappings merge, all else
(lists too) is replaced. Keys of an override may be dotted: `training.strategy.h` reaches into the old value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from simulator.yaml_source import Node, Path, dotted

WHOLE = frozenset({"stop", "target", "variants"})
"""Keys whose mappings replace the old ones whole, besides every mapping with a `kind`."""

Expand = Callable[[Node, Path], Node]
"""Puts the mapping that is meant in place of a name (of a file) at a path; other nodes stay as they are."""


def _as_is(node: Node, path: Path) -> Node:
    return node


def merged(base: Node | None, over: Node, key: str = "") -> Node:
    """`over` laid over `base`, both the value of `key`."""
    if base is None or not isinstance(base.content, dict) or not isinstance(over.content, dict):
        return over
    if "kind" in over.content or key in WHOLE:
        return over
    content = dict(base.content)
    for name, node in over.content.items():
        content[name] = merged(content.get(name), node, name)
    return Node(content, base.at, over.key)


def overridden(base: Node, overrides: Node, expand: Expand = _as_is) -> Node:
    """`base` with the entries of a mapping of overrides, whose keys may be dotted.

    Raises:
        InputError: two entries give the same value twice.
    """
    entries = [(tuple(key.split(".")), node) for key, node in overrides.content.items()]
    entries.sort(key=lambda entry: len(entry[0]))  # `training` first, then `training.strategy`
    given: dict[Path, Node] = {}
    for path, node in entries:
        for assigned in _assigned(path, node):
            _refuse_twice(given, assigned, node)
            given[assigned] = node
        base = placed(base, path, node, expand)
    return base


def _assigned(path: Path, node: Node) -> Iterator[Path]:
    """The paths that an override replaces whole."""
    if not isinstance(node.content, dict) or "kind" in node.content or path[-1] in WHOLE:
        yield path
    else:
        for key, below in node.content.items():
            yield from _assigned((*path, key), below)


def _refuse_twice(given: dict[Path, Node], path: Path, node: Node) -> None:
    """A value that is given, and then replaced, in one and the same mapping would be ignored."""
    for earlier, first in given.items():
        if earlier[: len(path)] == path:
            again, hint = f"{dotted(path)} again", f"also in line {first.key.line}"
            raise node.key.error("each value given once", again, dotted(path), hint)


def placed(base: Node, path: Path, value: Node, expand: Expand = _as_is, done: Path = ()) -> Node:
    """`base` with `value` merged in at `path` below it; what is missing on the way is made."""
    if not path:
        return merged(base, value, str(done[-1]))
    if isinstance(base.content, str):
        base = expand(base, done)
    step, below = str(path[0]), (*done, path[0])
    if isinstance(base.content, list):
        return _in_list(base, path, value, expand, done)
    content = dict(base.content) if isinstance(base.content, dict) else {}
    old = content.get(step)
    if old is not None:
        content[step] = placed(old, path[1:], value, expand, below)
    else:
        content[step] = _wrapped(path[1:], value)
    place = base if isinstance(base.content, dict) else value
    return Node(content, place.at, place.key)


def _in_list(base: Node, path: Path, value: Node, expand: Expand, done: Path) -> Node:
    """Replaces within an item of a list, named by its index."""
    step, items = str(path[0]), list(base.content)
    if not step.isdecimal() or int(step) >= len(items):
        expected, hint = f"an index below {len(items)}", f"{dotted(done)} is a list"
        raise value.key.error(expected, repr(step), dotted((*done, *path)), hint)
    items[int(step)] = placed(items[int(step)], path[1:], value, expand, (*done, int(step)))
    return Node(items, base.at, base.key)


def _wrapped(path: Path, value: Node) -> Node:
    """`value` inside the mappings that a dotted key implies."""
    for step in reversed(path):
        value = Node({step: value}, value.key, value.key)
    return value
