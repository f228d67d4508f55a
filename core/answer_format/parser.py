"""AnswerParser: an answer's thought, text and tool calls while it is generated, by an AnswerSplitter.

The splitter divides an answer into thought, text, calls and marks. The parts' texts concatenate to the
answer. Text that may be the beginning of a mark, and white space that a mark may absorb, is held back until
it is certain, so the parts do not depend on how the answer was divided.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from core.answer_format.call_stream import CallStream
from core.answer_format.calls import Call, Section, Tool, read_call_body, read_calls
from core.answer_format.formats import GENERAL_TAGS, AnswerFormat, Kind, channels_in, channels_of
from core.answer_format.syntaxes import PYTHON_LIST, Named, Syntax, syntaxes_of
from core.answer_format.values import BrokenValueError, UnfinishedValueError

# Limit of a channel's header; longer ones are text.
_HEADER_CHARACTERS = 256
_BARE = {
    "json": re.compile(r'[\[{]\s*(?:\{\s*)?"(?:name|function|type)"\s*:'),
    "python": re.compile(r"\[\s*[A-Za-z_][\w.]*\("),
}
# Ends of a text that may be the beginning of a bare call.
_BARE_BEGUN = {
    "json": re.compile(r'[\[{]\s*(?:\{\s*)?(?:"[a-z]{0,8}(?:"\s*)?)?$'),
    "python": re.compile(r"\[\s*(?:[A-Za-z_][\w.]*)?$"),
}
# A section that is ended by the end of the answer is read after one of these.
_CLOSERS = re.compile(r"[\])}]")
_GOES_ON = re.compile(r"[,;\[{]")

PartKind = Literal["thought", "text", "mark", "call"]
_State = Literal["text", "thought", "header", "body", "section"]


class Part(Struct, frozen=True):
    """A piece of the answer's source; a part of the kind `call` has `calls`."""

    kind: PartKind
    text: str
    calls: tuple[Call, ...] = ()


class AnswerSplitter:
    """Splits one answer. Without a call syntax in `format` and without `tools`, calls are text.

    With `tools`, only calls of these functions are calls, and in every format a list of Python calls at the
    beginning of the answer is one.
    """

    def __init__(self, format: AnswerFormat, tools: Sequence[Tool] = ()) -> None:
        self._tools = tools
        syntaxes = syntaxes_of(format.calls)
        self._channels = channels_of(format.channels)
        self._calls = bool(format.calls)
        self._sections = {begin: (end, each) for each in syntaxes for begin, end in each.marks}
        self._bare_syntax = next((each for each in syntaxes if each.bare in _BARE), None)
        # Beginnings of an answer that are a call of a declared function.
        self._openings: list[tuple[tuple[str, ...], Syntax]] = [
            (("[", tool.name, "("), PYTHON_LIST) for tool in tools
        ]
        for named in (each for each in syntaxes if each.bare == "named"):
            self._openings += [((f"{tool.name}\n", "{"), named) for tool in tools]
        self._syntax: Syntax | None = None  # of the open section
        self._tags_at_start = {tags.begin: tags.end for tags in (*GENERAL_TAGS, *format.thoughts)}
        self._tags_anywhere = {tags.begin: tags.end for tags in format.thoughts if tags.anywhere}
        self._tags_around = dict(tags.around for tags in format.thoughts if tags.around)
        self._around_end = ""  # end of the tags around the text
        # Control tokens, which are never shown.
        self._hidden = {mark for tags in format.thoughts for mark in tags.hidden}
        self._hidden |= set(self._tags_anywhere.values())
        if self._channels:
            self._hidden.update(self._channels.part_ends)
        self._state: _State = format.begins
        self._ends: tuple[str, ...] = (format.thought_end,) if format.begins == "thought" else ()
        self._held = ""
        self._parts: list[Part] = []
        self._at_start = True  # no text yet except white space
        self._swallows_space = format.begins == "thought"
        self._header_of_prompt = format.begins == "header"
        self._name = ""
        self._called = False
        self._tried = 0
        self._blank = 0  # length of the white space before the open section
        self._section_ends = ""

    @property
    def in_thought(self) -> bool:
        """Whether a thought is open."""
        return self._state == "thought"

    @property
    def open_call(self) -> tuple[str, Syntax | None, str] | None:
        """The text and syntax of the open section of calls; or a call's arguments and its name."""
        if self._state == "section":
            return self._held[self._blank :], self._syntax, ""
        return (self._held, None, self._name) if self._state == "body" else None

    def add(self, text: str) -> list[Part]:
        """Add source; returns the parts that are now certain."""
        self._held += text
        return self._run(final=False)

    def end(self) -> list[Part]:
        """Ends the answer; returns the remaining parts."""
        return self._run(final=True)

    def _run(self, *, final: bool) -> list[Part]:
        steps = {
            "text": self._text,
            "thought": self._thought,
            "header": self._header,
            "body": self._body,
            "section": self._section,
        }
        while self._held and steps[self._state](final):
            pass
        parts, self._parts = self._parts, []
        return parts

    def _take(self, kind: PartKind, length: int, calls: tuple[Call, ...] = ()) -> None:
        """Makes a part of the first `length` held characters."""
        if length:
            self._parts.append(Part(kind, self._held[:length], calls))
            self._held = self._held[length:]

    # ---- states: each makes parts of what is certain, and returns whether there may be more

    def _text(self, final: bool) -> bool:
        held = self._held
        if self._swallows_space:
            blank = len(held) - len(held.lstrip())
            self._take("mark", blank)
            self._swallows_space = not self._held
            return bool(self._held)
        blank_start = len(held) - len(held.lstrip()) if self._at_start else 0
        marks = [*self._hidden, *self._tags_anywhere, *self._sections]
        if self._channels:
            marks += self._channels.begins
        at, mark = _first(held, marks)
        if self._at_start:
            opening = _longest(held, blank_start, [*self._tags_at_start, *self._tags_around])
            if opening and (at < 0 or blank_start <= at):
                at, mark = blank_start, opening
        bare, syntax, may_begin = self._bare(held, blank_start)
        if bare >= 0 and (at < 0 or bare < at):
            at, mark = bare, ""
        if at >= 0:
            self._mark(at, mark, syntax)
            return True
        if final:
            self._add_text(len(self._without_closing_tag(held)))
            self._take("mark", len(self._held))
            return False
        begun = [*marks, *self._tags_at_start, *self._tags_around] if self._at_start else marks
        cut = len(self._without_closing_tag(held[: _certain(held, [*begun, self._around_end])]))
        if self._bare_syntax and (late := _BARE_BEGUN[self._bare_syntax.bare].search(held)):
            cut = min(cut, late.start())
        if may_begin:
            cut = blank_start
        if self._calls or self._tags_anywhere or self._around_end:
            # White space before a call or a closing tag is part of its mark.
            cut = len(held[:cut].rstrip())
        elif cut <= blank_start:
            cut = 0
        self._add_text(cut)
        return False

    def _without_closing_tag(self, text: str) -> str:
        """The text without a closing tag at its end and the white space around the tag."""
        stripped = text.rstrip()
        if not self._around_end or not stripped.endswith(self._around_end):
            return text
        return stripped.removesuffix(self._around_end).rstrip()

    def _add_text(self, length: int) -> None:
        text = self._held[:length]
        if text.strip():
            self._at_start = False
            self._take("text", length)
        else:
            # White space after a call is not text.
            self._take("mark" if self._called else "text", length)

    def _bare(self, held: str, start: int) -> tuple[int, Syntax | None, bool]:
        """Offset of a bare call (−1: none), its syntax, and whether one may begin at `start`."""
        may_begin = False
        for texts, syntax in self._openings if self._at_start and len(held) > start else ():
            begins = _begins_with(held[start:], texts)
            if begins:
                return start, syntax, True
            may_begin = may_begin or begins is None
        found = _BARE[self._bare_syntax.bare].search(held) if self._bare_syntax else None
        return found.start() if found else -1, self._bare_syntax, may_begin

    def _mark(self, at: int, mark: str, bare_syntax: Syntax | None) -> None:
        """Handles a mark at `at`; an empty mark is a bare call of `bare_syntax`."""
        begins_call = not mark or mark in self._sections
        opens = mark in self._tags_anywhere or mark in self._tags_at_start
        text = self._held[:at]
        if begins_call or opens:
            text = self._without_closing_tag(text).rstrip()
        self._add_text(len(text))
        if begins_call:
            self._state, self._blank = "section", at - len(text)
            self._tried = self._blank + len(mark)
            self._section_ends, self._syntax = self._sections.get(mark, ("", bare_syntax))
            return
        self._take("mark", at - len(text) + len(mark))
        if mark in self._tags_around and self._at_start:
            self._around_end, self._swallows_space = self._tags_around[mark], True
        elif opens:
            ends = self._tags_anywhere.get(mark) or self._tags_at_start[mark]
            self._state, self._ends, self._swallows_space = "thought", (ends,), True
        elif self._channels and mark in self._channels.begins:
            self._state, self._header_of_prompt = "header", False

    def _thought(self, final: bool) -> bool:
        held = self._held
        if self._swallows_space:
            stripped = held.lstrip("\n")
            # Some models repeat the tag at the end of the prompt.
            again = next((t for t, end in self._tags_at_start.items() if (end,) == self._ends), "")
            if again and stripped.startswith(again):
                self._take("mark", len(held) - len(stripped) + len(again))
                return True
            if not final and (not stripped or (again and again.startswith(stripped))):
                return False
            self._take("mark", len(held) - len(stripped))
            self._swallows_space = False
            return True
        at, mark = _first(held, self._ends)
        if at < 0:
            cut = len(held) if final else len(held[: _certain(held, self._ends)].rstrip("\n"))
            self._take("thought", cut)
            return False
        text = len(held[:at].rstrip("\n"))
        self._take("thought", text)
        if self._channels and mark in self._channels.begins:
            self._take("mark", at - text)
        else:
            self._take("mark", at - text + len(mark))
        self._state, self._swallows_space = "text", self._channels is None
        return True

    def _header(self, final: bool) -> bool:
        channels, held = self._channels, self._held
        assert channels is not None
        at, mark = _first(held, channels.header_ends)
        header = held[: at + len(mark)]
        rule = next((r for r in channels.rules if at >= 0 and re.search(r.pattern, header)), None)
        if rule is None:
            if at < 0 and len(held) < _HEADER_CHARACTERS and not final:
                return False
            self._state = "text"
            if final and not self._header_of_prompt and len(held) < _HEADER_CHARACTERS:
                self._take("mark", len(held))  # the answer ends in a header
            elif not channels.keeps_unknown and at >= 0:
                self._take("mark", len(header))
            else:
                self._add_first()
            return True
        self._take("mark", len(header))
        self._enter(rule.kind, re.search(rule.pattern, header))
        return True

    def _add_first(self, blank: int = 0) -> None:
        """Makes white space and one character text, so that they are not taken for a beginning again."""
        self._at_start = False
        self._take("text", blank + 1)

    def _enter(self, kind: Kind, header: re.Match[str] | None) -> None:
        channels = self._channels
        assert channels is not None
        if kind == "call" and self._calls and header is not None:
            self._state, self._name, self._tried = "body", header["name"], 0
        elif kind == "thought":
            self._state, self._swallows_space = "thought", True
            self._ends = (*channels.part_ends, *channels.begins)
        else:
            self._state = "text"

    def _body(self, final: bool) -> bool:
        """State: the arguments of a call whose name is in a header."""
        channels, held = self._channels, self._held
        assert channels is not None
        ends = (*channels.part_ends, *channels.begins)
        while True:
            at, mark = _first(held, ends, self._tried)
            if at < 0 and not final:
                self._tried = max(0, len(held) - max(map(len, ends)))
                return False
            body = held[:at] if at >= 0 else held
            try:
                call = read_call_body(self._name, body, self._tools)
            except UnfinishedValueError:
                if at >= 0:
                    self._tried = at + len(mark)
                    continue
                call = None
            except BrokenValueError:
                call = None
            self._state = "text"
            if call is None:
                self._add_text(len(body))
            else:
                self._called = True
                self._take("call", len(body), (call,))
            return True

    def _section(self, final: bool) -> bool:
        """State: a section of calls, from the white space before its first mark."""
        if not self._section_ends:
            return self._open_section(final)
        held = self._held
        while True:
            at = held.find(self._section_ends, self._tried)
            if at < 0 and not final:
                self._tried = max(self._tried, len(held) - len(self._section_ends))
                return False
            end = at + len(self._section_ends) if at >= 0 else len(held)
            section = self._read(held[self._blank : end])
            if section == "unfinished" and at >= 0:
                self._tried = end
                continue
            if isinstance(section, Section):
                self._take_call(end, section)
            else:
                self._state = "text"
                if self._is_empty(held[self._blank : end]):
                    self._take("mark", end)
                else:
                    self._add_text(end)
            return True

    def _is_empty(self, section: str) -> bool:
        """Whether there is nothing between marks that are control tokens; an answer may write about other
        marks.
        """
        begin = section.removesuffix(self._section_ends).rstrip()
        return begin in self._sections and begin.startswith(("<|", "<｜"))

    def _open_section(self, final: bool) -> bool:
        """Handles a section without an end mark, which the end of the answer or of its calls ends."""
        held, blank = self._held, self._blank
        if not final and not _CLOSERS.search(held, self._tried):
            return False
        self._tried = len(held)
        section = self._read(held[blank:])
        if section == "unfinished" and not final:
            return False
        if section == "broken" and not final and not self._breaks_early:
            return False
        if isinstance(section, Section):
            after = held[blank + section.end :].strip()
            if not final and (not after or _GOES_ON.match(after) or self._may_go_on(after)):
                return False
            is_bare = not any(held.startswith(begin, blank) for begin in self._sections)
            at_start = self._at_start and self._syntax is not None and self._syntax.bare != "named"
            if not after or at_start or not is_bare:
                self._take_call(blank + section.end, section)
                return True
        self._state = "text"
        self._add_first(blank)
        return True

    def _take_call(self, length: int, section: Section) -> None:
        self._state, self._called = "text", True
        self._take("mark", self._blank)
        self._take("call", length - self._blank, section.calls)

    @property
    def _breaks_early(self) -> bool:
        """Whether an invalid section cannot become valid with more text."""
        assert self._syntax is not None
        return not any(isinstance(form, Named) for form in self._syntax.forms)

    def _may_go_on(self, after: str) -> bool:
        return any(begin.startswith(after) or after.startswith(begin) for begin in self._sections)

    def _read(self, text: str) -> Section | Literal["unfinished", "broken"]:
        assert self._syntax is not None
        try:
            return read_calls(text, self._syntax, self._tools)
        except UnfinishedValueError:
            return "unfinished"
        except BrokenValueError:
            return "broken"


def _first(text: str, marks: Iterable[str], start: int = 0) -> tuple[int, str]:
    """Offset of the first of `marks` in `text`, and the longest mark there; −1 if there is none."""
    best, found = -1, ""
    for mark in marks:
        at = text.find(mark, start)
        if at >= 0 and (best < 0 or at < best or (at == best and len(mark) > len(found))):
            best, found = at, mark
    return best, found


def _begins_with(text: str, tokens: Iterable[str]) -> bool | None:
    """Whether `text` begins with `tokens`, with optional white space before each; None if undecided."""
    for token in tokens:
        text = text.lstrip()
        if len(text) < len(token) and token.startswith(text):
            return None
        if not text.startswith(token):
            return False
        text = text[len(token) :]
    return True


def _longest(text: str, at: int, marks: Iterable[str]) -> str:
    return max((mark for mark in marks if text.startswith(mark, at)), key=len, default="")


def _certain(text: str, marks: Iterable[str]) -> int:
    """Length of `text` without an end that may be the beginning of a mark."""
    cut = len(text)
    for mark in marks:
        for length in range(min(len(mark) - 1, len(text)), 0, -1):
            if text.endswith(mark[:length]):
                cut = min(cut, len(text) - length)
                break
    return cut


# ---- parts of an answer as deltas


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
