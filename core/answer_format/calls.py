"""The forms of tool calls, and the calls in one section of an answer.

JSON objects, a name followed by a JSON object, a name followed by tagged parameters, nested elements, or
Python calls. A `Syntax` says which of them a section has (`core.answer_format.syntaxes` lists all).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, Protocol

from msgspec import Struct
from msgspec.structs import astuple

from core.answer_format.values import (
    BrokenValueError,
    UnfinishedValueError,
    allows_text,
    parameters_schema,
    read_literal,
    read_object,
    read_value,
    skip_space,
    typed,
)

# Longer calls stay text.
MAX_CHARACTERS = 256 * 1024
_NAME_KEYS = ("name", "tool_name", "function", "tool")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input")
_ELEMENT_DEPTH = 32
# Patterns of the beginnings of calls.
OPEN_FENCE = r"(?:```\w*\s*)?"
QUOTE = "[\"']"
NAME_KEY = rf"{QUOTE}?(?:tool_)?name{QUOTE}?\s*:\s*"
_ANY_KEY = rf"(?!{NAME_KEY}){QUOTE}?\w+{QUOTE}?\s*:"
_CLOSING_TAG = re.compile(r"</[\w:.｜-]+")
_FENCE = re.compile(r"```(?:json|python|tool_code|tool_call)?\s*")
_PYTHON_NAME = re.compile(r"[A-Za-z_][\w.-]*(?=\s*\()")
_PYTHON_BEGUN = re.compile(r"[\w.-]*\s*")
_KEYWORD = re.compile(r"\s*(?P<key>[A-Za-z_]\w*)\s*=\s*")
_NEXT_KEYWORD = re.compile(r",\s*[A-Za-z_]\w*\s*=|\)")


class Tool(Protocol):
    """A declared function; `parameters` is the JSON schema of its arguments, as text."""

    @property
    def name(self) -> str: ...

    @property
    def parameters(self) -> str: ...


class Call(Struct, frozen=True):
    """A call of the function `name`; `arguments` is a JSON object as text."""

    name: str
    arguments: str


class Section(Struct, frozen=True):
    """The calls of a section, and the offset after the last one."""

    calls: tuple[Call, ...]
    end: int


class Syntax(Struct, frozen=True):
    """The syntax of calls.

    `marks`: pairs of texts at the beginning and end of a section; an empty end is the end of the answer.
    `bare`: calls without marks: JSON objects, a list of Python calls, or, at the beginning of an answer only,
    a declared function's name on a line before its arguments. `clues`: a template has this syntax if its
    source contains all texts of one group. `parsers`: mlx-lm's names of the syntax. `loose`: pairs of marks
    that models write instead; only calls of declared functions count there.
    """

    name: str
    marks: tuple[tuple[str, str], ...]
    forms: tuple[Form, ...]
    clues: tuple[tuple[str, ...], ...] = ()
    parsers: tuple[str, ...] = ()
    bare: Literal["", "json", "python", "named"] = ""
    loose: tuple[tuple[str, str], ...] = ()


@lru_cache(maxsize=64)
def closing_tags(syntax: Syntax) -> frozenset[str]:
    """The closing tags of a syntax; models confuse them."""
    patterns = [end for _, end in (*syntax.marks, *syntax.loose)]
    for form in syntax.forms:
        patterns += [value for value in astuple(form) if isinstance(value, str)]
    return frozenset(f"{tag}>" for pattern in patterns for tag in _CLOSING_TAG.findall(pattern))


def read_calls(text: str, syntax: Syntax, tools: Sequence[Tool], *, lenient: bool = False) -> Section:
    """The calls in `text`, a section with its marks. With `tools`, calls of other functions are ignored.

    `lenient`: `text` is the end of the answer, so a closing mark or bracket may be missing before another,
    and text may follow. Raises `BrokenValueError` if there are no calls, `UnfinishedValueError` if the text
    ends inside a call.
    """
    if len(text) > MAX_CHARACTERS:
        raise BrokenValueError("longer than any call that is read")
    begin = next((begin for begin, _ in (*syntax.marks, *syntax.loose) if text.startswith(begin)), "")
    source = Source(syntax, tools, lenient)
    unfinished = False
    for form in syntax.forms:
        for closed in (text, *_closed(text, len(begin), form, source)):
            try:
                found, end = form.read(closed, len(begin), source)
            except BrokenValueError:
                continue
            except UnfinishedValueError:
                unfinished = True
                continue
            if found:
                calls = tuple(_checked(name, arguments, tools) for name, arguments in found)
                return Section(calls, end if closed is text else len(closed))
    if unfinished:
        raise UnfinishedValueError
    raise BrokenValueError("no call")


def _closed(text: str, start: int, form: Form, source: Source) -> Iterator[str]:
    """`text` up to its first end mark, with the brackets that a model may have left out before it."""
    if not source.lenient or not isinstance(form, Json | Named):
        return
    at = min((at for end in source.ends if (at := text.find(end, start)) >= 0), default=-1)
    for brackets in ("]",) if at < 0 else ("}", "]", "}}", "}]", "}}]"):
        yield (text if at < 0 else text[:at]).rstrip() + brackets


def read_call_body(name: str, text: str, tools: Sequence[Tool]) -> Call:
    """The call of `name` with the JSON object `text` as arguments. Raises like `read_calls`."""
    if len(text) > MAX_CHARACTERS:
        raise BrokenValueError("longer than any call that is read")
    if not text.strip():
        return _checked(name, {}, tools)
    arguments, end = read_object(text)
    if text[end:].strip():
        raise BrokenValueError("more than an object")
    if set(arguments) == {"name", "args"} and arguments["name"] == name:
        _, arguments = _named(arguments)
    return _checked(name, arguments, tools)


def _checked(name: str, arguments: Mapping[str, Any], tools: Sequence[Tool]) -> Call:
    declared = _declared_name(name, tools)
    if declared is None:
        raise BrokenValueError(f"{name} is not declared")
    return Call(declared, json.dumps(arguments, ensure_ascii=False))


def _declared_name(name: str, tools: Sequence[Tool]) -> str | None:
    """The declared name that matches `name`; without declared tools, `name` itself."""
    plain = re.sub(r":\d+$", "", name.removeprefix("functions."))
    if not tools:
        return plain
    names = {tool.name for tool in tools}
    return next((one for one in (name, plain) if one in names), None)


def _tool_schema(name: str, tools: Sequence[Tool]) -> Mapping[str, Any]:
    """The JSON schema of the function's arguments; empty for an unknown function."""
    declared = _declared_name(name, tools)
    found = next((tool.parameters for tool in tools if tool.name == declared), "")
    return parameters_schema(found) if found else {}


Found = list[tuple[str, dict[str, Any]]]


class Source(Struct, frozen=True):
    """The syntax and tools for parsing a section; see `read_calls`."""

    syntax: Syntax
    tools: Sequence[Tool]
    lenient: bool

    @property
    def ends(self) -> tuple[str, ...]:
        """The marks that end a section."""
        return tuple(end for _, end in (*self.syntax.marks, *self.syntax.loose) if end)


class Form(Struct, frozen=True):
    """How calls are written in a section."""

    def read(self, text: str, at: int, source: Source) -> tuple[Found, int]:
        """Names and arguments of the calls in `text` from `at` on, and the offset after the last one.

        Raises `BrokenValueError`, `UnfinishedValueError`.
        """
        raise NotImplementedError

    def beginning(self, name: str, end: str) -> str:
        """Pattern of the first characters of a call, of a function that matches `name`, after the mark.

        `end` is the section's end mark, or empty.
        """
        raise NotImplementedError


class Json(Form, frozen=True):
    """JSON objects with a name and arguments, in a list or one after the other."""

    def beginning(self, name: str, end: str) -> str:
        return rf"{OPEN_FENCE}(?:\[\s*)?\{{{{1,2}}\s*(?:{NAME_KEY}{QUOTE}{name}{QUOTE}|{_ANY_KEY})"

    def read(self, text: str, at: int, source: Source) -> tuple[Found, int]:
        found: Found = []
        end = at
        while True:
            at = skip_space(text, at)
            if fence := _FENCE.match(text, at):
                at = fence.end()
            if text.startswith((";", ","), at) and found:
                at = skip_space(text, at + 1)
            if not text.startswith(("{", "["), at):
                break
            try:
                value, at = read_value(text, at)
                calls = [_named(one) for one in (value if isinstance(value, list) else [value])]
            except BrokenValueError:
                if not found:
                    raise
                break
            found += calls
            end = at
            if fence and (closing := _FENCE.match(text, skip_space(text, at))):
                at = end = closing.end()
        if not found and at >= len(text):
            raise UnfinishedValueError
        return found, end


class Python(Form, frozen=True):
    """Python calls with keyword arguments, in a list or one after the other."""

    def beginning(self, name: str, end: str) -> str:
        return rf"{OPEN_FENCE}\[?\s*{name}\s*\("

    def read(self, text: str, at: int, source: Source) -> tuple[Found, int]:
        found: Found = []
        at = skip_space(text, at)
        if fence := _FENCE.match(text, at):
            at = fence.end()
        listed = text.startswith("[", at)
        at += listed
        end = at
        while True:
            at = skip_space(text, at)
            if text.startswith(("]", ",", ";"), at) and found:
                closed = text[at] == "]"
                at += 1
                end = at if closed else end
                if closed:
                    break
                continue
            if at >= len(text) and found and not listed:
                break
            name = _PYTHON_NAME.match(text, at)
            if name is None:
                if found and (not listed or source.lenient):
                    break
                if _PYTHON_BEGUN.fullmatch(text, at):
                    raise UnfinishedValueError
                raise BrokenValueError("no call")
            at = skip_space(text, name.end()) + 1
            schema = _tool_schema(name.group(), source.tools)
            arguments: dict[str, Any] = {}
            closers = ("]", *source.ends) if source.lenient else ()
            while not text.startswith((")", *closers), at := skip_space(text, at)):
                keyword = _KEYWORD.match(text, at)
                if keyword is None and source.lenient and _PYTHON_NAME.match(text, at):
                    break
                if keyword is None:
                    begun = _PYTHON_BEGUN.fullmatch(text, at)
                    raise UnfinishedValueError if begun else BrokenValueError("no keyword")
                arguments[keyword["key"]], at = _python_value(text, keyword, schema, closers)
                at = skip_space(text, at)
                at += text.startswith(",", at)
            at += text.startswith(")", at)
            end = at
            found.append((name.group(), arguments))
        if fence and text.startswith("```", skip_space(text, end)):
            end = skip_space(text, end) + 3
        return found, end


class _Headed(Form, frozen=True):
    """A call begins with its function's name in the regular expression `head`."""

    head: str

    def read(self, text: str, at: int, source: Source) -> tuple[Found, int]:
        found: Found = []
        end, at = at, 0
        head, between = _compiled(self.head), self._separator(source)
        while match := head.search(text, at):
            if found and not between.fullmatch(text, end, match.start()):
                break
            try:
                arguments, at = self._arguments(text, match, source)
            except BrokenValueError:
                if not found:
                    raise
                break
            found.append((match["name"], arguments))
            end = at
        return found, end

    def _separator(self, source: Source) -> re.Pattern[str]:
        """Pattern of the text between two calls."""
        raise NotImplementedError

    def _arguments(self, text: str, head: re.Match[str], source: Source) -> tuple[dict[str, Any], int]:
        """The arguments after `head`, and the offset after the call."""
        raise NotImplementedError


class Named(_Headed, frozen=True):
    """A function's name, followed by its arguments as a JSON object.

    `between` matches what may separate two calls.
    """

    between: str = r"(?:\s|```|<[^<>]*>)*"

    def beginning(self, name: str, end: str) -> str:
        return rf"{_unnamed(self.head, name)}\s*[{{\"]"

    def _separator(self, source: Source) -> re.Pattern[str]:
        return _compiled(self.between)

    def _arguments(self, text: str, head: re.Match[str], source: Source) -> tuple[dict[str, Any], int]:
        arguments, at = read_object(text, skip_space(text, head.end()))
        fence = skip_space(text, at)
        return arguments, fence + 3 if text.startswith("```", fence) else at


class Tagged(_Headed, frozen=True):
    """A name, then parameters: `key` (groups `key` and perhaps `type`), a value, `value_end`.

    `tail` ends the call; all are regular expressions. A JSON object may take the parameters' place.
    """

    key: str
    value_end: str
    tail: str

    def beginning(self, name: str, end: str) -> str:
        ends = rf"|{re.escape(end)}" if end else ""
        return rf"{_unnamed(self.head, name)}\s*(?:{_unnamed(self.key)}|{_unnamed(self.tail)}{ends}|\{{)"

    def _separator(self, source: Source) -> re.Pattern[str]:
        return _compiled(_marks(self, source).between)

    def _arguments(self, text: str, head: re.Match[str], source: Source) -> tuple[dict[str, Any], int]:
        marks, name = _marks(self, source), head["name"]
        schema = _tool_schema(name, source.tools)
        arguments: dict[str, Any] = {}
        at = head.end()
        while parameter := _compiled(self.key).match(text, skip_space(text, at)):
            written = parameter["key"].strip()
            closing = _value_end(self, source, name, {*arguments, written}).search(text, parameter.end())
            if closing is None:
                raise UnfinishedValueError
            arguments[written] = _typed_by(parameter, text[parameter.end() : closing.start()], schema)
            at = closing.end()
        after = skip_space(text, at)
        if not arguments and text.startswith("{", after):  # instead of parameters
            arguments, at = read_object(text, after)
            closed = _compiled(self.tail).match(text, skip_space(text, at))
            return arguments, max(closed.end(), at) if closed else at
        if closed := _compiled(self.tail).match(text, after):
            at = max(closed.end(), at + 1)
        elif not (
            _compiled(marks.following).match(text, after)
            or (source.lenient and _compiled(rf"{marks.ends}|{marks.wrong}$").match(text, after))
        ):
            raise UnfinishedValueError
        return arguments, at


class Elements(_Headed, frozen=True):
    """A name, then XML elements named after the parameters, nested for objects and lists.

    `mark` comes before each tag; `tail` ends the call.
    """

    mark: str
    tail: str

    def beginning(self, name: str, end: str) -> str:
        return rf"{_unnamed(self.head, name)}\s*(?:{re.escape(self.mark)}<|{re.escape(self.tail)})"

    def _separator(self, source: Source) -> re.Pattern[str]:
        return _compiled(r"(?s:.*)")

    def _arguments(self, text: str, head: re.Match[str], source: Source) -> tuple[dict[str, Any], int]:
        at, schema = head.end(), _tool_schema(head["name"], source.tools)
        arguments: dict[str, Any] = {}
        # The call's end may be missing before the section's, or before another call.
        closers = (self.tail, *source.ends) if source.lenient else (self.tail,)
        following = _compiled(self.head)
        while not text.startswith(closers, at := skip_space(text, at)) and not following.match(text, at):
            key, value, at = _element(text, at, self.mark, 0)
            arguments[key] = typed(value, key, schema) if isinstance(value, str) else value
        return arguments, at + len(self.tail) * text.startswith(self.tail, at)


def name_pattern(names: Collection[str]) -> str:
    """Pattern of a function's name; of `names`, if there are any."""
    if not names:
        return r"[\w.:/-]+"
    return rf"(?:functions\.)?(?:{'|'.join(map(re.escape, sorted(names, key=len, reverse=True)))})(?::\d+)?"


def _unnamed(pattern: str, name: str = "", key: str = "") -> str:
    """A form's `pattern` without groups, and without the end of the text; `name` and `key` replace theirs."""
    for group, text in (("name", name), ("key", key)):
        if text:
            pattern = re.sub(rf"\(\?P<{group}>[^()]*\)", f"(?:{text})".replace("\\", r"\\"), pattern)
    return re.sub(r"\(\?P<\w+>", "(?:", pattern).replace("|$", "")


def _named(value: Any) -> tuple[str, dict[str, Any]]:
    """Name and arguments of a call that is a JSON object. Raises `BrokenValueError`."""
    if not isinstance(value, dict):
        raise BrokenValueError("not an object")
    if isinstance(value.get("function"), dict):
        value = value["function"]
    name = next((value[key] for key in _NAME_KEYS if isinstance(value.get(key), str)), None)
    arguments: Any
    if name is not None:
        arguments = next((value[key] for key in _ARGUMENT_KEYS if key in value), {})
    elif len(value) == 1:
        name, arguments = next(iter(value.items()))
    else:
        raise BrokenValueError("no name")
    if isinstance(arguments, str):
        try:
            arguments, _ = read_object(arguments or "{}")
        except UnfinishedValueError as error:
            raise BrokenValueError("arguments that end too early") from error
    if arguments is None:
        arguments = {}
    if not name or not isinstance(arguments, dict):
        raise BrokenValueError("arguments are not an object")
    return str(name), arguments


class _Marks(Struct, frozen=True):
    """Patterns of a section's end marks, of what separates two calls, and of a further declared call.

    `wrong`: of another closing tag in place of a call's end, or nothing.
    """

    ends: str
    between: str
    following: str
    wrong: str


def _marks(form: Tagged, source: Source) -> _Marks:
    pairs = (*source.syntax.marks, *source.syntax.loose)
    begins = "|".join(re.escape(begin) for begin, _ in pairs)
    ends = "|".join(map(re.escape, source.ends)) or "(?!)"
    head = _unnamed(form.head, name_pattern([tool.name for tool in source.tools]))
    tags = "|".join(map(re.escape, sorted(closing_tags(source.syntax)))) or "(?!)"
    return _Marks(
        rf"(?:{ends})",
        rf"(?:\s|{begins}|{ends})*",
        rf"\s*(?:(?:{begins})\s*)?(?:{head})",
        rf"(?:(?:{tags})\s*)?",
    )


def _value_end(form: Tagged, source: Source, name: str, written: Collection[str]) -> re.Pattern[str]:
    """Pattern of the end of a value of the function `name`, whose parameters `written` have begun.

    A value ends at its closing tag before another parameter or the end of the call, so that it may contain
    such tags. Without a closing tag it ends before a further declared parameter or the next declared call;
    at the end of the answer, also before its own call ends.
    """
    properties = _tool_schema(name, source.tools).get("properties")
    keys = sorted({*(properties if isinstance(properties, dict) else ())} - {*written})
    marks, tail = _marks(form, source), _unnamed(form.tail)
    followers = f"{_unnamed(form.key)}|{tail}|{marks.ends}?{marks.following}"
    ends = [rf"{form.value_end}(?=\s*(?:{followers}))"]
    open_ends = [rf"(?:{tail}\s*{marks.ends}?|{marks.ends}){marks.following}"]
    if keys:
        open_ends.append(_unnamed(form.key, key="|".join(map(re.escape, keys))))
    if source.lenient:
        ends.append(rf"{form.value_end}(?=\s*(?:{marks.ends}|{marks.wrong}$))")
        open_ends.append(rf"(?:{tail}\s*(?:{marks.ends}|$)|{marks.ends})")
    # From the value's last letter on: white space is not searched from each of its letters.
    ends.append(rf"(?:(?<!\s)|(?<=>\n))(?=\s*(?:{'|'.join(open_ends)}))")
    return _compiled("|".join(ends))


def _typed_by(parameter: re.Match[str], value: str, schema: Mapping[str, Any]) -> Any:
    """The text `value` of `parameter` converted to the type in `schema`."""
    written = parameter.groupdict().get("type")
    if written in ("string", "true"):
        return value
    if written is not None:
        try:
            read, end = read_value(value)
        except (BrokenValueError, UnfinishedValueError):
            return value
        return read if end == len(value.rstrip()) else value
    return typed(value, parameter["key"].strip(), schema)


def _python_value(
    text: str, keyword: re.Match[str], schema: Mapping[str, Any], closers: tuple[str, ...]
) -> tuple[Any, int]:
    """A literal, or text without quotes up to the next keyword or the end of the call."""
    try:
        value, end = read_literal(text, keyword.end())
        if text.startswith((",", ")", *closers), skip_space(text, end)):
            # Some models quote every value, others none.
            key, quoted, written = keyword["key"], isinstance(value, str), text[keyword.end() : end]
            if value is None or quoted == allows_text(key, schema):
                return value, end
            return typed(value if quoted else written, key, schema), end
    except BrokenValueError:
        pass
    following = _NEXT_KEYWORD.search(text, keyword.end())
    if following is None:
        raise UnfinishedValueError
    return typed(text[keyword.end() : following.start()], keyword["key"], schema), following.start()


def _element(text: str, at: int, mark: str, depth: int) -> tuple[str, Any, int]:
    """Name and value of the XML element at `at`, and the offset after it."""
    opening = _compiled(rf"{re.escape(mark)}<(?P<key>[^/<>\s]+)\s*>").match(text, at)
    if opening is None or depth > _ELEMENT_DEPTH:
        raise UnfinishedValueError if at + len(mark) >= len(text) else BrokenValueError("no element")
    closing = _compiled(rf"{re.escape(mark)}</{re.escape(opening['key'])}\s*>")
    at = opening.end()
    following = text.find(mark, at)
    if following < 0:
        raise UnfinishedValueError
    if closed := closing.match(text, following):
        return opening["key"], text[at:following], closed.end()
    if text[at:following].strip():  # its closing tag is missing
        return opening["key"], text[at:following].rstrip(), following
    children: list[tuple[str, Any]] = []
    at = following
    while not (closed := closing.match(text, at := skip_space(text, at))):
        key, value, at = _element(text, at, mark, depth + 1)
        # The schema does not describe types inside an object or a list.
        children.append((key, typed(value, "", {}) if isinstance(value, str) else value))
    if all(key == "item" for key, _ in children):
        return opening["key"], [value for _, value in children], closed.end()
    return opening["key"], dict(children), closed.end()


@lru_cache(maxsize=2048)
def _compiled(pattern: str) -> re.Pattern[str]:
    """A pattern made of those in `SYNTAXES`."""
    return re.compile(pattern)
