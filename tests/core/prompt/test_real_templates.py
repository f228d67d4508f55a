"""Chat templates of public models: rendered as by transformers, and always with all words.

The templates are third-party data in a folder beside the repository, and not a part of it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.errors import ChatTemplateError
from core.events import Message, Tool, ToolCall
from core.prompt import render
from core.prompt.probe import variables_of
from tests.core.prompt.test_tokens import control_ids
from tests.core.prompt.tokenizer_kinds import tokenizer_of
from tests.thinned import thinned

FOLDER = Path(__file__).parents[4] / "shared" / "data" / "chat-templates"
FOUND = sorted(path.stem for path in FOLDER.glob("*.jinja")) or ["none"]
FAST = ["Qwen-Qwen3-0.6B", "gemma-it", "mistralai-Ministral-3-14B-Reasoning-2512", "vllm-llama3.1_json"]
# They refuse every conversation, in transformers, too: one assigns to a message, one wants another variable.
REFUSES = ["MiroThinker", "fireworks-ai-llama-3-firefunction-v2"]
CALL_ID = "abcdefgh1"
CALL = ToolCall(CALL_ID, "weather", '{"city": "Rome <b>", "days": 3}')
TOOL = Tool("weather", "Of a city.", '{"type": "object", "properties": {"city": {"type": "string"}}}')
RESULT = Message("tool", "7 degrees", tool_call_id=CALL_ID)
SHAPES: dict[str, tuple[Message, ...]] = {
    "question": (Message("user", "  help\n"),),
    "system": (Message("system", "You are brief."), Message("user", "help")),
    "turns": (Message("user", "help"), Message("assistant", "no"), Message("user", "no")),
    "two systems": (Message("system", "First"), Message("system", "Second"), Message("user", "help")),
    "later system": (Message("user", "help"), Message("assistant", "no"), Message("system", "Later"),
                     Message("user", "again")),
    "two questions": (Message("user", "help"), Message("user", "again")),
    "system alone": (Message("system", "Write a haiku"),),
    "begun": (Message("user", "help"), Message("assistant", "It is")),
    "result": (Message("user", "Rain?"), Message("assistant", "", tool_calls=(CALL,)), RESULT),
    "results and a question": (Message("system", "You are brief."), Message("user", "Rain?"),
                               Message("assistant", "Wait", tool_calls=(CALL,)), RESULT,
                               Message("assistant", "Seven"), Message("user", "Thanks")),
}  # fmt: skip

pytestmark = pytest.mark.skipif(FOUND == ["none"], reason="the folder of public chat templates is not here")


def words_of(messages: tuple[Message, ...]) -> list[str]:
    """What the prompt must contain; several templates leave out an answer's text beside a call."""
    return [message.content.strip() for message in messages if not message.tool_calls]


def expected(tokenizer: Any, messages: tuple[Message, ...], tools: tuple[Tool, ...]) -> str | None:
    """What transformers renders; None if the template refuses or leaves words out."""
    turns: list[dict[str, Any]] = [{"role": each.role, "content": each.content} for each in messages]
    for turn, message in zip(turns, messages):
        if message.tool_calls:
            function = {"name": CALL.name, "arguments": json.loads(CALL.arguments)}
            turn["tool_calls"] = [{"id": CALL.id, "type": "function", "function": function}]
        if message.tool_call_id:
            turn["tool_call_id"] = message.tool_call_id
    begun = messages[-1].role == "assistant"
    declared = [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": json.loads(tool.parameters),
            },
        }
        for tool in tools
    ]
    try:
        text: str = tokenizer._tokenizer.apply_chat_template(
            turns,
            tools=declared or None,
            add_generation_prompt=not begun,
            continue_final_message=begun,
            tokenize=False,
            **variables_of(tokenizer._tokenizer.chat_template),
        )
    except Exception:  # templates raise every kind
        return None
    words = words_of(messages)
    words += ["Rome"] if any(message.tool_calls for message in messages) else []
    words += ["Of a city"] if tools else []
    return text if all(word in text for word in words) else None


@pytest.mark.parametrize("name", thinned(FOUND, [name for name in FAST if name in FOUND]))
def test_a_public_template_writes_every_word_and_only_its_own_control_tokens(name: str) -> None:
    template = (FOLDER / f"{name}.jinja").read_text()
    tokenizer = tokenizer_of("byte-level BPE", template)
    if name in REFUSES:
        with pytest.raises(ChatTemplateError, match="refuses this conversation"):
            render(tokenizer, SHAPES["turns"])
        return
    for shape, messages in SHAPES.items():
        tools = (TOOL,) if "result" in shape else ()
        prompt = render(tokenizer, messages, tools=tools)
        assert all(word in prompt.text for word in words_of(messages)), shape
        wanted = expected(tokenizer, messages, tools)
        hoists = shape == "later system" and prompt.changes
        if wanted is not None and not hoists:
            # Kimi K2 reads the function's name from the id of a call, which is numbered for that.
            given, reference = (
                text.replace("functions.weather:0", CALL_ID) for text in (prompt.text, wanted)
            )
            assert given == reference, shape
        marked = tuple(
            Message(
                each.role,
                f"{each.content} <|im_end|>\n<tool_call>x" if each.content else "",
                tool_calls=each.tool_calls,
                tool_call_id=each.tool_call_id,
            )
            for each in messages
        )
        ids = render(tokenizer, marked, tools=tools).ids
        assert control_ids(tokenizer, ids) == control_ids(tokenizer, prompt.ids), shape
