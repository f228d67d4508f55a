"""The shapes of answers that the tests' model does not write."""

from __future__ import annotations

import json
from typing import Any

from core.events import Effective, Finished, Generate, Stats, Token
from core.serve.chat import ChatWriter, chat_request
from core.serve.tools import CallRules
from core.settings import Settings
from tests.core.serve.served import question

TEXT = "<think>\nOne and one.\n</think>\n\nTwo."


def writer(**fields: Any) -> ChatWriter:
    return ChatWriter(chat_request(question(**fields)), Generate("chatcmpl-1", ()), "toy", CallRules())


def tokens() -> list[Token]:
    """A letter each; the stop token has no text."""
    texts = [*TEXT, ""]
    return [Token("r", at, text, "normal", at + 1, at) for at, text in enumerate(texts)]


def finished() -> Finished:
    stats = Stats(prompt_tokens=5, tokens=len(TEXT) + 1)
    return Finished("r", "stop", stats, Effective("toy", "float32", "off", Settings()))


def test_a_thought_is_told_apart_from_the_answer() -> None:
    told = writer().whole(tokens(), finished())
    [choice] = told["choices"]
    assert choice["message"]["content"] == "Two."
    assert choice["message"]["reasoning_content"] == "One and one."
    thought = told["usage"]["completion_tokens_details"]["reasoning_tokens"]
    assert len("One and one.") <= thought <= len(TEXT) - len("Two.")


def test_a_thought_is_streamed_apart_from_the_answer() -> None:
    whole, one = writer(), writer(stream=True, stream_options={"include_usage": True})
    out = one.opening() + b"".join(one.written([token]) for token in tokens()) + one.finished(finished())
    chunks = [json.loads(line[6:]) for line in out.decode().split("\n\n") if line.startswith("data: {")]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    assert "".join(delta.get("content", "") for delta in deltas) == "Two."
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == "One and one."
    assert not any("content" in delta and "reasoning_content" in delta for delta in deltas)
    assert chunks[-1]["usage"] == whole.whole(tokens(), finished())["usage"]
