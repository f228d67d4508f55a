"""What agents and SDKs rely on besides how their requests are read (test_cases)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.events import Change, ToolCall
from core.serve import answering
from core.serve.conversation import completed
from core.serve.response_memory import ResponseMemory
from core.serve.responses import Output
from tests.core.serve.served import CHAT, MESSAGES, RESPONSES, Served, message, response, serving, user
from tests.core.toy import write_toy_model


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """With room for tools that are described in the system prompt."""
    folder: Path = tmp_path_factory.mktemp("agents") / "toy"
    write_toy_model(folder, max_position_embeddings=4096)
    with serving(folder) as found:
        yield found


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
        assert [one.content for one in served.asked(second).messages] == ["hi", text, "more"]
    third = served.ask("POST", RESPONSES, response(user("end"), previous_response_id=second.json["id"]))
    assert [one.content for one in served.asked(third).messages][:3] == ["hi", text, "more"]


def test_what_an_answer_refers_to_may_be_dropped_before_its_end() -> None:
    memory = ResponseMemory()
    memory.keep("x", {"id": "first", "output": []})
    _, writer_of = memory.read({"input": "y", "previous_response_id": "first"})
    memory.forget("first")
    writer_of.keywords["keep"]({"id": "second", "output": []})  # type: ignore[attr-defined]
    items = memory.resolved({"input": "z", "previous_response_id": "second"}, [])["input"]
    texts = [
        item["content"] if isinstance(item["content"], str) else item["content"][0]["text"] for item in items
    ]
    assert texts == ["x", "y", "z"]


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


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("", "{}"),
        ("{", "{}"),
        ('{"a', "{}"),
        ('{"a": [1, {"b": tr', '{"a": [1, {}]}'),
        ('{"a": [1, 2', '{"a": [1, 2]}'),
        ('{"a": "}, [', '{"a": "}, ["}'),
        ('{"a": [{"b": 1, tru}]', '{"a": [{"b": 1}]}'),
        pytest.param('{"a": ' + "[" * 200_000, "{}", id="deep"),  # hours if each bracket costs its depth
        ('{"a": 1, "b": nul', '{"a": 1}'),
        ("no JSON", "{}"),
        ('["a', "{}"),
    ],
)
def test_a_cut_off_object_is_completed(text: str, whole: str) -> None:
    assert completed(text) == whole


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


def test_a_stream_is_never_silent_for_long(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """The input of a custom tool is given when it is complete; until then comments keep the line alive."""
    monkeypatch.setattr(answering, "_QUIET_S", 0.0)
    asked = response(tools=[{"type": "custom", "name": "p"}], tool_choice="required", stream=True)
    del asked["max_output_tokens"]
    reply = served.ask("POST", RESPONSES, asked)
    assert reply.status == 200
    assert "writing" in reply.comments


@pytest.mark.parametrize("stream", [False, True])
def test_functions_of_the_oldest_version_are_called_in_its_shape(long: Served, stream: bool) -> None:
    properties = {"a": {"enum": ["b"], "default": None}}
    closed = {"type": "object", "properties": properties, "required": ["a"], "additionalProperties": False}
    declared = [{"name": "n", "parameters": closed}, {"name": "other"}]
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
    optional = long.asked(long.ask("POST", CHAT, message(functions=declared, function_call="none")))
    assert not optional.tools


@pytest.mark.parametrize("path", ["/chat/completions", "//v1//chat/completions/", "/v1/v1/chat/completions"])
def test_an_address_may_lack_v1_or_have_it_twice(served: Served, path: str) -> None:
    assert served.ask("POST", path, message()).status == 200
    assert served.ask("GET", "/models").json["data"]
    assert served.ask("GET", "/modelsx").status == 404
    assert served.ask("GET", "/metrics").status == 404


def test_a_body_may_begin_with_a_byte_order_mark(served: Served) -> None:
    body = b"\xef\xbb\xbf" + json.dumps(message(max_tokens=2)).encode()
    assert served.ask("POST", CHAT, body).status == 200


def test_a_response_has_its_requests_metadata(served: Served) -> None:
    for store in (True, False):
        fields = {"input": "hi", "max_output_tokens": 2, "metadata": {"trace": "1"}, "store": store}
        response = served.ask("POST", "/v1/responses", fields).json
        assert (response["metadata"], response["store"]) == ({"trace": "1"}, store)


def test_an_answer_without_a_limit_ends_at_the_servers(toy_folder: Path) -> None:
    with serving(toy_folder, longest_answer=9) as served:
        for path, asked in ((CHAT, {"messages": [user()]}), (RESPONSES, {"input": "hi"})):
            reply = served.ask("POST", path, asked)
            usage = reply.json["usage"]
            assert usage.get("completion_tokens", usage.get("output_tokens")) == 9
            named = {one["setting"]: one for one in reply.json["draftlight"]["changes"]}
            assert named["max_tokens"]["used"] == "9"
        # The request's own limit may be higher.
        reply = served.chat(max_tokens=12)
        assert reply.json["usage"]["completion_tokens"] == 12
        assert "max_tokens" not in str(reply.json["draftlight"]["changes"])


def test_a_streams_last_event_names_them_too(served: Served) -> None:
    chunks = served.chat(stream=True, x_odd=1).chunks
    assert [one["setting"] for one in chunks[-1]["draftlight"]["changes"]] == ["x_odd"]


@pytest.mark.sweep
def test_a_strict_server_refuses_what_it_would_leave_out_and_other_models(toy_folder: Path) -> None:
    with serving(toy_folder, strict=True) as strict:
        for path, asked in ((CHAT, message()), (MESSAGES, message()), (RESPONSES, response())):
            assert strict.ask("POST", path, asked | {"model": "toy"}).status == 200
            reply = strict.ask("POST", path, asked | {"model": "claude-sonnet-4-5"})
            assert reply.status == 404
            assert "toy" in reply.error["message"]
            reply = strict.ask("POST", path, asked | {"colour": "red"})
            assert (reply.status, "colour" in reply.error["message"]) == (400, True)
