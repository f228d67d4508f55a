"""AnswerSplitter: an answer's thought, text, tool calls and marks while it is generated.

The parts' texts concatenate to the answer; a call is a part once it is complete. Text that may be the
beginning of a mark, and white space that a mark may absorb, is held back until it is certain, and sections of
calls are read in the same steps, so what is found does not depend on how the answer was divided.
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
from core.answer_format.formats import GENERAL_TAGS, AnswerFormat, Kind, channels_in, channels_of
from core.answer_format.openings import Opening, Place, Surroundings, first_mark, openings_of
from core.answer_format.syntaxes import syntaxes_of
from core.answer_format.values import BrokenValueError, UnfinishedValueError

# Limit of a channel's header; longer ones are text.
_HEADER_CHARACTERS = 256
# A section that is ended by the end of the answer is read after one of these.
_CLOSERS = re.compile(r"[\])}]")
# Up to every one until it has so many characters, then up to fewer ones.
_OFTEN_READ = 4096
# One of these, or more, ends a section.
_STOPS = re.compile(r"[\])}>`]")
_GOES_ON = re.compile(r"[,;]?\s*(?:[\[{]|$)")
_FENCE = re.compile(r"```\w*")

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
    beginning of the answer is one. Examples in a code fence or in quotes are text, as are calls in a thought,
    unless the answer ends with them.
    """

    def __init__(self, format: AnswerFormat, tools: Sequence[Tool] = ()) -> None:
        self._tools = tools
        syntaxes = syntaxes_of(format.calls)
        self._channels = channels_of(format.channels)
        self._calls = bool(format.calls)
        openings = openings_of(syntaxes, tools)
        self._sections = {each.begin: each for each in openings if each.begin and each.loose}
        self._sections |= {each.begin: each for each in openings if each.begin and not each.loose}
        self._bare = [each for each in openings if not each.begin]
        self._call_ends = {each.end for each in openings if each.end}
        self._call_ends |= {tag for each in openings for tag in closing_tags(each.syntax)}
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
        self._ahead = ""  # follows what is held; not looked at yet
        self._parts: list[Part] = []
        self._nested = 0  # opening tags of a thought inside it, whose closing tags may follow
        self._at_start = True  # no text yet except white space
        self._swallows_space = format.begins == "thought"
        self._header_of_prompt = format.begins == "header"
        self._name = ""
        self._after_call = False  # no text since a call
        self._surroundings = Surroundings()
        # Of the open section: where it began, the white space before it, and what was read of it.
        self._opening: Opening | None = None
        self._home: Literal["text", "thought"] = "text"
        self._place: Place = "free"
        self._blank = 0
        self._tried = 0
        self._found: Section | None = None
        self._fenced = False
        self._is_read = False  # what follows its calls decides about them

    @property
    def in_thought(self) -> bool:
        """Whether a thought is open."""
        return self._state == "thought" or (self._state == "section" and self._home == "thought")

    def add(self, text: str) -> list[Part]:
        """Add source; returns the parts that are now certain."""
        self._ahead += text
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
        while self._ahead or final:
            step = self._step()
            self._held, self._ahead = self._held + self._ahead[:step], self._ahead[step:]
            while self._held and steps[self._state](final and not self._ahead):
                pass
            final = final and bool(self._ahead)
        parts, self._parts = self._parts, []
        return parts

    def _step(self) -> int:
        """How much of what is ahead is looked at next: in a section, up to where it is read again."""
        if self._state != "section":
            return len(self._ahead)
        stop = _STOPS.search(self._ahead, max(0, self._tried - len(self._held)))
        return 1 if self._is_read else stop.end() if stop else len(self._ahead)

    def _take(self, kind: PartKind, length: int, calls: tuple[Call, ...] = ()) -> None:
        """Makes a part of the first `length` held characters."""
        if length:
            text, self._held = self._held[:length], self._held[length:]
            self._parts.append(Part(kind, text, calls))
            if kind in ("text", "thought"):
                self._surroundings = self._surroundings.after(text)
                self._after_call = self._after_call and not text.strip()

    # ---- states: each makes parts of what is certain, and returns whether there may be more

    def _text(self, final: bool) -> bool:
        held = self._held
        if self._swallows_space:
            blank = len(held) - len(held.lstrip())
            self._take("mark", blank)
            self._swallows_space = not self._held
            return bool(self._held)
        blank = len(held) - len(held.lstrip())
        if closing := self._stray(held, blank, final):
            self._take("mark", blank + len(closing))
            self._swallows_space = closing in self._ends
            return True
        if closing is None:
            return False
        blank_start = blank if self._at_start else 0
        marks = [*self._hidden, *self._tags_anywhere, *self._sections]
        if self._channels:
            marks += self._channels.begins
        if self._nested:
            marks += self._ends
        at, mark = first_mark(held, marks)
        if self._at_start:
            opening = _longest(held, blank_start, [*self._tags_at_start, *self._tags_around])
            if opening and (at < 0 or blank_start <= at):
                at, mark = blank_start, opening
        bare_at, bare = self._first_bare(held, blank_start)
        if bare is not None and (at < 0 or bare_at < at):
            self._open_section(bare_at, bare, "text")
            return True
        if at >= 0:
            self._mark(at, mark)
            return True
        if final:
            self._add_text(len(self._without_closing_tag(held)))
            self._take("mark", len(self._held))
            return False
        begun = [*marks, *self._tags_at_start, *self._tags_around] if self._at_start else marks
        cut = min(_certain(held, [*begun, self._around_end]), bare_at)
        cut = len(self._without_closing_tag(held[:cut]))
        if self._calls:
            cut = self._surroundings.lead(held[:cut])
        elif self._tags_anywhere or self._around_end:
            # White space before a closing tag is part of its mark.
            cut = len(held[:cut].rstrip())
        elif (self._at_start or self._after_call) and cut <= blank:
            cut = 0
        self._add_text(cut)
        return False

    def _stray(self, held: str, blank: int, final: bool) -> str | None:
        """The further closing mark of a call or thought after white space; None if there may be one."""
        marks = self._call_ends if self._after_call else set()
        if self._at_start and self._ends:
            marks = {*marks, *self._ends} - {"", *(self._channels.begins if self._channels else ())}
        found = _longest(held, blank, marks)
        begins = not found and not final and any(mark.startswith(held[blank:]) for mark in marks)
        return None if begins else found

    def _without_closing_tag(self, text: str) -> str:
        """The text without a closing tag at its end and the white space around the tag."""
        stripped = text.rstrip()
        if not self._around_end or not stripped.endswith(self._around_end):
            return text
        return stripped.removesuffix(self._around_end).rstrip()

    def _add_text(self, length: int) -> None:
        is_blank = not self._held[:length].strip()
        self._at_start = self._at_start and is_blank
        # White space after a call is not text.
        self._take("mark" if is_blank and self._after_call else "text", length)

    def _first_bare(self, held: str, start: int) -> tuple[int, Opening | None]:
        """Offset and opening of the first bare call; else the offset from which one may begin."""
        first, found = len(held), None
        for opening in self._bare:
            if not opening.at_start:
                begun = opening.pattern.search(held, partial=True)
            elif not self._at_start or self._state != "text" or len(held) == start:
                continue
            else:
                begun = opening.pattern.match(held, start, partial=True)
            if begun and (begun.start() < first or (begun.start() == first and found is None)):
                first, found = begun.start(), None if begun.partial else opening
        return first, found

    def _mark(self, at: int, mark: str) -> None:
        """Handles a mark at `at`."""
        if mark in self._sections:
            self._open_section(at, self._sections[mark], "text")
            return
        opens = mark in self._tags_anywhere or mark in self._tags_at_start
        text = self._held[:at]
        if opens:
            text = self._without_closing_tag(text).rstrip()
        self._add_text(len(text))
        self._take("mark", at - len(text) + len(mark))
        self._nested -= bool(self._nested) and mark in self._ends
        if mark in self._tags_around and self._at_start:
            self._around_end, self._swallows_space = self._tags_around[mark], True
        elif opens:
            ends = self._tags_anywhere.get(mark) or self._tags_at_start[mark]
            self._state, self._ends, self._swallows_space = "thought", (ends,), True
            self._surroundings = Surroundings()
        elif self._channels and mark in self._channels.begins:
            self._state, self._header_of_prompt = "header", False

    def _open_section(self, at: int, opening: Opening, home: Literal["text", "thought"]) -> None:
        """Begins a section at `at`, after text of the kind `home`."""
        text = self._held[:at]
        around = self._surroundings.after(text)
        text = text[: self._surroundings.lead(text)]
        if home == "text":
            text = self._without_closing_tag(text).rstrip()
            self._add_text(len(text))
        else:
            self._take("thought", len(text))
        self._state, self._home, self._opening = "section", home, opening
        self._blank = at - len(text)
        self._tried, self._found = self._blank + len(opening.begin), None
        self._place = around.place(opening, self._held[self._blank :], at_start=self._at_start)
        if home == "thought" and self._place == "free":
            self._place = "end"
        self._fenced = around.fence
        self._is_read = False
        self._held, self._ahead = self._held[: self._tried], self._held[self._tried :] + self._ahead

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
        # Channels have one mark for the end of a part and the beginning of the next one.
        inner = (
            [] if self._channels else [t for t, end in self._tags_at_start.items() if (end,) == self._ends]
        )
        at, mark = first_mark(held, [*self._ends, *inner])
        begun, begin = first_mark(held, self._sections) if self._calls else (-1, "")
        bare_at, bare = self._first_bare(held, 0) if self._calls else (len(held), None)
        opening = self._sections.get(begin)
        if bare is not None and (opening is None or bare_at < begun):
            begun, opening = bare_at, bare
        if opening is not None and (at < 0 or begun < at):
            self._open_section(begun, opening, "thought")
            return True
        if at < 0:
            marks = [*self._ends, *inner, *self._sections]
            cut = len(held) if final else min(_certain(held, marks), bare_at)
            if not final:
                cut = self._surroundings.lead(held[:cut]) if self._calls else len(held[:cut].rstrip("\n"))
            self._take("thought", cut)
            return False
        if mark in inner:
            self._take("thought", at + len(mark))
            self._nested += 1
            return True
        text = len(held[:at].rstrip("\n"))
        self._take("thought", text)
        if self._channels and mark in self._channels.begins:
            self._take("mark", at - text)
        else:
            self._take("mark", at - text + len(mark))
        self._state, self._swallows_space = "text", self._channels is None
        self._surroundings = Surroundings()
        return True

    def _header(self, final: bool) -> bool:
        channels, held = self._channels, self._held
        assert channels is not None
        at, mark = first_mark(held[:_HEADER_CHARACTERS], channels.header_ends)
        header = held[: at + len(mark)]
        rule = next((r for r in channels.rules if at >= 0 and re.search(r.pattern, header)), None)
        if rule is None:
            if at < 0 and len(held) < _HEADER_CHARACTERS and not final:
                return False
            self._state = "text"
            if at < 0 and len(held) < _HEADER_CHARACTERS and not self._header_of_prompt:
                self._take("mark", len(held))  # the answer ends in a header
            elif not channels.keeps_unknown and at >= 0:
                self._take("mark", len(header))
            else:
                # One character is text, so that it is not taken for a beginning again.
                self._add_text(1)
            return True
        self._take("mark", len(header))
        self._enter(rule.kind, re.search(rule.pattern, header))
        return True

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
            at, mark = first_mark(held, ends, self._tried)
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
                self._after_call = True
                self._take("call", len(body), (call,))
            return True

    def _section(self, final: bool) -> bool:
        """State: a section of calls, from the white space before it."""
        assert self._opening is not None
        text = self._held[self._blank :]
        read = self._read(text, self._opening, final)
        if read is None:
            return False
        if not read.end:
            self._release(max(1, len(self._opening.begin)))
        elif not read.calls:
            self._state = self._home
            self._take("mark", self._blank + read.end)
        else:
            after = text[read.end :].strip()
            goes_on = _GOES_ON.match(after)
            has_more = (goes_on and goes_on.end() < len(after)) or _longest(after, 0, self._sections)
            self._is_read = not has_more
            if not (self._opening.end or final) and (goes_on or self._may_go_on(after)):
                return False
            if self._place != "free":
                return self._end_with_calls(text, read, final)
            self._take_calls(read)
        return True

    def _end_with_calls(self, text: str, read: Section, final: bool) -> bool:
        """Takes the calls from `read` on if nothing else is left of the answer and they are not quoted."""
        end, calls = read.end, read.calls
        while True:
            rest = text[end:].lstrip()
            at = len(text) - len(rest)
            if not rest and not final:
                return False
            if not rest and self._place == "end":
                self._take_calls(Section(calls, len(text)))
                return True
            if closing := _longest(rest, 0, self._call_ends):
                end = at + len(closing)
            elif (fence := _FENCE.match(rest)) and (self._fenced or text.startswith("```")):
                end = at + fence.end()
            else:
                following = self._following(rest, final)
                more = self._read(rest, following, final) if following else None
                if more is None and (following or (not final and self._may_go_on(rest))):
                    return False
                if more is None or not more.calls:
                    self._release(end)
                    return True
                end, calls = at + more.end, (*calls, *more.calls)

    def _following(self, rest: str, final: bool) -> Opening | None:
        """The opening of the section with which `rest` begins."""
        begin = _longest(rest, 0, self._sections)
        if begin:
            return self._sections[begin]
        bare = (each for each in self._bare if not each.at_start)
        return next((each for each in bare if each.pattern.match(rest, partial=not final)), None)

    def _take_calls(self, read: Section) -> None:
        self._state, self._after_call = self._home, True
        self._take("mark", self._blank)
        self._take("call", read.end, read.calls)

    def _release(self, length: int) -> None:
        """Makes the white space and the first `length` characters of the section text."""
        self._state = self._home
        if self._home == "text":
            self._at_start = False
        self._take(self._home, self._blank + length)

    def _may_go_on(self, after: str) -> bool:
        marks = [*self._sections, *self._call_ends, "```"]
        return any(mark.startswith(after) or after.startswith(mark) for mark in marks)

    def _read(self, text: str, opening: Opening, final: bool) -> Section | None:
        """The calls of a section. None: it may have some once it is longer; the end 0: it has none.

        Marks around nothing have an end, and no calls.
        """
        none = Section((), 0)
        begun = opening.pattern.match(text, partial=not final)
        if begun is None:
            return none
        if begun.partial:
            return None
        if "empty" in begun.groupdict() and begun["empty"] is not None:
            return Section((), begun.end())
        is_first = opening is self._opening and len(text) + self._blank == len(self._held)
        at = self._tried - self._blank if is_first else len(opening.begin)
        try:
            while opening.end and (found := text.find(opening.end, at)) >= 0:
                end = found + len(opening.end)
                try:
                    section = self._read_whole(text[:end], opening.syntax)
                except UnfinishedValueError:
                    at = end
                    continue
                # Another section may begin before this mark.
                gap = text[section.end : found]
                return section if first_mark(gap, self._sections)[1] else Section(section.calls, end)
            if is_first and opening.end:
                self._tried = self._blank + max(at, len(text) - len(opening.end))
            elif is_first and self._found and not _CLOSERS.search(text, self._found.end if final else at):
                return self._found
            if not opening.end and (final or _CLOSERS.search(text, at)):
                section = read_calls(text[:MAX_CHARACTERS], opening.syntax, self._tools)
                if is_first:
                    self._tried, self._found = self._blank + len(text), section
                return section
        except BrokenValueError:
            return none
        except UnfinishedValueError:
            if is_first:
                self._tried = len(self._held) + max(0, len(self._held) - _OFTEN_READ) // 64
        if not final:
            return None if len(text) <= MAX_CHARACTERS else none
        try:
            return read_calls(text[:MAX_CHARACTERS], opening.syntax, self._tools, lenient=True)
        except (BrokenValueError, UnfinishedValueError):
            return none

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
