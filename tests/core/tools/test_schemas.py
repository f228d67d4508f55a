"""Schemas with keywords that a grammar cannot enforce: what the grammar keeps, and what is named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from llguidance import LLMatcher

from core.events import Grammar
from core.tools.schemas import relaxed

TEXT = {"type": "string"}


def named(schema: Any) -> list[str]:
    """The places of the keywords that are not enforced."""
    _, dropped = relaxed(Grammar("json_schema", json.dumps(schema)))
    return [path for path, _ in dropped]


def compiles(schema: Any) -> str:
    grammar, _ = relaxed(Grammar("json_schema", json.dumps(schema)))
    return str(LLMatcher.validate_grammar(LLMatcher.grammar_from_json_schema(grammar.text), None))


KEYWORDS: dict[str, Any] = {
    "uniqueItems": True,
    "propertyNames": TEXT,
    "contains": TEXT,
    "minContains": 1,
    "maxContains": 2,
    "not": TEXT,
    "if": TEXT,
    "then": TEXT,
    "else": TEXT,
    "dependentRequired": {"a": ["b"]},
    "dependentSchemas": {"a": {}},
    "dependencies": {"a": ["b"]},
    "unevaluatedProperties": False,
    "unevaluatedItems": False,
    "$dynamicRef": "#",
    "$recursiveRef": "#",
    "$dynamicAnchor": "n",
    "oneOf": [{"maxLength": 3}, {"minLength": 2}],
}


@pytest.mark.parametrize("keyword", KEYWORDS)
def test_every_keyword_that_the_compiler_refuses_is_dropped(keyword: str) -> None:
    schema = {"type": "object", "properties": {"m": {**TEXT, keyword: KEYWORDS[keyword]}}}
    bare = LLMatcher.grammar_from_json_schema(json.dumps(schema))
    assert LLMatcher.validate_grammar(bare, None), "it is supported now; drop it from the list"
    assert not compiles(schema)


@pytest.mark.parametrize(
    "keyword",
    ["minItems", "maxProperties", "prefixItems", "$anchor", "contentEncoding", "nullable", "discriminator"],
)
def test_other_keywords_stay(keyword: str) -> None:
    schema = {"type": "object", "properties": {keyword: TEXT, "not": TEXT, "if": TEXT}}
    grammar, dropped = relaxed(Grammar("json_schema", json.dumps(schema)))
    assert (json.loads(grammar.text), dropped) == (schema, [])


@pytest.mark.parametrize("name", ["uri-reference", "int64", "password", "iri", "regex", "binary"])
def test_formats_that_the_compiler_does_not_have_are_dropped(name: str) -> None:
    assert not compiles({**TEXT, "format": name})
    assert named({**TEXT, "format": name}) == [".format"]


@pytest.mark.parametrize(
    ("pattern", "regular"),
    [
        (r"^[a-z]+$", True),
        (r"^\\d\(\?=[(?=]$", True),
        (r"^(?!\.)(?!.*\.\.)x$", False),
        (r"(a)\1", False),
        (r"\bfoo", False),
        (r"(?<=a)b", False),
        (r"[\b(?=x)]", True),
        ("[" * 100_000, False),
    ],
)
def test_regular_expressions_that_are_not_regular_are_dropped(pattern: str, regular: bool) -> None:
    grammar, _ = relaxed(Grammar("json_schema", json.dumps({**TEXT, "pattern": pattern})))
    assert ("pattern" in json.loads(grammar.text)) is regular
    if "[\\b" not in pattern:
        assert not compiles({**TEXT, "pattern": pattern})


def test_what_is_not_enforced_is_named_by_its_place() -> None:
    assert named({"type": "array", "uniqueItems": True}) == [".uniqueItems"]
    assert named({"items": {"uniqueItems": True}}) == [".items.uniqueItems"]
    record = {"properties": {"m": {"propertyNames": {"maxLength": 2}}}}
    assert named(record) == [".properties.m.propertyNames"]
    assert named({"oneOf": [{"maxLength": 3}, {"minLength": 2}]}) == [".oneOf"]


def test_tagged_choices_are_enforced_as_they_are() -> None:
    def tagged(tag: str) -> dict[str, Any]:
        return {"type": "object", "properties": {"kind": {"const": tag}}, "required": ["kind"]}

    schema = {"oneOf": [{"$ref": "#/$defs/a"}, tagged("b")], "$defs": {"a": tagged("a")}}
    assert not named(schema)
    assert not compiles(schema)
    assert not named({"oneOf": [TEXT, {"type": "null"}]})


def test_no_schema_takes_long() -> None:
    bomb = {f"d{at}": {"allOf": [{"$ref": f"#/$defs/d{at + 1}"}] * 2} for at in range(60)}
    schemas: list[Any] = [
        {"not": TEXT, "$ref": "#/$defs/d0", "$defs": {**bomb, "d60": {}}},
        {"not": {"$ref": "#"}},
        {"uniqueItems": 7, "required": 7, "not": TEXT, "type": 7},
    ]
    assert all(map(named, schemas))
