"""What a request's tools come to: grammars of forced and strict calls, and how calls are read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llguidance import LLMatcher
from msgspec.structs import replace

from core.answer_format import AnswerFormat
from core.events import Token, Tool, ToolCall
from core.serve.request import Choice, GivenTool, choose
from core.tools.calls import CallRules, Piece, TextDelta, Written
from core.tools.schemas import relaxed
from tests.app.session.words import INFO

HERMES = AnswerFormat(calls=("hermes",))
WEATHER = Tool("weather")
CALL = '<tool_call>{"name": "weather", "arguments": {"days": 2}}</tool_call>'


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        (
            '{"name": "weather", "arguments": {"town": "Köln", "more": {"days": 2}} }',
            [("weather", '{"town": "Köln", "more": {"days": 2}}')],
        ),
        ('{"name": "weather", "arguments": {"town": "K', [("weather", '{"town": "K')]),
        ('{"name": "wea', ['{"name": "wea']),
    ],
)
def test_a_forced_call_is_told_as_far_as_it_was_written(text: str, pieces: list[object]) -> None:
    found = written(CallRules(forced=True), text)
    assert [(one.name, one.arguments) if isinstance(one, ToolCall) else one.text for one in found] == pieces


def written(rules: CallRules, text: str) -> list[Piece]:
    parser = Written(rules)
    tokens = [Token("r", at, one, "normal", at, at) for at, one in enumerate(text)]
    tokens[0] = replace(tokens[0], format=HERMES)
    return [*parser.add(tokens), *parser.end()]


def test_calls_have_new_ids() -> None:
    pieces = written(CallRules((WEATHER,)), CALL + CALL)
    ids = [piece.id for piece in pieces if isinstance(piece, ToolCall)]
    assert len(set(ids)) == 2
    assert all(one.startswith("call_") for one in ids)


def test_calls_beyond_the_allowed_number_are_dropped() -> None:
    pieces = written(CallRules((WEATHER,), most=1), f"a{CALL}b{CALL}c")
    assert [type(piece) for piece in pieces] == [TextDelta, ToolCall, TextDelta, TextDelta]


def test_without_declared_tools_a_call_is_text() -> None:
    assert written(CallRules(), CALL) == [TextDelta(CALL)]


def test_references_of_a_forced_calls_schema_point_where_it_stands() -> None:
    parameters = {
        "properties": {"a": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"items": {"$ref": "#/$defs/A"}}},
    }
    tools = [GivenTool("f", parameters=parameters), GivenTool("g", parameters=parameters)]
    text = choose(tools, Choice("required")).grammar(INFO).text  # type: ignore[union-attr]
    assert text.count('"#/anyOf/0/properties/arguments/$defs/A"') == 2
    assert text.count('"#/anyOf/1/properties/arguments/$defs/A"') == 2
    one = choose(tools, Choice("required", ["g"])).grammar(INFO).text  # type: ignore[union-attr]
    assert one.count('"#/properties/arguments/$defs/A"') == 2
    assert '"f"' not in one


# Names of properties that are keywords elsewhere.
ODD = ["default", "const", "enum", "examples", "required", "$ref", "properties", "$defs", "items", "mode"]
HELD = st.sampled_from(ODD)
REFERENCE: dict[str, Any] = {"$ref": "#/$defs/M"}


def _around(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    properties = st.dictionaries(HELD, inner, min_size=1, max_size=3)
    return (
        properties.map(lambda held: {"type": "object", "properties": held})
        | inner.map(lambda one: {"type": "array", "items": one})
        | inner.map(lambda one: {"anyOf": [one, {"type": "null"}]})
        | inner.map(lambda one: {"type": "object", "properties": {"a": one}, "default": {"a": REFERENCE}})
    )


@given(schema=st.recursive(st.just(REFERENCE), _around, max_leaves=6), several=st.booleans())
@settings(max_examples=80, deadline=None)
def test_a_forced_call_compiles_whatever_its_properties_are_called(
    schema: dict[str, Any], several: bool
) -> None:
    """Each reference is moved, and no data that looks like one."""
    parameters = {"type": "object", "properties": {"p": schema}, "$defs": {"M": {"enum": ["a", "b"]}}}
    tools = [GivenTool(name, parameters=parameters) for name in ("f", "g")[: 1 + several]]
    grammar = choose(tools, Choice("required")).grammar(INFO)
    assert grammar is not None
    compiled = LLMatcher.grammar_from_json_schema(grammar.text)
    assert not LLMatcher.validate_grammar(compiled, None)
    moved = json.loads(grammar.text)
    for number, shape in enumerate(moved["anyOf"] if several else [moved]):
        root = f"#/anyOf/{number}" if several else "#"
        text = json.dumps(shape["properties"]["arguments"]["properties"]["p"])
        text = text.replace(f'"{root}/properties/arguments/$defs/M"', '"#/$defs/M"')
        assert json.loads(text) == schema
        assert json.dumps(REFERENCE) not in json.dumps(_without_defaults(shape))


def _without_defaults(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_defaults(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: _without_defaults(one)
        for name, one in schema.items()
        if not (name == "default" and one == {"a": REFERENCE})
    }


def test_choices_of_several_tools_are_told_apart_through_references() -> None:
    one = {"type": "object", "properties": {"kind": {"const": "a"}}, "required": ["kind"]}
    two = {"type": "object", "properties": {"kind": {"const": "b"}}, "required": ["kind"]}
    parameters = {
        "type": "object",
        "properties": {"p": {"oneOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]}},
        "$defs": {"A": one, "B": two},
    }
    tools = [GivenTool(name, parameters=parameters) for name in ("f", "g")]
    grammar = choose(tools, Choice("required")).grammar(INFO)
    assert grammar is not None
    assert relaxed(grammar)[1] == []


STRICT: dict[str, Any] = {"type": "object", "properties": {"k": {"enum": ["a"]}}, "required": ["k"]}


def test_calls_that_need_not_be_made_keep_the_schemas_of_strict_tools() -> None:
    info = replace(INFO, format=HERMES)
    free_tool, strict_tool = GivenTool("f", parameters=STRICT), GivenTool("g", parameters=STRICT, strict=True)
    assert choose([free_tool], Choice()).grammar(info) is None
    kept = choose([free_tool, strict_tool], Choice())
    grammar = kept.grammar(info)
    assert grammar is not None
    assert (grammar.kind, grammar.begin, grammar.end) == ("tool_calls", "<tool_call>", "</tool_call>")
    free, strict = json.loads(grammar.text)["anyOf"]
    assert free["properties"]["arguments"] == {"type": "object"}
    assert strict["properties"]["arguments"] == STRICT
    assert not kept.rules(info).loose


def test_where_a_models_calls_are_of_another_form_nothing_keeps_them() -> None:
    info = replace(INFO, format=AnswerFormat(calls=("mistral",)))
    loose = choose([GivenTool("f", parameters=STRICT, strict=True)], Choice())
    assert loose.grammar(info) is None
    assert loose.rules(info).loose
    assert not choose([GivenTool("f", parameters=STRICT)], Choice()).rules(info).loose
