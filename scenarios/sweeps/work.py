"""What a worker does with one run of a sweep: simulate it, write its directory, hand back its summary.

The same function runs in this process, in a local worker process, and on a cluster.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios.files import write_json
from scenarios.manifest import source_hash, version
from simulator.errors import InputError, PacelineError, StuckError, VerbError
from simulator.yaml_source import Mark, Node

if TYPE_CHECKING:
    from scenarios.run import EngineKind, Record
    from scenarios.schema import Scenario

#: What a failed run leaves in its directory.
FAILURE = "error.json"

#: Characters kept of a message and of a traceback.
MESSAGE, TRACEBACK = 2_000, 20_000


@dataclass(frozen=True)
class Task:
    """One run to be made.

    Attributes:
        number: of the run in its sweep.
        root, place: directory of the sweep, absolute, and of the run below it.
        token: what `root` holds if it is the sweep's own directory and not another machine's.
        document: the resolved scenario.
        inputs: hashes of the files it reads.
        engine, record: as for any run.
        allow_code: whether it may load code of the user's own.
        source: the scenario file, for the manifest.
        made_by: version and source hash of whoever asks; another machine's worker of another one refuses.
        folder: where the user's own modules lie.
        parent: process to end with; None on a cluster.
    """

    number: int
    root: str
    place: str
    token: str
    document: Mapping[str, Any]
    inputs: Mapping[str, str]
    engine: EngineKind
    record: Record
    allow_code: bool
    source: str
    made_by: str
    folder: str
    parent: int | None = None


@dataclass(frozen=True)
class Done:
    """What became of a run.

    Attributes:
        number: of the run in its sweep.
        summary: of a finished run.
        wall_s: seconds the simulation took.
        error: why it failed.
        ours: whether a failure is ours and not the input's.
        trace: where it failed.
        files: the run directory, where the worker could not write it: name -> content.
    """

    number: int
    summary: Mapping[str, Any] | None = None
    wall_s: float = 0.0
    error: str | None = None
    ours: bool = False
    trace: str = ""
    files: Mapping[str, bytes] | None = None


def made_by() -> str:
    """What a worker must agree in with whoever hands it runs."""
    return f"{version()} {source_hash()}"


def work(task: Task) -> Done:
    """Make one run; whatever goes wrong is handed back, not raised."""
    if task.parent != os.getpid():
        _one_thread()
        if task.parent is not None:
            _end_with(task.parent)
    try:
        return _made(task)
    except Exception as error:
        said = str(error) if isinstance(error, PacelineError) else f"{type(error).__name__}: {error}"
        trace = "" if isinstance(error, InputError) else traceback.format_exc()[-TRACEBACK:]
        ours = not _of_the_input(error)
        return Done(task.number, error=said[:MESSAGE], ours=ours, trace=trace)


def _of_the_input(error: Exception) -> bool:
    """Whether a run failed by what its file asks for, or by code of the user's own."""
    from scenarios.own_code import FILES

    passed = {frame.filename for frame in traceback.extract_tb(error.__traceback__)}
    return isinstance(error, InputError | StuckError | VerbError) or not FILES.isdisjoint(passed)


def _made(task: Task) -> Done:
    if task.parent is None and task.made_by != made_by():
        found, expected = made_by(), f"Paceline {task.made_by}, as where the sweep was begun"
        raise InputError(expected, found, field="worker", hint="install the same version on all machines")
    place = Path(task.root) / task.place
    if task.parent is not None or _is_there(task.root, task.token):
        return _written(task, place)
    with tempfile.TemporaryDirectory(prefix="paceline-") as folder:
        done = _written(task, Path(folder) / "run")
        files = {path.name: path.read_bytes() for path in sorted((Path(folder) / "run").iterdir())}
        return replace(done, files=files)


@cache
def _is_there(root: str, token: str) -> bool:
    """Whether this machine sees the directory of the sweep."""
    try:
        return (Path(root) / TOKEN).read_text(encoding="utf-8") == token
    except OSError:
        return False


TOKEN = ".sweep"
"""The file in a sweep's directory by which workers know it."""


def _written(task: Task, place: Path) -> Done:
    """Simulate, and write the directory; a long run of real maths that was cut off goes on."""
    from scenarios.build import simulate
    from scenarios.run import Order, checkpoint_of
    from scenarios.store import write_run

    began = time.perf_counter()
    if task.allow_code and task.folder not in sys.path and Path(task.folder).is_dir():
        sys.path.append(task.folder)
    scenario = scenario_of(task.document, task.source, task.allow_code)
    order = Order(engine=task.engine, record=task.record)
    kept = checkpoint_of(scenario, dict(task.document), order, place, task.inputs)
    result = simulate(scenario, engine=task.engine, record=task.record, checkpoint=kept)
    wall = time.perf_counter() - began
    result.summary["seed"] = task.document["seed"]
    result.facts["inputs"] = dict(task.inputs)
    write_run(place, task.document, result, record=task.record, wall_s=wall, source=task.source)
    if kept is not None:
        kept.path.unlink(missing_ok=True)
    return Done(task.number, result.summary, wall)


def scenario_of(resolved: Mapping[str, Any], source: str, allow_code: bool) -> Scenario:
    """The scenario that a resolved document describes."""
    from scenarios.schema import Scenario
    from simulator.validation import validate

    node = _node(dict(resolved), Mark(source))
    return validate(Scenario, node, {"allow_code": allow_code})


def _node(value: Any, mark: Mark) -> Node:
    """Plain data as nodes, which is what specs are read from."""
    if isinstance(value, dict):
        value = {key: _node(below, mark) for key, below in value.items()}
    elif isinstance(value, list):
        value = [_node(below, mark) for below in value]
    return Node(value, mark, mark)


def write_failure(place: Path, done: Done) -> None:
    """Leave in a run's directory why it failed."""
    write_json({"error": done.error, "ours": done.ours, "traceback": done.trace}, place / FAILURE)


def _one_thread() -> None:
    """Workers share the processors among them: one thread each, so also the same sums on any machine."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if (torch := sys.modules.get("torch")) is not None and torch.get_num_threads() != 1:
        torch.set_num_threads(1)


_watched: set[int] = set()


def _end_with(parent: int) -> None:
    """End this process when its parent has been killed: nobody would take what it makes."""
    if parent in _watched or os.getppid() != parent:
        return
    _watched.add(parent)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
