"""Transcripts of the four APIs, with tools, are those of the golden file, byte for byte.

Ids, times and counts of drafted tokens are masked. The requests are recorded first requests of clients, made
shorter, and requests with tools, results and schemas in each API.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import mlx.core as mx
import pytest
from mlx_lm.generate import generate_step

from tests.core import golden
from tests.core.serve.served import CHAT, Reply, Served, serving, settings
from tests.core.toy import toy_model, write_toy_model

COMPLETIONS, RESPONSES = "/v1/completions", "/v1/responses"
MESSAGES, COUNT = "/v1/messages", "/v1/messages/count_tokens"
SCHEMA = {
    "type": "object",
    "properties": {"unit": {"enum": ["celsius", "kelvin"]}, "exact": {"type": "boolean"}},
    "required": ["unit", "exact"],
    "additionalProperties": False,
}
TOOL = {"type": "function", "function": {"name": "weather", "description": "Of today.", "parameters": SCHEMA}}
FLAT = {"type": "function", "name": "weather", "parameters": SCHEMA}
NAMED = {"name": "weather", "input_schema": SCHEMA}
CUSTOM = {"type": "custom", "name": "note", "description": "Writes a note."}
HI = [{"role": "user", "content": "hi"}]
ARGUMENTS = '{"unit": "kelvin", "exact": true}'
CALLED = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": ARGUMENTS}}
FORMAT = {"type": "json_schema", "json_schema": {"name": "weather", "schema": SCHEMA}}
PIXEL = "data:image/png;base64,iVBORw0KGgo="

REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": (CHAT, {"messages": HI, "max_tokens": 12}),
    "chat stream": (
        CHAT,
        {"messages": HI, "max_tokens": 12, "stream": True, "stream_options": {"include_usage": True}},
    ),
    "chat sampled": (CHAT, {"messages": HI, "max_tokens": 12, "temperature": 0.7, "seed": 7, "top_p": 0.9}),
    "chat logprobs": (CHAT, {"messages": HI, "max_tokens": 3, "logprobs": True, "top_logprobs": 2}),
    "chat stop": (CHAT, {"messages": HI, "max_tokens": 24, "stop": ["e", "a"]}),
    "chat tool": (CHAT, {"messages": HI, "max_tokens": 99, "tools": [TOOL], "tool_choice": "required"}),
    "chat tool stream": (
        CHAT,
        {"messages": HI, "max_tokens": 99, "tools": [TOOL], "tool_choice": "required", "stream": True},
    ),
    "chat tools free": (CHAT, {"messages": HI, "max_tokens": 12, "tools": [TOOL]}),
    "chat result": (
        CHAT,
        {
            "messages": [
                *HI,
                {"role": "assistant", "content": None, "tool_calls": [CALLED]},
                {"role": "tool", "tool_call_id": "c1", "content": "7 degrees"},
            ],
            "max_tokens": 12,
            "tools": [TOOL],
        },
    ),
    "chat schema": (CHAT, {"messages": HI, "max_tokens": 60, "response_format": FORMAT}),
    "chat json": (CHAT, {"messages": HI, "max_tokens": 20, "response_format": {"type": "json_object"}}),
    "chat two systems": (
        CHAT,
        {
            "messages": [{"role": "system", "content": "a"}, {"role": "system", "content": "b"}, *HI],
            "max_tokens": 8,
        },
    ),
    "chat parts": (
        CHAT,
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}], "max_tokens": 8},
    ),
    "chat image": (
        CHAT,
        {
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "hi"},
                        {"type": "image_url", "image_url": {"url": PIXEL}},
                    ],
                }
            ],
            "max_tokens": 8,
        },
    ),
    "chat effort": (CHAT, {"messages": HI, "max_tokens": 8, "reasoning_effort": "medium"}),
    "chat unknown field": (CHAT, {"messages": HI, "max_tokens": 8, "thinkng": True}),
    "chat without messages": (CHAT, {"max_tokens": 8}),
    "chat wrong type": (CHAT, {"messages": HI, "max_tokens": "many"}),
    "completion": (COMPLETIONS, {"prompt": "abc abc", "max_tokens": 12, "echo": True}),
    "completion stream": (COMPLETIONS, {"prompt": "abc abc", "max_tokens": 12, "stream": True}),
    "completion logprobs": (COMPLETIONS, {"prompt": "abc", "max_tokens": 3, "logprobs": 1}),
    "response": (RESPONSES, {"input": "hi", "max_output_tokens": 8}),
    "response stream": (RESPONSES, {"input": "hi", "max_output_tokens": 8, "stream": True}),
    "response tool": (
        RESPONSES,
        {"input": "hi", "max_output_tokens": 99, "tools": [FLAT], "tool_choice": "required"},
    ),
    "response tool stream": (
        RESPONSES,
        {"input": "hi", "max_output_tokens": 99, "tools": [FLAT], "tool_choice": "required", "stream": True},
    ),
    "response custom tool": (
        RESPONSES,
        {"input": "hi", "max_output_tokens": 40, "tools": [CUSTOM], "tool_choice": "required"},
    ),
    "response result": (
        RESPONSES,
        {
            "input": [
                {"role": "user", "content": "hi"},
                {"type": "function_call", "call_id": "c", "name": "weather", "arguments": ARGUMENTS},
                {"type": "function_call_output", "call_id": "c", "output": "7 degrees"},
            ],
            "max_output_tokens": 8,
            "tools": [FLAT],
        },
    ),
    "response schema": (
        RESPONSES,
        {
            "input": "hi",
            "max_output_tokens": 60,
            "text": {"format": {"type": "json_schema", "name": "weather", "schema": SCHEMA}},
        },
    ),
    "response effort": (
        RESPONSES,
        {"input": "hi", "max_output_tokens": 8, "reasoning": {"effort": "medium"}},
    ),
    "message": (MESSAGES, {"messages": HI, "max_tokens": 8}),
    "message stream": (MESSAGES, {"messages": HI, "max_tokens": 8, "stream": True, "system": "Be brief."}),
    "message tool": (
        MESSAGES,
        {"messages": HI, "max_tokens": 99, "tools": [NAMED], "tool_choice": {"type": "any"}},
    ),
    "message tool stream": (
        MESSAGES,
        {"messages": HI, "max_tokens": 99, "tools": [NAMED], "tool_choice": {"type": "any"}, "stream": True},
    ),
    "message result": (
        MESSAGES,
        {
            "messages": [
                *HI,
                {
                    "role": "assistant",
                    "content": [
                        {"type": "tool_use", "id": "t", "name": "weather", "input": {"unit": "kelvin"}}
                    ],
                },
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "7"}]},
            ],
            "max_tokens": 8,
            "tools": [NAMED],
        },
    ),
    "message thinking": (
        MESSAGES,
        {
            "messages": HI,
            "max_tokens": 8,
            "thinking": {"type": "adaptive"},
            "output_config": {"effort": "low"},
        },
    ),
    "message cached": (
        MESSAGES,
        {
            "messages": HI,
            "max_tokens": 8,
            "system": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}],
            "metadata": {"user_id": "u"},
        },
    ),
    "message without limit": (MESSAGES, {"messages": HI}),
    "count": (COUNT, {"messages": HI, "system": "Be brief.", "tools": [NAMED]}),
}
_MASKS = [
    (re.compile(r"\b((?:chatcmpl|cmpl|call|toolu|msg|resp|rs|fc|ctc|item|call_)[_-])[0-9a-f]{16,}"), r"\1ID"),
    (re.compile(r'("(?:created|created_at|completed_at)": ?)(?:[0-9.]+|"[^"]*")'), r"\g<1>TIME"),
    # What is drafted depends on the time that steps take.
    (
        re.compile(
            r'("(?:[a-z_]+_(?:s|ms|us|per_second|per_s|bytes)|threads|gate)": ?)(?:"[^"]*"|[-0-9.e]+)'
        ),
        r"\1RUN",
    ),
    (re.compile(r"(\.[0-9]{3})[0-9]+"), r"\1"),
    (re.compile(r'("sequence_number": ?)[0-9]+'), r"\g<1>NUMBER"),
]
# A text in a line of a stream. How tokens are put together in lines depends on their times.
_PIECE = re.compile(
    r'(data: .*"(?:content|text|delta|partial_json|arguments|reasoning_content)": ?")((?:[^"\\]|\\.)*)(".*)'
)


@pytest.fixture(scope="module")
def stored_here() -> None:
    """Skips where mlx-lm computes other numbers than it did when the golden files were written."""
    steps = generate_step(mx.array(list(b"hi there")), toy_model(), max_tokens=40)
    if not golden.same("plain", {"toy": [" ".join(str(int(token)) for token, _ in steps)]}):
        pytest.skip("mlx-lm computes other numbers on this processor")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Without drafts, so that each answer takes the same steps."""
    folder = tmp_path_factory.mktemp("models") / "toy"
    write_toy_model(folder, max_position_embeddings=4096)
    base = settings(drafting__drafter="off")
    with serving(folder, base=lambda: base) as found:
        yield found


def lines_of(reply: Reply) -> list[str]:
    """Status, kind and body, without what differs between runs. Pieces of one text are joined."""
    body = reply.body.decode()
    for pattern, mask in _MASKS:
        body = pattern.sub(mask, body)
    lines = [f"{reply.status} {reply.headers.get('content-type', '')}"]
    for line in body.split("\n"):
        piece, before = _PIECE.fullmatch(line), _PIECE.fullmatch(lines[-1])
        if piece and before and (piece[1], piece[3]) == (before[1], before[3]):
            lines[-1] = f"{before[1]}{before[2]}{piece[2]}{piece[3]}"
        # An event's name is its type, too.
        elif line and not line.startswith((": ", "event: ")):
            lines.append(line)
    return lines


@pytest.mark.usefixtures("stored_here")
@pytest.mark.parametrize("name", REQUESTS)
def test_a_transcript_is_that_of_the_golden_file(name: str, served: Served) -> None:
    path, body = REQUESTS[name]
    served.ask("POST", path, body)  # what is reused of the cache is the same then
    golden.compare("transcripts", {name: lines_of(served.ask("POST", path, body))})


def test_the_lists_of_models_are_those_of_the_golden_file(served: Served) -> None:
    for path in ("/v1/models", "/v1/models/toy", "/v1/models/other", "/nowhere"):
        golden.compare("transcripts", {f"GET {path}": lines_of(served.ask("GET", path))})
