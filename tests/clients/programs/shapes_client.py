"""The shapes of answers and events by the SDKs' own types, which are generated from the published schemas.

The SDKs themselves build their objects without validating them.
"""

import json
import urllib.error
import urllib.request

from anthropic.types import Message, MessageTokensCount, RawMessageStreamEvent
from anthropic.types.shared import ErrorResponse
from cases import KEY, MODEL, QUESTION, ROOT, SCHEMA, run
from openai.types import Completion, CreateEmbeddingResponse, Model
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from openai.types.responses.input_token_count_response import InputTokenCountResponse
from pydantic import TypeAdapter

HELLO = [{"role": "user", "content": "Say hello."}]
FUNCTION = {"name": "tell_weather", "description": "Tells the weather.", "parameters": SCHEMA}
CALLED = {"messages": [{"role": "user", "content": QUESTION}], "tool_choice": "required"}


def sent(path, body=None, method=None):
    request = urllib.request.Request(
        f"{ROOT}{path}", None if body is None else json.dumps(body).encode(), method=method
    )
    request.add_header("authorization", f"Bearer {KEY}")
    request.add_header("content-type", "application/json")
    try:
        with urllib.request.urlopen(request) as reply:
            return reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.read().decode()


def check(kind, text):
    """Strictly: no number for a text, no missing field, no other literal."""
    return TypeAdapter(kind).validate_json(text, strict=True)


def check_events(kind, text):
    lines = [line[6:] for line in text.splitlines() if line.startswith("data: ") and line != "data: [DONE]"]
    assert len(lines) > 2, text
    for line in lines:
        check(kind, line)


def case_chat():
    asked = {"model": MODEL, "messages": HELLO, "max_tokens": 8, "logprobs": True, "top_logprobs": 2}
    calls = {"model": MODEL, **CALLED, "tools": [{"type": "function", "function": FUNCTION}]}
    for body in (asked, calls):
        check(ChatCompletion, sent("/v1/chat/completions", body))
        more = {"stream": True, "stream_options": {"include_usage": True}}
        check_events(ChatCompletionChunk, sent("/v1/chat/completions", body | more))


def case_completions_models_and_embeddings():
    check(Completion, sent("/v1/completions", {"prompt": "Hello", "max_tokens": 4}))
    check(CreateEmbeddingResponse, sent("/v1/embeddings", {"input": ["a", "b"]}))
    for model in json.loads(sent("/v1/models"))["data"]:
        check(Model, json.dumps(model))


def case_responses():
    asked = {"model": MODEL, "input": "Say hello.", "max_output_tokens": 8}
    calls = {"input": QUESTION, "tools": [{"type": "function", "strict": True, **FUNCTION}]}
    calls["tool_choice"] = "required"
    shapes = (
        asked,
        calls,
        asked | {"text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}}},
    )
    for body in shapes:
        made = check(Response, sent("/v1/responses", body))
        check_events(ResponseStreamEvent, sent("/v1/responses", body | {"stream": True}))
        check(Response, sent(f"/v1/responses/{made.id}"))
    check(InputTokenCountResponse, sent("/v1/responses/input_tokens", asked))


def case_messages():
    asked = {"model": MODEL, "messages": HELLO, "max_tokens": 8}
    tool = {"name": "tell_weather", "input_schema": SCHEMA}
    calls = {
        "messages": CALLED["messages"],
        "max_tokens": 80,
        "tools": [tool],
        "tool_choice": {"type": "any"},
    }
    for body in (asked, calls):
        check(Message, sent("/v1/messages", body))
        events = sent("/v1/messages", body | {"stream": True}).splitlines()
        events = [line for line in events if line != 'data: {"type":"ping"}']
        check_events(RawMessageStreamEvent, "\n".join(events))
    check(MessageTokensCount, sent("/v1/messages/count_tokens", {"model": MODEL, "messages": HELLO}))
    for wrong in ({"messages": HELLO}, asked | {"thread": {"type": "create"}}):
        check(ErrorResponse, sent("/v1/messages", wrong))


if __name__ == "__main__":
    run(globals())
