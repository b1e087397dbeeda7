"""Composes the nodes of a scenario file and of its variants: `extends`, `--set`, included files, overrides.

Nothing is validated here but what composing needs; every value keeps its place in its file.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from scenarios.include import SCENARIOS, Includes, Library
from scenarios.lift import lifted
from scenarios.merge import overridden, placed
from scenarios.schema import Scenario
from scenarios.study import Beside
from simulator.errors import InputError
from simulator.validation import did_you_mean
from simulator.yaml_source import Mark, Node, Path, dotted, parse, shown

BESIDE = frozenset(Beside.model_fields) - {"paceline", "name"}
"""Keys of a file that are not part of a scenario."""
FILE_ONLY = frozenset({"extends", "variants", "variant", "seed", "paceline", "name"}) | BESIDE
"""Keys that stand on top of a file, not in its variants."""
_KNOWN = frozenset(Scenario.model_fields) | BESIDE | {"extends", "variants"}
WHOLE = (Scenario, Beside)
"""What may stand in a file."""

Override = tuple[Path, Node]
"""Where to put a value, and the value."""


@dataclass
class Composed:
    """A file, whole, and the scenario of each of its variants.

    Attributes:
        document: the file with what it extends.
        base: its scenario without the overrides of variants; it may lack what each of them brings.
        variants: name -> scenario.
        wrong: what could not be composed.
    """

    document: Node
    base: Node
    variants: dict[str, Node] = field(default_factory=dict)
    wrong: list[InputError] = field(default_factory=list)


def compose(file: str, sets: Sequence[Override]) -> Composed:
    """Read a file and everything it draws in.

    Raises:
        InputError: a file that cannot be read, or cannot be laid over what it extends.
    """
    document, library = Library().document(file, Mark(file), SCENARIOS, "")
    _only_document(file, library, document)
    includes = Includes(WHOLE, library)
    node = includes.all(_extended(document, library))
    for path, value in sets:
        if path[0] != "variants" or len(path) < 3:
            node = placed(node, path, value, includes.at)
    node = includes.all(node)
    kept = {key: value for key, value in node.content.items() if key in Scenario.model_fields}
    composed = Composed(node, lifted(Node(kept, node.at, node.key)))
    composed.wrong += [*_known_keys(node), *_lost_sets(node, sets)]
    _add_variants(composed, Node(kept, node.at, node.key), sets, includes)
    return composed


def own_name(file: str, node: Node) -> Node:
    """The name of a file that does not say one: the file's own."""
    stem = "".join(c if c.isalnum() or c in "_.+=-" else "_" for c in pathlib.Path(file).stem)
    return Node(stem.lstrip("._+=-")[:80] or "scenario", node.at, node.at)


def _only_document(file: str, library: Library, document: Node) -> None:
    """A file of several documents does not say which one to run."""
    names = [str(one.data.get("name", "")) for one in library.documents(document.at) if one.content]
    if len(names) > 1 and "#" not in file:
        choices = ", ".join(f"{file}#{name}" for name in names if name)
        found = f"{len(names)} documents"
        raise document.at.error("one of the file's documents by its name", found, hint=choices)


def _extended(document: Node, library: Library) -> Node:
    """The document laid over what it extends, dotted keys resolved."""
    own = {key: value for key, value in document.content.items() if key != "extends"}
    base, named = Node({}, document.at, document.key), document.get("extends")
    if named is not None:
        if not isinstance(named.content, str):
            raise named.at.error("FILE.yaml or a shipped scenario", shown(named.data), "extends")
        parent, at = library.document(named.content, named.at, SCENARIOS, "extends")
        inherited = Includes(WHOLE, at).all(_extended(parent, at)).content
        drop = {"seed"} if "seeds" in own else {"seeds"} if "seed" in own else set()
        kept = {key: value for key, value in inherited.items() if key not in drop}
        base = Node(kept, document.at, document.key)
    return overridden(base, Node(own, document.at, document.key), Includes(WHOLE, library).at)


def _known_keys(node: Node) -> Iterator[InputError]:
    for key, value in node.content.items():
        if key not in _KNOWN:
            hint = did_you_mean(key, _KNOWN)
            expected = f"one of the keys {', '.join(sorted(_KNOWN))}"
            yield value.key.error(expected, f"the unknown key {key!r}", key, hint)
    if "seed" in node.content and "seeds" in node.content:
        yield node.content["seeds"].key.error("either seed or seeds", "both", "seeds")


def _lost_sets(node: Node, sets: Sequence[Override]) -> Iterator[InputError]:
    """Overrides of variants that are not there."""
    variants = node.get("variants")
    known = list(variants.content) if variants and isinstance(variants.content, dict) else []
    for path, value in sets:
        if path[0] == "variants" and len(path) > 2 and path[1] not in known:
            expected = f"one of the variants {', '.join(known)}" if known else "a file with variants"
            hint = did_you_mean(path[1], known)
            yield value.at.error(expected, repr(path[1]), dotted(path[:2]), hint)


def _add_variants(composed: Composed, base: Node, sets: Sequence[Override], includes: Includes) -> None:
    variants = composed.document.content.get("variants")
    kept = base.content
    if variants is None or variants.content == {}:
        if set(kept) - {"paceline", "name", "seed"} or not composed.document.get("plan"):
            name = str(kept["variant"].data) if "variant" in kept else "default"
            composed.variants[name] = composed.base
    elif not isinstance(variants.content, dict):
        found, field = shown(variants.data), "variants"
        composed.wrong.append(variants.at.error("a mapping of names to overrides", found, field))
    else:
        if "variant" in kept:
            composed.wrong.append(
                kept["variant"].key.error("no `variant` beside `variants`", "both", "variant")
            )
        for name, body in variants.content.items():
            try:
                composed.variants[name] = lifted(_variant(base, name, body, sets, includes))
            except InputError as error:
                composed.wrong.append(error)


def _variant(base: Node, name: str, body: Node, sets: Sequence[Override], includes: Includes) -> Node:
    """The base under a variant's overrides, then under those of the command line."""
    if not isinstance(body.content, dict):
        raise body.key.error("a mapping of overrides, {} for none", shown(body.data), f"variants.{name}")
    for key, value in body.content.items():
        if key.split(".")[0] in FILE_ONLY:
            raise value.key.error("a key that a variant can override", repr(key), f"variants.{name}.{key}")
    node = overridden(base, body, includes.at)
    for path, value in sets:
        if path[:2] == ("variants", name) and len(path) > 2:
            node = placed(node, path[2:], value, includes.at)
        elif path[0] not in FILE_ONLY:
            node = placed(node, path, value, includes.at)
    content = {**node.content, "variant": Node(name, body.key, body.key)}
    return includes.all(Node(content, node.at, body.key))


def override(text: str) -> Override:
    """Path and value of `a.b=value`, as after `--set`."""
    key, equals, value = text.partition("=")
    path = tuple(key.strip().split("."))
    if path[0] == "sweep" and path[1:2] in (("grid",), ("zip",)) and len(path) > 2:
        path = (*path[:2], ".".join(path[2:]))  # these hold dotted keys
    label = f"--set {text}"
    if not equals or not all(path):
        raise InputError(
            "KEY=VALUE with a dotted key, such as training.strategy.h=8", repr(text), file="--set"
        )
    try:
        node: Node = parse(value, label)[0] if value.strip() else Node(None, Mark(label), Mark(label))
    except InputError as error:
        raise InputError("a YAML value", error.found, key, error.hint, label) from None
    return path, _unplaced(node, Mark(label))


def _unplaced(node: Node, mark: Mark) -> Node:
    """`node` as standing at `mark` as a whole."""
    content = node.content
    if isinstance(content, dict):
        content = {key: _unplaced(value, mark) for key, value in content.items()}
    elif isinstance(content, list):
        content = [_unplaced(value, mark) for value in content]
    return Node(content, mark, mark)
