"""Unknown fields of the three APIs are ignored and named; wrong values of known fields stay refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.core.serve.served import CHAT, Served, serving

MESSAGES = "/v1/messages"
RESPONSES = "/v1/responses"
COMPLETIONS = "/v1/completions"
# A schema is not searched for unknown fields.
SCHEMA = {"type": "object", "properties": {"k": {"type": "string"}}, "$comment": "own"}
ASKED: dict[str, dict[str, Any]] = {
    CHAT: {
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        "tools": [{"type": "function", "function": {"name": "n", "parameters": SCHEMA}}],
        "max_tokens": 2,
    },
    MESSAGES: {
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        "tools": [{"name": "n", "input_schema": SCHEMA}],
        "max_tokens": 2,
    },
    RESPONSES: {
        "input": [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}],
        "tools": [{"type": "function", "name": "n", "parameters": SCHEMA}],
        "max_output_tokens": 2,
    },
    COMPLETIONS: {"prompt": "hi", "max_tokens": 2},
}
TURNS = {CHAT: "messages", MESSAGES: "messages", RESPONSES: "input"}


def changes(served: Served, path: str, fields: dict[str, Any]) -> dict[str, dict[str, str]]:
    """The changes that an answer names, by setting."""
    reply = served.ask("POST", path, fields)
    assert reply.status == 200, reply.body
    found = reply.json["draftlight"]["changes"]
    assert all(one["reason"] for one in found)
    # The toy model's template does not support tools, which is a change of every request with tools.
    return {one["setting"]: one for one in found if one["setting"] != "tools"}


@pytest.mark.parametrize("path", ASKED)
def test_an_unknown_field_is_ignored_and_named(served: Served, path: str) -> None:
    asked = ASKED[path]
    assert not changes(served, path, asked)
    named = changes(served, path, asked | {"temprature": 1, "x_options": {"a": [1, {}]}, "nothing": None})
    assert set(named) == {"temprature", "x_options"}
    assert named["x_options"]["asked"] == '{"a":[1,{}]}'


@pytest.mark.parametrize(
    ("path", "unknown"),
    [
        (CHAT, "top_a"),
        (CHAT, "messages[0].tool_cal_id"),
        (CHAT, "stream_options.include_usages"),
        (MESSAGES, "stop_sequence"),
        (RESPONSES, "max_tokens"),
        (COMPLETIONS, "frequency_penality"),
    ],
)
def test_an_unknown_field_is_named_by_its_place(served: Served, path: str, unknown: str) -> None:
    parent, _, name = unknown.rpartition(".")
    asked = dict(ASKED[path])
    if parent.startswith("messages"):
        asked["messages"] = [{**asked["messages"][0], name: 1}]
    else:
        asked |= {parent: {name: 1}} if parent else {name: 1}
    [named] = changes(served, path, asked).values()
    assert (named["setting"], named["reason"]) == (unknown, "Draftlight does not support this field")


def test_an_answer_without_a_limit_ends_at_the_servers(toy_folder: Path) -> None:
    with serving(toy_folder, longest_answer=9) as served:
        for path, limit in ((CHAT, "max_tokens"), (RESPONSES, "max_output_tokens")):
            asked = {name: value for name, value in ASKED[path].items() if name != limit}
            reply = served.ask("POST", path, asked)
            usage = reply.json["usage"]
            assert usage.get("completion_tokens", usage.get("output_tokens")) == 9
            named = {one["setting"]: one for one in reply.json["draftlight"]["changes"]}
            assert named["max_tokens"]["used"] == "9"
        # The request's own limit may be higher.
        reply = served.chat(max_tokens=12)
        assert reply.json["usage"]["completion_tokens"] == 12
        assert "max_tokens" not in str(reply.json["draftlight"]["changes"])


@pytest.mark.parametrize("path", TURNS)
def test_unknown_fields_in_messages_blocks_and_tools_are_named_once(served: Served, path: str) -> None:
    asked, turns = ASKED[path], TURNS[path]
    [turn], [tool] = asked[turns], asked["tools"]
    [part] = turn["content"]
    odd = {"x_odd": "v", "cache_control": {"type": "ephemeral"}}
    turn = {**turn, **odd, "content": [{**part, **odd}, {**part, **odd}]}
    named = changes(
        served, path, {**asked, turns: [turn, turn], "tools": [{**tool, **odd, "defer_loading": True}]}
    )
    assert set(named) == {
        f"{turns}[0].x_odd",
        f"{turns}[0].content[0].x_odd",
        "tools[0].x_odd",
        "tools[0].defer_loading",
    }


def test_a_streams_last_event_names_them_too(served: Served) -> None:
    chunks = served.chat(stream=True, x_odd=1).chunks
    assert [one["setting"] for one in chunks[-1]["draftlight"]["changes"]] == ["x_odd"]


@pytest.mark.parametrize(
    ("path", "fields", "named"),
    [
        (MESSAGES, {"mcp_servers": [{"url": "x"}]}, "mcp_servers"),
        (RESPONSES, {"conversation": "c"}, "conversation"),
        (CHAT, {"messages": [{"role": 5, "content": "x"}]}, "messages[0].role"),
        (MESSAGES, {"messages": [{"role": "user", "content": [{"type": "text", "text": 5}]}]}, "text"),
        (RESPONSES, {"input": [{"role": "user", "content": 5}]}, "input[0].content"),
    ],
)
def test_what_would_change_the_answer_or_is_malformed_is_refused(
    served: Served, path: str, fields: dict[str, Any], named: str
) -> None:
    reply = served.ask("POST", path, ASKED[path] | fields)
    assert reply.status == 400, reply.body
    assert named in reply.error["message"]


WORDS: dict[str, Any] = {"role": "user", "content": "The harbour is called Marrow Bay."}
CARRIED: dict[str, Any] = {
    "thread": {"type": "continue", "previous_message_id": "msg_1"},
    "continuation_id": "c",
    "previousTurns": ["a"],
    "chat_history": [WORDS],
    "prefill": "So",
    "x_anything": {"deep": [{"a": WORDS}]},
    "additional_tools": [{"name": "n"}],
    "compaction": {"id": "c"},
    "memory_config": {"content": "They spoke of tides."},
}
# Fields of today's SDKs and servers (LiteLLM, OpenRouter, Mistral, Azure, AI SDK) that carry nothing of it.
HARMLESS: dict[str, Any] = {
    "image_config": {"aspect_ratio": "1:1"},
    "prompt_mode": "reasoning",
    "stop_server_tools_when": [{"type": "step_count", "count": 3}],
    "content_filter_results": {"hate": {"filtered": False, "severity": "safe"}},
    "trace": {"trace_id": "t", "span_name": "n"},
    "internal_chat_message_metadata_passthrough": {"turn_id": "t"},
    "web_search_options": {"search_context_size": "low"},
    "providerOptions": {"openai": {"store": False}},
}


@pytest.mark.parametrize("path", ASKED)
@pytest.mark.parametrize("name", CARRIED)
def test_an_unknown_field_that_may_carry_the_conversation_is_refused(
    served: Served, path: str, name: str
) -> None:
    reply = served.ask("POST", path, ASKED[path] | {name: CARRIED[name]})
    assert (reply.status, name in reply.error["message"]) == (400, True), reply.body
    # An empty value asks for nothing.
    assert served.ask("POST", path, ASKED[path] | {name: None}).status == 200


@pytest.mark.parametrize("path", ASKED)
def test_harmless_fields_of_sdks_are_named_and_not_refused(served: Served, path: str) -> None:
    asked, turns = ASKED[path], TURNS.get(path)
    assert changes(served, path, asked | HARMLESS).keys() == HARMLESS.keys()
    if turns:
        labels = {"tool_name": "n", "parent_message_id": "m", "conversation_id": "c"}
        named = changes(served, path, {**asked, turns: [{**asked[turns][0], **labels}]})
        assert named.keys() == {f"{turns}[0].{name}" for name in labels}


@pytest.mark.parametrize(
    ("path", "turn"),
    [
        (RESPONSES, {"type": kind, **more})
        for kind in ("shell_call_output", "additional_tools", "compaction", "new_item", "tool_search_output")
        for more in ({}, {"output": "done"}, {"role": "user", "tools": []})
    ]
    + [
        (path, turn)
        for path in (CHAT, MESSAGES)
        for turn in (
            {"role": "assistant", "content": [{"text": "a"}, {"type": "tool_addition", "tools": []}]},
            {"role": "system", "content": [{"text": "a"}, {"type": "tool_addition", "tools": []}]},
            {"role": "assistant", "content": "a", "parts": [{"text": "b"}]},
        )
    ],
)
def test_unknown_items_parts_and_fields_of_earlier_turns_are_refused(
    served: Served, path: str, turn: dict[str, Any]
) -> None:
    turns = TURNS[path]
    reply = served.ask("POST", path, ASKED[path] | {turns: [turn, *ASKED[path][turns]]})
    assert reply.status == 400, reply.body
    assert f"{turns}[0]" in reply.error["message"]


def test_a_message_thread_is_refused_as_its_sdks_expect(served: Served) -> None:
    for more in ("", "/count_tokens"):
        for thread in ({"type": "create"}, CARRIED["thread"]):
            reply = served.ask("POST", f"{MESSAGES}{more}", ASKED[MESSAGES] | {"thread": thread})
            details = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
            assert (reply.status, reply.error["type"]) == (400, "invalid_request_error")
            assert reply.error["details"] == details


FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"k": {"enum": ["v"]}},
    "required": ["k"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS, RESPONSES])
@pytest.mark.parametrize(
    "form",
    [
        {"response_format": {"type": "json_object", "value": FORM}},
        {"response_format": {"type": "json", "value": FORM}},
        {"response_format": {"type": "json_schema", "schema": FORM}},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": FORM}}},
        {"guided_json": FORM},
        {"guided_json": json.dumps(FORM)},
        {"structured_outputs": {"json": FORM}},
        {"json_schema": FORM},
        {"json_schema": {"name": "n", "schema": FORM}},
        {"format": FORM},
        {"output_format": {"type": "json_schema", "schema": FORM}},
    ],
)
def test_a_schema_in_another_servers_shape_is_kept(served: Served, path: str, form: dict[str, Any]) -> None:
    asked = {key: value for key, value in ASKED[path].items() if not key.startswith("max_")}
    reply = served.ask("POST", path, {key: value for key, value in asked.items() if key != "tools"} | form)
    assert reply.status == 200, reply.body
    if path == RESPONSES:
        text = reply.json["output"][0]["content"][0]["text"]
    else:
        [choice] = reply.json["choices"]
        text = choice["text"] if path == COMPLETIONS else choice["message"]["content"]
    assert json.loads(text) == {"k": "v"}


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS, RESPONSES])
@pytest.mark.parametrize(
    "form",
    [
        {"guided_regex": "a+"},
        {"guided_choice": ["a", "b"]},
        {"structured_outputs": {"choice": ["a"]}},
        {"structured_outputs": "a"},
        {"guided_json": "not JSON"},
        {"guided_json": FORM, "response_format": {"type": "json_object"}},
        {"guided_json": FORM, "format": FORM},
    ],
)
def test_forms_that_are_no_schema_or_two_are_refused(served: Served, path: str, form: dict[str, Any]) -> None:
    reply = served.ask("POST", path, ASKED[path] | form)
    assert reply.status == 400, reply.body
