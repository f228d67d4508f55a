"""A call's arguments as a form: nothing of them is hidden or lost, and what is wrong is said in words."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.session.tools.form import (
    FormError,
    empty_field,
    fields_of,
    joined,
    optional_names,
    problem_of,
    read_json,
    shown_value,
    spans_after,
    values_of,
    visible,
)

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Name of the city"},
            "days": {"type": "integer", "minimum": 1, "maximum": 10},
            "unit": {"enum": ["metric", "imperial"]},
            "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
            "place": {"$ref": "#/$defs/place"},
        },
        "required": ["city"],
        "additionalProperties": False,
        "$defs": {
            "place": {"type": "object", "required": ["lat"], "properties": {"lat": {"type": "number"}}}
        },
    }
)


@given(st.dictionaries(st.text(), JSON_VALUES, max_size=4))
def test_arguments_that_are_not_edited_stay_the_same(arguments: dict[str, Any]) -> None:
    fields = fields_of(json.dumps(arguments), "{}")
    assert fields is not None
    values, problems = values_of((field, field.text) for field in fields)
    assert problems == {}
    assert json.loads(joined(values)) == arguments


@given(st.text())
def test_what_is_shown_has_no_unseen_character(text: str) -> None:
    shown, plain = shown_value(text)
    assert visible(shown) == shown
    assert text == (shown if plain else json.loads(shown))


@pytest.mark.parametrize(
    "hidden",
    ["\u202e", "\u200b", "\u2066", "\xa0", "\u3164", "\ufe0f", "\U000e0041", "\x1b", "\r", "\ud800"],
)
def test_an_unseen_character_is_escaped(hidden: str) -> None:
    shown, plain = shown_value(f"rm -rf {hidden}/tmp")
    assert not plain
    assert "\\u" in shown or "\\r" in shown
    assert hidden not in shown


def test_plain_texts_keep_their_lines() -> None:
    assert shown_value("one\n\ttwo") == ("one\n\ttwo", True)
    assert shown_value({"a": [1]}) == ('{\n  "a": [\n    1\n  ]\n}', False)


def test_a_required_argument_that_is_missing_has_an_empty_field() -> None:
    fields = fields_of('{"days": 3}', SCHEMA)
    assert fields is not None
    assert [(field.name, field.text, field.required, field.given) for field in fields] == [
        ("days", "3", False, True),
        ("city", "", True, False),
    ]
    assert fields[1].says == "Name of the city"
    values, problems = values_of((field, field.text) for field in fields)
    assert (values, problems) == ({"days": 3}, {})
    assert problem_of(values, SCHEMA) == ("city", "“city” is missing.")
    assert optional_names(fields, SCHEMA) == ("unit", "tags", "place")
    assert empty_field("days", SCHEMA).plain is False


@pytest.mark.parametrize(("text", "value"), [("three", "three"), ("3", 3)])
def test_a_string_where_the_schema_has_none_can_be_corrected(text: str, value: Any) -> None:
    fields = fields_of('{"city": "Bern", "days": "three"}', SCHEMA)
    assert fields is not None
    assert fields[1].text == "three"
    values, _ = values_of(((fields[0], "5"), (fields[1], text)))
    assert values == {"city": "5", "days": value}


def test_what_is_no_object_has_no_fields() -> None:
    assert fields_of("[1]", "{}") is None
    assert fields_of('{"a": 1', "{}") is None


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"city": 5}, "“city” must be a text."),
        ({"city": "Bern", "days": 2.5}, "“days” must be a whole number."),
        ({"city": "Bern", "days": 0}, "“days” must be at least 1."),
        ({"city": "Bern", "days": True}, "“days” must be a whole number."),
        ({"city": "Bern", "unit": "kelvin"}, "“unit” must be one of “metric”, “imperial”."),
        ({"city": "Bern", "tags": ["a", 1]}, "“tags › 2” must be a text."),
        ({"city": "Bern", "tags": ["a", "b", "c"]}, "“tags” must have at most 2 entries."),
        ({"city": "Bern", "place": {}}, "“place › lat” is missing."),
        ({"city": "Bern", "more": 1}, "“more” is not an argument of this tool."),
        ({"city": "Bern", "days": 3.0, "tags": [], "place": {"lat": 1}}, ""),
    ],
)
def test_the_schema_is_checked_in_words(values: dict[str, Any], words: str) -> None:
    assert problem_of(values, SCHEMA)[1] == words


def test_one_of_several_forms_is_enough() -> None:
    schema = '{"properties": {"id": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}}'
    assert problem_of({"id": None}, schema) == ("", "")
    assert problem_of({"id": "x"}, schema)[0] == "id"


@pytest.mark.parametrize(
    "schema",
    [
        "{",
        "[]",
        '{"$ref": "#"}',
        '{"properties": 3, "required": 5, "enum": 1, "type": 7, "anyOf": {"a": 1}}',
        '{"properties": {"a": {"allOf": 7, "anyOf": true, "required": 1}}}',
        '{"properties": {"a": {"$ref": "#/nowhere"}}, "allOf": [{"$ref": "#"}]}',
    ],
)
def test_an_odd_schema_refuses_nothing(schema: str) -> None:
    assert problem_of({"a": "b"}, schema) == ("", "")
    assert fields_of('{"a": "b"}', schema) is not None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "A value is missing."),
        ("Bern", "A value is missing; texts need double quotes."),
        ('{"a": 1', "A comma or a closing bracket is missing."),
        ('{\n"a" 1}', "Line 2: a colon is missing after a name."),
        ('{"a": 1, "a": 2}', "The name “a” occurs twice."),
        ("NaN", "NaN is not a value of JSON."),
        ("9" * 500, "The number has too many digits."),
        ("[" * 100_000, "The value is nested too deeply."),
    ],
)
def test_json_errors_are_sentences(text: str, words: str) -> None:
    with pytest.raises(FormError) as raised:
        read_json(text)
    assert str(raised.value) == words


@given(st.text("ab", max_size=8), st.text("ab", max_size=8), st.data())
def test_what_is_typed_belongs_to_no_span(before: str, after: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(before)), max_size=4)))
    spans = list(pairwise(cuts))
    for number, low, high in spans_after(spans, before, after):
        assert 0 <= low < high <= len(after)
        start, end = spans[number]
        assert after[low:high] in before[start:end]
    assert spans_after(spans, before, before) == [(n, *span) for n, span in enumerate(spans)]


def test_spans_move_with_their_words() -> None:
    spans = [(0, 4), (8, 15)]
    assert spans_after(spans, "read my file.md", "read all of my file.md") == [(0, 0, 4), (1, 15, 22)]
    assert spans_after(spans, "read my file.md", "my file.md") == [(1, 3, 10)]
    assert spans_after(spans, "read my file.md", "read my fi1e.md") == [(0, 0, 4), (1, 8, 10), (1, 11, 15)]
