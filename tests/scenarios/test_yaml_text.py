"""Plain data as YAML: our reader and a general one read back what was written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from scenarios.check import resolve
from scenarios.include import SCENARIOS, shipped
from scenarios.loading import load
from scenarios.resolved import document
from scenarios.yaml_text import WIDTH, as_yaml
from simulator.yaml_source import parse

ODD = """
10 Gbit/s|1e5|0x1F|~|yes|No|on|- a|a: b|a #b|#|''|null|3|-1.5|1_000|12:30|2026-12-01|<<|=|>|&a|*a|!x|@|`|%a
"""
TEXTS = [
    "a  b",
    " a",
    "a ",
    *ODD.strip("\n").split("|"),
    "|",
    "",
    "a\nb",
    "\x85",
    "\u2028",
    "\ufeff",
    "\U0001f600",
    "{a}",
    "[a]",
    "a,b",
    "...",
]
NUMBERS = st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | st.text(max_size=12) | st.sampled_from(TEXTS)
KEYS = st.text(min_size=1, max_size=8)


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4)


DATA = st.dictionaries(KEYS, st.recursive(SCALARS, nested, max_leaves=12), min_size=1, max_size=5)


def same(a: Any, b: Any) -> bool:
    """Equal, and of equal types all the way down: 1 is not 1.0, and not true."""
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


@given(DATA)
def test_what_is_written_is_read_back(data):
    written = as_yaml(data)
    (ours,) = parse(written, "test")
    assert same(ours.data, data)
    assert same(YAML(typ="safe", pure=True).load(written), data)


@pytest.mark.parametrize("name", list(shipped(SCENARIOS)))
def test_shipped_scenarios_are_written_within_the_page(name):
    for scenario in resolve(load(name)).scenarios:
        written = as_yaml(document(scenario))
        assert same(parse(written, "test")[0].data, document(scenario))
        assert max(map(len, written.splitlines())) <= WIDTH + 2


def test_an_empty_document():
    assert as_yaml({}) == "{}\n"
