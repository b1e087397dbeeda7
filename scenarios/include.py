"""Finds what a scenario file names: documents of files, the shipped catalogues, included mappings.

`FILE.yaml` in place of a mapping stands for that file's (first) document, `FILE.yaml#NAME` for that of this
name; paths are relative to the including file. A bare `cluster` or `extends` names a shipped file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from scenarios.header import Header
from scenarios.merge import merged
from simulator.annotations import TAGS, below, takes_mapping
from simulator.errors import InputError
from simulator.validation import did_you_mean, validate
from simulator.yaml_source import Mark, Node, Source, dotted, read, shown
from simulator.yaml_source import Path as Keys

SCENARIOS = Path(__file__).parent / "catalogue"
"""Folder of the shipped scenarios."""
TOPOLOGIES = Path(__file__).parent.parent / "topologies" / "catalogue"
"""Folder of the shipped topology files."""

MOST_INCLUDES = 200
"""Files that one scenario may draw in, one another's included."""

_FILE = re.compile(r"[^\n]+\.ya?ml(#[^\n]+)?")


def shipped(folder: Path) -> dict[str, Path]:
    """The files of a catalogue by the name a scenario gives, folders below included."""
    return {path.stem: path for path in sorted(folder.rglob("*.yaml"))}


def _exists(path: str) -> bool:
    try:
        return Path(path).is_file()
    except (OSError, ValueError):  # too long a name, or a NUL in it
        return False


@dataclass
class Library:
    """What one scenario draws in: files read once each, and the way to the file being read."""

    files: dict[Path, list[Source]] = field(default_factory=dict)
    trail: tuple[tuple[Path, str], ...] = ()
    counter: Iterator[int] = field(default_factory=count)

    def document(self, name: str, asked: Mark, catalogue: Path | None, what: str) -> tuple[Source, Library]:
        """The document that `name` means, and the library to read on with from there.

        Args:
            name: FILE.yaml, FILE.yaml#NAME, or a name in the catalogue.
            asked: where the name stands; errors about it point there.
            catalogue: folder for bare names, if they are allowed.
            what: the key that asks.
        """
        path, _, part = name.partition("#")
        file = self._file(path, asked, catalogue, what)
        documents = self._read(file, asked, what)
        document = self._part(documents, part, file, asked, what)
        address = (file.resolve(), document.data.get("name") or "" if part else "")
        if address in self.trail:
            chain = " -> ".join(step.name for step, _ in (*self.trail, address))
            raise asked.error("files that do not include one another", chain, what)
        if next(self.counter) >= MOST_INCLUDES:
            raise asked.error(f"at most {MOST_INCLUDES} included files", "more", what)
        return document, Library(self.files, (*self.trail, address), self.counter)

    def documents(self, at: Mark) -> list[Source]:
        """All documents of the file in which `at` lies."""
        return self.files[Path(at.file or "").resolve()]

    def _file(self, path: str, asked: Mark, catalogue: Path | None, what: str) -> Path:
        """The path of a file, relative to the one that asks, or of a shipped one by its bare name."""
        if path.endswith((".yaml", ".yml")):
            folder = Path(asked.file).parent if asked.file and asked.line else Path()
            return folder / path
        known = shipped(catalogue) if catalogue else {}
        if path in known:
            return known[path]
        hint = did_you_mean(path, known) or (f"shipped: {', '.join(list(known)[:8])}" if known else "")
        if _exists(path):
            hint = "a file's name must end in .yaml"
        raise asked.error("FILE.yaml or a name of the shipped catalogue", repr(path), what, hint)

    def _read(self, file: Path, asked: Mark, what: str) -> list[Source]:
        try:
            key = file.resolve()
        except (OSError, ValueError) as error:
            raise asked.error("a readable file", str(error), what) from None
        if key not in self.files:
            try:
                self.files[key] = read(file)
            except InputError as error:
                if error.line is None and asked.line is not None:
                    raise asked.error(error.expected, f"{error.found}: {file}", what) from None
                raise
        return self.files[key]

    def _part(self, documents: list[Source], part: str, file: Path, asked: Mark, what: str) -> Source:
        """The document called `part`, or the first."""
        names = [str(one.data.get("name", "")) for one in documents if isinstance(one.content, dict)]
        for document in documents:
            if not isinstance(document.content, dict):
                raise document.error((), expected="a mapping", found=shown(document.data))
            if not part or document.data.get("name") == part:
                return document
        hint = (
            did_you_mean(part, names) or f"documents: {', '.join(filter(None, names)) or 'none has a name'}"
        )
        raise asked.error(f"a document of {file.name}", repr(part), what, hint)


def _may_name_files(node: Node, path: Keys) -> bool:
    """Whether anything here looks like a file's name: most parts of most scenarios need no closer look."""
    if isinstance(node.content, dict):
        return any(_may_name_files(value, (*path, key)) for key, value in node.content.items())
    if isinstance(node.content, list):
        return any(_may_name_files(item, path) for item in node.content)
    bare = path in (("cluster",), ("cluster", "topology"))
    return isinstance(node.content, str) and (bare or _FILE.fullmatch(node.content) is not None)


@dataclass(frozen=True)
class Includes:
    """Puts mappings in place of the names of files, where `spec` wants a mapping.

    Attributes:
        spec: the model (or union) of the whole document: it tells where a mapping may stand.
        library: where the files come from.
    """

    spec: Any
    library: Library

    def all(self, node: Node, path: Keys = (), annotation: Any = None) -> Node:
        """`node` with all includes below it."""
        annotation = self.spec if annotation is None and not path else annotation
        if not _may_name_files(node, path):
            return node
        node = self._one(node, path, annotation)
        if isinstance(node.content, dict):
            node = self._topology(node, path)
            named = (node.content[tag].content for tag in TAGS if tag in node.content)
            tags = [tag for tag in named if isinstance(tag, str)]
            inner = {
                key: self.all(value, (*path, key), below(annotation, key, tags))
                for key, value in node.content.items()
            }
            return Node(inner, node.at, node.key)
        if isinstance(node.content, list):
            items = [self.all(item, (*path, i), below(annotation, i)) for i, item in enumerate(node.content)]
            return Node(items, node.at, node.key)
        return node

    def at(self, node: Node, path: Keys) -> Node:
        """`node`, which stands at `path` of the document, with all includes in it."""
        annotation = self.spec
        for step in path:
            annotation = below(annotation, step)
        return self.all(node, path, annotation)

    def _one(self, node: Node, path: Keys, annotation: Any) -> Node:
        """The included mapping, if this is the name of one."""
        profile = path[-2:] == ("devices", "profile")
        if not isinstance(node.content, str) or not (profile or takes_mapping(annotation)):
            return node
        bare = path == ("cluster",)
        if not bare and not _FILE.fullmatch(node.content):
            return node
        return self._included(node, path, TOPOLOGIES if bare else None)

    def _included(self, node: Node, path: Keys, catalogue: Path | None) -> Node:
        document, library = self.library.document(node.content, node.at, catalogue, dotted(path))
        header = {key: value for key, value in document.content.items() if key in Header.model_fields}
        validate(Header, Node(header, document.at, document.at))
        body = {key: value for key, value in document.content.items() if key not in header}
        last = str(path[-1])
        inner = body[last] if set(body) == {last} else Node(body, document.at, node.key)
        return Includes(self.spec, library).at(Node(inner.content, inner.at, node.key), path)

    def _topology(self, node: Node, path: Keys) -> Node:
        """`topology: NAME` in a cluster: that file's topology, and its placement unless one is given."""
        named = node.get("topology") if path == ("cluster",) else None
        if named is None or not isinstance(named.content, str):
            return node
        base = self._included(named, ("cluster",), TOPOLOGIES)
        rest = {key: value for key, value in node.content.items() if key != "topology"}
        return merged(base, Node(rest, node.at, node.key))
