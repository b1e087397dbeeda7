"""The command line: `paceline COMMAND`. Everything heavy is imported by the command that needs it.

Exit codes: 0; 2 for input that is wrong; 1 for a failure of ours; 130 when interrupted. With `--json` there
is one JSON object on standard output and nothing else; errors are a JSON object on standard error.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from traceback import extract_tb
from typing import Annotated, Any, Literal

from cyclopts import App, CycloptsError, Parameter, validators

from scenarios.cli_topology import app as topology
from simulator.errors import CohortError, InputError, InputErrors, PacelineError, StuckError, VerbError

app = App(
    name="paceline",
    help="Training clusters, simulated: how long does it take, what does it cost, how well does it learn?",
    version_flags=["--version"],
    help_format="plaintext",
    suppress_keyboard_interrupt=False,
)

app.command(topology)

Json = Annotated[bool, Parameter(name="--json", negative="")]
Sets = Annotated[list[str] | None, Parameter(name="--set", negative="")]
Names = Annotated[list[str] | None, Parameter(negative="")]
Flag = Annotated[bool, Parameter(negative="")]


@app.command
def run(
    file: str,
    /,
    *,
    set_: Sets = None,
    variant: Names = None,
    seed: int | None = None,
    out: Path | None = None,
    engine: Literal["auto", "cohort", "process"] = "auto",
    record: Literal["summary", "steps", "all"] = "all",
    force: Flag = False,
    allow_code: Flag = False,
    as_json: Json = False,
) -> None:
    """Run a scenario: every variant and seed, then a table and a report that compare them.

    For example:
      paceline run quickstart
      paceline run my.yaml --set stop.steps=100 --seed 7 --out runs/short
      paceline run quickstart --variant sync --variant gossip --json

    Parameters
    ----------
    file
        FILE.yaml, FILE.yaml#NAME or the name of a shipped scenario (`paceline list scenarios`).
    set_
        Override KEY=VALUE with a dotted key, as often as you like: the last word on every variant, or on one
        with variants.NAME.KEY=VALUE.
    variant
        Run only this variant; as often as you like.
    seed
        Use this seed instead of the file's.
    out
        Directory to write to. Default: runs/NAME-HASH8.
    engine
        cohort: one vector of clocks for all workers; process: one process a worker. Same results.
    record
        Tables to keep. summary: workers, links, curve; steps: also steps; all: also spans and the timeline.
    force
        Run anew what has been run before.
    allow_code
        Load methods and problems of your own that the file names (kind: "package.module:Class").
    as_json
        Print the summary, or {"runs": [...]}, as JSON.
    """
    from scenarios.console import Bars, complain, print_json, print_outcome
    from scenarios.notes import notes
    from scenarios.run import Order, default_out, ready, run_study

    study = ready(file, set_ or (), seed=seed, allow_code=allow_code)
    chosen = variant or ()
    if not as_json:
        for note in notes(study):
            complain(f"note: {note}")
    with Bars(quiet=as_json) as bars:
        place = out or default_out(study, chosen)
        outcome = run_study(study, Order(place, engine, record, force, listener=bars), chosen)
    if as_json:
        print_json(outcome.summary)
    else:
        print_outcome(outcome, bars.again)


@app.command
def sweep(
    file: str,
    /,
    *,
    set_: Sets = None,
    seed: int | None = None,
    out: Path | None = None,
    jobs: Annotated[int | None, Parameter(validator=validators.Number(gte=1))] = None,
    backend: Literal["local", "dask", "ray"] = "local",
    address: str | None = None,
    engine: Literal["auto", "cohort", "process"] = "auto",
    record: Literal["summary", "steps", "all"] | None = None,
    most: int = 10_000,
    dry_run: Flag = False,
    force: Flag = False,
    allow_code: Flag = False,
    as_json: Json = False,
) -> int:
    """Run a scenario over lists of values: every run to a directory of its own, then one table of all.

    Interrupted or killed at any moment, the same command goes on where it was. A run that fails is noted with
    its error, and the rest goes on.

    For example:
      paceline sweep tune_learning_rate
      paceline sweep my.yaml --dry-run
      paceline sweep quickstart --set sweep.grid.training.optimizer.lr=[0.03,0.1,0.3] --jobs 4
      paceline sweep my.yaml --backend dask --address tcp://head:8786 --out /shared/my

    Parameters
    ----------
    file
        FILE.yaml, FILE.yaml#NAME or the name of a shipped scenario, with the key `sweep`.
    set_
        Override KEY=VALUE with a dotted key, also of the sweep itself: sweep.seeds.count=5.
    seed
        Use this seed instead of the sweep's.
    out
        Directory to write to. Default: runs/NAME-HASH8.
    jobs
        Runs at one time. Default: one for each processor of this machine, or all of the cluster.
    backend
        local: processes of this machine; dask, ray: a cluster that is there already.
    address
        Of the cluster: tcp://HOST:8786 for Dask, HOST:6379 or auto for Ray.
    engine
        cohort: one vector of clocks for all workers; process: one process a worker. Same results.
    record
        Tables to keep of each run, instead of what the file says.
    most
        Runs that are allowed: more than these are an error.
    dry_run
        List the runs, say about how long they would take, and make none.
    force
        Run anew what has been run before.
    allow_code
        Load methods and problems of your own that the file names (kind: "package.module:Class").
    as_json
        Print {"runs": [...], "best": {...}, "failed": n} as JSON.
    """
    from scenarios.console import print_json
    from scenarios.sweeps.estimate import listed
    from scenarios.sweeps.plan import ready
    from scenarios.sweeps.sweep import SweepOrder, Swept
    from scenarios.sweeps.sweep import sweep as carry_out
    from scenarios.sweeps.terminal import SweepBar, print_listed, print_swept

    study = ready(file, set_ or (), seed=seed, allow_code=allow_code)
    with SweepBar(quiet=as_json) as bar:
        order = SweepOrder(out, jobs, backend, address, engine, record, force, most, listener=bar)
        found = listed(study, order) if dry_run else carry_out(study, order)
    if as_json:
        print_json(found.as_json)
    elif isinstance(found, Swept):
        print_swept(found)
    else:
        print_listed(found)
    return found.exit_code


@app.command
def check(
    file: str,
    /,
    *,
    set_: Sets = None,
    seed: int | None = None,
    allow_code: Flag = False,
    as_json: Json = False,
) -> None:
    """Load and resolve a scenario, see that all it names exists and the workers fit, and run nothing.

    Prints each variant with all defaults filled in.

    For example:
      paceline check my.yaml
      paceline check quickstart --set cluster.placement.workers=8

    Parameters
    ----------
    file
        FILE.yaml, FILE.yaml#NAME or the name of a shipped scenario.
    set_
        Override KEY=VALUE with a dotted key.
    seed
        Use this seed instead of the file's.
    allow_code
        Load methods and problems of your own that the file names.
    as_json
        Print {"name", "seeds", "scenarios": [...]} as JSON.
    """
    from scenarios.check import resolve
    from scenarios.console import complain, print_json, say
    from scenarios.loading import load
    from scenarios.notes import notes
    from scenarios.resolved import as_yaml, document
    from scenarios.sweeps.plan import wrong_points

    study = resolve(load(file, set_ or (), seed=seed, allow_code=allow_code))
    if study.beside.sweep is not None and (wrong := wrong_points(study, study.beside.sweep)):
        raise InputErrors(wrong)
    said = notes(study)
    if as_json:
        documents = [document(scenario) for scenario in study.scenarios]
        print_json({"name": study.name, "seeds": list(study.seeds), "scenarios": documents, "notes": said})
        return
    say("---\n".join(as_yaml(scenario) for scenario in study.scenarios).rstrip())
    for note in said:
        complain(f"note: {note}")


@app.command(name="list")
def list_(kind: str = "scenarios", /, *, as_json: Json = False) -> None:
    """List what is shipped and can be named in a scenario.

    For example:
      paceline list
      paceline list strategies
      paceline list profiles --json

    Parameters
    ----------
    kind
        scenarios, strategies, presets, topologies, profiles, prices, models, problems, optimizers, schedules,
        distributions, gossip, compressions or splits.
    as_json
        Print an array of {name, summary, source} as JSON.
    """
    from scenarios.catalogue import listing
    from scenarios.console import print_json, print_table

    entries = listing(kind)
    if as_json:
        print_json(entries)
    else:
        rows = [[entry["name"], entry["summary"], entry["source"]] for entry in entries]
        print_table([kind, "", "source"], rows, numbers_from=9)


@app.command
def schema(*, out: Path | None = None) -> None:
    """Print the JSON Schema of scenario files, with which editors complete and check them.

    Editors find it by a comment on top of a scenario: yaml-language-server: $schema=scenario.schema.json

    For example:
      paceline schema --out scenario.schema.json

    Parameters
    ----------
    out
        File to write to. Default: standard output.
    """
    from scenarios.console import print_json
    from scenarios.json_schema import json_schema, write

    if out is None:
        print_json(json_schema())
    else:
        write(out)


@app.command
def compare(
    *directories: Path, baseline: str | None = None, metric: Names = None, as_json: Json = False
) -> None:
    """Compare the variants of finished runs: differences within each seed, with 95 % intervals.

    For example:
      paceline compare runs/quickstart-1a2b3c4d
      paceline compare runs/before runs/after --baseline before --metric step_time_s.p95

    Parameters
    ----------
    directories
        What `paceline run` has written. Of several, runs are named after their directories.
    baseline
        The variant to compare against. Default: the first.
    metric
        A number of summary.json, dots reach inside; as often as you like. Default: the main ones.
    as_json
        Print {"baseline", "rows": [...]} as JSON.
    """
    from scenarios.compare import compare as comparison
    from scenarios.console import comparison_table, print_json, print_table
    from scenarios.store import collect

    compared = comparison(collect(_some(directories)), baseline=baseline, metrics=metric or ())
    if as_json:
        print_json(compared)
    else:
        print_table(*comparison_table(compared), numbers_from=2, spare=[7, 6, 3, 5])


@app.command
def report(*directories: Path, out: Path | None = None, as_json: Json = False) -> None:
    """Write the report of finished runs as one HTML file that works offline.

    For example:
      paceline report runs/quickstart-1a2b3c4d
      paceline report runs/before runs/after --out both.html

    Parameters
    ----------
    directories
        What `paceline run` has written (of several, runs are named after their directories), or a sweep.
    out
        The file. Default: report.html in the directory; of several, report.html here.
    as_json
        Print {"report", "verdict", "runs"} as JSON.
    """
    from scenarios.console import print_json, say
    from scenarios.report import report_directories

    place = out or (directories[0] / "report.html" if len(directories) == 1 else Path("report.html"))
    headline, runs = report_directories(_some(directories), place)
    if as_json:
        print_json({"report": str(place), "verdict": headline, "runs": runs})
    else:
        say(f"{headline}\n{place}")


def _some(directories: Sequence[Path]) -> Sequence[Path]:
    if not directories:
        raise InputError("at least one directory that `paceline run` has written", "none", "DIR")
    return directories


@app.command
def replay(
    *,
    flows: Path,
    links: Path | None = None,
    routes: Path | None = None,
    topology: str | None = None,
    out: Path,
    as_json: Json = False,
) -> None:
    """Simulate the network alone: when does each flow of a table finish?

    For example:
      paceline replay --links links.csv --routes routes.csv --flows flows.csv --out finish.csv
      paceline replay --topology four_by_four --flows flows.csv --out finish.csv

    Parameters
    ----------
    flows
        CSV with flow,src,dst,size_bytes,start_s and optionally weight.
    links
        CSV with link,bandwidth_bytes_per_s,latency_s.
    routes
        CSV with flow,hop,link.
    topology
        A topology file or shipped name, instead of links and routes.
    out
        CSV to write: flow,finish_s.
    as_json
        Print {"flows", "out", "last_finish_s"} as JSON.
    """
    from scenarios.console import print_json, say
    from scenarios.replay import replay as rerun

    done: dict[str, Any] = rerun(flows=flows, links=links, routes=routes, topology=topology, out=out)
    if as_json:
        print_json(done)
    else:
        say(f"{done['flows']} flows, the last finishes at {done['last_finish_s']:.6g} s: {done['out']}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names in letters that the terminal has not
    sys.exit(status(list(sys.argv[1:] if arguments is None else arguments)))


def status(arguments: list[str]) -> int:
    """Run a command; messages for what goes wrong, and the exit code."""
    as_json = "--json" in arguments
    try:
        code = app(
            arguments or ["--help"], exit_on_error=False, print_error=False, result_action="return_value"
        )
        sys.stdout.flush()
    except InputError as error:
        return _failed(2, str(error), error.as_json(), as_json)
    except CycloptsError as error:
        wrong = InputError("arguments as in --help", str(error).strip(), "command line")
        return _failed(2, f"{str(error).strip()}\nSee paceline --help.", wrong.as_json(), as_json)
    except CohortError as error:
        return _failed(
            2, str(error), InputError("auto or process", str(error), "--engine").as_json(), as_json
        )
    except (StuckError, VerbError) as error:
        return _failed(2, str(error), InputError("", str(error), "training.strategy").as_json(), as_json)
    except PacelineError as error:
        return _ours(str(error), as_json)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        told = InputError("", "interrupted", hint="finished runs are kept")
        return _failed(130, "interrupted; finished runs are kept", told.as_json(), as_json)
    except Exception as error:
        if os.environ.get("PACELINE_TRACEBACK"):
            raise
        if (place := _in_own_code(error)) is not None:
            said = f"{type(error).__name__}: {error}"
            wrong = InputError("code that runs", said, "own code", file=place[0], line=place[1])
            return _failed(2, str(wrong), wrong.as_json(), as_json)
        return _ours(f"{type(error).__name__}: {error}", as_json)
    return code if isinstance(code, int) else 0


def _in_own_code(error: BaseException) -> tuple[str, int] | None:
    """File and line in the user's own code (`--allow-code`) that an error came through, if any."""
    own_code = sys.modules.get("scenarios.own_code")
    files: set[str] = own_code.FILES if own_code is not None else set()
    frames = [(frame.filename, frame.lineno) for frame in extract_tb(error.__traceback__)]
    places = [(file, line) for file, line in frames if file in files and line is not None]
    return places[-1] if places else None


def _ours(said: str, as_json: bool) -> int:
    hint = "a failure of Paceline's; PACELINE_TRACEBACK=1 shows where"
    body = {"error": {**InputError("", said).as_json()["error"], "hint": hint}}
    return _failed(1, f"{said}\n({hint})", body, as_json)


def _failed(code: int, said: str, body: dict[str, Any], as_json: bool) -> int:
    from scenarios.console import complain

    if as_json:
        sys.stderr.write(json.dumps(body) + "\n")
    else:
        complain(said)
    return code


if __name__ == "__main__":
    main()
