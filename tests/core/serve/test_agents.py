"""Requests with the fields that coding agents and their libraries send, in small."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from core.events import Change, Generate, ToolCall
from core.serve import answering
from core.serve.conversation import completed
from core.serve.response_memory import ResponseMemory
from core.serve.responses import Output, response_request
from tests.core.serve.served import CHAT, Reply, Served, settings
from tests.core.serve.test_unknown_fields import ASKED, COMPLETIONS, MESSAGES, RESPONSES, SCHEMA, changes

IMAGE_WORDS = "[image left out: this model does not see images]"
PIXEL = "data:image/png;base64,AAAA"
BLOCK = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}


def generate_of(served: Served, reply: Reply) -> Generate:
    """The command that became of a request."""
    assert reply.status == 200, reply.body
    asked = served.answers.requests.asked(reply.json["id"])
    assert asked is not None
    return asked


def user(content: Any = "hi") -> dict[str, Any]:
    return {"role": "user", "content": content}


def message(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"max_tokens": 2, "messages": messages or (user(),), **fields}


def response(*items: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"max_output_tokens": 2, "input": list(items) or "hi", **fields}


# ---- messages


def test_the_last_message_may_be_of_the_role_system(served: Served) -> None:
    asked = message(
        user(), {"role": "system", "content": "Helpers: none."}, system=[{"type": "text", "text": "S"}]
    )
    assert not changes(served, MESSAGES, asked)
    del asked["max_tokens"]
    assert served.ask("POST", f"{MESSAGES}/count_tokens", asked).json["input_tokens"] > 2


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"effort": "low"}, {"effort"}),
        ({"output_config": {"effort": "low"}}, {"output_config.effort"}),
        ({"output_config": {"effort": "high", "x": 1}}, {"output_config.x"}),
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, {"thinking", "thinking.budget_tokens"}),
        ({"context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}}, set()),
        (
            {"context_management": {"edits": [{"type": "clear_tool_uses_1", "trigger": {}}]}},
            {"context_management.edits[0]", "context_management.edits[0].trigger"},
        ),
        (
            {
                "tools": [
                    {"type": "web_search_20250305", "name": "web_search", "max_uses": 8},
                    {"type": "bash_20250124", "name": "bash"},
                    {"name": "n", "input_schema": SCHEMA, "defer_loading": True},
                ]
            },
            {"tools[0]", "tools[1]", "tools[0].defer_loading"},
        ),
    ],
)
def test_what_a_message_cannot_have_is_named(served: Served, fields: dict[str, Any], named: set[str]) -> None:
    assert set(changes(served, MESSAGES, message(**fields))) == named


def test_thinking_blocks_of_earlier_answers_are_thoughts(served: Served) -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "abc"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "text", "text": "yes", "cache_control": {"type": "ephemeral"}},
    ]
    asked = message(user(), {"role": "assistant", "content": blocks}, user())
    assert not changes(served, MESSAGES, asked)
    reply = served.ask("POST", MESSAGES, asked)
    assert generate_of(served, reply).messages[1].thought == "hm"


def test_images_of_earlier_turns_and_results_become_words(served: Served) -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": [BLOCK, {"type": "tool_reference"}]}
    asked = message(
        user([BLOCK, {"type": "text", "text": "see"}]),
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "n", "input": {}}]},
        user([result, BLOCK]),
    )
    named = changes(served, MESSAGES, asked)
    assert set(named) == {
        "messages[0].content[0]",
        "messages[2].content[0].content[0]",
        "messages[2].content[0].content[1]",
        "messages[2].content[1]",
    }
    assert named["messages[0].content[0]"]["used"] == IMAGE_WORDS
    messages = generate_of(served, served.ask("POST", MESSAGES, asked)).messages
    assert messages[0].content == f"{IMAGE_WORDS}\nsee"
    assert messages[2].content.startswith(IMAGE_WORDS)
    assert messages[3].content == IMAGE_WORDS


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        (MESSAGES, message(user([BLOCK, {"type": "text", "text": "What is it?"}]))),
        (CHAT, message(user([{"type": "image_url", "image_url": {"url": PIXEL}}]))),
        (RESPONSES, response(user([{"type": "input_image", "image_url": PIXEL}]))),
    ],
)
def test_an_image_in_the_question_is_refused_in_words(
    served: Served, path: str, asked: dict[str, Any]
) -> None:
    reply = served.ask("POST", path, asked)
    assert reply.status == 400
    assert "this model does not see images" in reply.error["message"]


# ---- responses


def test_what_a_response_cannot_have_is_named(served: Served) -> None:
    developer = [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": text}]}
        for text in ("Read only.", "Be brief.")
    ]
    tools = [
        {"type": "function", "name": "n", "strict": False, "parameters": SCHEMA},
        {"type": "namespace", "name": "m", "tools": []},
        {"type": "web_search", "external_web_access": False},
    ]
    asked = response(
        *developer,
        user(),
        {"type": "reasoning", "summary": [], "encrypted_content": "xyz"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        user(),
        tools=tools,
        client_metadata={"session": "x"},
        store=False,
        include=["reasoning.encrypted_content", "web_search_call.results"],
        reasoning={"effort": "medium", "summary": "auto"},
        text={"verbosity": "low"},
        max_output_tokens=1,
    )
    named = changes(served, RESPONSES, asked)
    left_out = {"tools[1]", "tools[2]", "input[4]"}
    assert set(named) == left_out | {"include", "reasoning.effort", "text.verbosity"}
    generate = generate_of(served, served.ask("POST", RESPONSES, asked))
    assert [one.role for one in generate.messages] == ["system", "system", "user", "user"]
    assert [tool.name for tool in generate.tools] == ["n"]


def test_an_image_that_a_function_gave_becomes_words(served: Served) -> None:
    image = {"type": "input_image", "image_url": PIXEL}
    call = {"type": "function_call", "call_id": "c", "name": "view", "arguments": "{}"}
    asked = response(
        user(), call, {"type": "function_call_output", "call_id": "c", "output": [image]}, user([image])
    )
    assert set(changes(served, RESPONSES, asked)) == {"input[2].output[0]", "input[3].content[0]"}
    messages = generate_of(served, served.ask("POST", RESPONSES, asked)).messages
    assert [one.content for one in messages[-2:]] == [IMAGE_WORDS, IMAGE_WORDS]


@pytest.mark.parametrize("stream", [False, True])
def test_items_and_responses_of_earlier_requests_can_be_referred_to(served: Served, stream: bool) -> None:
    reply = served.ask("POST", RESPONSES, response(stream=stream))
    first = json.loads(reply.data[-1])["response"] if stream else reply.json
    [item] = first["output"]
    text = item["content"][0]["text"]
    by_item = response(user(), {"type": "item_reference", "id": item["id"]}, user("more"))
    by_response = response(user("more"), previous_response_id=first["id"])
    for asked in (by_item, by_response):
        second = served.ask("POST", RESPONSES, asked)
        assert [one.content for one in generate_of(served, second).messages] == ["hi", text, "more"]
    third = served.ask("POST", RESPONSES, response(user("end"), previous_response_id=second.json["id"]))
    assert [one.content for one in generate_of(served, third).messages][:3] == ["hi", text, "more"]


def test_a_response_with_store_false_is_not_kept(served: Served) -> None:
    first = served.ask("POST", RESPONSES, response(store=False)).json
    reply = served.ask("POST", RESPONSES, response(previous_response_id=first["id"]))
    assert (reply.status, reply.error["param"]) == (400, "previous_response_id")


def test_the_memory_of_responses_is_bounded() -> None:
    memory = ResponseMemory(most=3, most_bytes=2_000)
    for number in range(5):
        memory.keep("x", {"id": f"r{number}", "output": [{"id": f"m{number}", "text": "y"}]})
    for number, known in enumerate((False, False, True, True, True)):
        asked = {"input": [{"type": "item_reference", "id": f"m{number}"}]}
        if known:
            assert memory.resolved(asked, [])["input"] == [{"id": f"m{number}", "text": "y"}]
        else:
            left: list[Change] = []
            assert memory.resolved(asked, left)["input"] == []
            assert [one.asked for one in left] == [f"m{number}"]
    memory.keep("x" * 3_000, {"id": "large", "output": []})
    with pytest.raises(Exception, match="memory"):
        memory.resolved({"input": "x", "previous_response_id": "large"}, [])


# ---- chat completions and completions


@pytest.mark.parametrize("level", ["minimal", "low", "medium", "high", "xhigh"])
def test_any_level_of_effort_is_the_thinking_switch(served: Served, level: str) -> None:
    asked = message(reasoning_effort=level, settings={})
    generate = generate_of(served, served.ask("POST", CHAT, asked))
    assert generate.settings.chat.thinking == ("on" if level != "minimal" else "off")
    # The toy model does not think.
    assert set(changes(served, CHAT, asked)) == ({"reasoning_effort"} if level != "minimal" else set())


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"max_tokens": -1, "stop": ["\n", "e", "a", "i", "o", " "]}, set()),
        ({"parallel_tool_calls": True, "user": "u", "metadata": {"a": "b"}}, set()),
        ({"stop": [f"s{number}" for number in range(20)]}, set()),
        ({"echo": False, "cache_prompt": True}, {"echo", "cache_prompt"}),
        ({"verbosity": "low", "web_search_options": {}}, {"verbosity", "web_search_options"}),
        ({"tools": [{"type": "web_search"}]}, {"tools[0]"}),
        ({"stream_options": None, "chat_template_kwargs": {"x": 1}}, {"chat_template_kwargs.x"}),
    ],
)
def test_what_clients_of_chat_completions_send(
    served: Served, fields: dict[str, Any], named: set[str]
) -> None:
    assert set(changes(served, CHAT, message(**fields))) - {"sampling.max_tokens"} == named


@pytest.mark.parametrize("seed", [2**40, 2**63, 2**64 + 1, 10**30, -(2**70)])
def test_a_seed_may_be_of_any_size(served: Served, seed: int) -> None:
    generate = generate_of(served, served.ask("POST", CHAT, message(seed=seed)))
    assert generate.settings.sampling.seed == seed % 2**31


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        (
            CHAT,
            {
                "functions": [],
                "function_call": "auto",
                "audio": {},
                "stream_options": {"include_usage": True},
                "top_logprobs": 0,
            },
        ),
        (COMPLETIONS, {"suffix": "", "echo": False, "best_of": 1, "stream_options": {"include_usage": True}}),
        (MESSAGES, {"mcp_servers": [], "container": ""}),
        (RESPONSES, {"conversation": "", "prompt": {}, "background": False}),
    ],
)
def test_fields_that_ask_for_nothing_are_accepted(served: Served, path: str, fields: dict[str, Any]) -> None:
    assert not changes(served, path, ASKED[path] | fields)


def test_text_in_the_parts_of_another_api_is_text(served: Served) -> None:
    parts = [{"type": "input_text", "text": "one"}, {"type": "text", "text": "two"}]
    said = [{"type": "output_text", "text": "three"}, {"type": "refusal", "refusal": "four"}]
    turns = user(parts), {"role": "assistant", "content": said}, user(parts)
    for path, asked in ((CHAT, message(*turns)), (MESSAGES, message(*turns)), (RESPONSES, response(*turns))):
        assert not changes(served, path, asked)
        messages = generate_of(served, served.ask("POST", path, asked)).messages
        assert [one.content for one in messages] == ["one\ntwo", "three\nfour", "one\ntwo"]


def test_thoughts_among_the_parts_of_an_earlier_answer_are_thoughts(served: Served) -> None:
    said = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "yes"}]
    turns = user(), {"role": "assistant", "content": said}, user()
    for path, asked in ((CHAT, message(*turns)), (MESSAGES, message(*turns)), (RESPONSES, response(*turns))):
        assert not changes(served, path, asked)
        answer = generate_of(served, served.ask("POST", path, asked)).messages[1]
        assert (answer.content, answer.thought) == ("yes", "hm")


def test_every_api_reads_the_shapes_of_the_others(served: Served) -> None:
    """A call and its result in the shape of each API, sent to each."""
    said, called = {"role": "assistant", "content": "I look."}, {"name": "n", "arguments": '{"a":"b"}'}
    block = {"type": "tool_use", "id": "c", "name": "n", "input": {"a": "b"}}
    blocks = [{"type": "text", "text": "I look."}, block]
    result = {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "ok"}]}
    results = user([result, {"type": "text", "text": "and"}])
    item = {"type": "function_call_output", "call_id": "c", "output": "ok"}
    for path in (CHAT, MESSAGES, RESPONSES):
        for shape in (
            [{**said, "tool_calls": [{"id": "c", "type": "function", "function": called}]}, results],
            [{**said, "content": blocks}, results],
            [said, {"type": "function_call", "call_id": "c", **called}, item, user("and")],
        ):
            asked = response(user(), *shape) if path == RESPONSES else message(user(), *shape)
            assert not changes(served, path, asked)
            _, answer, told, more = generate_of(served, served.ask("POST", path, asked)).messages
            assert (answer.content, answer.tool_calls) == ("I look.", (ToolCall("c", "n", '{"a":"b"}'),))
            assert (told.role, told.content, told.tool_call_id) == ("tool", "ok", "c")
            assert (more.role, more.content) == ("user", "and")


# ---- all of them


def test_a_tool_that_must_be_called_and_was_left_out_need_not_be(served: Served) -> None:
    search = {"type": "web_search_20250305", "name": "web_search"}
    asked = message(tools=[search], tool_choice={"type": "tool", "name": "web_search"})
    assert set(changes(served, MESSAGES, asked)) == {"tools[0]", "tool_choice"}
    asked = message(tools=[{"type": "web_search"}], tool_choice="required")
    assert set(changes(served, CHAT, asked)) == {"tools[0]", "tool_choice"}


@pytest.mark.parametrize(
    "cut_off", ['{"city": "Pa', '{"city": "Pa\\', '{"city": "Pa", "day', '{"city": "Pa", "x":']
)
def test_arguments_that_were_cut_off_may_come_back(served: Served, cut_off: str) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": cut_off}}
    chat = message(
        user(),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": None},
    )
    items = response(
        user(),
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": cut_off},
        {"type": "function_call_output", "call_id": "c", "output": ""},
    )
    for path, asked, place in (
        (CHAT, chat, "messages[1].tool_calls[0].function.arguments"),
        (RESPONSES, items, "input[1].arguments"),
    ):
        reply = served.ask("POST", path, asked)
        assert generate_of(served, reply).messages[1].tool_calls[0].arguments == '{"city": "Pa"}'
        assert changes(served, path, asked)[place]["asked"] == cut_off


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("", "{}"),
        ("{", "{}"),
        ('{"a', "{}"),
        ('{"a": [1, {"b": tr', '{"a": [1, {}]}'),
        ('{"a": [1, 2', '{"a": [1, 2]}'),
        ('{"a": "}, [', '{"a": "}, ["}'),
        ('{"a": 1, "b": nul', '{"a": 1}'),
        ("no JSON", "{}"),
        ('["a', "{}"),
    ],
)
def test_a_cut_off_object_is_completed(text: str, whole: str) -> None:
    assert completed(text) == whole


def test_a_billing_header_is_not_part_of_the_prompt(served: Served) -> None:
    def header(turn: int) -> str:
        return f"x-anthropic-billing-header: cc_version=2.1.0; cch={turn:05};"

    def blocks(turn: int) -> list[dict[str, Any]]:
        return [{"type": "text", "text": header(turn)}, {"type": "text", "text": "Be brief."}]

    kinds: list[tuple[str, Callable[[int], dict[str, Any]]]] = [
        (MESSAGES, lambda turn: message(system=blocks(turn))),
        (MESSAGES, lambda turn: message(system=f"{header(turn)}\nBe brief.")),
        (CHAT, lambda turn: message({"role": "system", "content": f"{header(turn)}\nBe brief."}, user())),
        (RESPONSES, lambda turn: response(instructions=f"{header(turn)}\nBe brief.")),
    ]
    for path, asked in kinds:
        assert len(changes(served, path, asked(1))) == 1
        first, second = (generate_of(served, served.ask("POST", path, asked(turn))) for turn in (1, 2))
        assert first.messages == second.messages
        assert first.messages[0].content == "Be brief."


@pytest.mark.parametrize(
    "fields",
    [
        {"reasoning_content": "hm"},
        {"reasoning": "hm"},
        {"reasoning_details": [{"type": "reasoning.text", "text": "hm"}, {"type": "reasoning.encrypted"}]},
        {"thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "s"}]},
    ],
)
def test_thoughts_in_the_history_of_other_servers(served: Served, fields: dict[str, Any]) -> None:
    answer = {"role": "assistant", "content": "yes", "cache_control": {"type": "ephemeral"}, **fields}
    asked = message(user(), answer, user())
    assert not changes(served, CHAT, asked)
    assert generate_of(served, served.ask("POST", CHAT, asked)).messages[1].thought == "hm"


def test_custom_tools_are_functions_of_a_text(served: Served) -> None:
    model = served.answers.gate.model
    assert model is not None
    asked = response_request(
        response(
            user(),
            {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": 'a "b"'},
            {"type": "custom_tool_call_output", "call_id": "c", "output": "done"},
            tools=[
                {"type": "web_search"},
                {
                    "type": "custom",
                    "name": "patch",
                    "format": {"type": "grammar", "definition": "start: /x/"},
                },
            ],
            tool_choice={"type": "custom", "name": "patch"},
        )
    )
    generate = asked.generate("r", settings(), model, model.context_tokens)
    assert [one.setting for one in asked.changes] == ["tools[0]", "tools[0].format"]
    assert "start: /x/" in generate.tools[0].description
    assert json.loads(generate.messages[1].tool_calls[0].arguments) == {"input": 'a "b"'}
    assert (generate.messages[2].role, generate.messages[2].content) == ("tool", "done")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [('{"input": "a b"}', "a b"), ('{"input": "a b', "a b"), ('{"text": "a"}', '{"text": "a"}')],
)
def test_the_call_of_a_custom_tool_has_its_text(arguments: str, text: str) -> None:
    output = Output({"patch"})
    events = [*output.add([ToolCall("call_1", "patch", arguments)], []), *output.close()]
    assert [name for name, _ in events] == [
        "output_item.added",
        "custom_tool_call_input.delta",
        "custom_tool_call_input.done",
        "output_item.done",
    ]
    [item] = output.items
    assert (item["type"], item["call_id"], item["input"]) == ("custom_tool_call", "call_1", text)


def test_a_response_that_is_too_long_fails_in_its_stream(served: Served) -> None:
    """Codex shortens the conversation by this code, and reads it in events only."""
    reply = served.ask("POST", RESPONSES, response(user("x" * 900), stream=True))
    events = [json.loads(one) for one in reply.data]
    assert reply.status == 200
    assert [one["type"] for one in events] == [
        "response.created", "response.in_progress", "response.failed",
    ]  # fmt: skip
    assert events[-1]["response"]["error"]["code"] == "context_length_exceeded"


def test_messages_without_content_say_nothing(served: Served) -> None:
    asked = message({"role": "system", "content": None}, {"role": "user"}, user())
    generate = generate_of(served, served.ask("POST", CHAT, asked))
    assert [one.content for one in generate.messages] == ["", "", "hi"]


def test_a_stream_is_never_silent_for_long(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """The input of a custom tool is given when it is complete; until then comments keep the line alive."""
    monkeypatch.setattr(answering, "_QUIET_S", 0.0)
    asked = response(tools=[{"type": "custom", "name": "p"}], tool_choice="required", stream=True)
    del asked["max_output_tokens"]
    reply = served.ask("POST", RESPONSES, asked)
    assert reply.status == 200
    assert "writing" in reply.comments
