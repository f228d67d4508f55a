"""Schemas of tools: any JSON schema is declared as it is, whatever its properties and values are called."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.errors import ChatTemplateError
from core.events import Message, Tool, ToolCall
from core.prompt import render
from core.prompt.marks import changed
from tests.core.prompt.test_tools import KNOWS
from tests.core.prompt.tokenizer_kinds import tokenizer_of
from tests.thinned import thinned
from tests.zoo.families import FAMILIES

# Names that are keywords of a schema, of a call or of a message elsewhere.
NAMES = (
    *("arguments", "parameters", "properties", "function", "tool_calls", "default", "enum", "examples"),
    *("const", "required", "type", "$ref", "$defs", "items", "name", "content", "command"),
)
TEXTS = st.sampled_from(["-la", "{", "[]", "null", "string", "{}", "städte", "7"])
NAMED = st.sampled_from(NAMES)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMED, inner, max_size=2),
    max_leaves=5,
)
TYPES = st.sampled_from(["string", "object", "array", "integer", "boolean"])


def with_words(schemas: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"type": TYPES},
        optional={
            "default": VALUES,
            "const": VALUES,
            "description": TEXTS,
            "enum": st.lists(VALUES, min_size=1, max_size=3),
            "examples": st.lists(VALUES, max_size=2),
            "properties": st.dictionaries(NAMED, schemas, max_size=3),
            "$defs": st.dictionaries(NAMED, schemas, max_size=2),
            "required": st.lists(NAMED, max_size=2),
            "dependentRequired": st.dictionaries(NAMED, st.lists(NAMED, max_size=2), max_size=2),
            "items": schemas,
            "anyOf": st.lists(schemas, min_size=1, max_size=2),
        },
    )


SCHEMAS = st.recursive(st.fixed_dictionaries({"type": TYPES}), with_words, max_leaves=6).map(
    lambda schema: {**schema, "type": "object", "properties": schema.get("properties", {})}
)
WITH_TOOLS = {each.name: each.template_text for each in FAMILIES if "tools" in each.template_text}
FAST = sorted(WITH_TOOLS)[::8]
EVERY_PLACE = {
    "type": "object",
    "properties": {
        name: {
            "type": "object",
            "properties": {name: {"type": "string"}},
            "default": {name: "-la"},
            "enum": [{name: "x"}],
            "examples": [{"command": "ls", name: "{"}],
        }
        for name in NAMES
    },
    "dependentRequired": {name: ["command"] for name in NAMES},
}


@given(schema=SCHEMAS)
@settings(max_examples=60, deadline=None)
def test_a_tool_is_declared_as_it_is(schema: dict[str, Any]) -> None:
    tool = Tool("run", "Runs it.", json.dumps(schema))
    call = ToolCall("c", "run", json.dumps({"city": "Rome", "arguments": schema}))
    talk = (
        Message("user", "?"),
        Message("assistant", "", tool_calls=(call,)),
        Message("tool", "ok", tool_call_id="c"),
    )
    text = render(tokenizer_of("byte-level BPE", KNOWS), talk, tools=(tool,)).text
    (declared,) = json.loads(text.removeprefix("<|system|>").split("<|end|>", 1)[0])
    assert declared["function"]["parameters"] == schema


@pytest.mark.parametrize("family", thinned(sorted(WITH_TOOLS), FAST))
@given(schema=SCHEMAS)
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_schema_is_an_internal_error_in_a_template_with_tools(family: str, schema: dict[str, Any]) -> None:
    """A template may refuse a schema: that is a sentence."""
    for each in (schema, EVERY_PLACE):
        try:
            prompt = render(
                tokenizer_of("byte-level BPE", WITH_TOOLS[family]),
                (Message("user", "a question"),),
                tools=(Tool("run", "Runs it.", json.dumps(each)),),
            )
        except ChatTemplateError:
            continue
        assert prompt.asked == "a question"


@given(schema=SCHEMAS, arguments=st.dictionaries(NAMED, VALUES, max_size=3), as_text=st.booleans())
@settings(max_examples=60, deadline=None)
def test_names_that_a_person_chose_are_no_keys_of_a_message(
    schema: dict[str, Any], arguments: dict[str, Any], as_text: bool
) -> None:
    """Keys are changed as a person's words wherever JSON schema or a call has names and data."""
    given_arguments = json.dumps(arguments, ensure_ascii=False) if as_text else arguments
    turn = {"function": {"name": "f", "parameters": schema, "arguments": given_arguments}}
    keys: list[str] = []

    def noted(text: str, under: str) -> str:
        keys.extend([text] if under == "key" else [])
        return text

    assert changed([turn], noted) == [turn]
    assert sorted(keys) == sorted(["function", "name", "parameters", "arguments", *_keywords(schema)])


def _keywords(schema: Any) -> list[str]:
    """The keys of `schema` that are keywords, read by JSON Schema 2020-12."""
    if not isinstance(schema, dict):
        return []
    inner = [*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else [])]
    for name in ("properties", "$defs"):
        inner += schema.get(name, {}).values()
    return [*schema, *(key for each in inner for key in _keywords(each))]
