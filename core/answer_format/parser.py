"""AnswerParser and `parse_answer`: the thought, the text and the calls of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from core.answer_format.call_stream import CallStream
from core.answer_format.calls import Call, Tool
from core.answer_format.formats import AnswerFormat, channels_in
from core.answer_format.splitter import AnswerSplitter, Part


class Thought(Struct, frozen=True):
    """More of what the model thinks before it answers."""

    text: str


class Text(Struct, frozen=True):
    """More of the answer's text."""

    text: str


class CallBegun(Struct, frozen=True):
    """A call of the function `name` begins; `index` counts the answer's calls from 0.

    The parser leaves `id` empty.
    """

    index: int
    name: str
    id: str = ""


class CallArguments(Struct, frozen=True):
    """More of the arguments of the call `index`, a JSON object as text."""

    index: int
    text: str


Delta = Thought | Text | CallBegun | CallArguments


class ParsedAnswer(Struct, frozen=True):
    """A whole answer."""

    thought: str = ""
    text: str = ""
    calls: tuple[Call, ...] = ()


class AnswerParser:
    """Parses one answer while it is written; the deltas, joined, do not depend on how the text was cut.

    `streams_calls`: the arguments of a call are given while they are written. A call that turns out to be
    none, or that the answer's end cuts off, has been begun by then: its arguments stay incomplete, and its
    text is no part of the answer's. `cut_off` has the names of those.
    """

    def __init__(
        self, format: AnswerFormat, tools: Sequence[Tool] = (), *, streams_calls: bool = False
    ) -> None:
        self._splitter = AnswerSplitter(format, tools)
        self._tools = tools
        self._streams_calls = streams_calls
        self._stream: CallStream | None = None
        self.cut_off: list[str] = []
        self._thought_ended = False
        self._has_thought = False
        self.calls = 0

    @property
    def in_thought(self) -> bool:
        """Whether a thought is open."""
        return self._splitter.in_thought

    def add(self, text: str) -> list[Delta]:
        """Add text; returns what is now certain."""
        made = self._deltas(self._splitter.add(text))
        return made + self._call_progress() if self._streams_calls else made

    def end(self) -> list[Delta]:
        """End the answer; returns what was held back."""
        return self._deltas(self._splitter.end())

    def _call_progress(self) -> list[Delta]:
        """More of the call that is being written."""
        found = self._splitter.open_call
        if found is None:
            return []
        text, syntax, name = found
        if self._stream is None:
            self._stream = CallStream(syntax, self._tools, name)
        had_begun = bool(self._stream.name)
        more = self._stream.add(text)
        made: list[Delta] = []
        if self._stream.name and not had_begun:
            made.append(CallBegun(self.calls, self._stream.name))
            self.calls += 1
        if more:
            made.append(CallArguments(self.calls - 1, more))
        return made

    def _rest_of_call(self, call: Call) -> list[Delta]:
        """The end of a call whose beginning was given."""
        stream, self._stream = self._stream, None
        if stream is None or not stream.name:
            made: list[Delta] = [CallBegun(self.calls, call.name), CallArguments(self.calls, call.arguments)]
            self.calls += 1
            return made
        if stream.is_complete:
            return []
        if call.name != stream.name or not call.arguments.startswith(stream.given):
            self.cut_off.append(stream.name)
            return []
        return [CallArguments(self.calls - 1, call.arguments[len(stream.given) :])]

    def _deltas(self, parts: Sequence[Part]) -> list[Delta]:
        made: list[Delta] = []
        for part in parts:
            if part.kind == "thought":
                # Thoughts of several channels are paragraphs of one.
                apart = "\n\n" if self._has_thought and self._thought_ended else ""
                made.append(Thought(apart + part.text))
                self._has_thought, self._thought_ended = True, False
            else:
                self._thought_ended = True
            if part.kind == "text":
                made.append(Text(part.text))
            for call in part.calls:
                made += self._rest_of_call(call)
        if self._stream is not None and self._splitter.open_call is None:
            stream, self._stream = self._stream, None
            if stream.name:
                self.cut_off.append(stream.name)
                made = [one for one in made if not isinstance(one, Text)]
        return made


def parse_answer(text: str, format: AnswerFormat, tools: Sequence[Tool] = ()) -> ParsedAnswer:
    """The whole answer `text`. Without `tools` calls of any function are read."""
    parser = AnswerParser(format, tools)
    return joined([*parser.add(text), *parser.end()])


def parse_past_answer(text: str, format: AnswerFormat, tools: Sequence[Tool] = ()) -> ParsedAnswer:
    """An earlier answer, perhaps by another model, perhaps without the thought that its prompt left open.

    Clients send answers back without thoughts, and an earlier prompt may have begun in another way: an open
    thought that the text does not end is none, and a closing tag that nothing opened ends one.
    """
    if channels := format.channels or channels_in(text):
        begins: Literal["header", "text"] = "header" if format.begins == "header" else "text"
        return parse_answer(text, replace(format, channels=channels, begins=begins, thought_end=""), tools)
    format = replace(format, begins="text", thought_end="")
    parsed = parse_answer(text, format, tools)
    closing = next((tags.end for tags in format.thoughts if tags.end in text), "")
    if parsed.thought or not closing:
        return parsed
    return parse_answer(text, replace(format, begins="thought", thought_end=closing), tools)


def joined(deltas: Sequence[Delta]) -> ParsedAnswer:
    """The answer that `deltas` are."""
    thought, text = [], []
    names: list[str] = []
    arguments: list[str] = []
    for delta in deltas:
        match delta:
            case Thought(more):
                thought.append(more)
            case Text(more):
                text.append(more)
            case CallBegun(_, name):
                names.append(name)
                arguments.append("")
            case CallArguments(index, more):
                arguments[index] += more
    calls = tuple(Call(name, each) for name, each in zip(names, arguments))
    return ParsedAnswer("".join(thought), "".join(text), calls)
