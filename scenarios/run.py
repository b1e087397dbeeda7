"""Run what a scenario file asks for: each variant and seed to its directory; finished ones are used again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, Protocol

from scenarios import store
from scenarios.manifest import file_hash, manifest_of, scenario_hash, source_hash
from scenarios.store import Framed, Run
from simulator.errors import InputError, InputErrors

if TYPE_CHECKING:
    import pandas as pd

    from scenarios.loading import Study
    from scenarios.schema import Scenario
    from simulator.maths.resumable import Checkpoint

#: More runs than this get their reports on request: the report of each would take more room than its tables.
MAX_REPORTS = 4

EngineKind = Literal["auto", "cohort", "process"]
Record = Literal["summary", "steps", "all"]


class Listener(Protocol):
    """Is told how the runs go; the command line draws progress bars from it."""

    def begins(self, scenario: Scenario, number: int, total: int) -> Callable[[float, float], None]:
        """A run begins; returns what the engine tells its progress to (share done, simulated seconds)."""
        ...

    def ends(self, run: Run, again: bool) -> None:
        """A run is finished; `again` if one was used again."""
        ...


@dataclass(frozen=True)
class Outcome(Framed):
    """The finished runs of a study, in order of variants, then seeds.

    Attributes:
        name: of the study.
        runs: one a variant and seed.
        root: where they lie; None if nothing was written.
    """

    name: str
    runs: Sequence[Run]
    root: Path | None = None

    @property
    def summary(self) -> dict[str, Any]:
        """The summary of a single run, or `{"runs": [...]}`: what `run --json` prints."""
        if len(self.runs) == 1:
            return dict(self.runs[0].summary)
        return {"runs": [dict(run.summary) for run in self.runs]}

    def run(self, variant: str, seed: int | None = None) -> Run:
        """The run of a variant (and seed, by default its first).

        Raises:
            InputError: there is none.
        """
        for one in self.runs:
            if one.variant == variant and seed in (None, one.seed):
                return one
        known = ", ".join(dict.fromkeys(run.variant for run in self.runs))
        raise InputError(f"one of {known}, with one of its seeds", f"{variant!r}, seed {seed}", "variant")

    def frame(self, name: str) -> pd.DataFrame:
        """A table of all runs; of several runs with the columns `variant` and `seed` in front.

        Raises:
            InputError: a run did not record it.
        """
        if len(self.runs) == 1:
            return self.runs[0].frame(name)
        import pandas as pd

        frames = []
        for run in self.runs:
            frame = run.frame(name)
            frame.insert(0, "variant", run.variant)
            frame.insert(1, "seed", run.seed)
            frames.append(frame)
        return pd.concat(frames, ignore_index=True)

    def compare(self, baseline: str | None = None, metrics: Sequence[str] = ()) -> dict[str, Any]:
        """Paired comparison of the variants (`scenarios.compare`)."""
        from scenarios.compare import compare

        return compare(self.runs, baseline=baseline, metrics=metrics)

    def report(self, path: str | Path) -> Path:
        """Write the report of these runs to a file."""
        from scenarios.report import write_report

        write_report(self.runs, Path(path))
        return Path(path)


@dataclass(frozen=True)
class Order:
    """How to run.

    Attributes:
        out: where to write; None writes nothing and keeps all tables in memory.
        engine: `auto`, `cohort` or `process`.
        record: `summary`, `steps` or `all`.
        force: run also what has been run before.
        report: write `report.html`.
        listener: is told how it goes.
        checkpoint_every: seconds of real time after which a run of real maths is kept, again and again; a
            run that was ended goes on from there when it is ordered again.
    """

    out: Path | None = None
    engine: EngineKind = "auto"
    record: Record = "all"
    force: bool = False
    report: bool = True
    listener: Listener | None = None
    checkpoint_every: float = 60.0


def ready(
    file: str | Path, sets: Sequence[str] = (), *, seed: int | None = None, allow_code: bool = False
) -> Study:
    """Load a scenario file and see that it can be run as a whole.

    Raises:
        InputErrors: everything that is wrong, or cannot be run.
    """
    from scenarios.loading import load

    return runnable(load(file, sets, seed=seed, allow_code=allow_code))


def runnable(study: Study) -> Study:
    """The study with its scenarios complete.

    Raises:
        InputErrors: everything that cannot be, or cannot be run.
    """
    from scenarios.check import resolve, unsupported

    resolved = resolve(study)
    if refused := unsupported(resolved):
        raise InputErrors(refused)
    return resolved


def run_study(study: Study, order: Order | None = None, variants: Sequence[str] = ()) -> Outcome:
    """Run all variants (or some) and seeds of a study.

    Raises:
        InputError: a variant that is not there, or a scenario that cannot be built.
    """
    order = order or Order()
    chosen = _chosen(study, variants)
    total = len(chosen) * len(study.seeds)
    if not total:
        raise InputError(
            "a scenario to run", "a file that only plans", "plan", "use `paceline plan`", study.file
        )
    runs = [
        _one(study, scenario, order, number, total) for number, scenario in enumerate(_each(study, chosen))
    ]
    if order.out is not None and total > 1:
        store.write_study(order.out, runs)
        if order.report:
            _write_report(runs, order.out)
    return Outcome(study.name, runs, order.out)


def _chosen(study: Study, variants: Sequence[str]) -> list[Scenario]:
    known = {scenario.variant: scenario for scenario in study.scenarios}
    for name in variants:
        if name not in known:
            raise InputError(f"one of {', '.join(known)}", repr(name), "--variant", file=study.file)
    return [scenario for name, scenario in known.items() if not variants or name in variants]


def _each(study: Study, chosen: Sequence[Scenario]) -> Iterator[Scenario]:
    for scenario in chosen:
        for seed in study.seeds:
            yield scenario.model_copy(update={"seed": seed})


def default_out(study: Study, variants: Sequence[str] = ()) -> Path:
    """`runs/NAME-HASH8`: a place of its own for each content of a scenario file."""
    from scenarios.resolved import document

    documents = [document(scenario) for scenario in _each(study, _chosen(study, variants))]
    return Path("runs") / f"{store.file_name(study.name)}-{scenario_hash({'runs': documents})[:8]}"


def _one(study: Study, scenario: Scenario, order: Order, number: int, total: int) -> Run:
    from scenarios.resolved import document

    place = _place(order.out, scenario, total)
    resolved = document(scenario)
    inputs = input_hashes(resolved)
    tell = order.listener.begins(scenario, number, total) if order.listener else None
    old = None
    if place is not None and not order.force and not own_code(resolved):
        old = store.finished(place, resolved, order.record, inputs)
    run = old or _simulated(study, scenario, resolved, order, place, inputs, tell)
    if place is not None and order.report and total <= MAX_REPORTS and not (place / "report.html").exists():
        _write_report([run], place)
    if order.listener:
        order.listener.ends(run, old is not None)
    return run if place is None else replace(run, result=None)  # the tables lie in files: free the memory


def _place(out: Path | None, scenario: Scenario, total: int) -> Path | None:
    if out is None or total == 1:
        return out
    return store.place(out, scenario.variant, scenario.seed)


def _simulated(
    study: Study, scenario: Scenario, document: dict[str, Any], order: Order, place: Path | None,
    inputs: Mapping[str, str], tell: Callable[[float, float], None] | None,
) -> Run:  # fmt: skip
    from scenarios.build import simulate

    began = perf_counter()
    kept = None if place is None else checkpoint_of(scenario, document, order, place, inputs)
    result = simulate(scenario, engine=order.engine, record=order.record, progress=tell, checkpoint=kept)
    result.summary["seed"] = scenario.seed
    result.facts["inputs"] = dict(inputs)
    wall = perf_counter() - began
    if place is None:
        made = manifest_of(document, result, record=order.record, wall_s=wall, source=study.file)
        return Run(document, made, result.summary, None, result)
    written = store.write_run(place, document, result, record=order.record, wall_s=wall, source=study.file)
    if kept is not None:
        kept.path.unlink(missing_ok=True)
    return written


def checkpoint_of(
    scenario: Scenario, document: dict[str, Any], order: Order, place: Path, inputs: Mapping[str, str]
) -> Checkpoint | None:
    """Where a long run of real maths is kept beside its directory; None for runs that cannot be.

    The name has the hash of all that decides the run, so another run's is never taken for it.
    """
    training = scenario.training
    if scenario.problem is None or own_code(document) or training is None or training.strategy.needs_math:
        return None
    from simulator.maths.resumable import Checkpoint

    made = {"scenario": document, "inputs": dict(inputs), "source": source_hash(), "record": order.record}
    told = scenario_hash(made)
    path = place.parent / f".{place.name}-{told[:16]}.checkpoint.npz"
    if order.force:
        path.unlink(missing_ok=True)
    return Checkpoint(path, told, order.checkpoint_every)


def _write_report(runs: Sequence[Run], root: Path) -> None:
    from scenarios.report import write_report

    write_report(runs, root / "report.html")


def own_code(document: object) -> bool:
    """Whether a scenario runs code of the user's own, which may have changed since: never used again."""
    if isinstance(document, Mapping):
        kind = document.get("kind")
        named = isinstance(kind, str) and ":" in kind
        return named or any(own_code(value) for value in document.values())
    return isinstance(document, list) and any(own_code(value) for value in document)


def input_hashes(document: object) -> dict[str, str]:
    """Hashes of the files that a scenario reads when it runs: they count like the scenario."""
    if isinstance(document, list):
        return {name: told for value in document for name, told in input_hashes(value).items()}
    if not isinstance(document, Mapping):
        return {}
    found = {str(path): file_hash(path) for path in _files(document)}
    for value in document.values():
        found |= input_hashes(value)
    return found


def _files(keys: Mapping[str, Any]) -> Iterator[Path]:
    """Files that a mapping names: by `file` or `test_file`, or all in a `folder`."""
    for key in ("file", "test_file"):
        if isinstance(name := keys.get(key), str) and Path(name).is_file():
            yield Path(name)
    if isinstance(name := keys.get("folder"), str) and Path(name).is_dir():
        yield from (path for path in sorted(Path(name).iterdir()) if path.is_file())
