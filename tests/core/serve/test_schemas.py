"""Schemas with keywords that a grammar cannot enforce: what the grammar keeps, what is checked afterwards."""

from __future__ import annotations

import json
from typing import Any

import pytest
from llguidance import LLMatcher

from core.answer_format import AnswerFormat, CallBegun
from core.events import Grammar, Token, Tool
from core.events.answer import GrammarKind
from core.serve.tools import CallRules, Written, relaxed
from tests.core.serve.served import CHAT, Served
from tests.core.serve.test_agents import message, response
from tests.core.serve.test_unknown_fields import MESSAGES, RESPONSES, changes

TEXT = {"type": "string"}


def verdicts(schema: Any, *texts: str) -> dict[str, list[str]]:
    """What is said of each text, by the keyword's place."""
    _, check = relaxed(Grammar("json_schema", json.dumps(schema)), "f")
    found: dict[str, list[str]] = {}
    for text in texts:
        for one in check.changes([text]) if check else ():
            found.setdefault(one.setting, []).append(one.used.rpartition(" ")[0].rpartition(" ")[2])
    return found


def compiles(schema: Any) -> str:
    grammar, _ = relaxed(Grammar("json_schema", json.dumps(schema)), "f")
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
    grammar, check = relaxed(Grammar("json_schema", json.dumps(schema)), "f")
    assert (json.loads(grammar.text), check) == (schema, None)


@pytest.mark.parametrize("name", ["uri-reference", "int64", "password", "iri", "regex", "binary"])
def test_formats_that_the_compiler_does_not_have_are_dropped(name: str) -> None:
    assert not compiles({**TEXT, "format": name})
    assert list(verdicts({**TEXT, "format": name}, '"x"')) == ["f.format"]


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
    grammar, _ = relaxed(Grammar("json_schema", json.dumps({**TEXT, "pattern": pattern})), "f")
    assert ("pattern" in json.loads(grammar.text)) is regular
    if "[\\b" not in pattern:
        assert not compiles({**TEXT, "pattern": pattern})


def test_the_finished_answer_is_checked() -> None:
    unique = {"type": "array", "uniqueItems": True}
    assert verdicts(unique, "[1, 2]", "[1, 1]") == {"f.uniqueItems": ["keeps", "breaks"]}
    record = {"properties": {"m": {"propertyNames": {"maxLength": 2}}}}
    assert verdicts(record, '{"m": {"ab": 1}}', '{"m": {"abc": 1}}') == {
        "f.properties.m.propertyNames": ["keeps", "breaks"]
    }
    assert verdicts({"oneOf": [{"maxLength": 3}, {"minLength": 2}]}, '"a"', '"ab"') == {
        "f.oneOf": ["keeps", "breaks"]
    }


def test_tagged_choices_are_enforced_as_they_are() -> None:
    def tagged(tag: str) -> dict[str, Any]:
        return {"type": "object", "properties": {"kind": {"const": tag}}, "required": ["kind"]}

    schema = {"oneOf": [{"$ref": "#/$defs/a"}, tagged("b")], "$defs": {"a": tagged("a")}}
    assert not verdicts(schema, "{}")
    assert not compiles(schema)
    assert not verdicts({"oneOf": [TEXT, {"type": "null"}]}, '"x"')


def test_an_answer_that_was_cut_off_is_not_checked() -> None:
    _, check = relaxed(Grammar("json_schema", '{"uniqueItems": true}'), "f")
    assert check is not None
    assert "not complete" in check.changes(["[1, "])[0].used


def test_no_schema_takes_long_or_fetches_anything() -> None:
    bomb = {f"d{at}": {"allOf": [{"$ref": f"#/$defs/d{at + 1}"}] * 2} for at in range(60)}
    schemas: list[Any] = [
        {"not": TEXT, "$ref": "#/$defs/d0", "$defs": {**bomb, "d60": {}}},
        {"not": {"$ref": "#"}},
        {"not": {"$ref": "http://127.0.0.1:9/x"}},
        {"uniqueItems": 7, "required": 7, "not": TEXT, "type": 7},
    ]
    for schema in schemas:
        _, check = relaxed(Grammar("json_schema", json.dumps(schema)), "f")
        assert check is not None
        assert "not checked" in check.changes(["1"])[0].used


def test_each_api_names_what_its_answer_keeps(served: Served) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"const": 1}, "maxItems": 3, "uniqueItems": True}},
        "required": ["a"],
        "additionalProperties": False,
    }
    place = "properties.a.uniqueItems"
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
    asked = message(response_format={"type": "json_schema", "json_schema": {"schema": schema}}, max_tokens=60)
    assert "afterwards" in changes(served, CHAT, asked)[f"response_format.{place}"]["used"]
    formatted = {"format": {"type": "json_schema", "schema": schema}}
    asked = message(output_config=formatted, max_tokens=60)
    assert "afterwards" in changes(served, MESSAGES, asked)[f"output_config.format.{place}"]["used"]
    asked = response(text=formatted, max_output_tokens=60)
    assert "afterwards" in changes(served, RESPONSES, asked)[f"text.format.{place}"]["used"]
    asked = message(tools=[tool], tool_choice="required")
    assert f"tools[0].function.parameters.{place}" in changes(served, CHAT, asked)


@pytest.mark.parametrize(("values", "verdict"), [("[1, 2]", "keeps"), ("[1, 1]", "breaks")])
@pytest.mark.parametrize("must", [True, False])
def test_calls_are_checked(values: str, verdict: str, must: bool) -> None:
    schema = {"type": "object", "properties": {"arguments": {"properties": {"a": {"uniqueItems": True}}}}}
    kind: GrammarKind = "json_schema" if must else "tool_calls"
    _, check = relaxed(Grammar(kind, json.dumps(schema)), "tools[0].parameters")
    tools = (Tool("f", "", "{}"),)
    written = Written(CallRules(tools, forced=must), check)
    call = f'{{"name": "f", "arguments": {{"a": {values}}}}}'
    text = call if must else f"<tool_call>\n{call}\n</tool_call>"
    format = AnswerFormat(calls=("hermes",))
    deltas = [*written.add([Token("r", 1, text, "normal", 1, 0, format=format)]), *written.end()]
    assert CallBegun(0, "f", deltas[0].id) == deltas[0]  # type: ignore[union-attr]
    [found] = written.changes
    assert found.setting == "tools[0].parameters.properties.a.uniqueItems"
    assert verdict in found.used
