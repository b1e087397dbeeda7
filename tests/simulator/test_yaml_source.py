"""The YAML reader: YAML 1.2 values, a place for everything, and an end to every bad file."""

from __future__ import annotations

import os
import time

import pytest

from simulator import yaml_source
from simulator.errors import InputError, InputErrors
from simulator.yaml_source import parse, read


def only(text):
    return parse(text, "f.yaml")[0]


def test_values_as_yaml_1_2_has_them():
    data = only(
        "a: no\nb: 12:30\nc: 1e-3\nd: 0x10\ne: 0o7\nf: 1_000\ng: 010\nh: 2026-12-01\ni: ~\nj: '3'\nk: 1.\n"
        "l: +1\nm: .5\nn: True\no: null\np:\nq: 5e5\nr: -2\ns: [1, 2.0, x]\nt: off\nu: '~'\n"
    ).data
    assert data == {
        "a": "no", "b": "12:30", "c": 0.001, "d": 16, "e": 7, "f": "1_000", "g": 10, "h": "2026-12-01",
        "i": None, "j": "3", "k": 1.0, "l": 1, "m": 0.5, "n": True, "o": None, "p": None, "q": 5e5, "r": -2,
        "s": [1, 2.0, "x"], "t": "off", "u": "~",
    }  # fmt: skip
    assert type(data["q"]) is float
    assert type(data["s"][1]) is float


def test_keys_are_text_as_written():
    assert list(only("1: a\ntrue: b\n1e3: c\n'x y': d").data) == ["1", "true", "1e3", "x y"]


def test_places():
    node = only("a: 1\nb:\n  c: {d: x, e: [1, 22]}\n")
    for path, line, column, key_line, key_column in [
        (("a",), 1, 4, 1, 1),
        (("b",), 3, 3, 2, 1),
        (("b", "c", "d"), 3, 10, 3, 7),
        (("b", "c", "e", 1), 3, 20, 3, 20),
    ]:
        value = node.error(path, expected="x")
        key = node.error(path, expected="x", key=True)
        assert (value.line, value.column, key.line, key.column) == (line, column, key_line, key_column)
    missing = node.error(("b", "c", "z"), expected="x")
    assert (missing.line, missing.column, missing.field) == (3, 3, "b.c.z")


def test_an_empty_value_stands_at_its_key():
    error = only("a:\n\n\nb: 1").error(("a",), expected="x")
    assert (error.line, error.column) == (1, 1)


def test_documents():
    documents = parse("a: 1\n---\n---\nb: 2\n...\n", "f.yaml")
    assert [document.data for document in documents] == [{"a": 1}, {"b": 2}]
    assert documents[1].file == "f.yaml"
    assert documents[1].error(("b",), expected="x").line == 4


def test_aliases_are_values():
    node = only("a: &x {b: 1}\nc: *x\n")
    assert node.data == {"a": {"b": 1}, "c": {"b": 1}}
    assert node.error(("c",), expected="x").line == 2


@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        ("a: 1\nb:\n  c: 2\n  c: 3\n", 4, 3, "'c' again"),
        ("a: 1\n\tb: 2", 2, 1, "never with tabs"),
        ("a:\n\tb: 2", 2, 1, "never with tabs"),
        ("a: *x", 1, 4, "alias"),
        ("a: &x [*x]", 1, 8, "alias"),
        ("a: !!python/object:os.system x", 1, 4, "tag"),
        ("a: !own 3", 1, 4, "tag"),
        ("a: &x {b: 1}\nc: {<<: *x}", 2, 5, "merge key"),
        ("a: .inf", 1, 4, "finite"),
        ("a: -.inf", 1, 4, "finite"),
        ("a: .NaN", 1, 4, "finite"),
        ("a: 1e400", 1, 4, "1.8e308"),
        ("a: 99999999999999999999", 1, 4, "63 bits"),
        ("a: " + "9" * 5000, 1, 4, "63 bits"),
        ("a: [1, 2", 1, 9, "flow sequence"),
        ("a: b: c", 1, 5, "not allowed here"),
        ("a: 'x", 1, 6, "quoted scalar"),
        (": 3", 1, 1, "empty key"),
        ("? [1]\n: 3", 1, 3, "a list or a mapping"),
        ("a: \x01", 1, 4, "control character 0x01"),
        ("a: 1\nb: \x00", 2, 4, "control character 0x00"),
        ("", None, None, "empty file"),
        ("# only a comment\n", None, None, "empty file"),
        ("---\n---\n", None, None, "empty file"),
    ],
)
def test_wrong_text(text, line, column, says):
    with pytest.raises(InputError) as caught:
        parse(text, "f.yaml")
    assert (caught.value.file, caught.value.line, caught.value.column) == ("f.yaml", line, column)
    assert says in str(caught.value)


def test_all_errors_at_once():
    with pytest.raises(InputErrors) as caught:
        parse("a: .inf\nb: 1\nb: 2\nc: !x 3\n", "f.yaml")
    assert [error.line for error in caught.value.errors] == [1, 3, 4]
    assert str(caught.value).count("\n") == 2
    listed = caught.value.as_json()
    assert listed["error"] == listed["errors"][0]
    assert len(listed["errors"]) == 3


def _bomb(levels):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[" * 5000, "levels of nesting"),
        ("a: " + "[" * 70 + "]" * 70, "levels of nesting"),
        ("- " * 300_000, "levels of nesting"),
        ("? " * 300_000, "a list or a mapping"),
        (
            "\n".join(["a0: &a0 [1]"] + [f"a{i}: &a{i} [*a{i - 1}]" for i in range(1, 80)]),
            "levels of nesting",
        ),
        (_bomb(12), "values"),
        ("a: [" + "1," * 200_000 + "]", "values"),
        ("a: 1\n" * 100_000, "again"),
        ("'" * 900_001, "quoted scalar"),
    ],
    ids=["open", "deep", "dashes", "questions", "anchors", "laughs", "long", "repeated", "quote"],
)
def test_every_file_has_an_end(text, says):
    began = time.perf_counter()
    with pytest.raises(InputError, match=says):
        parse(text, "f.yaml")
    assert time.perf_counter() - began < 20
    assert yaml_source.DEEPEST == 64


def test_depth_that_is_allowed():
    text = "[" * 64 + "]" * 64
    assert only(text).content == [] or only(text).data


@pytest.mark.parametrize(
    ("content", "line", "column", "says"),
    [
        (b"\xff\xfea\x00:\x00 \x001\x00", 1, 1, "UTF-8"),
        (b"a: 1\nb: caf\xe9\n", 2, 7, "byte 0xe9"),
        (bytes(range(128, 256)), 1, 1, "UTF-8"),
        (b"a: 1\n" * 300_000, None, None, "larger"),
        (b"", None, None, "empty"),
    ],
    ids=["utf16", "latin1", "binary", "large", "empty"],
)
def test_wrong_files(tmp_path, content, line, column, says):
    file = tmp_path / "x.yaml"
    file.write_bytes(content)
    with pytest.raises(InputError, match=says) as caught:
        read(file)
    assert (caught.value.file, caught.value.line, caught.value.column) == (str(file), line, column)


def test_byte_order_mark(tmp_path):
    file = tmp_path / "x.yaml"
    file.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert read(file)[0].data == {"a": 1}


def test_no_file(tmp_path):
    fifo = tmp_path / "fifo.yaml"
    os.mkfifo(fifo)
    for path, says in [(tmp_path, "directory"), (tmp_path / "no.yaml", "no such file"), (fifo, "pipe")]:
        with pytest.raises(InputError, match=says) as caught:
            read(path)
        assert caught.value.file == str(path)
    with pytest.raises(InputError, match="null"):
        read("a\0b.yaml")
