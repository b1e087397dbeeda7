"""Validation: what pydantic finds wrong, as errors with line, column, field, found, expected, hint."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from pydantic import Field, model_validator

from simulator.errors import InputErrors
from simulator.spec import Spec
from simulator.units import Bytes, Seconds, quantity
from simulator.validation import MISSING, did_you_mean, validate
from simulator.yaml_source import parse


class Near(Spec):
    kind: Literal["near"] = "near"
    h: int = Field(1, ge=1, le=9)
    lr: float = 0.1


class Far(Spec):
    kind: Literal["far"] = "far"
    bound: Literal["none"] | int = 0
    size: Bytes = quantity("25 MB")
    many: tuple[int, ...] = ()

    @model_validator(mode="after")
    def _even(self):
        if len(self.many) % 2:
            raise ValueError(f"found {len(self.many)} numbers, expected an even count (add one)")
        return self


Either = Annotated[Near | Far, Field(discriminator="kind")]


class Whole(Spec):
    name: str
    either: Either
    named: str | Near = "x"
    more: tuple[Either, ...] = Field((), max_length=2)
    table: dict[str, int] = Field(default_factory=dict)
    every: Literal["auto"] | Seconds = "auto"
    flag: bool = False


def errors(text):
    with pytest.raises(InputErrors) as caught:
        validate(Whole, parse(text, "f.yaml")[0])
    return caught.value.errors


def test_right_data_give_the_spec():
    text = "name: n\neither: {kind: far, many: [1, 2], size: 3 MB}\nmore: [{kind: near, lr: 1}]\nevery: 3 s"
    whole = validate(Whole, parse(text, "f.yaml")[0])
    assert whole.either == Far(many=(1, 2), size=quantity("3 MB"))
    assert whole.more == (Near(lr=1.0),)
    assert whole.every == 3.0


@pytest.mark.parametrize(
    ("line", "column", "field", "found", "expected", "hint"),
    [
        (
            "either: {kind: near, hh: 3}",
            22,
            "either.hh",
            "the unknown key 'hh'",
            "one of the keys h, kind, lr",
            "'h'",
        ),
        ("either: {kind: near, h: 0}", 25, "either.h", "0", "at least 1", ""),
        ("either: {kind: near, h: 10}", 25, "either.h", "10", "at most 9", ""),
        ("either: {kind: near, h: true}", 25, "either.h", "true", "an integer", ""),
        ("either: {kind: near, h: 2.5}", 25, "either.h", "2.5", "an integer", ""),
        ("either: {kind: near, h: 2.0}", 25, "either.h", "2.0", "an integer", "write 2"),
        ("either: {kind: near, h: '2'}", 25, "either.h", "'2'", "an integer", "without quotes"),
        ("either: {kind: near, h: }", 22, "either.h", "nothing", "an integer", ""),
        ("either: {kind: near, lr: '0.1'}", 26, "either.lr", "'0.1'", "a number", "without quotes"),
        ("either: {kind: near, lr: true}", 26, "either.lr", "true", "a number", ""),
        ("either: {kind: nearr}", 16, "either.kind", "'nearr'", "one of 'near', 'far'", "'near'"),
        ("either: {h: 1}", 9, "either", "a mapping with h", "with the key 'kind': far, near", ""),
        ("either: [1]", 9, "either", "a list of 1", "a mapping", ""),
        ("either: {kind: far, bound: 2.5}", 28, "either.bound", "2.5", "'none' or an integer", ""),
        ("either: {kind: far, bound: non}", 28, "either.bound", "'non'", "'none' or an integer", "'none'"),
        (
            "either: {kind: far, size: 3}",
            27,
            "either.size",
            "the bare number 3",
            "a size with its unit",
            "'3 B'",
        ),
        ("either: {kind: far, many: [1, x]}", 31, "either.many.1", "'x'", "an integer", "without quotes"),
        ("either: {kind: far, many: [1]}", 9, "either", "1 numbers", "an even count", "add one"),
        ("either: {kind: far, many: 3}", 27, "either.many", "3", "a list", ""),
        ("more: [{kind: near}, {kind: near}, {kind: near}]", 7, "more", "a list of 3", "at most 2 items", ""),
        ("named: 5", 8, "named", "5", "text or a mapping", ""),
        ("named: {kind: near, h: x}", 24, "named.h", "'x'", "an integer", ""),
        ("table: {a: x}", 12, "table.a", "'x'", "an integer", ""),
        ("every: 3", 8, "every", "3", "'auto' or a time", "'3 s'"),
        ("flag: yes", 7, "flag", "'yes'", "true or false", ""),
        ("flag: 1", 7, "flag", "1", "true or false", ""),
        ("nam: x", 1, "nam", "the unknown key 'nam'", "one of the keys", "'name'"),
    ],
)
def test_one_error(line, column, field, found, expected, hint):
    text = f"name: n\n{line}\n" + ("" if line.startswith("either") else "either: {kind: near}\n")
    (error,) = errors(text)
    assert (error.file, error.line, error.column, error.field) == ("f.yaml", 2, column, field)
    assert error.found == found
    assert expected in error.expected
    assert hint in error.hint


def test_missing_keys_stand_at_their_mapping():
    (error,) = errors("# comment\neither: {kind: near}")
    assert (error.line, error.column, error.field, error.found) == (2, 1, "name", MISSING)
    assert error.expected == "the key 'name'"


def test_everything_at_once_in_order_of_the_file():
    found = errors("name: 3\neither: {kind: far, size: x, zz: 1}\nmore: {}\nevery: 3 q\n")
    assert [error.line for error in found] == [1, 2, 2, 3, 4]


def test_no_mapping_at_all():
    (error,) = errors("- 3")
    assert (error.line, error.expected, error.found) == (1, "a mapping", "a list of 1")


def test_did_you_mean():
    assert did_you_mean("ringg", ["ring", "tree"]) == "did you mean 'ring'?"
    assert did_you_mean("RING", ["ring"]) == "did you mean 'ring'?"
    assert did_you_mean("zebra", ["ring"]) == ""
