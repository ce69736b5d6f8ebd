"""YAML text as plain data: the core schema, places, and what is refused."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stateval.errors import SuiteError
from stateval.suite.yaml_text import dotted, read_value, read_yaml


@pytest.mark.parametrize(
    ("written", "value"),
    [
        *[(word, word) for word in ("no", "yes", "on", "off", "y", "n", "NO", "tRUE", "nUll")],
        *[(word, word) for word in ("12:30", "190:20:30", "1_000", "0b11", "2024-01-31", "2024-01-31 10:00:00", "=")],
        *[(word, word) for word in ("1.2.3", "+.nan", "0o8", "0xG", "1e", ".", "'12'", '"true"')],
        *[(word, None) for word in ("~", "null", "Null", "NULL", "")],
        *[(word, True) for word in ("true", "True", "TRUE")],
        *[(word, False) for word in ("false", "False", "FALSE")],
        *[("0o17", 15), ("0x1F", 31), ("007", 7), ("+12", 12), ("-3", -3), ("0", 0)],
        *[("1.5", 1.5), (".5", 0.5), ("1.", 1.0), ("1e3", 1000.0), ("-1.5E-2", -0.015), ("+1.0", 1.0)],
        *[(".inf", math.inf), ("-.Inf", -math.inf), ("!!str 12", "12"), ("!!float 3", 3.0), ("!!int 3", 3)],
    ],
)
def test_plain_words_follow_the_core_schema_of_yaml_1_2(written, value):
    found = read_yaml(f"- {written}\n").value[0]
    expected = value[1:-1] if isinstance(value, str) and value[:1] in "'\"" else value
    assert found == expected
    assert type(found) is type(expected)


def test_nan_is_a_number():
    assert math.isnan(read_value(".nan"))


def test_every_field_has_its_line_and_column():
    document = read_yaml("name: x\ngate:\n  conditions:\n    - op: gte\n      value: 1\n", "suite.yaml")
    assert document.marks[("gate", "conditions", 0, "value")] == (5, 7)
    assert str(document.source(("gate", "conditions", 0, "value"))) == "suite.yaml:5: gate.conditions.0.value"


def test_a_field_that_is_missing_is_placed_in_the_field_around_it():
    document = read_yaml("name: x\ntarget:\n  kind: python\n", "suite.yaml")
    assert str(document.source(("target", "factory"))) == "suite.yaml:2: target.factory"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f.yaml: the file is empty"),
        ("# nothing\n", "f.yaml: the file is empty"),
        ("a: 1\nb: 2\na: 3\n", "f.yaml:3: a: the key is given twice (first in line 1)"),
        ("a:\n\t- 1\n", "f.yaml:2: a tab stands where YAML wants spaces"),
        ("a: 1\n---\nb: 2\n", "f.yaml:2: a second document begins here (`---`); a suite file has one"),
        ("? [a]\n: 1\n", "f.yaml:1: a key must be a word, not a list or a mapping"),
        ("a: &x [*x]\n", "f.yaml:1: a.0: the alias stands inside of what it stands for"),
        ("a: !!python/name:os.system\n", "f.yaml:1: a: the tag `!!python/name:os.system` does not fit here"),
        ("a: !!int x\n", "f.yaml:1: a: the tag `!!int` does not fit here"),
        ("a: b: c\n", "f.yaml:1: a colon makes this a second `key: value` in one line"),
        ("a: [1\n", "this is no YAML: while parsing a flow sequence, expected ',' or ']'"),
        ("ok: 1\na: \x01\n", "f.yaml:2: the character U+0001 is not allowed in YAML"),
        ("a: " + "1" * 10_000, "f.yaml:1: a: the number is too long"),
        ("[" * 5_000, "f.yaml: the file is nested too deeply"),
        ("a: *b\n", "f.yaml:1: this is no YAML: found undefined alias 'b'"),
        (b"a: 1\nb: \xff\n", "f.yaml:2: the text is not UTF-8"),
        ("a: {<<: 3}\n", "f.yaml:1: a: `<<` takes a mapping or a list of mappings"),
    ],
)
def test_what_is_no_plain_yaml_is_refused_with_its_place(text, message):
    with pytest.raises(SuiteError) as caught:
        read_yaml(text, "f.yaml")
    assert message in str(caught.value)


def test_all_duplicate_keys_are_named_at_once():
    with pytest.raises(SuiteError) as caught:
        read_yaml("a: 1\na: 2\nb: {c: 1, c: 2}\n", "f.yaml")
    assert [problem.source.line for problem in caught.value.problems] == [2, 3]


def test_aliases_that_unfold_without_end_are_refused():
    levels = [f"{chr(98 + level)}: &{chr(98 + level)} [{','.join(['*' + chr(97 + level)] * 9)}]" for level in range(9)]
    with pytest.raises(SuiteError, match="unfold to more than 100,000 values"):
        read_yaml("a: &a [x,x,x,x,x,x,x,x,x]\n" + "\n".join(levels))


def test_an_alias_is_what_it_stands_for_and_merged_keys_give_way():
    document = read_yaml("base: &b {p: 1, q: 2}\nsame: *b\nmine:\n  p: 9\n  <<: *b\n")
    assert document.value["same"] == {"p": 1, "q": 2}
    assert document.value["mine"] == {"p": 9, "q": 2}
    assert document.marks[("mine", "p")] == (4, 3)


@pytest.mark.parametrize("written", [b"\xef\xbb\xbfa: 1\r\nb: 2\r\n", "\ufeffa: 1\nb: 2\n"])
def test_a_byte_order_mark_and_crlf_are_accepted(written):
    assert read_yaml(written).value == {"a": 1, "b": 2}


texts = st.text(st.characters(exclude_characters="\x7f"), max_size=50)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(texts, json_values, min_size=1, max_size=4))
def test_json_is_yaml_and_every_value_has_a_place(value):
    document = read_yaml(json.dumps(value))
    assert document.value == value
    assert {(key,) for key in value} <= set(document.marks)


@given(st.text())
def test_any_text_is_data_or_a_suite_error(text):
    try:
        read_yaml(text)
    except SuiteError as error:
        assert str(error)


@given(st.lists(st.text() | st.integers(min_value=0)))
def test_dotted_paths_name_every_part(path):
    assert dotted(path) == ".".join(map(str, path))


@pytest.mark.parametrize("number", ["9" * 4301, "0x" + "f" * 10_000, "0o" + "7" * 10_000, "-" + "9" * 4301])
def test_whole_numbers_are_limited_however_they_are_written(number):
    with pytest.raises(SuiteError, match="seed: the number is too long"):
        read_yaml(f"seed: {number}")
