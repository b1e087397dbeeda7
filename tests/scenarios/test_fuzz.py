"""Shipped scenarios with parts replaced at random: they load, or say what is wrong and where."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest

from scenarios import resolved
from scenarios.check import resolve, unsupported
from scenarios.include import SCENARIOS, shipped
from scenarios.loading import load
from simulator.errors import InputError
from simulator.yaml_source import read

JUNK: list[Any] = [
    None, True, False, 0, -1, 1, 3.5, 1e308, "", "x", "3 s", "10 Gbit/s", "all", "none", "auto", "é", "&",
    "*", "a.yaml", "x.yaml", "four_by_four", "module:Class", 2**62, -(2**63), [], [1], [[]], [None], [True],
    {}, ["a", "b"], [{}], {"kind": "star"}, {"kind": 3}, {"kind": None}, {"kind": []}, {"kind": {}},
    {"a": {}}, {"": 1}, {"kind": "json:loads"}, {"kind": "prague"}, {"worker": 0}, {"graph": "ring"},
    {"graph": {}}, {"x.y": 1}, {"first": 1, "count": 2}, [{"kind": "constant", "value": 1}],
]  # fmt: skip
CHARACTERS = "{}[]:,#&*!|>'\"%@`-? \n\t~.0aé"


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    below = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path, *(place for key, value in below for place in places(value, (*path, key)))]


def at(data: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        data = data[step]
    return data


def spoilt(data: Any, rng: random.Random) -> Any:
    """The data with a value replaced by junk or by another of its own, or left out."""
    data = copy.deepcopy(data)
    path = rng.choice(places(data)[1:])
    above, chance = at(data, path[:-1]), rng.random()
    if chance < 0.2:
        above.pop(path[-1])
    else:
        source = rng.choice(JUNK) if chance < 0.8 else at(data, rng.choice(places(data)))
        above[path[-1]] = copy.deepcopy(source)
    return data


def scratched(text: str, rng: random.Random) -> str:
    """The text with some characters replaced."""
    letters = list(text)
    for _ in range(rng.choice([1, 2, 4])):
        letters[rng.randrange(len(letters))] = rng.choice(CHARACTERS)
    return "".join(letters)


@pytest.mark.parametrize("seed", range(4))
def test_random_damage(seed, tmp_path):
    rng = random.Random(seed)
    files = list(shipped(SCENARIOS).values())
    file, again = tmp_path / "x.yaml", tmp_path / "again.yaml"
    loaded = 0
    for _ in range(150):
        chosen = rng.choice(files)
        text = chosen.read_text()
        damaged = (
            scratched(text, rng) if rng.random() < 0.4 else json.dumps(spoilt(read(chosen)[0].data, rng))
        )
        file.write_text(damaged)
        try:
            study = resolve(load(file))
        except InputError as error:
            for one in getattr(error, "errors", (error,)):
                assert one.file, damaged
                assert one.expected, damaged
                assert one.line, damaged
            continue
        loaded += 1
        unsupported(study)
        for scenario in study.scenarios[:1]:
            again.write_text(resolved.as_yaml(scenario))
            (back,) = resolve(load(again)).scenarios
            assert back == scenario, damaged
    assert 5 < loaded < 100
