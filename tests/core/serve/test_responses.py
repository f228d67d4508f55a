"""OpenAI's responses: every field done, left aside or refused, and what golden transcripts do not show."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from core.events import Generate, Message, ToolCall
from core.serve.responses import response_request
from tests.core.serve.served import Reply, Served, read_reply, send_request, serving, settings

RESPONSES = "/v1/responses"
# The toy model does not stop.
ENDLESS = {"logit_bias": {"0": -100}}
# Short: the toy model's context is, and it reads each byte.
TOOL = {
    "type": "function",
    "name": "n",
    "parameters": {
        "type": "object",
        "properties": {"k": {"enum": ["a", "b"]}},
        "required": ["k"],
        "additionalProperties": False,
    },
}


def body(**fields: Any) -> dict[str, Any]:
    return {"max_output_tokens": 8, "input": "hello", **fields}


def ask(served: Served, **fields: Any) -> Reply:
    return served.ask("POST", RESPONSES, body(**fields))


def asked_of(served: Served, **fields: Any) -> Generate:
    """What the worker would be asked for a response with `fields`."""
    model = served.answers.gate.model
    assert model is not None
    return response_request(body(**fields)).generate("r", settings(), model, model.context_tokens)


def events(reply: Reply) -> list[dict[str, Any]]:
    """The events of a stream; each is named as what it carries, and they are numbered."""
    names = [line[7:] for line in reply.body.decode().split("\n") if line.startswith("event: ")]
    carried = [json.loads(one) for one in reply.data]
    assert [one["type"] for one in carried] == names
    assert [one["sequence_number"] for one in carried] == list(range(len(carried)))
    return carried


def test_a_stream_begins_while_the_prompt_is_read(served: Served) -> None:
    reply = ask(
        served, input="x" * 400, stream=True, settings={"prefill.chunk_tokens": 64}, max_output_tokens=2
    )
    lines = reply.body.decode().split("\n")
    alive = next(place for place, line in enumerate(lines) if re.match(r": keepalive \d+%", line))
    assert lines.index("event: response.created") < alive < lines.index("event: response.output_item.added")
    assert lines.count("event: response.created") == 1
    events(reply)


def test_logprobs_stand_beside_the_text(served: Served) -> None:
    # The widths of drafts depend on times, and the last bits of logits on the widths.
    fields = {"include": ["message.output_text.logprobs"], "top_logprobs": 2, "drafter": "off"}
    [part] = ask(served, **fields).json["output"][0]["content"]
    assert "".join(one["token"] for one in part["logprobs"]) == part["text"]
    assert all(len(one["top_logprobs"]) == 2 and one["logprob"] <= 0 for one in part["logprobs"])
    told = events(ask(served, stream=True, **fields))
    deltas = [one for one in told if one["type"] == "response.output_text.delta"]
    assert [entry for one in deltas for entry in one["logprobs"]] == part["logprobs"]


def test_items_become_turns(served: Served) -> None:
    given = [
        {"role": "developer", "content": "Use tools."},
        {
            "role": "user",
            "content": [{"type": "input_text", "text": "one"}, {"type": "input_text", "text": "two"}],
        },
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {
            "type": "message",
            "id": "msg_1",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "I call.", "annotations": [], "logprobs": []}],
        },
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "c1",
            "name": "n",
            "arguments": "{}",
            "status": None,
        },
        {"type": "function_call", "call_id": "c2", "name": "n", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "4"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "5"}]},
        {"type": "function_call", "call_id": "c3", "name": "n", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c3", "output": "6"},
    ]
    assert asked_of(served, input=given, instructions="Be brief.").messages == (
        Message("system", "Be brief."),
        Message("system", "Use tools."),
        Message("user", "one\ntwo"),
        Message("assistant", "I call.", tool_calls=(ToolCall("c1", "n", "{}"), ToolCall("c2", "n", "{}"))),
        Message("tool", "4", tool_call_id="c1"),
        Message("tool", "5", tool_call_id="c2"),
        Message("assistant", "", tool_calls=(ToolCall("c3", "n", "{}"),)),
        Message("tool", "6", tool_call_id="c3"),
    )


def test_the_thoughts_of_earlier_answers_are_handed_over(served: Served) -> None:
    def thought(text: str, **more: Any) -> dict[str, Any]:
        return {"type": "reasoning", "content": [{"type": "reasoning_text", "text": text}], **more}

    call = {"type": "function_call", "call_id": "c1", "name": "n", "arguments": "{}"}
    given = [
        {"role": "user", "content": "q1"},
        thought("Oh.", summary=[{"type": "summary_text", "text": "short"}]),
        call,
        {"type": "function_call_output", "call_id": "c1", "output": "4"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "So."}]},
        {"role": "assistant", "content": "Four."},
        thought("Lost."),
        {"role": "user", "content": "q2"},
        {"type": "reasoning", "summary": [], "content": "odd", "encrypted_content": "x"},
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "q3"},
    ]
    assert asked_of(served, input=given).messages == (
        Message("user", "q1"),
        Message("assistant", "", tool_calls=(ToolCall("c1", "n", "{}"),), thought="Oh."),
        Message("tool", "4", tool_call_id="c1"),
        Message("assistant", "Four.", thought="So."),
        Message("user", "q2"),
        Message("assistant", "Yes."),
        Message("user", "q3"),
    )


def test_sampling_is_what_was_asked(served: Served) -> None:
    asked = asked_of(
        served, temperature=0.5, top_p=0.9, seed=7, max_output_tokens=3, drafter="off",
        reasoning={"effort": "none"}, tools=[TOOL],
    )  # fmt: skip
    sampling = asked.settings.sampling
    assert (sampling.temperature, sampling.top_p, sampling.seed, sampling.max_tokens) == (0.5, 0.9, 7, 3)
    assert asked.settings.drafting.drafter == "off"
    assert asked.settings.chat.thinking == "off"
    assert [tool.name for tool in asked.tools] == ["n"]
    assert asked_of(served, tools=[TOOL], tool_choice="none").tools == ()


@pytest.mark.parametrize(
    "fields",
    [
        {"store": True, "metadata": {"a": "b"}, "user": "u", "prompt_cache_key": "k", "service_tier": "auto"},
        {"truncation": "auto", "max_tool_calls": 3, "background": False, "previous_response_id": None},
        {"include": ["reasoning.encrypted_content"], "reasoning": {"effort": None, "summary": "auto"}},
        {"text": {"format": {"type": "text"}, "verbosity": "medium"}, "stream_options": None},
        {"tools": [TOOL], "tool_choice": "auto", "parallel_tool_calls": False},
    ],
)
def test_what_cannot_change_the_answer_is_taken(served: Served, fields: dict[str, Any]) -> None:
    assert ask(served, **fields).status == 200


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"background": True}, "background"),
        ({"input": []}, "input"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input"),
        ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input[0].content[0].type"),
        ({"input": [{"role": "tool", "content": "x"}]}, "input[0].role"),
        ({"tools": [{**TOOL, "type": 7}]}, "tools[0].type"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": {"type": "function", "name": "other"}}, "tool_choice"),
        ({"reasoning": {"effort": 5}}, "reasoning.effort"),
        ({"include": "all"}, "include"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"temperature": 9}, "temperature"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(served: Served, fields: dict[str, Any], named: str) -> None:
    before = [record.id for record in served.records]
    reply = ask(served, **fields)
    assert reply.status == 400, reply.body
    assert reply.error["type"] == "invalid_request_error"
    assert reply.error["param"].startswith(named)
    assert all(record.state == "failed" for record in served.records if record.id not in before)


def test_a_worker_that_dies_in_the_middle_is_told_as_an_event(toy_folder: Path) -> None:
    with serving(toy_folder) as served:
        line = served.line()
        try:
            send_request(line, "POST", RESPONSES, body(stream=True, max_output_tokens=400, **ENDLESS))
            served.until(lambda: bool(served.records) and served.records[-1].state == "writing")
            pid = served.worker.pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            told = events(read_reply(line))
        finally:
            line.close()
        assert told[-1]["type"] == "response.failed"
        assert told[-1]["response"]["error"]["code"] == "server_error"
        served.until(lambda: served.answers.gate.state == "ready", 60)
        assert ask(served).status == 200


def test_a_response_repeats_what_was_requested(served: Served) -> None:
    echoed = {"max_tool_calls": 3, "safety_identifier": "s", "prompt_cache_key": "k", "presence_penalty": 0.5}
    response = ask(served, **echoed).json
    assert {name: response[name] for name in echoed} == echoed


def test_a_kept_response_can_be_read_and_dropped(served: Served) -> None:
    made = served.ask("POST", RESPONSES, {"input": "hi", "max_output_tokens": 3})
    place = f"{RESPONSES}/{made.json['id']}"
    assert served.ask("GET", place).json == made.json
    assert served.ask("DELETE", place).json == {"id": made.json["id"], "object": "response", "deleted": True}
    for method in ("GET", "DELETE"):
        assert served.ask(method, place).status == 404
    after = {"input": "hi", "max_output_tokens": 3, "previous_response_id": made.json["id"]}
    assert served.ask("POST", RESPONSES, after).status == 400
    unkept = served.ask("POST", RESPONSES, {"input": "hi", "max_output_tokens": 3, "store": False})
    assert served.ask("GET", f"{RESPONSES}/{unkept.json['id']}").status == 404


def test_input_tokens_are_those_of_the_prompt(served: Served) -> None:
    made = served.ask("POST", RESPONSES, {"input": "hi", "max_output_tokens": 3})
    asked = {"input": "and now?", "previous_response_id": made.json["id"], "instructions": "Be brief."}
    counted = served.ask("POST", f"{RESPONSES}/input_tokens", asked)
    answered = served.ask("POST", RESPONSES, asked | {"max_output_tokens": 3})
    assert counted.json["object"] == "response.input_tokens"
    assert counted.json["input_tokens"] == answered.json["usage"]["input_tokens"]


def test_stops_end_a_response(served: Served) -> None:
    asked: dict[str, Any] = {"input": "hi", "max_output_tokens": 12, "temperature": 0}
    text = served.ask("POST", RESPONSES, asked).json["output"][0]["content"][0]["text"]
    stop = text[3:7]
    for stops in (stop, [stop]):
        reply = served.ask("POST", RESPONSES, asked | {"stop": stops})
        assert reply.json["output"][0]["content"][0]["text"] == text[: text.index(stop)]
        assert reply.json["status"] == "completed"
        assert reply.json["completed_at"]
