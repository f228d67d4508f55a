"""Requests in the shapes that clients really send: of other APIs, older versions and loosely typed languages.

They mean the same as the documented shape, so nothing of them is a change.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.events import Message
from tests.core.serve.served import CHAT, Served, serving
from tests.core.serve.test_agents import generate_of, message, response, user
from tests.core.serve.test_unknown_fields import COMPLETIONS, MESSAGES, RESPONSES, changes
from tests.core.toy import write_toy_model

SCHEMA = {"type": "object", "properties": {"a": {"enum": ["b"], "default": None}}}
NESTED = {"type": "function", "function": {"name": "n", "description": "d", "parameters": SCHEMA}}
FLAT = {"type": "function", "name": "n", "description": "d", "parameters": SCHEMA}
OTHER = {"type": "function", "function": {"name": "other"}}
ALLOWED = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [NESTED]}}
BLOCKS = {"name": "n", "description": "d", "input_schema": SCHEMA}
CALL = {"id": "c", "type": "function", "function": {"name": "n", "arguments": '{"a":"b"}'}}
RESULT = {"role": "tool", "tool_call_id": "c", "content": "ok"}


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """With room for tools that are described in the system prompt."""
    folder: Path = tmp_path_factory.mktemp("shapes") / "toy"
    write_toy_model(folder, max_position_embeddings=4096)
    with serving(folder) as found:
        yield found


def messages_of(served: Served, path: str, asked: dict[str, Any]) -> tuple[Message, ...]:
    """The conversation of a request of which nothing was left out."""
    assert not changes(served, path, asked)
    return generate_of(served, served.ask("POST", path, asked)).messages


# ---- tools


@pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES])
@pytest.mark.parametrize(
    "tool",
    [
        NESTED,
        FLAT,
        BLOCKS,
        {"function": NESTED["function"]},
        {**BLOCKS, "type": "custom"},
        {**FLAT, "strict": None},
    ],
)
def test_a_function_may_be_declared_in_any_apis_shape(
    served: Served, path: str, tool: dict[str, Any]
) -> None:
    asked = response(tools=[tool]) if path == RESPONSES else message(tools=[tool])
    assert not changes(served, path, asked)
    [declared] = generate_of(served, served.ask("POST", path, asked)).tools
    assert (declared.name, declared.description) == ("n", "d")
    assert json.loads(declared.parameters) == SCHEMA


@pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES])
@pytest.mark.parametrize(
    "tool", [{"name": "n"}, {"type": "function", "function": {"name": "n", "parameters": None}}]
)
def test_a_function_may_have_no_parameters(served: Served, path: str, tool: dict[str, Any]) -> None:
    asked = response(tools=[tool]) if path == RESPONSES else message(tools=[tool])
    [declared] = generate_of(served, served.ask("POST", path, asked)).tools
    assert (declared.name, json.loads(declared.parameters)) == ("n", {})


@pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES])
@pytest.mark.parametrize(
    ("choice", "must", "declared"),
    [
        ("auto", False, ["n", "other"]),
        ("any", True, ["n", "other"]),
        ({"type": "auto"}, False, ["n", "other"]),
        ({"type": "any"}, True, ["n", "other"]),
        ({"type": "auto", "disable_parallel_tool_use": None}, False, ["n", "other"]),
        ("n", True, ["n", "other"]),
        ({"type": "tool", "name": "n"}, True, ["n", "other"]),
        ({"type": "function", "name": "n"}, True, ["n", "other"]),
        ({"type": "function", "function": {"name": "n"}}, True, ["n", "other"]),
        ({"type": "allowed_tools", "mode": "auto", "tools": [FLAT]}, False, ["n"]),
        (ALLOWED, True, ["n", "other"]),
        ("none", False, []),
    ],
)
def test_a_choice_may_have_any_apis_shape(
    served: Served, path: str, choice: Any, must: bool, declared: list[str]
) -> None:
    fields = {"tools": [NESTED, OTHER], "tool_choice": choice}
    asked = response(**fields) if path == RESPONSES else message(**fields)
    generate = generate_of(served, served.ask("POST", path, asked))
    assert [tool.name for tool in generate.tools] == declared
    assert (generate.grammar is not None) is must
    if must and choice not in ("any", {"type": "any"}):
        assert generate.grammar is not None
        assert '"other"' not in generate.grammar.text


def test_tools_of_a_completion_are_left_out_and_named(served: Served) -> None:
    asked = {"prompt": "hi", "max_tokens": 2, "tools": [NESTED], "tool_choice": "auto"}
    assert "tool_choice" in changes(served, COMPLETIONS, asked)
    reply = served.ask("POST", COMPLETIONS, asked)
    assert "tools" in {one["setting"] for one in reply.json["draftlight"]["changes"]}
    assert not generate_of(served, reply).tools


@pytest.mark.parametrize("stream", [False, True])
def test_functions_of_the_oldest_version_are_called_in_its_shape(long: Served, stream: bool) -> None:
    closed = {**SCHEMA, "required": ["a"], "additionalProperties": False}
    declared = [{"name": "n", "parameters": closed}, OTHER["function"]]
    asked = message(functions=declared, function_call={"name": "n"}, stream=stream, max_tokens=90)
    reply = long.ask("POST", CHAT, asked)
    if stream:
        choices = [one["choices"][0] for one in reply.chunks if one["choices"]]
        calls = [one["delta"]["function_call"] for one in choices if "function_call" in one["delta"]]
        name, arguments = calls[0]["name"], "".join(one["arguments"] for one in calls)
        reason = choices[-1]["finish_reason"]
        assert "tool_calls" not in str(choices)
    else:
        [choice] = reply.json["choices"]
        name, arguments = choice["message"]["function_call"].values()
        reason = choice["finish_reason"]
        assert "tool_calls" not in choice["message"]
    assert (name, reason) == ("n", "function_call")
    assert json.loads(arguments) == {"a": "b"}
    optional = generate_of(long, long.ask("POST", CHAT, message(functions=declared, function_call="none")))
    assert not optional.tools


def test_a_functions_name_may_be_as_long_as_anthropics(long: Served) -> None:
    for length, status in ((128, 200), (129, 400)):
        asked = message(tools=[{**BLOCKS, "name": "n" * length}])
        assert long.ask("POST", MESSAGES, asked).status == status


# ---- conversations


@pytest.mark.parametrize(
    ("call", "result"),
    [
        ({**CALL, "function": {"name": "n", "arguments": {"a": "b"}}}, RESULT),
        ({**CALL, "index": None, "type": None}, RESULT),
        (CALL, {"role": "tool", "name": "n", "content": "ok"}),
        ({"function": CALL["function"]}, {"role": "tool", "content": "ok"}),
    ],
)
def test_calls_of_a_chat_may_lack_ids_and_types(
    served: Served, call: dict[str, Any], result: dict[str, Any]
) -> None:
    asked = message(user(), {"role": "assistant", "content": [], "tool_calls": [call]}, result)
    _, answer, told = messages_of(served, CHAT, asked)
    [made] = answer.tool_calls
    assert (made.name, json.loads(made.arguments)) == ("n", {"a": "b"})
    assert (told.role, told.content, told.tool_call_id) == ("tool", "ok", made.id)


def test_results_without_ids_follow_in_the_order_of_the_calls(served: Served) -> None:
    calls = [{"function": {"name": name, "arguments": None}} for name in ("n", "m")]
    results = [{"role": "tool", "content": text} for text in ("one", "two")]
    asked = message(user(), {"role": "assistant", "tool_calls": calls}, *results)
    _, called, first, second = messages_of(served, CHAT, asked)
    assert [call.id for call in called.tool_calls] == [first.tool_call_id, second.tool_call_id]
    assert called.tool_calls[0].arguments == "{}"


def test_calls_of_the_oldest_version_are_calls(served: Served) -> None:
    called = {"role": "assistant", "content": None, "function_call": CALL["function"]}
    asked = message(user(), called, {"role": "function", "name": "n", "content": "ok"})
    _, answer, result = messages_of(served, CHAT, asked)
    assert [call.name for call in answer.tool_calls] == ["n"]
    assert (result.role, result.tool_call_id) == ("tool", answer.tool_calls[0].id)


def test_the_call_of_a_custom_tool_is_one_of_its_input(served: Served) -> None:
    call = {"id": "c", "type": "custom", "custom": {"name": "p", "input": "x"}}
    _, answer, _ = messages_of(
        served, CHAT, message(user(), {"role": "assistant", "tool_calls": [call]}, RESULT)
    )
    assert json.loads(answer.tool_calls[0].arguments) == {"input": "x"}


@pytest.mark.parametrize(
    "content",
    [["hi", "there"], [{"text": "hi"}, {"text": "there"}], {"type": "text", "text": "hi\nthere"}],
)
@pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES])
def test_parts_may_be_strings_or_lack_a_type_or_come_alone(served: Served, path: str, content: Any) -> None:
    asked = response(user(content)) if path == RESPONSES else message(user(content))
    assert messages_of(served, path, asked)[-1].content == "hi\nthere"


@pytest.mark.parametrize(("given", "text"), [({"a": 1}, '{"a":1}'), (5, "5"), (None, ""), ([], "")])
def test_a_result_may_be_any_json(served: Served, given: Any, text: str) -> None:
    chat = message(user(), {"role": "assistant", "tool_calls": [CALL]}, {**RESULT, "content": given})
    block = {"type": "tool_use", "id": "c", "name": "n"}
    messages = message(
        user(),
        {"role": "assistant", "content": [block]},
        user([{"type": "tool_result", "tool_use_id": "c", "content": given}]),
    )
    items = response(
        user(),
        {"type": "function_call", "id": "c", "name": "n", "arguments": {}},
        {"type": "function_call_output", "call_id": "c", "output": given},
    )
    for path, asked in ((CHAT, chat), (MESSAGES, messages), (RESPONSES, items)):
        assert messages_of(served, path, asked)[-1].content == text


@pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES])
@pytest.mark.parametrize("answer", [{}, {"content": None}, {"content": []}])
def test_an_earlier_answer_may_be_empty(served: Served, path: str, answer: dict[str, Any]) -> None:
    turns = user(), {"role": "assistant", **answer}, user()
    messages_of(served, path, response(*turns) if path == RESPONSES else message(*turns))


def test_texts_of_documents_and_search_results_in_results_are_read(served: Served) -> None:
    found = {
        "type": "search_result",
        "source": "s",
        "title": "t",
        "content": [{"type": "text", "text": "found"}],
    }
    source = {"type": "text", "media_type": "text/plain", "data": "tides"}
    result = {
        "type": "tool_result",
        "tool_use_id": "c",
        "content": [found, {"type": "document", "source": source}],
    }
    call = {"type": "tool_use", "id": "c", "name": "n", "input": '{"a": "b"}'}
    _, answer, told = messages_of(
        served, MESSAGES, message(user(), {"role": "assistant", "content": [call]}, user([result]))
    )
    assert told.content == "t\ns\nfound\ntides"
    assert json.loads(answer.tool_calls[0].arguments) == {"a": "b"}


def test_the_summary_of_earlier_turns_is_read(served: Served) -> None:
    summary = {"type": "compaction", "content": "They spoke of tides."}
    turns = user(), {"role": "assistant", "content": [summary]}, user()
    assert messages_of(served, MESSAGES, message(*turns))[1].content == "They spoke of tides."


def test_a_document_that_is_no_text_is_words_in_earlier_turns(served: Served) -> None:
    pdf = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AA"}}
    asked = message(user([pdf]), {"role": "assistant", "content": "no"}, user())
    [named] = changes(served, MESSAGES, asked).values()
    assert "file left out" in named["used"]
    reply = served.ask("POST", MESSAGES, message(user([pdf])))
    assert reply.status == 400
    assert "reads text only" in reply.error["message"]


@pytest.mark.parametrize("path", [MESSAGES, f"{MESSAGES}/count_tokens"])
def test_a_developers_message_is_a_system_message(served: Served, path: str) -> None:
    asked = message({"role": "developer", "content": "Be brief."}, user(), system=["One."])
    assert served.ask("POST", path, asked).status == 200


# ---- values


@pytest.mark.parametrize(
    "fields",
    [
        {"max_tokens": "2", "temperature": "0.5", "top_p": "1", "stream": "false"},
        {"max_tokens": 2.0, "top_k": 40.0, "seed": 7.0},
        {"stop": "", "logit_bias": [], "response_format": {}, "tools": [], "tool_choice": "", "model": ""},
        {"stream_options": {"include_usage": None}, "temperature": None, "n": None},
        {"response_format": {"type": "json_schema", "json_schema": {"name": None, "schema": SCHEMA}}},
    ],
)
def test_empty_values_and_numbers_as_text_are_accepted(served: Served, fields: dict[str, Any]) -> None:
    generate = generate_of(served, served.ask("POST", CHAT, message(**fields)))
    assert generate.settings.sampling.max_tokens == 2
    assert not changes(served, CHAT, message(**fields))


def test_null_is_a_value_in_schemas_and_arguments(served: Served) -> None:
    call = {"type": "tool_use", "id": "c", "name": "n", "input": {"a": None}}
    asked = message(
        user(), {"role": "assistant", "content": [call]}, user([{"type": "tool_result", "tool_use_id": "c"}]),
        tools=[BLOCKS],
    )  # fmt: skip
    generate = generate_of(served, served.ask("POST", MESSAGES, asked))
    assert json.loads(generate.tools[0].parameters) == SCHEMA
    assert generate.messages[1].tool_calls[0].arguments == '{"a":null}'


@pytest.mark.parametrize(
    "form",
    [
        {"type": "json_schema", "schema": {"const": 7}},
        {"type": "json_object", "schema": {"const": 7}},
        {"type": "json_schema", "name": "x", "strict": True, "schema": {"const": 7}},
    ],
)
def test_a_schema_may_be_beside_its_type(served: Served, form: dict[str, Any]) -> None:
    reply = served.ask("POST", CHAT, message(response_format=form, max_tokens=9))
    assert reply.json["choices"][0]["message"]["content"] == "7"
    assert not changes(served, CHAT, message(response_format=form, max_tokens=9))


@pytest.mark.parametrize(
    ("fields", "thinks"),
    [
        ({}, "auto"),
        ({"reasoning_effort": "none"}, "off"),
        ({"enable_thinking": False}, "off"),
        ({"thinking": {"type": "disabled"}}, "off"),
        ({"thinking": {"type": "auto"}}, "auto"),
        ({"thinking": {"type": "enabled", "budget_tokens": None}}, "on"),
        ({"reasoning": {"enabled": False}}, "off"),
        ({"reasoning": {"effort": "none"}}, "off"),
        ({"reasoning": {"effort": "high"}}, "on"),
        ({"chat_template_kwargs": {"enable_thinking": "false"}}, "off"),
        ({"chat_template_kwargs": {"enable_thinking": True}}, "on"),
    ],
)
def test_switches_of_thinking_are_honoured(served: Served, fields: dict[str, Any], thinks: str) -> None:
    generate = generate_of(served, served.ask("POST", CHAT, message(**fields)))
    assert generate.settings.chat.thinking == thinks
    assert set(changes(served, CHAT, message(**fields))) <= {"reasoning.effort"}


def test_a_response_sent_to_chat_completions_is_answered_as_a_chat(served: Served) -> None:
    """Cursor sends some models' requests so."""
    asked = {
        "instructions": "Be brief.",
        "input": [
            user([{"type": "input_text", "text": "hi"}]),
            {"type": "reasoning", "summary": []},
            {"type": "function_call", "call_id": "c", "name": "n", "arguments": '{"a":"b"}'},
            {"type": "function_call_output", "call_id": "c", "output": "ok"},
        ],
        "tools": [FLAT],
        "text": {"format": {"type": "text"}},
        "max_output_tokens": 2,
    }
    reply = served.ask("POST", CHAT, asked)
    generate = generate_of(served, reply)
    assert reply.json["object"] == "chat.completion"
    assert [one.role for one in generate.messages] == ["system", "user", "assistant", "tool"]
    assert generate.messages[2].tool_calls[0].name == "n"
    assert generate.settings.sampling.max_tokens == 2
    assert generate_of(served, served.ask("POST", CHAT, {"input": "hi"})).messages[0].content == "hi"


@pytest.mark.parametrize("path", ["/chat/completions", "//v1//chat/completions/", "/v1/v1/chat/completions"])
def test_an_address_may_lack_v1_or_have_it_twice(served: Served, path: str) -> None:
    assert served.ask("POST", path, message()).status == 200
    assert served.ask("GET", "/models").json["data"]
    assert served.ask("GET", "/modelsx").status == 404
    assert served.ask("GET", "/metrics").status == 404


def test_an_empty_last_answer_is_where_the_answer_is_to_be(served: Served) -> None:
    hi = {"role": "user", "content": "hi"}
    for path in (CHAT, "/v1/messages", "/v1/responses"):
        field = "input" if path == "/v1/responses" else "messages"
        expected = generate_of(served, served.ask("POST", path, {field: [hi], "max_tokens": 2}))
        given = {field: [hi, {"role": "assistant", "content": ""}], "max_tokens": 2}
        assert generate_of(served, served.ask("POST", path, given)).messages == expected.messages


def test_a_body_may_begin_with_a_byte_order_mark(served: Served) -> None:
    body = b"\xef\xbb\xbf" + json.dumps(message(max_tokens=2)).encode()
    assert served.ask("POST", CHAT, body).status == 200


def test_names_of_participants_are_named_once(served: Served) -> None:
    said = [
        {"role": role, "content": "hi", "name": "Ann"} for role in ("system", "user", "assistant", "user")
    ]
    assert list(changes(served, CHAT, {"messages": said, "max_tokens": 2})) == ["messages[0].name"]


def test_a_response_has_its_requests_metadata(served: Served) -> None:
    for store in (True, False):
        fields = {"input": "hi", "max_output_tokens": 2, "metadata": {"trace": "1"}, "store": store}
        response = served.ask("POST", "/v1/responses", fields).json
        assert (response["metadata"], response["store"]) == ({"trace": "1"}, store)
