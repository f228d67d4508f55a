"""The zoo's only way into Draftlight: a model folder loaded, prompts rendered, answers read and generated."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from core.answer_format import AnswerFormat
from core.decoding.text import TokenTexts
from core.engine.engine import Engine
from core.events import Attachment, Finished, Generate, Message, Token, Tool, ToolCall
from core.prompt import Prompt
from core.settings import Settings, assign_all
from core.tools.calls import CallRules, TextDelta, ThoughtDelta, Written
from tests.zoo.conversations import Turn


class Read(Struct, frozen=True):
    """An answer taken apart. `calls` are names and arguments."""

    thought: str
    text: str
    calls: tuple[tuple[str, dict[str, Any]], ...]


class Answer(Struct, frozen=True):
    """A generated answer."""

    ids: list[int]
    text: str
    finished: Finished


class Product:
    """Draftlight with the model folder loaded. `close()` at the end."""

    def __init__(self, folder: Path) -> None:
        self._engine = Engine()
        self._engine.load(str(folder))

    def close(self) -> None:
        """Free the model."""
        self._engine.unload()

    @property
    def stop_ids(self) -> frozenset[int]:
        """The ids that end an answer."""
        return frozenset(self._engine.loaded.eos)

    def forget(self) -> None:
        """Start cold."""
        self._engine.forget()

    def prompt(
        self, turns: list[Turn], tools: list[dict[str, Any]] | None = None, document: str = "", raw: str = ""
    ) -> Prompt:
        """The prompt of a conversation. `document` is attached to the last message; `raw` is how past
        thoughts and their answers were written. Raises `RequestError` kinds."""
        messages = _messages(turns, raw)
        if document:
            last = messages[-1]
            messages[-1] = Message(last.role, last.content, (Attachment("notes.txt", document),))
        return self._prompt(messages, tools)[0]

    def _prompt(
        self, messages: list[Message], tools: list[dict[str, Any]] | None
    ) -> tuple[Prompt, AnswerFormat | None]:
        return self._engine._prompt(Generate("1", tuple(messages), tools=_tools(tools)))

    def read(self, turns: list[Turn], tools: list[dict[str, Any]] | None, written: str, encode: Any) -> Read:
        """What the server makes of an answer whose text is `written`."""
        loaded = self._engine.loaded
        ids = encode(written)
        ids = ids[: next((at for at, token in enumerate(ids) if token in loaded.eos), len(ids))]
        format = self._prompt(_messages(turns, ""), tools)[1]
        given = Written(CallRules(_tools(tools)))
        texts = TokenTexts(loaded.tokenizer)
        segments = [text for token in ids for text in texts.add(token)] + list(texts.finish())
        thought, said, calls = "", "", []
        for piece in [*(p for text in segments for p in given.add([_token(text, format)])), *given.end()]:
            if isinstance(piece, ThoughtDelta):
                thought += piece.text
            elif isinstance(piece, TextDelta):
                said += piece.text
            else:
                calls.append((piece.name, json.loads(piece.arguments)))
        return Read(thought, said, tuple(calls))

    def answer(
        self, turns: list[Turn], tokens: int, bias: dict[int, float] | None = None, raw: str = ""
    ) -> Answer:
        """Generate up to so many tokens, greedily."""
        settings = assign_all(
            Settings(),
            {
                "sampling.temperature": 0.0,
                "sampling.max_tokens": tokens,
                "sampling.repetition_penalty": 1.0,
            }.items(),
        )
        request = Generate("1", tuple(_messages(turns, raw)), settings, logit_bias=bias or {})
        shown: list[Token] = []
        for event in self._engine.generate(request):
            if isinstance(event, Token):
                shown.append(event)
            elif isinstance(event, Finished):
                return Answer([token.id for token in shown], "".join(token.text for token in shown), event)
        raise AssertionError("an answer ended without its end")


def _messages(turns: list[Turn], raw: str) -> list[Message]:
    return [_message(turn, raw) for turn in turns]


def _message(turn: Turn, raw: str) -> Message:
    # Past thoughts reach Draftlight as they were written.
    content = raw if turn.get("thought") and raw and not turn.get("tool_calls") else turn["content"]
    return Message(
        "system" if turn["role"] == "developer" else turn["role"],
        content,
        tool_calls=tuple(
            ToolCall(made["id"], made["function"]["name"], json.dumps(made["function"]["arguments"]))
            for made in turn.get("tool_calls") or ()
        ),
        tool_call_id=turn.get("tool_call_id", ""),
    )


def _tools(tools: Sequence[dict[str, Any]] | None) -> tuple[Tool, ...]:
    functions = [tool["function"] for tool in tools or ()]
    return tuple(
        Tool(each["name"], each["description"], json.dumps(each["parameters"])) for each in functions
    )


def _token(text: str, format: AnswerFormat | None) -> Token:
    return Token("1", 0, text, "normal", 0, 0, format=format)
