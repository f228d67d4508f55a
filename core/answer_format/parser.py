"""AnswerParser and `parse_answer`: an answer's thought, text and tool calls."""

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
    """The next part of the thought."""

    text: str


class Text(Struct, frozen=True):
    """The next part of the text."""

    text: str


class CallBegun(Struct, frozen=True):
    """A call of the function `name` begins; `index` counts the answer's calls from 0.

    The parser leaves `id` empty.
    """

    index: int
    name: str
    id: str = ""


class CallArguments(Struct, frozen=True):
    """The next part of the arguments of call `index`, a JSON object as text."""

    index: int
    text: str


Delta = Thought | Text | CallBegun | CallArguments


class ParsedAnswer(Struct, frozen=True):
    """A whole answer."""

    thought: str = ""
    text: str = ""
    calls: tuple[Call, ...] = ()


class AnswerParser:
    """Parses one answer incrementally; the joined deltas do not depend on how the text was divided.

    `streams_calls`: arguments are returned while they are generated. If such a call turns out to be invalid,
    or the answer ends inside it, its arguments stay incomplete and its text is not part of the answer;
    `cut_off` lists these calls.
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
        """Adds text; returns the deltas that are now certain."""
        made = self._deltas(self._splitter.add(text))
        return made + self._call_progress() if self._streams_calls else made

    def end(self) -> list[Delta]:
        """Ends the answer; returns the remaining deltas."""
        return self._deltas(self._splitter.end())

    def _call_progress(self) -> list[Delta]:
        """The next deltas of the open call."""
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
        """The remaining deltas of a call that was streamed."""
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
    """Parses the whole answer `text`. Without `tools`, calls of any function are read."""
    parser = AnswerParser(format, tools)
    return joined([*parser.add(text), *parser.end()])


def parse_past_answer(text: str, format: AnswerFormat, tools: Sequence[Tool] = ()) -> ParsedAnswer:
    """Parses an earlier answer, which may be by another model or lack its thought.

    Clients return answers without thoughts, and an earlier prompt may have begun differently: an opening tag
    without a closing tag is ignored, and a closing tag without an opening tag ends a thought.
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
    """The answer that consists of `deltas`."""
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
