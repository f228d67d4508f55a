"""Anthropic's messages: what golden transcripts do not show, besides how requests are read (test_cases)."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.core.serve.served import COUNT, MESSAGES, Reply, Served

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
    assert any(
        re.fullmatch(r"keepalive \d+%: Reading [\d,]+ tokens.*", comment) for comment in reply.comments
    )


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
