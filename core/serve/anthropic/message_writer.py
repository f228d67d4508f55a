"""MessageWriter: an answer as Anthropic's message, in one piece or as its events.

A stream begins as soon as the prompt is being read, because its first event says how long that is;
from then on pings keep the line alive.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import msgspec

from core.answer_format import CallArguments, CallBegun, Delta, Text, Thought
from core.events import Finished, PrefillProgress, Stats, Token
from core.serve.answering import commented
from core.serve.answers.answer import Happening
from core.serve.anthropic.errors import error_body
from core.serve.anthropic.message_request import Enabled, MessageRequest
from core.serve.errors import ApiError, FieldNames
from core.serve.http.responses import event
from core.serve.openai.figures import effective, origins, timings
from core.serve.written import CallRules, Written


class MessageWriter:
    """Writes one answer to `asked`, under the id `request`, by the model called `model`.

    `rules` say how its calls are read.
    """

    streamed_errors: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, asked: MessageRequest, request: str, model: str, rules: CallRules) -> None:
        self._asked = asked
        self._written = Written(rules, asked.schema_check, streams=asked.stream)
        self._head: dict[str, Any] = {
            "id": request,
            "type": "message",
            "role": "assistant",
            "model": model,
        }
        self._usage = _usage(Stats())
        self._begun = False
        # The block that is being written, and how many were begun.
        self._open = ""
        self._blocks = 0

    @property
    def names(self) -> FieldNames:
        """What its fields are called."""
        return self._asked.names

    def alive(self, happening: Happening | None) -> bytes:
        """A comment that says how far it is; from when the prompt is read on, pings."""
        said = commented(happening)
        if isinstance(happening, PrefillProgress) and not self._begun:
            self._usage = _usage(_begun(happening))
            said += self.opening()
        return said + (_named({"type": "ping"}) if self._begun else b"")

    def opening(self) -> bytes:
        """The first event; nothing if it was sent while the prompt was read."""
        if self._begun:
            return b""
        self._begun = True
        empty: dict[str, Any] = {
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": self._usage,
        }
        return _named({"type": "message_start", "message": self._head | empty})

    def written(self, tokens: Sequence[Token]) -> bytes:
        """Events of what is new; nothing where nothing is."""
        out = self._told(self._written.add(tokens))
        if self._asked.draftlight.tokens:
            # Clients of Anthropic's skip events that they do not know.
            out += _named({"type": "draftlight", "tokens": origins(tokens)})
        return out

    def finished(self, finished: Finished) -> bytes:
        """The last events."""
        out = self._told(self._written.end()) + self._closed()
        delta = {
            "type": "message_delta",
            "delta": self._end(finished),
            "usage": _usage(finished.stats),
            **self._figures(finished),
        }
        return out + _named(delta) + _named({"type": "message_stop"})

    def failed(self, error: ApiError) -> bytes:
        """What went wrong in the middle of it."""
        return _named(error_body(error.status, error.anthropic_message))

    def whole(self, tokens: Sequence[Token], finished: Finished) -> dict[str, Any]:
        """All of it in one piece."""
        content = _blocks([*self._written.add(tokens), *self._written.end()], self._asked.shows_thoughts)
        figures = self._figures(finished)
        if self._asked.draftlight.tokens:
            figures["draftlight"]["tokens"] = origins(tokens)
        return {
            **self._head,
            "content": content,
            **self._end(finished),
            "usage": _usage(finished.stats),
            **figures,
        }

    def _end(self, finished: Finished) -> dict[str, Any]:
        """Why it ended."""
        given = finished.stopped_by in self._asked.stop_sequences
        if finished.reason != "stop":
            reason = "max_tokens"
        elif given and finished.stopped_by:
            reason = "stop_sequence"
        else:
            reason = "tool_use" if self._written.calls else "end_turn"
        return {
            "stop_reason": reason,
            "stop_sequence": finished.stopped_by if reason == "stop_sequence" else None,
        }

    def _figures(self, finished: Finished) -> dict[str, Any]:
        changes = (*self._asked.changes, *self._written.changes)
        own = effective(finished, unlimited=False, changes=changes)
        if isinstance(self._asked.thinking, Enabled):
            asked = str(self._asked.thinking.budget_tokens)
            why = "thoughts are not counted apart; “max_tokens” bounds both"
            change = {"setting": "thinking.budget_tokens", "asked": asked, "used": "none", "reason": why}
            own["changes"].append(change)
        return {"timings": timings(finished.stats), "draftlight": own}

    def _told(self, pieces: Iterable[Delta]) -> bytes:
        out = b""
        for piece in pieces:
            match piece:
                case Thought(text):
                    out += self._in("thinking", _thought(""))
                    if self._asked.shows_thoughts:
                        out += self._delta({"type": "thinking_delta", "thinking": text})
                case Text(text):
                    out += self._in("text", {"type": "text", "text": ""})
                    out += self._delta({"type": "text_delta", "text": text})
                case CallBegun(_, name, call):
                    out += self._closed()
                    out += self._in("tool_use", _call(call, name))
                case CallArguments(_, text):
                    out += self._delta({"type": "input_json_delta", "partial_json": text})
        return out

    def _in(self, kind: str, block: dict[str, Any]) -> bytes:
        if self._open == kind:
            return b""
        out = self._closed()
        self._open = kind
        self._blocks += 1
        begun = {"type": "content_block_start", "index": self._blocks - 1, "content_block": block}
        return out + _named(begun)

    def _delta(self, delta: dict[str, Any]) -> bytes:
        return _named({"type": "content_block_delta", "index": self._blocks - 1, "delta": delta})

    def _closed(self) -> bytes:
        if not self._open:
            return b""
        out = b""
        if self._open == "thinking":
            # Clients expect it at the end of a thought. Nothing is signed here.
            out = self._delta({"type": "signature_delta", "signature": ""})
        self._open = ""
        return out + _named({"type": "content_block_stop", "index": self._blocks - 1})


def _named(data: dict[str, Any]) -> bytes:
    return event(data, data["type"])


def _begun(reading: PrefillProgress) -> Stats:
    """What is known of the prompt at its first progress; the last event has the true figures."""
    reused = reading.reused_tokens
    scored = reused if reading.phase == "scoring" else 0
    # The last token is read by the first step of the answer.
    return Stats(prompt_tokens=reading.total_tokens + scored + 1, reused_tokens=reused)


def _usage(stats: Stats) -> dict[str, int]:
    """Anthropic counts what a cache held apart from what was read."""
    return {
        "input_tokens": stats.prompt_tokens - stats.reused_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": stats.reused_tokens,
        "output_tokens": stats.tokens,
    }


def _call(call: str, name: str) -> dict[str, Any]:
    # As Anthropic's ids look.
    return {"type": "tool_use", "id": f"toolu_{call.removeprefix('call_')}", "name": name, "input": {}}


def _thought(text: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": ""}


def _blocks(pieces: Iterable[Delta], shows_thoughts: bool) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    arguments: dict[int, str] = {}
    for piece in pieces:
        match piece:
            case Thought(text):
                said = text if shows_thoughts else ""
                if blocks:
                    blocks[-1]["thinking"] += said
                else:
                    blocks.append(_thought(said))
            case Text(text) if blocks and blocks[-1]["type"] == "text":
                blocks[-1]["text"] += text
            case Text(text):
                blocks.append({"type": "text", "text": text})
            case CallBegun(_, name, call):
                blocks.append(_call(call, name))
            case CallArguments(_, text):
                place = len(blocks) - 1
                arguments[place] = arguments.get(place, "") + text
    for place, text in arguments.items():
        blocks[place]["input"] = _object(text)
    return blocks


def _object(text: str) -> dict[str, Any]:
    """What of the arguments is an object; one that was cut off by the answer's length is empty."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError:
        return {}
