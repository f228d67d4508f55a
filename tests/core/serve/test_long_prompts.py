"""Agents' prompts: a long system prompt, many tools, and several conversations in turn."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.core.serve.served import CHAT, MESSAGES, RESPONSES, Served, serving
from tests.core.toy import write_toy_model

CONTEXT_TOKENS = 8192
TOOLS = [{"name": f"tool_{number}", "input_schema": {"type": "object"}} for number in range(20)]


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("long") / "toy"
    write_toy_model(folder, max_position_embeddings=CONTEXT_TOKENS)
    with serving(folder) as found:
        yield found


def ask(served: Served, path: str, turns: list[dict[str, Any]]) -> tuple[int, int]:
    """The length in tokens of the prompt at `path`, and how much of it was cached."""
    system = f"You are at {path}. " + "Read before you write. " * 10
    if path == MESSAGES:
        asked = {"system": system, "messages": turns, "tools": TOOLS, "max_tokens": 4}
    elif path == RESPONSES:
        asked = {"instructions": system, "input": turns, "tools": TOOLS, "max_output_tokens": 4}
    else:
        asked = {"messages": [{"role": "system", "content": system}, *turns], "tools": TOOLS, "max_tokens": 4}
    reply = served.ask("POST", path, asked)
    assert reply.status == 200, reply.body
    usage = reply.json["usage"]
    if path == MESSAGES:
        cached_tokens = usage["cache_read_input_tokens"]
        return usage["input_tokens"] + cached_tokens, cached_tokens
    kind = "input" if path == RESPONSES else "prompt"
    return usage[f"{kind}_tokens"], usage[f"{kind}_tokens_details"]["cached_tokens"]


def test_conversations_in_turn_keep_their_prefixes(long: Served) -> None:
    turns: dict[str, list[dict[str, Any]]] = {path: [] for path in (CHAT, MESSAGES, RESPONSES)}
    before = dict.fromkeys(turns, 0)
    for turn in range(2):
        for path, said in turns.items():
            said.append({"role": "user", "content": f"Question {turn}."})
            prompt_tokens, cached_tokens = ask(long, path, said)
            assert prompt_tokens > 1000
            # All of the last prompt but its end, which opens the answer.
            assert cached_tokens >= before[path] - 32
            before[path] = prompt_tokens
            said.append({"role": "assistant", "content": "Yes."})


@pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES])
def test_a_prompt_beyond_the_context_is_refused_with_the_figures(long: Served, path: str) -> None:
    text = "word " * 2000
    asked: dict[str, Any] = {"max_tokens": 4, "messages": [{"role": "user", "content": text}]}
    if path == RESPONSES:
        asked = {"max_output_tokens": 4, "input": text}
    error = long.ask("POST", path, asked).error
    assert str(CONTEXT_TOKENS - 1) in error["message"]
    if path == MESSAGES:
        assert error["message"].startswith("prompt is too long: ")
    else:
        assert error["code"] == "context_length_exceeded"
