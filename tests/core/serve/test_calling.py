"""Calls and schemas through the server, with the grammar that keeps a model to them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from tests.core.serve.served import CHAT, RESPONSES, Served, question, serving
from tests.core.toy import write_toy_model

PARAMETERS = {
    "type": "object",
    "properties": {"unit": {"enum": ["celsius", "kelvin"]}, "exact": {"type": "boolean"}},
    "required": ["unit", "exact"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """With a context that has room for tools that are told in words, a token a byte."""
    folder = tmp_path_factory.mktemp("models") / "roomy"
    write_toy_model(folder, max_position_embeddings=4096)
    with serving(folder) as found:
        yield found


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": PARAMETERS, **more}}


PLAIN = {"type": "function", "name": "weather", "parameters": PARAMETERS}
FIELDS: dict[str, Any] = {"tools": [tool("weather"), tool("time")], "max_tokens": 100}


def test_a_named_function_is_called(served: Served) -> None:
    choice = {"type": "function", "function": {"name": "time"}}
    body = served.chat(tool_choice=choice, **FIELDS).json
    [told] = body["choices"]
    assert told["finish_reason"] == "tool_calls"
    assert told["message"]["content"] is None
    [call] = told["message"]["tool_calls"]
    assert (call["type"], call["function"]["name"]) == ("function", "time")
    jsonschema.validate(json.loads(call["function"]["arguments"]), PARAMETERS)
    assert body["draftlight"]["forced"] > 0


def test_the_grammar_of_a_custom_tool_is_named(served: Served) -> None:
    form = {"type": "grammar", "syntax": "regex", "definition": "[0-9]{4}|never"}
    tools = [{"type": "custom", "name": "year", "format": form}]
    asked = {"input": "When?", "tools": tools, "tool_choice": "required", "max_output_tokens": 100}
    reply = served.ask("POST", RESPONSES, asked).json
    [item] = reply["output"]
    assert item["type"] == "custom_tool_call"
    assert [one["setting"] for one in reply["draftlight"]["changes"] if "format" in one["setting"]]


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        (CHAT, {**question(), "tools": [tool("weather", strict=True)]}),
        ("/v1/responses", {"input": "hello", "max_output_tokens": 9, "tools": [PLAIN | {"strict": True}]}),
        (
            "/v1/messages",
            {**question(), "tools": [{"name": "weather", "input_schema": PARAMETERS, "strict": True}]},
        ),
    ],
)
def test_a_strict_tool_that_need_not_be_called_keeps_its_schema(
    served: Served, path: str, fields: dict[str, Any]
) -> None:
    reply = served.ask("POST", path, fields)
    assert reply.status == 200, reply.body
    asked = served.answers.requests.asked(reply.json["id"])
    assert asked is not None
    assert asked.grammar is not None
    assert asked.grammar.kind == "tool_calls"
    assert "tools.strict" not in [change["setting"] for change in reply.json["draftlight"]["changes"]]


def test_an_answer_keeps_to_its_schema(served: Served) -> None:
    schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": PARAMETERS, "strict": True}}
    for stream in (False, True):
        reply = served.chat(response_format=schema, max_tokens=100, stream=stream)
        text = reply.text if stream else reply.json["choices"][0]["message"]["content"]
        jsonschema.validate(json.loads(text), PARAMETERS)


@pytest.mark.parametrize(
    "schema", [{"type": "object", "properties": {"a": {"type": "no such"}}}, {"$ref": "#/nowhere"}]
)
def test_a_schema_that_cannot_be_compiled_is_refused_with_the_reason(
    served: Served, schema: dict[str, Any]
) -> None:
    asked = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    for stream in (False, True):
        reply = served.chat(response_format=asked, stream=stream)
        assert reply.status == 400
        assert reply.error["param"] == "response_format"
        assert reply.error["message"].startswith("“response_format”: The JSON schema cannot be compiled")


UNKNOWN: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "no such"}}}


@pytest.mark.parametrize(
    ("choice", "field"),
    [
        ("required", "tools"),
        ("auto", "tools"),
        ({"type": "function", "function": {"name": "second"}}, "tools[1].function.parameters"),
    ],
)
def test_the_tool_whose_schema_cannot_be_compiled_is_named(served: Served, choice: Any, field: str) -> None:
    second = tool("second")
    second["function"] |= {"parameters": UNKNOWN, "strict": True}
    for stream in (False, True):
        reply = served.chat(tools=[tool("first"), second], tool_choice=choice, stream=stream)
        assert (reply.status, reply.error["param"]) == (400, field)
        assert reply.error["message"].startswith(f"“{field}”: ")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"text": {"format": {"type": "json_schema", "name": "x", "schema": UNKNOWN}}}, "text.format"),
        (
            {"tools": [{"type": "function", "name": "a", "parameters": UNKNOWN}], "tool_choice": "required"},
            "tools[0].parameters",
        ),
        ({"input": " "}, "input"),
        ({"input": "long " * 9000}, "input"),
    ],
)
def test_responses_name_their_own_fields(served: Served, fields: dict[str, Any], field: str) -> None:
    reply = served.ask("POST", "/v1/responses", {"input": "hello", "max_output_tokens": 8, **fields})
    assert (reply.status, reply.error["param"]) == (400, field)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"output_config": {"format": {"type": "json_schema", "schema": UNKNOWN}}}, "output_config.format"),
        (
            {"tools": [{"name": "a", "input_schema": UNKNOWN}], "tool_choice": {"type": "any"}},
            "tools[0].input_schema",
        ),
    ],
)
def test_messages_name_their_own_fields(served: Served, fields: dict[str, Any], field: str) -> None:
    asked = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 8, **fields}
    reply = served.ask("POST", "/v1/messages", asked)
    assert (reply.status, reply.json["error"]["type"]) == (400, "invalid_request_error")
    assert reply.error["message"].startswith(f"“{field}”: ")
