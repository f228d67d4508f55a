"""AnswerSplitter: an answer's thought, text, tool calls and marks while it is generated.

The parts' texts concatenate to the answer; a call is a part once it is complete. Text that may be the
beginning of a mark, and white space that a mark may absorb, is held back until it is certain, and sections of
calls are read in the same steps, so the parts do not depend on how the answer was divided.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from core.answer_format.calls import (
    MAX_CHARACTERS,
    Call,
    Section,
    Syntax,
    Tool,
    closing_tags,
    read_call_body,
    read_calls,
)
from core.answer_format.formats import GENERAL_TAGS, AnswerFormat, Channels, channels_in, channels_of
from core.answer_format.openings import Opening, Place, Surroundings, first_mark, openings_of
from core.answer_format.syntaxes import syntaxes_of
from core.answer_format.values import BrokenValueError, UnfinishedValueError

# Limit of a channel's header; longer ones are text.
_HEADER_CHARACTERS = 256
# A section that is ended by the end of the answer is read after one of these.
_CLOSERS = re.compile(r"[\])}]")
# Every closing bracket is tried in sections of up to this many characters, in longer ones fewer.
_OFTEN_READ = 4096
# One of these, or more, ends a section.
_STOPS = re.compile(r"[\])}>`]")
_GOES_ON = re.compile(r"[,;]?\s*(?:[\[{]|$)")
_FENCE = re.compile(r"```\w*")

PartKind = Literal["thought", "text", "mark", "call"]


class Part(Struct, frozen=True):
    """A piece of the answer's source; a part of the kind `call` has `calls`."""

    kind: PartKind
    text: str
    calls: tuple[Call, ...] = ()


class _Marks(Struct, frozen=True):
    """The marks that an answer may have.

    `sections`: openings of calls by their marks; `bare`: those without a mark; `call_ends`: closing marks.
    `at_start`, `anywhere`: opening tags of thoughts, and where they count, with their closing tags; `around`:
    tags around the text. `hidden`: control tokens, which are never shown.
    """

    channels: Channels | None
    sections: dict[str, Opening]
    bare: tuple[Opening, ...]
    call_ends: frozenset[str]
    at_start: dict[str, str]
    anywhere: dict[str, str]
    around: dict[str, str]
    hidden: frozenset[str]


def _marks_of(format: AnswerFormat, tools: Sequence[Tool]) -> _Marks:
    channels = channels_of(format.channels)
    openings = openings_of(syntaxes_of(format.calls), tools)
    marked = sorted((each for each in openings if each.begin), key=lambda each: not each.loose)
    ends = {each.end for each in marked if each.end}
    anywhere = {tags.begin: tags.end for tags in format.thoughts if tags.anywhere}
    hidden = {mark for tags in format.thoughts for mark in tags.hidden}
    return _Marks(
        channels,
        {each.begin: each for each in marked},  # a syntax's own mark replaces an equal loose one
        tuple(each for each in openings if not each.begin),
        frozenset(ends | {tag for each in openings for tag in closing_tags(each.syntax)}),
        {tags.begin: tags.end for tags in (*GENERAL_TAGS, *format.thoughts)},
        anywhere,
        dict(tags.around for tags in format.thoughts if tags.around),
        frozenset(hidden | set(anywhere.values()) | set(channels.part_ends if channels else ())),
    )


# ---- states


class _Prose(Struct, frozen=True):
    """`ends`: closing marks of the open or the last thought; `nested`: opening tags inside it, whose closing
    tags may follow. `swallows_space`: white space that follows belongs to the mark before it.
    """

    ends: tuple[str, ...] = ()
    nested: int = 0
    swallows_space: bool = False


class _Text(_Prose, frozen=True): ...


class _Thought(_Prose, frozen=True): ...


class _Header(Struct, frozen=True):
    """The header of a channel, after the text `back`. `of_prompt`: the prompt ends with its beginning."""

    back: _Text
    of_prompt: bool = False


class _Body(Struct, frozen=True):
    """The arguments of a call whose `name` is in a header; no end before the offset `searched`."""

    back: _Text
    name: str
    searched: int = 0


class _Reading(Struct, frozen=True):
    """How far a section was read. `tried`: offset of the next search; `found`: calls of earlier readings."""

    tried: int
    found: Section | None = None


class _Section(Struct, frozen=True):
    """A section of calls inside `back`, held from the `blank` characters of white space before it.

    `fenced`: in an open code fence. `is_read`: what follows its calls decides about them.
    """

    back: _Text | _Thought
    opening: Opening
    place: Place
    blank: int
    reading: _Reading
    fenced: bool
    is_read: bool = False


_State = _Text | _Thought | _Header | _Body | _Section
_NO_CALLS = Section((), 0)


class AnswerSplitter:
    """Splits one answer. Without a call syntax in `format` and without `tools`, calls are text.

    With `tools`, only calls of these functions are calls, and in every format a list of Python calls at the
    beginning of the answer is one. Examples in a code fence or in quotes are text, as are calls in a thought,
    unless the answer ends with them.
    """

    def __init__(self, format: AnswerFormat, tools: Sequence[Tool] = ()) -> None:
        self._tools = tools
        self._calls = bool(format.calls)
        self._marks = _marks_of(format, tools)
        self._state: _State = _Text()
        if format.begins == "thought":
            self._state = _Thought((format.thought_end,), swallows_space=True)
        elif format.begins == "header":
            self._state = _Header(_Text(), of_prompt=True)
        self._held = ""
        self._ahead = ""  # follows `_held`; not examined yet
        self._parts: list[Part] = []
        self._at_start = True  # no text yet except white space
        self._after_call = False  # no text since a call
        self._around_end = ""  # end of the tags around the text
        self._surroundings = Surroundings()

    @property
    def in_thought(self) -> bool:
        """Whether a thought is open."""
        state = self._state
        return isinstance(state.back if isinstance(state, _Section) else state, _Thought)

    def add(self, text: str) -> list[Part]:
        """Add source; returns the parts that are now certain."""
        self._ahead += text
        return self._run(final=False)

    def end(self) -> list[Part]:
        """Ends the answer; returns the remaining parts."""
        return self._run(final=True)

    def _run(self, *, final: bool) -> list[Part]:
        while self._ahead or final:
            step = self._step()
            self._held, self._ahead = self._held + self._ahead[:step], self._ahead[step:]
            while self._held and self._advance(final and not self._ahead):
                pass
            final = final and bool(self._ahead)
        parts, self._parts = self._parts, []
        return parts

    def _step(self) -> int:
        """Number of pending characters to examine next: in a section, up to its next possible end."""
        state = self._state
        if not isinstance(state, _Section):
            return len(self._ahead)
        if state.is_read:
            return 1
        stop = _STOPS.search(self._ahead, max(0, state.blank + state.reading.tried - len(self._held)))
        return stop.end() if stop else len(self._ahead)

    def _advance(self, final: bool) -> bool:
        """Emits the parts that are certain and sets the next state; returns whether more may follow."""
        match self._state:
            case _Text() as state:
                return self._text(state, final)
            case _Thought() as state:
                return self._thought(state, final)
            case _Header() as state:
                return self._header(state, final)
            case _Body() as state:
                return self._body(state, final)
            case _Section() as state:
                return self._section(state, final)

    def _take(self, kind: PartKind, length: int, calls: tuple[Call, ...] = ()) -> None:
        """Makes a part of the first `length` held characters."""
        if length:
            text, self._held = self._held[:length], self._held[length:]
            self._parts.append(Part(kind, text, calls))
            if kind in ("text", "thought"):
                self._surroundings = self._surroundings.after(text)
                self._after_call = self._after_call and not text.strip()

    def _add_text(self, length: int) -> None:
        is_blank = not self._held[:length].strip()
        self._at_start = self._at_start and is_blank
        # White space after a call is not text.
        self._take("mark" if is_blank and self._after_call else "text", length)

    # ---- text

    def _text(self, state: _Text, final: bool) -> bool:
        held, marks = self._held, self._marks
        blank = len(held) - len(held.lstrip())
        if state.swallows_space:
            self._take("mark", blank)
            self._state = replace(state, swallows_space=not self._held)
            return bool(self._held)
        closing = self._stray(state, blank, final)
        if closing is None:
            return False
        if closing:
            self._take("mark", blank + len(closing))
            self._state = replace(state, swallows_space=closing in state.ends)
            return True
        anywhere = [*marks.hidden, *marks.anywhere, *marks.sections, *(state.ends if state.nested else ())]
        if marks.channels:
            anywhere += marks.channels.begins
        at_start = [*marks.at_start, *marks.around] if self._at_start else []
        at, mark = first_mark(held, anywhere)
        blank_start = blank if self._at_start else 0
        opening = _longest(held, blank_start, at_start)
        if opening and (at < 0 or blank_start <= at):
            at, mark = blank_start, opening
        bare_at, bare = self._first_bare(blank_start, at_start=self._at_start and len(held) > blank_start)
        if bare is not None and (at < 0 or bare_at < at):
            self._open_section(state, bare_at, bare)
            return True
        if at >= 0:
            self._mark(state, at, mark)
            return True
        if final:
            self._add_text(len(self._without_closing_tag(held)))
            self._take("mark", len(self._held))
            return False
        cut = min(_certain(held, [*anywhere, *at_start, self._around_end]), bare_at)
        cut = len(self._without_closing_tag(held[:cut]))
        if self._calls:
            cut = self._surroundings.lead(held[:cut])
        elif marks.anywhere or self._around_end:
            # White space before a closing tag is part of its mark.
            cut = len(held[:cut].rstrip())
        elif (self._at_start or self._after_call) and cut <= blank:
            cut = 0
        self._add_text(cut)
        return False

    def _stray(self, state: _Text, blank: int, final: bool) -> str | None:
        """The further closing mark of a call or thought after white space; None if there may be one."""
        channels = self._marks.channels
        marks = self._marks.call_ends if self._after_call else frozenset()
        if self._at_start and state.ends:
            marks = (marks | set(state.ends)) - {"", *(channels.begins if channels else ())}
        found = _longest(self._held, blank, marks)
        begins = not found and not final and any(mark.startswith(self._held[blank:]) for mark in marks)
        return None if begins else found

    def _without_closing_tag(self, text: str) -> str:
        """The text without a closing tag at its end and the white space around the tag."""
        stripped = text.rstrip()
        if not self._around_end or not stripped.endswith(self._around_end):
            return text
        return stripped.removesuffix(self._around_end).rstrip()

    def _first_bare(self, start: int, *, at_start: bool) -> tuple[int, Opening | None]:
        """Offset and opening of the first bare call; else the offset from which one may begin."""
        first, found = len(self._held), None
        for opening in self._marks.bare:
            if not opening.at_start:
                begun = opening.pattern.search(self._held, partial=True)
            elif at_start:
                begun = opening.pattern.match(self._held, start, partial=True)
            else:
                continue
            if begun and (begun.start() < first or (begun.start() == first and found is None)):
                first, found = begun.start(), None if begun.partial else opening
        return first, found

    def _mark(self, state: _Text, at: int, mark: str) -> None:
        """Handles a mark at `at`."""
        marks = self._marks
        if mark in marks.sections:
            self._open_section(state, at, marks.sections[mark])
            return
        thought_end = marks.anywhere.get(mark) or marks.at_start.get(mark)
        text = self._held[:at]
        if thought_end is not None:
            text = self._without_closing_tag(text).rstrip()
        self._add_text(len(text))
        self._take("mark", at - len(text) + len(mark))
        state = replace(state, nested=state.nested - (state.nested > 0 and mark in state.ends))
        self._state = state
        if mark in marks.around and self._at_start:
            self._around_end = marks.around[mark]
            self._state = replace(state, swallows_space=True)
        elif thought_end is not None:
            self._state = _Thought((thought_end,), state.nested, swallows_space=True)
            self._surroundings = Surroundings()
        elif marks.channels and mark in marks.channels.begins:
            self._state = _Header(state)

    # ---- a thought

    def _thought(self, state: _Thought, final: bool) -> bool:
        held, channels = self._held, self._marks.channels
        begins = [tag for tag, end in self._marks.at_start.items() if (end,) == state.ends]
        # Channels have one mark for the end of a part and the beginning of the next one.
        inner = [] if channels else begins
        if state.swallows_space:
            stripped = held.lstrip("\n")
            again = begins[0] if begins else ""  # some models repeat the tag at the end of the prompt
            if again and stripped.startswith(again):
                self._take("mark", len(held) - len(stripped) + len(again))
                return True
            if not final and (not stripped or (again and again.startswith(stripped))):
                return False
            self._take("mark", len(held) - len(stripped))
            self._state = replace(state, swallows_space=False)
            return True
        sections = self._marks.sections
        at, mark = first_mark(held, [*state.ends, *inner])
        begun, begin = first_mark(held, sections) if self._calls else (-1, "")
        bare_at, bare = self._first_bare(0, at_start=False) if self._calls else (len(held), None)
        opening = sections.get(begin)
        if bare is not None and (opening is None or bare_at < begun):
            begun, opening = bare_at, bare
        if opening is not None and (at < 0 or begun < at):
            self._open_section(state, begun, opening)
            return True
        if at < 0:
            cut = len(held) if final else min(_certain(held, [*state.ends, *inner, *sections]), bare_at)
            if not final:
                cut = self._surroundings.lead(held[:cut]) if self._calls else len(held[:cut].rstrip("\n"))
            self._take("thought", cut)
            return False
        if mark in inner:
            self._take("thought", at + len(mark))
            self._state = replace(state, nested=state.nested + 1)
            return True
        text = len(held[:at].rstrip("\n"))
        self._take("thought", text)
        begins_next = channels is not None and mark in channels.begins
        self._take("mark", at - text + (0 if begins_next else len(mark)))
        self._state = _Text(state.ends, state.nested, swallows_space=channels is None)
        self._surroundings = Surroundings()
        return True

    # ---- a channel's header, and the arguments of a call with its name there

    def _header(self, state: _Header, final: bool) -> bool:
        channels, held = self._marks.channels, self._held
        assert channels is not None
        at, mark = first_mark(held[:_HEADER_CHARACTERS], channels.header_ends)
        header = held[: at + len(mark)]
        matches = ((rule.kind, re.search(rule.pattern, header)) for rule in channels.rules if at >= 0)
        kind, found = next((each for each in matches if each[1]), (None, None))
        is_unfinished = at < 0 and len(held) < _HEADER_CHARACTERS
        if is_unfinished and not final:
            return False
        self._state = state.back
        if found is not None:
            self._take("mark", len(header))
            if kind == "call" and self._calls:
                self._state = _Body(state.back, found["name"])
            elif kind == "thought":
                self._state = _Thought((*channels.part_ends, *channels.begins), swallows_space=True)
        elif is_unfinished and not state.of_prompt:
            self._take("mark", len(held))  # the answer ends in a header
        elif at >= 0 and not channels.keeps_unknown:
            self._take("mark", len(header))
        else:
            self._add_text(1)  # so that it is not taken for a beginning again
        return True

    def _body(self, state: _Body, final: bool) -> bool:
        channels, held = self._marks.channels, self._held
        assert channels is not None
        ends = (*channels.part_ends, *channels.begins)
        start = state.searched
        while True:
            at, mark = first_mark(held, ends, start)
            if at < 0 and not final:
                self._state = replace(state, searched=max(0, len(held) - max(map(len, ends))))
                return False
            body = held[:at] if at >= 0 else held
            try:
                call = read_call_body(state.name, body, self._tools)
            except UnfinishedValueError:
                if at >= 0:
                    start = at + len(mark)
                    continue
                call = None
            except BrokenValueError:
                call = None
            self._state = state.back
            if call is None:
                self._add_text(len(body))
            else:
                self._after_call = True
                self._take("call", len(body), (call,))
            return True

    # ---- a section of calls

    def _open_section(self, back: _Text | _Thought, at: int, opening: Opening) -> None:
        """Begins a section at `at`, after text or a thought."""
        text = self._held[:at]
        around = self._surroundings.after(text)
        text = text[: self._surroundings.lead(text)]
        if isinstance(back, _Text):
            text = self._without_closing_tag(text).rstrip()
            self._add_text(len(text))
        else:
            self._take("thought", len(text))
        blank, begin = at - len(text), len(opening.begin)
        place = around.place(opening, self._held[blank:], at_start=self._at_start)
        if place == "free" and isinstance(back, _Thought):
            place = "end"
        self._state = _Section(back, opening, place, blank, _Reading(begin), around.fence)
        step = blank + begin
        self._held, self._ahead = self._held[:step], self._held[step:] + self._ahead

    def _section(self, state: _Section, final: bool) -> bool:
        text = self._held[state.blank :]
        read, reading = self._read(text, state.opening, state.reading, final)
        state = self._state = replace(state, reading=reading)
        if read is None:
            return False
        if not read.end:
            self._release(state, max(1, len(state.opening.begin)))
        elif not read.calls:
            self._state = state.back
            self._take("mark", state.blank + read.end)
        else:
            after = text[read.end :].strip()
            goes_on = _GOES_ON.match(after)
            has_more = (goes_on and goes_on.end() < len(after)) or _longest(after, 0, self._marks.sections)
            state = self._state = replace(state, is_read=not has_more)
            if not (state.opening.end or final) and (goes_on or self._may_go_on(after)):
                return False
            if state.place != "free":
                return self._end_with_calls(state, text, read, final)
            self._take_calls(state, read)
        return True

    def _end_with_calls(self, state: _Section, text: str, read: Section, final: bool) -> bool:
        """Takes the calls from `read` on if nothing else is left of the answer and they are not quoted."""
        end, calls = read.end, read.calls
        while True:
            rest = text[end:].lstrip()
            at = len(text) - len(rest)
            if not rest and not final:
                return False
            if not rest and state.place == "end":
                self._take_calls(state, Section(calls, len(text)))
                return True
            if closing := _longest(rest, 0, self._marks.call_ends):
                end = at + len(closing)
            elif (fence := _FENCE.match(rest)) and (state.fenced or text.startswith("```")):
                end = at + fence.end()
            else:
                following = self._following(rest, final)
                more = None
                if following is not None:
                    more, _ = self._read(rest, following, _Reading(len(following.begin)), final)
                if more is None and (following or (not final and self._may_go_on(rest))):
                    return False
                if more is None or not more.calls:
                    self._release(state, end)
                    return True
                end, calls = at + more.end, (*calls, *more.calls)

    def _following(self, rest: str, final: bool) -> Opening | None:
        """The opening of the section with which `rest` begins."""
        begin = _longest(rest, 0, self._marks.sections)
        if begin:
            return self._marks.sections[begin]
        bare = (each for each in self._marks.bare if not each.at_start)
        return next((each for each in bare if each.pattern.match(rest, partial=not final)), None)

    def _take_calls(self, state: _Section, read: Section) -> None:
        self._state, self._after_call = state.back, True
        self._take("mark", state.blank)
        self._take("call", read.end, read.calls)

    def _release(self, state: _Section, length: int) -> None:
        """Makes the white space and the first `length` characters of the section text."""
        self._state = state.back
        is_text = isinstance(state.back, _Text)
        self._at_start = self._at_start and not is_text
        self._take("text" if is_text else "thought", state.blank + length)

    def _may_go_on(self, after: str) -> bool:
        marks = [*self._marks.sections, *self._marks.call_ends, "```"]
        return any(mark.startswith(after) or after.startswith(mark) for mark in marks)

    def _read(
        self, text: str, opening: Opening, reading: _Reading, final: bool
    ) -> tuple[Section | None, _Reading]:
        """The calls of a section, and how far it was read. None: it may have some once it is longer; the end
        0: it has none. Marks around nothing have an end, and no calls.
        """
        begun = opening.pattern.match(text, partial=not final)
        if begun is None:
            return _NO_CALLS, reading
        if begun.partial:
            return None, reading
        if "empty" in begun.groupdict() and begun["empty"] is not None:
            return Section((), begun.end()), reading
        at = reading.tried
        try:
            while opening.end and (found := text.find(opening.end, at)) >= 0:
                end = found + len(opening.end)
                try:
                    section = self._read_whole(text[:end], opening.syntax)
                except UnfinishedValueError:
                    at = end
                    continue
                # Another section may begin before this mark.
                if not first_mark(text[section.end : found], self._marks.sections)[1]:
                    section = Section(section.calls, end)
                return section, reading
            if opening.end:
                reading = _Reading(max(at, len(text) - len(opening.end)))
            elif reading.found and not _CLOSERS.search(text, reading.found.end if final else at):
                return reading.found, reading
            elif final or _CLOSERS.search(text, at):
                section = read_calls(text[:MAX_CHARACTERS], opening.syntax, self._tools)
                return section, _Reading(len(text), section)
        except BrokenValueError:
            return _NO_CALLS, reading
        except UnfinishedValueError:
            reading = replace(reading, tried=len(text) + max(0, len(text) - _OFTEN_READ) // 64)
        if not final:
            return None if len(text) <= MAX_CHARACTERS else _NO_CALLS, reading
        try:
            return read_calls(text[:MAX_CHARACTERS], opening.syntax, self._tools, lenient=True), reading
        except (BrokenValueError, UnfinishedValueError):
            return _NO_CALLS, reading

    def _read_whole(self, text: str, syntax: Syntax) -> Section:
        """The calls of a section up to an end mark, before which brackets may be missing."""
        try:
            return read_calls(text, syntax, self._tools)
        except BrokenValueError:
            return read_calls(text, syntax, self._tools, lenient=True)


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


# ---- whole answers


class ParsedAnswer(Struct, frozen=True):
    """A whole answer."""

    thought: str = ""
    text: str = ""
    calls: tuple[Call, ...] = ()


def parse_answer(text: str, format: AnswerFormat, tools: Sequence[Tool] = ()) -> ParsedAnswer:
    """Parses the whole answer `text`. Without `tools`, calls of any function are read."""
    splitter = AnswerSplitter(format, tools)
    return joined([*splitter.add(text), *splitter.end()])


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


def joined(parts: Sequence[Part]) -> ParsedAnswer:
    """The answer that consists of `parts`. Thoughts of several channels are paragraphs of one."""
    runs = groupby(parts, lambda part: part.kind == "thought")
    thoughts = ["".join(part.text for part in run) for is_thought, run in runs if is_thought]
    said = "".join(part.text for part in parts if part.kind == "text")
    return ParsedAnswer("\n\n".join(thoughts), said, tuple(call for part in parts for call in part.calls))
