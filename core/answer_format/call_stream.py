"""CallStream: a section's first tool call while it is generated, as JSON text that only grows.

`read_calls` reads a section once it is complete. A call that writes a file takes a minute until then, so its
name and the beginning of its arguments are returned as soon as they are certain. Forms that `CallStream` does
not support (Python calls, arguments inside a string, values that are not JSON) are returned at the end of the
section.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from core.answer_format.calls import (
    Json,
    Named,
    Source,
    Tagged,
    Tool,
    compiled,
    declared_name,
    tool_schema,
    typed_by,
    unnamed,
    value_end,
)
from core.answer_format.syntaxes import Syntax
from core.answer_format.values import (
    BrokenValueError,
    UnfinishedValueError,
    is_text_only,
    match_end,
    read_value,
    skip_space,
    unescaped,
)

# A call whose arguments have not begun after this many characters is not streamed.
_HEAD_CHARACTERS = 400
# Longer than any text that ends a value.
_END_CHARACTERS = 120
_JSON_HEAD = re.compile(
    r'\s*(?:```(?:json|tool_call)?\s*)?\[?\s*\{\s*(?:"(?:tool_call_)?id"\s*:\s*"[^"\\]*"\s*,\s*)?'
    r'"(?:tool_)?name"\s*:\s*"(?P<name>[^"\\]+)"\s*,\s*"(?:arguments|parameters|args|input)"\s*:\s*(?=\{)'
)
_BODY_BEGUN = re.compile(r'\{\s*"(?!name")(?:[^"]{5,}|[^"]{0,4}"\s*:)')
_PLAIN = re.compile(r'[^"\\]*')
_WORD = re.compile(r"[-+.\w]+")


class CallStream:
    """One call. `name` is empty until it is known.

    `add` takes the section's text from its first mark on or, with `body_of`, the arguments of the call with
    that name. `is_complete`: the returned arguments are a complete JSON object.
    """

    def __init__(self, syntax: Syntax | None, tools: Sequence[Tool], body_of: str = "") -> None:
        self.name = ""
        self.given = ""
        self._syntax = syntax
        self._tools = tools
        self._body_of = body_of
        self._reader: _Arguments | None = None
        self._is_lost = False

    @property
    def is_complete(self) -> bool:
        """Whether the arguments are complete."""
        return self._reader is not None and self._reader.is_complete

    def add(self, text: str) -> str:
        """Returns the new part of the arguments; `text` is the section's whole text up to now."""
        if self._reader is None and not self._is_lost:
            self._begin(text)
        if self._reader is None or self._is_lost:
            return ""
        try:
            more = self._reader.add(text)
        except BrokenValueError:
            self._is_lost = True
            more = self._reader.taken()
        self.given += more
        return more

    def _begin(self, text: str) -> None:
        found = self._head(text)
        if found is None:
            self._is_lost = len(text) > _HEAD_CHARACTERS
            return
        name, reader = found
        declared = declared_name(name, self._tools)
        if declared is None:
            self._is_lost = True
        else:
            self.name, self._reader = declared, reader

    def _head(self, text: str) -> tuple[str, _Arguments] | None:
        """The name of the call, and a reader of its arguments; None if they have not begun."""
        if self._body_of:
            at = skip_space(text, 0)
            # Some models repeat the name: `{"name": …, "args": {…}}`.
            return (self._body_of, _JsonArguments(at)) if _BODY_BEGUN.match(text, at) else None
        if self._syntax is None:
            return None
        pairs = (*self._syntax.marks, *self._syntax.loose)
        begin = next((begin for begin, _ in pairs if text.startswith(begin)), "")
        if not begin:
            return None  # the following text decides whether it is a call
        for form in self._syntax.forms:
            if isinstance(form, Json) and (match := _JSON_HEAD.match(text, len(begin))):
                return match["name"], _JsonArguments(match.end())
            if isinstance(form, Named) and (match := compiled(form.head).search(text)):
                at = skip_space(text, match.end())
                if text.startswith("{", at):
                    return match["name"], _JsonArguments(at)
            if isinstance(form, Tagged) and (match := compiled(form.head).search(text)):
                key = compiled(form.key).match(text, skip_space(text, match.end()))
                if key and key.end() < len(text):
                    return match["name"], _TaggedArguments(
                        match.end(), match["name"], form, Source(self._syntax, self._tools, False)
                    )
        return None


class _Arguments:
    """Reads arguments from `at` on and writes them as `json.dumps` does."""

    def __init__(self, at: int) -> None:
        self._at = at
        self._made: list[str] = []
        self.is_complete = False

    def add(self, text: str) -> str:
        """Returns the new part of the output; `text` is the section's whole text up to now."""
        while not self.is_complete and self._step(text):
            pass
        return self.taken()

    def taken(self) -> str:
        """Returns and clears the output."""
        made, self._made = "".join(self._made), []
        return made

    def _step(self, text: str) -> bool:
        """Reads one token. Returns False if it is incomplete."""
        raise NotImplementedError


class _JsonArguments(_Arguments):
    """A JSON object. Raises `BrokenValueError`."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self._open: list[str] = []  # closing brackets of the open objects and lists, innermost last
        self._expects = "value"  # "key", "colon", "comma"
        self._quoted = False
        self._comma = False

    def _step(self, text: str) -> bool:
        if self._quoted:
            return self._string(text)
        self._at = skip_space(text, self._at)
        if self._at >= len(text):
            return False
        one = text[self._at]
        if self._open and one == self._open[-1] and self._expects != "colon":
            self._close(one)
        elif self._expects == "comma" and one == ",":
            self._comma, self._expects = True, "key" if self._open[-1] == "}" else "value"
        elif self._expects == "colon" and one == ":":
            self._made.append(": ")
            self._expects = "value"
        elif self._expects in ("key", "value") and one == '"':
            self._put('"')
            self._quoted = True
        elif self._expects == "value" and one in "{[":
            self._put(one)
            self._open.append("}" if one == "{" else "]")
            self._expects = "key" if one == "{" else "value"
        elif self._expects == "value" and (word := _WORD.match(text, self._at)):
            if word.end() == len(text):
                return False
            try:
                value, end = read_value(text, self._at)
            except UnfinishedValueError as error:
                raise BrokenValueError(word[0]) from error
            self._put(json.dumps(value, ensure_ascii=False))
            self._at, self._expects = end, "comma"
            return True
        else:
            raise BrokenValueError(f"{one} at {self._at}")
        self._at += 1
        return True

    def _put(self, text: str) -> None:
        self._made.append(f", {text}" if self._comma else text)
        self._comma = False

    def _close(self, bracket: str) -> None:
        self._made.append(bracket)
        self._open.pop()
        self._comma, self._expects, self.is_complete = False, "comma", not self._open

    def _string(self, text: str) -> bool:
        end = match_end(_PLAIN, text, self._at)
        self._made.append(_inside(text[self._at : end]))
        self._at = end
        if end >= len(text):
            return False
        if text[end] == '"':
            self._made.append('"')
            self._at, self._quoted = end + 1, False
            self._expects = "colon" if self._expects == "key" else "comma"
            return True
        try:
            value, self._at = unescaped(text, end)
        except UnfinishedValueError:
            return False
        self._made.append(_inside(value))
        return True


class _TaggedArguments(_Arguments):
    """Tagged parameters. Values that can only be strings are streamed, others wait for their end."""

    def __init__(self, at: int, name: str, form: Tagged, source: Source) -> None:
        super().__init__(at)
        self._name, self._form, self._source = name, form, source
        self._schema = tool_schema(name, source.tools)
        self._key, self._tail = compiled(form.key), compiled(form.tail)
        self._any_end = compiled(form.value_end)
        # At the answer's end the value may prove to have ended here.
        self._any_tail = compiled(rf"\s*(?:{unnamed(form.tail)})")
        self._written: set[str] = set()
        self._parameter: re.Match[str] | None = None
        self._is_text = False
        self._made.append("{")
        self._has_some = False

    def _step(self, text: str) -> bool:
        if self._parameter is None:
            return self._next_parameter(text)
        end = value_end(self._form, self._source, self._name, self._written)
        closing = end.search(text, self._at)
        # `$` in a pattern matches the end of the current text, which is not the end of the answer.
        if closing is None or skip_space(text, closing.end()) >= len(text):
            if self._is_text:
                self._take_text(text, self._certain(text))
            return False
        if self._is_text:
            self._take_text(text, closing.start())
            self._made.append('"')
        else:
            value = typed_by(self._parameter, text[self._at : closing.start()], self._schema)
            self._made.append(json.dumps(value, ensure_ascii=False))
        self._at, self._parameter = closing.end(), None
        return True

    def _certain(self, text: str) -> int:
        """Offset before which the text is certainly part of the value."""
        if tail := self._any_tail.search(text, self._at):
            text = text[: tail.start() + _END_CHARACTERS]
        for found in self._any_end.finditer(text, self._at):
            # A closing tag followed by more text than any tag has is part of the value.
            if skip_space(text, found.end()) + _END_CHARACTERS > len(text):
                return found.start()
        return len(text) - _END_CHARACTERS

    def _next_parameter(self, text: str) -> bool:
        at = skip_space(text, self._at)
        parameter = self._key.match(text, at)
        if parameter is not None:
            if parameter.end() >= len(text):
                return False  # a following line break may be part of it
            key = parameter["key"].strip()
            self._written.add(key)
            self._made.append(f"{', ' if self._has_some else ''}{json.dumps(key, ensure_ascii=False)}: ")
            self._parameter, self._at, self._has_some = parameter, parameter.end(), True
            written = parameter.groupdict().get("type")
            self._is_text = (
                is_text_only(key, self._schema) if written is None else written in ("string", "true")
            )
            if self._is_text:
                self._made.append('"')
            return True
        closed = self._tail.match(text, at)
        if closed is not None and closed.end() > at:
            self._made.append("}")
            self.is_complete = True
        return False

    def _take_text(self, text: str, end: int) -> None:
        if end > self._at:
            self._made.append(_inside(text[self._at : end]))
            self._at = end


def _inside(text: str) -> str:
    """`text` escaped for a JSON string, without the quotes."""
    return json.dumps(text, ensure_ascii=False)[1:-1]
