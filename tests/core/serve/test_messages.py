"""Anthropic's messages: every field done, left aside or refused, and what golden transcripts do not show."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from core.events import Attachment, Generate, Message, ToolCall
from core.serve.messages import message_request
from tests.core.serve.served import Reply, Served, settings

MESSAGES = "/v1/messages"
COUNT = "/v1/messages/count_tokens"
# Short: the toy model's context is, and it reads each byte.
TOOL = {
    "name": "n",
    "input_schema": {
        "type": "object",
        "properties": {"k": {"enum": ["a", "b"]}},
        "required": ["k"],
        "additionalProperties": False,
    },
}


def body(text: str = "hello", **fields: Any) -> dict[str, Any]:
    return {"max_tokens": 8, "messages": [{"role": "user", "content": text}], **fields}


def ask(served: Served, text: str = "hello", **fields: Any) -> Reply:
    return served.ask("POST", MESSAGES, body(text, **fields), {"anthropic-version": "2023-06-01"})


def generate_of(served: Served, **fields: Any) -> Generate:
    """What the worker was asked for a message with `fields`."""
    reply = ask(served, **fields)
    assert reply.status == 200, reply.body
    asked = served.answers.requests.asked(reply.json["id"])
    assert asked is not None
    return asked


def events(reply: Reply) -> list[dict[str, Any]]:
    """The events of a stream; each is named as what it carries."""
    names = [line[7:] for line in reply.body.decode().split("\n") if line.startswith("event: ")]
    carried = [json.loads(one) for one in reply.data]
    assert [one["type"] for one in carried] == names
    return carried


def test_the_first_event_says_how_long_the_prompt_is_and_what_of_it_was_cached(served: Served) -> None:
    for _ in range(2):
        told = events(ask(served, "counted in the first event", stream=True))
        started, ended = told[0]["message"]["usage"], told[-2]["usage"]
        assert {**started, "output_tokens": 8} == ended
    assert (started["input_tokens"], started["cache_read_input_tokens"] > 1) == (1, True)


def test_pings_keep_the_line_alive_while_a_long_prompt_is_read(served: Served) -> None:
    reply = ask(served, "x" * 400, stream=True, settings={"prefill.chunk_tokens": 64}, max_tokens=2)
    kinds = [one["type"] for one in events(reply)]
    assert kinds[0] == "message_start"
    assert kinds[1 : kinds.index("content_block_start")].count("ping") > 0
    assert kinds.count("message_start") == 1
    assert any(re.fullmatch(r"keepalive \d+%", comment) for comment in reply.comments)


def test_a_stop_sequence_is_named(served: Served) -> None:
    text = ask(served, "stop here", max_tokens=12).json["content"][0]["text"]
    stop = text[3:5]
    message = ask(served, "stop here", max_tokens=12, stop_sequences=["\0never", stop]).json
    assert (message["stop_reason"], message["stop_sequence"]) == ("stop_sequence", stop)
    assert message["content"][0]["text"] == text[: text.index(stop)]


def test_a_call_that_was_cut_off_has_no_arguments_but_says_why(served: Served) -> None:
    message = ask(served, "call", tools=[TOOL], tool_choice={"type": "tool", "name": "n"}, max_tokens=30)
    assert message.json["stop_reason"] == "max_tokens"
    assert message.json["content"][0]["input"] == {}


def test_an_answer_by_a_schema(served: Served) -> None:
    config = {"format": {"type": "json_schema", "schema": TOOL["input_schema"]}}
    message = ask(served, output_config=config, max_tokens=200).json
    assert set(json.loads(message["content"][0]["text"])) == {"k"}
    assert message["stop_reason"] == "end_turn"


def test_blocks_become_turns(served: Served) -> None:
    document = {"type": "text", "media_type": "text/plain", "data": "long"}
    cache = {"type": "ephemeral"}
    given = [
        {
            "role": "user",
            "content": [
                {"type": "document", "source": document, "title": "notes.txt", "cache_control": cache},
                {"type": "text", "text": "one", "cache_control": cache},
                {"type": "text", "text": "two"},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "I call."},
                {"type": "tool_use", "id": "toolu_1", "name": "n", "input": {"k": "a"}},
                {"type": "tool_use", "id": "toolu_2", "name": "n", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "4"}]},
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": "no", "is_error": True},
                {"type": "text", "text": "and now?"},
            ],
        },
    ]
    system = [{"type": "text", "text": "Be brief."}]
    model = served.answers.gate.model
    assert model is not None
    request = message_request(body(messages=given, system=system, tools=[TOOL]))
    asked = request.generate("r", settings(), model, model.context_tokens)
    assert asked.messages == (
        Message("system", "Be brief."),
        Message("user", "one\ntwo", (Attachment("notes.txt", "long"),)),
        Message(
            "assistant",
            "I call.",
            tool_calls=(ToolCall("toolu_1", "n", '{"k":"a"}'), ToolCall("toolu_2", "n", "{}")),
            thought="hm",
        ),
        Message("tool", "4", tool_call_id="toolu_1"),
        Message("tool", "Error: no", tool_call_id="toolu_2"),
        Message("user", "and now?"),
    )
    assert [tool.name for tool in asked.tools] == ["n"]


def test_sampling_is_what_was_asked(served: Served) -> None:
    asked = generate_of(
        served, temperature=0.5, top_p=0.9, top_k=3, seed=7, stop_sequences=["END"], max_tokens=3,
        drafter="off", thinking={"type": "disabled"},
    )  # fmt: skip
    sampling = asked.settings.sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.seed) == (0.5, 0.9, 3, 7)
    assert (sampling.max_tokens, asked.stops, asked.settings.drafting.drafter) == (3, ("END",), "off")
    assert asked.settings.chat.thinking == "off"
    for given, mode in ({"type": "adaptive"}, "auto"), ({"type": "enabled", "budget_tokens": 1024}, "on"):
        assert generate_of(served, thinking=given).settings.chat.thinking == mode


@pytest.mark.parametrize(
    "fields",
    [
        {"metadata": {"user_id": "u"}, "service_tier": "auto", "inference_geo": "eu", "speed": "fast"},
        {"cache_control": {"type": "ephemeral"}, "output_config": {"effort": "high"}},
        {"tools": [{**TOOL, "type": "custom", "cache_control": None, "eager_input_streaming": True}]},
        {"tools": [TOOL], "tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
        {"context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}},
        {"system": None, "stop_sequences": None, "top_k": None, "thinking": None},
    ],
)
def test_what_cannot_change_the_answer_is_taken(served: Served, fields: dict[str, Any]) -> None:
    assert ask(served, **fields).status == 200


def part(given: dict[str, Any]) -> dict[str, Any]:
    """A conversation of one question with the part `given`."""
    return {"messages": [{"role": "user", "content": [given]}]}


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"max_tokens": None}, "max_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"temperature": "hot"}, "temperature"),
        ({"container": "c"}, "container"),
        ({"mcp_servers": [{"url": "x"}]}, "mcp_servers"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user", "content": []}]}, "messages"),
        (part({"type": "image", "source": {}}), "messages[0].content[0].type"),
        (part({"type": "tool_use", "id": "t", "name": "n", "input": {}}), "messages[0].content[0]"),
        (
            part(
                {"type": "document", "source": {"type": "text", "data": "d"}, "citations": {"enabled": True}}
            ),
            "messages[0].content[0].citations",
        ),
        ({"tool_choice": {"type": "any"}}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": {"type": "tool", "name": "other"}}, "tool_choice"),
        ({"thinking": {"type": "between_tools"}}, "thinking.type"),
        ({"output_config": {"effort": 5}}, "output_config.effort"),
        ({"stop_sequences": [""]}, "stop_sequences"),
        ({"context_management": {"edits": "all"}}, "context_management"),
        ({"settings": {"no.such": 1}}, "no.such"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(served: Served, fields: dict[str, Any], named: str) -> None:
    before = [record.id for record in served.records]
    reply = ask(served, **fields)
    assert reply.status == 400, reply.body
    assert set(reply.json) == {"type", "error"}
    assert (reply.json["type"], reply.error["type"]) == ("error", "invalid_request_error")
    assert named in reply.error["message"]
    assert all(record.state == "failed" for record in served.records if record.id not in before)


def test_errors_have_anthropics_shape_whoever_finds_them(served: Served) -> None:
    assert served.ask("POST", f"{MESSAGES}/nothing", {}).error["type"] == "not_found_error"
    assert served.ask("POST", MESSAGES, b"{").error["type"] == "invalid_request_error"
    assert served.ask("POST", MESSAGES, body(), {"host": "evil.example"}).error["type"] == "permission_error"
    assert served.ask("GET", MESSAGES).json["type"] == "error"
    for streams in (False, True):
        reply = ask(served, "x" * 900, stream=streams)
        assert (reply.status, reply.error["type"]) == (400, "invalid_request_error")
        # Claude Code shortens the conversation by these words.
        assert re.fullmatch(r"prompt is too long: \d+ tokens > \d+ maximum", reply.error["message"])


def test_a_count_is_what_the_message_has(served: Served) -> None:
    fields: dict[str, Any] = {"system": "Be brief.", "tools": [TOOL]}
    usage = ask(served, "count me", **fields).json["usage"]
    asked = body("count me", **fields)
    del asked["max_tokens"]
    reply = served.ask("POST", COUNT, asked)
    assert reply.json["input_tokens"] == usage["input_tokens"] + usage["cache_read_input_tokens"]
    without = served.ask("POST", COUNT, {"messages": asked["messages"]}).json["input_tokens"]
    assert without < reply.json["input_tokens"]


def test_a_count_of_far_more_than_fits_is_told_all_the_same(served: Served) -> None:
    asked = {"messages": [{"role": "user", "content": "word " * 40_000}]}
    assert served.ask("POST", COUNT, asked).json["input_tokens"] > 10_000


def test_a_count_is_refused_as_a_message_is(served: Served) -> None:
    assert served.ask("POST", COUNT, {"messages": []}).error["type"] == "invalid_request_error"
    assert served.ask("POST", COUNT, {"messages": [{"role": "user", "content": " "}]}).status == 400
