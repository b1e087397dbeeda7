"""Scenario files in, scenarios out; everything that is wrong in them, with file, line and column.

    study = load("quickstart")
    [scenario.variant for scenario in study.scenarios]

In this order: the document, what it `extends`, `--set`, included files, each variant's overrides, validation.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scenarios.include import SCENARIOS, Includes, Library
from scenarios.lift import lifted
from scenarios.merge import overridden, placed
from scenarios.planning import SeedRange
from scenarios.schema import Scenario
from scenarios.study import Beside
from simulator.errors import InputError, InputErrors
from simulator.validation import MISSING, did_you_mean, validate
from simulator.yaml_source import Mark, Node, Path, dotted, parse, shown

if TYPE_CHECKING:
    from scenarios.run import EngineKind, Outcome, Record

_BESIDE = frozenset(Beside.model_fields) - {"paceline", "name"}
_FILE_ONLY = frozenset({"extends", "variants", "variant", "seed", "paceline", "name"}) | _BESIDE
"""Keys that no variant may override."""
_KNOWN = frozenset(Scenario.model_fields) | _BESIDE | {"extends", "variants"}
_WHOLE = (Scenario, Beside)


@dataclass(frozen=True)
class Study:
    """What a file asks for: its variants as scenarios, the seeds of each, and what stands beside them.

    Attributes:
        file: what was loaded.
        scenarios: one for each variant, with the first seed; none in a file that only plans.
        seeds: of every scenario.
        beside: claims, sweep and so on.
        nodes: where the values of each variant stand, for errors found later.
        document: the file with what it extends, before its variants.
        allow_code: whether classes of the user's own were loaded.
    """

    file: str
    scenarios: tuple[Scenario, ...]
    seeds: tuple[int, ...]
    beside: Beside
    nodes: dict[str, Node]
    document: Node
    allow_code: bool = False

    @property
    def name(self) -> str:
        """The file's `name`."""
        return self.beside.name

    def scenario(self, variant: str) -> Scenario:
        """The scenario of a variant."""
        return next(one for one in self.scenarios if one.variant == variant)

    def run(
        self,
        variants: Sequence[str] = (),
        *,
        out: str | pathlib.Path | None = None,
        engine: EngineKind = "auto",
        record: Record = "all",
        force: bool = False,
    ) -> Outcome:
        """Run all variants (or some) and seeds.

        Args:
            variants: names of those to run; all by default.
            out: directory to write to; by default nothing is written and the tables stay in memory.
            engine: `auto`, `cohort` or `process`; the results are the same.
            record: which tables are kept: `summary`, `steps` or `all`.
            force: run anew what lies finished in `out`.

        Raises:
            InputErrors: what the scenarios name cannot be, or cannot be run.
        """
        from scenarios.run import Order, run_study, runnable

        place = None if out is None else pathlib.Path(out)
        return run_study(runnable(self), Order(place, engine, record, force), variants)

    def runs(self) -> Iterator[Scenario]:
        """A scenario for every variant and seed, variants outside."""
        for scenario in self.scenarios:
            for seed in self.seeds:
                yield scenario.model_copy(update={"seed": seed})


def load(
    file: str | pathlib.Path, sets: Sequence[str] = (), *, seed: int | None = None, allow_code: bool = False
) -> Study:
    """Load a scenario file.

    Args:
        file: FILE.yaml, FILE.yaml#NAME, or the name of a shipped scenario.
        sets: overrides `a.b=value`, the last word on every variant.
        seed: instead of the file's.
        allow_code: let `kind: "package.module:Class"` load that class.

    Raises:
        InputErrors: everything that is wrong.
    """
    return _Loading(str(file), [_set(text) for text in sets], seed, {"allow_code": allow_code}).study()


def variant_with(study: Study, variant: str, overrides: Sequence[tuple[Path, Node]]) -> Node:
    """The nodes of a variant with some values replaced, as a sweep does."""
    includes = Includes(_WHOLE, Library())
    node = study.nodes[variant]
    for path, value in overrides:
        node = placed(node, path, value, includes.at)
    return lifted(includes.all(node))


def _set(text: str) -> tuple[Path, Node]:
    """Path and value of `a.b=value`."""
    key, equals, value = text.partition("=")
    path = tuple(key.strip().split("."))
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


@dataclass
class _Loading:
    file: str
    sets: list[tuple[Path, Node]]
    seed: int | None
    context: dict[str, Any]

    def study(self) -> Study:
        asked = Mark(self.file)
        document, library = Library().document(self.file, asked, SCENARIOS, "")
        self._only_document(library, document)
        includes = Includes(_WHOLE, library)
        node = self._with_sets(includes.all(self._extended(document, library)), includes)
        self._known_keys(node)
        node = includes.all(node)
        beside = self._beside(node)
        nodes = dict(self._variants(node, includes))
        scenarios = self._scenarios(beside, nodes)
        seeds = self._seeds(beside, scenarios)
        scenarios = tuple(one.model_copy(update={"seed": seeds[0]}) for one in scenarios)
        allow_code = bool(self.context["allow_code"])
        return Study(self.file, scenarios, seeds, beside, nodes, node, allow_code)

    def _only_document(self, library: Library, document: Node) -> None:
        """A file of several documents does not say which one to run."""
        names = [str(one.data.get("name", "")) for one in library.documents(document.at) if one.content]
        if len(names) > 1 and "#" not in self.file:
            choices = ", ".join(f"{self.file}#{name}" for name in names if name)
            found = f"{len(names)} documents"
            raise document.at.error("one of the file's documents by its name", found, hint=choices)

    def _extended(self, document: Node, library: Library) -> Node:
        """The document laid over what it extends, dotted keys resolved."""
        own = {key: value for key, value in document.content.items() if key != "extends"}
        base, named = Node({}, document.at, document.key), document.get("extends")
        if named is not None:
            if not isinstance(named.content, str):
                raise named.at.error("FILE.yaml or a shipped scenario", shown(named.data), "extends")
            parent, at = library.document(named.content, named.at, SCENARIOS, "extends")
            inherited = Includes(_WHOLE, at).all(self._extended(parent, at)).content
            drop = {"seed"} if "seeds" in own else {"seeds"} if "seed" in own else set()
            kept = {key: value for key, value in inherited.items() if key not in drop}
            base = Node(kept, document.at, document.key)
        return overridden(base, Node(own, document.at, document.key), Includes(_WHOLE, library).at)

    def _with_sets(self, node: Node, includes: Includes) -> Node:
        for path, value in self.sets:
            if path[0] != "variants" or len(path) < 3:
                node = placed(node, path, value, includes.at)
        return node

    def _known_keys(self, node: Node) -> None:
        wrong = list(self._lost_sets(node))
        for key, value in node.content.items():
            if key not in _KNOWN:
                hint = did_you_mean(key, _KNOWN)
                expected = f"one of the keys {', '.join(sorted(_KNOWN))}"
                wrong.append(value.key.error(expected, f"the unknown key {key!r}", key, hint))
        if "seed" in node.content and "seeds" in node.content:
            seeds = node.content["seeds"]
            wrong.append(seeds.key.error("either seed or seeds", "both", "seeds"))
        if wrong:
            raise InputErrors(wrong)

    def _lost_sets(self, node: Node) -> Iterator[InputError]:
        """Overrides of variants that are not there."""
        variants = node.get("variants")
        known = list(variants.content) if variants and isinstance(variants.content, dict) else []
        for path, value in self.sets:
            if path[0] == "variants" and len(path) > 2 and path[1] not in known:
                expected = f"one of the variants {', '.join(known)}" if known else "a file with variants"
                hint = did_you_mean(path[1], known)
                yield value.at.error(expected, repr(path[1]), dotted(path[:2]), hint)

    def _beside(self, node: Node) -> Beside:
        kept = {k: v for k, v in node.content.items() if k in Beside.model_fields}
        if "name" not in kept:
            stem = "".join(c if c.isalnum() or c in "_.+=-" else "_" for c in pathlib.Path(self.file).stem)
            kept["name"] = Node(stem.lstrip("._+=-")[:80] or "scenario", node.at, node.at)
        return validate(Beside, Node(kept, node.at, node.key), self.context)

    def _variants(self, node: Node, includes: Includes) -> Iterator[tuple[str, Node]]:
        """Each variant's name and the whole scenario that it is."""
        kept = {key: value for key, value in node.content.items() if key in Scenario.model_fields}
        base = Node(kept, node.at, node.key)
        variants = node.content.get("variants")
        if variants is None or variants.content == {}:
            if set(kept) - {"paceline", "name", "seed"} or not node.get("plan"):
                yield str(kept["variant"].data) if "variant" in kept else "default", lifted(base)
            return
        if not isinstance(variants.content, dict):
            raise variants.at.error("a mapping of names to overrides", shown(variants.data), "variants")
        if "variant" in kept:
            raise kept["variant"].key.error("no `variant` beside `variants`", "both", "variant")
        yield "", lifted(base)
        for name, body in variants.content.items():
            yield name, lifted(self._variant(base, name, body, includes))

    def _variant(self, base: Node, name: str, body: Node, includes: Includes) -> Node:
        if not isinstance(body.content, dict):
            raise body.key.error("a mapping of overrides, {} for none", shown(body.data), f"variants.{name}")
        for key, value in body.content.items():
            if key.split(".")[0] in _FILE_ONLY:
                raise value.key.error(
                    "a key that a variant can override", repr(key), f"variants.{name}.{key}"
                )
        node = overridden(base, body, includes.at)
        for path, value in self.sets:
            if path[:2] == ("variants", name) and len(path) > 2:
                node = placed(node, path[2:], value, includes.at)
            elif path[0] not in _FILE_ONLY:
                node = placed(node, path, value, includes.at)
        content = {**node.content, "variant": Node(name, body.key, body.key)}
        return includes.all(Node(content, node.at, body.key))

    def _scenarios(self, beside: Beside, nodes: dict[str, Node]) -> tuple[Scenario, ...]:
        """The scenarios of all variants; what is wrong in several of them is said once."""
        scenarios: list[Scenario] = []
        wrong: dict[str, InputError] = {}
        for name, node in nodes.items():
            try:
                scenario = validate(Scenario, node, self.context)
            except InputErrors as error:
                # The file without its variants may lack what each of them brings.
                errors = [one for one in error.errors if name or one.found != MISSING]
                wrong.update((str(one), one) for one in errors)
                continue
            if name:
                scenarios.append(scenario.model_copy(update={"name": beside.name}))
        if wrong:
            raise InputErrors(list(wrong.values()))
        return tuple(scenarios)

    def _seeds(self, beside: Beside, scenarios: Sequence[Scenario]) -> tuple[int, ...]:
        """The seeds asked for on the command line, or the file's."""
        if self.seed is not None:
            return (self.seed,)
        if beside.seeds is None:
            return (scenarios[0].seed,) if scenarios else (1,)
        return beside.seeds.all if isinstance(beside.seeds, SeedRange) else beside.seeds
