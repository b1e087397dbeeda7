"""Scenario files in, scenarios out; everything that is wrong in them, with file, line and column.

    study = load("quickstart")
    [scenario.variant for scenario in study.scenarios]

In this order: the document, what it `extends`, `--set`, included files, each variant's overrides, validation.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from scenarios.compose import WHOLE, Composed, compose, override, own_name
from scenarios.include import Includes, Library
from scenarios.lift import lifted
from scenarios.merge import placed
from scenarios.planning import SeedRange
from scenarios.schema import Scenario
from scenarios.study import Beside
from simulator.errors import InputError, InputErrors
from simulator.validation import MISSING, validate
from simulator.yaml_source import Node, Path

if TYPE_CHECKING:
    from scenarios.run import EngineKind, Outcome, Record
    from scenarios.sweeps.sweep import Backend, Swept

T = TypeVar("T")


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

    def sweep(
        self,
        *,
        out: str | pathlib.Path | None = None,
        jobs: int | None = None,
        backend: Backend = "local",
        address: str | None = None,
        engine: EngineKind = "auto",
        record: Record | None = None,
        force: bool = False,
    ) -> Swept:
        """Run the file's sweep, or what of it is not finished yet.

        Args:
            out: directory to write to; by default runs/NAME-HASH8.
            jobs: runs at one time; by default as many as there are processors.
            backend: `local` processes, or a cluster of `dask` or `ray`.
            address: of the cluster.
            engine: `auto`, `cohort` or `process`; the results are the same.
            record: which tables are kept; by default as the sweep says.
            force: run anew what lies finished in `out`.

        Raises:
            InputErrors: the file has no sweep, or one that cannot be run.
        """
        from scenarios.check import resolve
        from scenarios.sweeps.sweep import SweepOrder, sweep

        place = None if out is None else pathlib.Path(out)
        return sweep(resolve(self), SweepOrder(place, jobs, backend, address, engine, record, force))

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
    if seed is not None and not 0 <= seed < 2**63:
        raise InputError("a seed from 0 to 2^63 - 1", str(seed), "seed", file="--seed")
    composed = compose(str(file), [override(text) for text in sets])
    return _Loading(composed, str(file), allow_code).study(seed)


def variant_with(study: Study, variant: str, overrides: Sequence[tuple[Path, Node]]) -> Node:
    """The nodes of a variant with some values replaced, as a sweep does."""
    includes = Includes(WHOLE, Library())
    node = study.nodes[variant]
    for path, value in overrides:
        node = placed(node, path, value, includes.at)
    return lifted(includes.all(node))


class _Loading:
    """Validates what a file has been composed to; everything wrong is said, each thing once."""

    def __init__(self, composed: Composed, file: str, allow_code: bool) -> None:
        self.composed = composed
        self.file = file
        beside = [pathlib.Path(file.partition("#")[0]).resolve().parent] if ".y" in file else []
        self.context = {"allow_code": allow_code, "folders": beside}
        self.wrong = {str(one): one for error in composed.wrong for one in _each(error)}

    def tried(self, spec: type[T], node: Node, *, partial: bool = False) -> T | None:
        """The spec, or None and what is wrong; with `partial` missing keys are not."""
        try:
            return validate(spec, node, self.context)
        except InputError as error:
            found = (one for one in _each(error) if not (partial and one.found == MISSING))
            self.wrong.update((str(one), one) for one in found)
        return None

    def study(self, seed: int | None) -> Study:
        document = self.composed.document
        kept = {key: value for key, value in document.content.items() if key in Beside.model_fields}
        kept.setdefault("name", own_name(self.file, document))
        beside = self.tried(Beside, Node(kept, document.at, document.key))
        if all(node is not self.composed.base for node in self.composed.variants.values()):
            self.tried(Scenario, self.composed.base, partial=True)
        tried = [self.tried(Scenario, node) for node in self.composed.variants.values()]
        scenarios = [scenario for scenario in tried if scenario is not None]
        if self.wrong or beside is None:
            raise InputErrors(list(self.wrong.values()))
        seeds = _seeds(beside, scenarios, seed)
        same = {"name": beside.name, "seed": seeds[0]}
        named = tuple(scenario.model_copy(update=same) for scenario in scenarios)
        nodes, allow_code = self.composed.variants, bool(self.context["allow_code"])
        return Study(self.file, named, seeds, beside, nodes, document, allow_code)


def _each(error: InputError) -> tuple[InputError, ...]:
    return error.errors if isinstance(error, InputErrors) else (error,)


def _seeds(beside: Beside, scenarios: Sequence[Scenario], seed: int | None) -> tuple[int, ...]:
    """The seed asked for on the command line, or the file's."""
    if seed is not None:
        return (seed,)
    if beside.seeds is None:
        return (scenarios[0].seed,) if scenarios else (1,)
    return beside.seeds.all if isinstance(beside.seeds, SeedRange) else beside.seeds
