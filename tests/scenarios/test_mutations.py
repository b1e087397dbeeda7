"""Every key of every shipped file, spoilt in every way: the right place is told, or a right file loads.

Files are mutated as text, at the place where a key or a value stands. What is right and what is wrong is
decided here, from a table of what each key may hold; the loader's own annotations are not asked.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from scenarios import cli
from scenarios.check import resolve
from scenarios.include import SCENARIOS, TOPOLOGIES, shipped
from scenarios.loading import load
from simulator.errors import InputError, InputErrors
from simulator.yaml_source import Node, parse, read

ANYWHERE = -1  # for a column
SLOWEST = 5.0  # seconds for one mutation, on a busy machine

# What kinds of values there are: text that is wrong in place of each, and text that is right.
EMPTY = ("", "null")
NEVER = ("[]", "[[1]]", "{}", "{zz: 1}", "true", "zz", "'1'", ".nan", ".inf", "1e400", "-3")
HUGE = "99999999999999999999"
WRONG: dict[str, tuple[str, ...]] = {
    "count": (*NEVER, "0", "2.5", "2.0", "1e3", "3 s", HUGE),
    "count0": (*NEVER, "2.5", "1e3", "3 s", HUGE),
    "above one": (*NEVER, "0", "1", "0.5", "3 s"),
    "positive": (*NEVER, "0", "-0.1", "3 s"),
    "number0": (*NEVER, "-0.1", "3 s"),
    "share": (*NEVER, "0", "1.5", "-0.1", "50 %"),
    "probability": (*NEVER, "1.5", "-0.1", "50 %"),
    "factor of two": (*NEVER, "0", "-0.1", "3 s"),
    "below one": (*NEVER, "1", "1.5", "-0.1"),
    "time": (*NEVER, "3", "0.5", "0", "-3 s", "3 sec", "3 S", "3 GB", "1e400 s", "s", "3 s s", "nan s"),
    "positive time": (*NEVER, "3", "0 s", "-3 s", "3 sec", "3 minutes", "3 GB", "1e400 s", "inf s"),
    "bandwidth": (
        *NEVER, "25", "25 Gbps", "25 Gb/s", "25 gbit/s", "25 GB", "25 mb/s", "-25 Gbit/s", "0 B/s",
        "1e400 B/s",
    ),
    "bytes": (*NEVER, "25", "25 mb", "25 Mb", "25 MBytes", "25 MB/s", "-25 MB", "0 B", "25 M"),
    "word": (*NEVER, "3"),
    "flag": ("[]", "{}", "3", "zz", "2.5", "0", "'true'"),
    "positive share": (*NEVER, "0", "1.5", "-0.1", "50 %"),
    "stage": ("[]", "4", "0", "2.5", "x", "true"),
    "name": ("[]", "{}", "3", "true", "2.5", "../up", "a b", ".nan"),
    "text": ("[]", "{}", "3", "true", "2.5"),
    "mapping": ("[1]", "zz", "3", "true", "-3", "3 s", ".inf"),
    "list": ("{zz: 1}", "zz", "3", "true", "-3", ".nan"),
    "counts": (*NEVER[2:], "[0]", "[-1]", "[2.5]", "[x]", "3"),
    "numbers of hosts": ("[]", "[-1]", "[2.5]", "3", "x"),
    "pattern": ("[]", "[zz]", "{}", "zz", "3", "true", "2.5", "'a b'"),
    "times": ("[]", "[3]", "[3 s, 2 s]", "[1 s, 2 s, 3 s, 4 s]", "3 s", "{}", "x"),
    "shares": ("[]", "[0]", "[1.5, 1.5]", "[1, 1, 1, 1]", "[x]", "0.5", "{}"),
    "price list": ("[]", "3", "true", "zz", "no.yaml", "{}", "{nic: 3}"),
    "part below one": (*NEVER, "0", "1", "1.5", "-0.1"),
    "where": ("[1]", "{}", "alll", "3", "true", "{zz: 1}", "{worker: 0, share: 0.5}", "{worker: 9999}"),
    "version": ("0", "2", "1.0", "'1'", "true", "[1]", "x"),
    "seeds": ("[]", "[-1]", "[1.5]", "[x]", "[true]", "3", "x", "{count: 0}", "{cont: 3}"),
    "pair": ("[]", "[a0]", "[a0, zz]", "[a0, wan, b0]", "3", "{}"),
    "node": ("[]", "3", "true"),
    "profile": ("[]", "3", "true", "zz", "no.yaml", "{}", "{kind: zz}", "{kind: constant, step: 1}"),
    "server": ("[]", "-1", "2.5", "999", "nobody", "true"),
    "bound": ("[]", "-1", "2.5", "non", "true", "'1'"),
    "delay": ("[]", "-1", "2", "true", "x"),
    "worker": ("[]", "-1", "2.5", "x", "true", "9999"),
    "parent": ("[]", "{}", "3", "true", "zz", "no.yaml", "."),
    "swept": ("[]", "{}", "3", "x", "true", "[[]]", "[{}]"),
    "swept key": ("[]", "{}", "3", "x", "true"),
    "swept keys": ("{}", "3", "x", "true", "[zz]", "[3]"),
    "summary key": ("[]", "{}", "3", "zz", "true"),
}  # fmt: skip
RIGHT: dict[str, tuple[str, ...]] = {
    "positive": ("1", "1.0", "1e-1"),
    "number0": ("0", "0.0", "1e-4"),
    "share": ("0.5", "1"),
    "probability": ("0", "1", "0.5"),
    "below one": ("0", "0.5"),
    "time": ("0 s", "3 us", "3us", "'3 us'", "1e-3 ms", "+1 ns"),
    "positive time": ("1.5 s", "0.03 min", "'1900 ms'"),
    "bandwidth": ("100 Gbit/s", "12.5 GB/s", "1 kB/s", "1e3 MiB/s"),
    "bytes": ("1 B", "25 MiB", "0.5 GB"),
    "version": ("1", "+1"),
    "seeds": ("[5]", "{count: 2}", "{first: 3, count: 2, max: 9}"),
    "server": ("0", "own", "h0"),
    "bound": ("0", "3", "none", "'none'"),
    "worker": ("0",),
}

# What each key holds, by its name and if need be the key above it.
KINDS = {
    "version": "paceline",
    "name": "name",
    "seeds": "seeds",
    "seeds of a sweep": "sweep.seeds",
    "mapping": """compression cluster topology
        placement workload problem training strategy optimizer schedule gossip
        network collective evaluate stop maths target variants sweep grid zip cases best link host devices bus
        nvlink factor split h_by_class spread""",
    "list": "stragglers unlike nodes links background others network.schedule",
    "numbers of hosts": "unlike.hosts",
    "counts": "dims hidden",
    "pair": "between",
    "flag": "packed at_random error_feedback",
    "stage": "sync_stage",
    "positive share": "compression.share",
    "word": """direction kind graph per order routing fidelity all_reduce discipline weights dtype goal
        evaluate.split model""",
    "node": "nodes.name",
    "text": "class",
    "profile": "profile",
    "server": "server",
    "where": "where",
    "pattern": "src dst where.link placement.hosts",
    "times": "schedule.at",
    "shares": "schedule.bandwidth",
    "price list": "prices",
    "usd": "budget_usd",
    "worker": "worker",
    "parent": "extends",
    "swept key": "by",
    "swept keys": "within",
    "summary key": "metric",
    "bound": "bound",
    "delay": "delay",
    "count": """levels bucket rank
        seeds.count hosts hosts_per_leaf hosts_per_group hosts_per_switch k spines switches degree
        strategy.every nics workers batch topology.p topology.a topology.h h h_by_class.*
        tree_chunks schedule.steps stop.steps pieces""",
    "count0": "seed first count start_step backup warmup_steps",
    "time": "latency begin",
    "positive time": "time every duration step repeat",
    "bandwidth": "bandwidth",
    "bytes": "background.size bucket_bytes",
    "share": "efficiency share accuracy",
    "probability": "p",
    "factor of two": "low high",
    "below one": "momentum beta lazy",
    "above one": "factor.alpha spread.alpha",
    "part below one": "load",
    "positive": "lr mean value cv alpha",
    "number0": "weight_decay sigma",
    "positive number": "oversubscription",
}
WRONG["positive number"] = WRONG["usd"] = WRONG["positive"]
WRONG["seeds of a sweep"] = (*WRONG["seeds"], "{count: 2, max: 4}")
RIGHT["seeds of a sweep"] = ("[5]", "{count: 2}")
KIND_OF = {key: kind for kind, keys in KINDS.items() for key in keys.split()}


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Keys whose value may be empty or null: as if they were not there.
NULLABLE = words("""
    seeds sweep best workload problem training gossip target nvlink h_by_class factor time steps every
    duration workers hosts_per_leaf hosts_per_group hosts_per_switch k spines switches degree oversubscription
    dims hosts devices server repeat compression sync_stage prices budget_usd cap end
    topology.p topology.a topology.h
""")
# Keys that must be there, as KEY or ABOVE.KEY: the file is wrong without them.
REQUIRED = words("""
    cluster topology stop link bandwidth latency lr strategy training between nodes nodes.name kind graph
    model stragglers.per workload.batch accuracy value alpha cv high p seeds.count unlike.host unlike.hosts
    step worker schedule.steps where.share
""")


@dataclass(frozen=True)
class Entry:
    """A key of a file and its value: their places (offsets in the text), the keys and the mapping above."""

    text: str
    path: tuple[str | int, ...]
    node: Node
    key_start: int
    start: int
    end: int
    flow: bool
    above: Node

    @property
    def names(self) -> list[str]:
        """The keys on the way, dotted ones taken apart, indices left out."""
        return [
            name
            for step in self.path
            if isinstance(step, str)
            for name in step.split(".")
            if not name.isdecimal()
        ]

    @property
    def key(self) -> str:
        return str(self.path[-1])

    @property
    def variant(self) -> bool:
        return (len(self.path) == 2 and self.path[0] == "variants") or self.case

    @property
    def case(self) -> bool:
        """A case of a sweep: overrides like a variant's."""
        return len(self.path) == 3 and self.path[:2] == ("sweep", "cases")

    @property
    def swept(self) -> bool:
        """A key of a sweep, with the list of its values."""
        return self.path[:1] == ("sweep",) and self.path[1:-1] in (("grid",), ("zip",))

    @property
    def free(self) -> bool:
        """Its name is the user's own."""
        return self.variant or self.names[-2:-1] == ["h_by_class"]

    @property
    def known_as(self) -> tuple[str, str, str]:
        """As the tables call it: below a free name, by the key above, by itself."""
        last, above = self.names[-1], (self.names[-2] if len(self.names) > 1 else "")
        return f"{above}.*", f"{above}.{last}", last

    @property
    def kind(self) -> str:
        """What it may hold."""
        if self.variant or self.swept:
            return "mapping" if self.variant else "swept"
        known = [KIND_OF[name] for name in self.known_as if name in KIND_OF]
        assert known, f"say in KINDS what {self.known_as[1]} holds"
        return known[0]

    @property
    def required(self) -> bool:
        """Whether the file is wrong without it."""
        # An override is of something that the file, or the one that it extends, has.
        override = (
            (self.path[0] == "variants" and len(self.path) < 4)
            or self.path[:2] == ("sweep", "cases")
            or self.swept
            or "extends:" in self.text
        )
        return not self.free and not override and not REQUIRED.isdisjoint(self.known_as)

    def with_value(self, value: str) -> str:
        return self.text[: self.start] + value + self.text[self.end :]

    def with_key(self, key: str) -> str:
        return self.text[: self.key_start] + key + self.text[self.key_start + len(self.key) :]

    def with_before(self, entry: str) -> str:
        """The text with another entry in front of this one."""
        column = self.key_start - self.text.rfind("\n", 0, self.key_start) - 1
        glue = ", " if self.flow else "\n" + " " * column
        return self.text[: self.key_start] + entry + glue + self.text[self.key_start :]

    def without(self) -> str:
        """The text without this entry; a mapping that had no other is left empty."""
        if self.flow:
            after = re.match(r"\s*,\s*", self.text[self.end :])
            if after:
                return self.text[: self.key_start] + self.text[self.end + after.end() :]
            before = re.search(r",\s*$", self.text[: self.key_start])
            return self.text[: before.start() if before else self.key_start] + self.text[self.end :]
        begin = self.text.rfind("\n", 0, self.key_start) + 1
        end = self.text.find("\n", self.end) + 1 or len(self.text)
        if self.text[begin : self.key_start].strip() == "-":  # the first key of an item
            following = re.match(r"\s*", self.text[end:])
            assert following is not None
            return self.text[: self.key_start] + self.text[end + following.end() :]
        return self.text[:begin] + self.text[end:]


def _offset(text: str, line: int, column: int) -> int:
    return sum(len(row) for row in text.splitlines(keepends=True)[: line - 1]) + column - 1


def _end(text: str, node: Node, start: int) -> int:
    """Where a value's text ends."""
    if text[start] in "{[":
        depth = 0
        for at in range(start, len(text)):
            depth += (text[at] in "{[") - (text[at] in "}]")
            if depth == 0:
                return at + 1
    if isinstance(node.content, dict | list):  # a block: to the end of its deepest last value
        below = list(node.content.values() if isinstance(node.content, dict) else node.content)
        last = below[-1]
        assert last.at.line is not None
        assert last.at.column is not None
        return _end(text, last, _offset(text, last.at.line, last.at.column))
    found = re.match(r"\"[^\"]*\"|'[^']*'|(?:[^,\]\}#\n]|(?<=\S)#)*", text[start:])
    assert found is not None
    return start + len(found[0].rstrip())


def entries(text: str, node: Node, path: tuple[str | int, ...] = (), flow: bool = False) -> Iterator[Entry]:
    """Every key of a document."""
    if isinstance(node.content, list):
        inside = flow or text[_offset(text, node.at.line or 1, node.at.column or 1)] == "["
        for index, item in enumerate(node.content):
            yield from entries(text, item, (*path, index), inside)
    elif isinstance(node.content, dict):
        inside = flow or text[_offset(text, node.at.line or 1, node.at.column or 1)] == "{"
        for key, value in node.content.items():
            assert value.key.line is not None
            assert value.key.column is not None
            start = _offset(text, value.at.line or 1, value.at.column or 1)
            key_start = _offset(text, value.key.line, value.key.column)
            yield Entry(text, (*path, key), value, key_start, start, _end(text, value, start), inside, node)
            yield from entries(text, value, (*path, key), inside)


@dataclass(frozen=True)
class Mutation:
    """A spoilt (or only changed) file, and what must come of it.

    Attributes:
        wrong: whether the file is wrong; None: either way, as long as an error has its place.
        places: line and column where an error must stand, any of them; empty: anywhere.
    """

    what: str
    text: str
    wrong: bool | None
    places: tuple[tuple[int, int], ...] = ()


def mutations(entry: Entry) -> Iterator[Mutation]:
    """All mutations of one key."""
    key, node = entry.key, entry.node
    line, column = node.key.line or 1, node.key.column or 1
    at_key, at_value = (line, column), (node.at.line or 1, node.at.column or 1)
    at_mapping = (entry.above.at.line or 1, entry.above.at.column or 1)
    if entry.swept or entry.case:  # what is wrong is told of the values, or of the key
        at_key = at_value = (line, ANYWHERE)
    stranger = None if entry.free else True
    yield Mutation("typed wrongly", entry.with_key(key + "zz"), stranger, (at_key,))
    yield Mutation(
        "in capitals", entry.with_key(key.upper()), stranger if key.upper() != key else None, (at_key,)
    )
    again = (line, column + len(f"{key}: 1, ")) if entry.flow else (line + 1, column)
    yield Mutation("twice", entry.with_before(f"{key}: 1"), True, (again,))
    # Among cases a stranger is a case too, and told by its own value.
    told = ((line, ANYWHERE),) if entry.case else (at_key, at_mapping)
    yield Mutation("behind a stranger", entry.with_before("zz: 1"), True, told)
    yield Mutation("left out", entry.without(), True if entry.required else None)
    if entry.names[-2:-1] == ["topology"] and entry.key in ("p", "a", "h"):
        at_key = (line, ANYWHERE)  # all or none of the three: told of those that are there
    nullable = not NULLABLE.isdisjoint(entry.known_as)
    empty = None if nullable or entry.kind == "node" else True
    for value in EMPTY:
        yield Mutation(repr(value), entry.with_value(value), empty, (at_key, at_value, at_mapping))
    for value in WRONG[entry.kind]:
        # Of a list or a mapping what is wrong may be within.
        inner = (
            [(at_value[0], at_value[1] + n) for n in range(1, 1 + len(value))] if value[:1] in "[{" else []
        )
        yield Mutation(value, entry.with_value(value), True, (at_key, at_value, at_mapping, *inner))
    for value in RIGHT.get(entry.kind, ()):
        yield Mutation(f"{value} (right)", entry.with_value(value), False)


def files() -> dict[str, Path]:
    found = {f"scenario {name}": path for name, path in shipped(SCENARIOS).items()}
    return found | {f"topology {name}": path for name, path in shipped(TOPOLOGIES).items()}


RUNNER = """\
cluster: mutated.yaml
workload: {model: resnet18, batch: 32, dtype: DTYPE}
training: {strategy: {kind: parameter_server}}
stop: {steps: 1}
"""


class Bench:
    """Loads mutated files and judges what comes of it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.file = folder / "mutated.yaml"
        self.target = str(self.file)
        if name.startswith("topology"):
            runner = folder / "runner.yaml"
            runner.write_text(RUNNER.replace("DTYPE", "bf16" if "torus" in name else "fp32"))
            self.target = str(runner)

    def errors(self, text: str) -> tuple[InputError, ...]:
        self.file.write_text(text)
        began = time.perf_counter()
        try:
            resolve(load(self.target))
        except InputErrors as error:
            return error.errors
        except InputError as error:
            return (error,)
        finally:
            assert time.perf_counter() - began < SLOWEST
        return ()

    def verdict(self, mutation: Mutation) -> str:
        """What is amiss with the outcome; empty if nothing is."""
        found = self.errors(mutation.text)
        placed = [one for one in found if one.file == str(self.file)]
        if mutation.wrong is False and found:
            return f"refused: {found[0]}"
        if mutation.wrong and not found:
            return "loads"
        if found and not all(one.line is not None and one.file and one.expected for one in found):
            return f"no place: {found[0]}"
        places = {(one.line, one.column) for one in placed} | {(one.line, ANYWHERE) for one in placed}
        if mutation.wrong and mutation.places and places.isdisjoint(mutation.places):
            return f"expected at {mutation.places[0]}: {found[0]}"
        return ""


@pytest.mark.parametrize("name", files())
def test_every_mutation(name, tmp_path):
    path = files()[name]
    text = path.read_text()
    bench = Bench(tmp_path, name)
    assert bench.errors(text) == ()
    amiss, count = [], 0
    seen: set[tuple[Any, ...]] = set()
    for document in read(path)[:1]:
        for entry in entries(text, document):
            for mutation in mutations(entry):
                shape = (*entry.names[-3:], entry.kind, mutation.what, entry.flow)
                if shape in seen and entry.names[0] == "variants":
                    continue  # the same key of another variant
                seen.add(shape)
                count += 1
                if said := bench.verdict(mutation):
                    amiss.append(f"{'.'.join(map(str, entry.path))}: {mutation.what}: {said}")
    assert not amiss, f"{len(amiss)} of {count}:\n" + "\n".join(amiss[:40])
    assert count > 50


def test_the_command_line_says_the_same(tmp_path, capsys):
    """Exit code 2 and the place as JSON for one spoilt value of each key of the quickstart."""
    text = shipped(SCENARIOS)["quickstart"].read_text()
    file = tmp_path / "mutated.yaml"
    for entry in entries(text, parse(text, "x.yaml")[0]):
        value = WRONG[entry.kind][-1]
        file.write_text(entry.with_value(value))
        assert cli.status(["run", str(file), "--json"]) == 2, (entry.path, value)
        out, err = capsys.readouterr()
        assert out == ""
        assert "Traceback" not in err
        error = json.loads(err)["error"]
        assert (error["file"], error["line"]) == (str(file), entry.node.at.line)
