"""Where the contents of messages are in the text that a chat template writes.

A template is a program: it trims, moves and escapes contents. So the conversation is rendered a second time,
with a mark before and after the words of each text. If both renderings are equal except for the marks, as for
nearly all conversations and templates, the marks say where the texts are. Otherwise the template
compares or cuts texts, and contents are searched, the last one first: a template's own words that look like
a content are mostly at the beginning. The marked rendering also says which control tokens are the template's
own: it is the prompt if the other one has more of them.
"""

from __future__ import annotations

import json
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, count, pairwise
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from core.answer_format import SCHEMA_DATA, SCHEMA_MAPS
from core.prompt.template import Turn, Write

# Source of all texts but the contents of messages.
OTHER = -1
# Keys whose values templates compare; of ids they check the form.
_COMPARED = frozenset({"role", "type", "id", "tool_call_id"})
# Keys that templates look up in messages, tools and JSON schemas. Others are a person's words.
_WORDS = _COMPARED | {
    *("content", "text", "thinking", "reasoning", "reasoning_content", "tool_calls", "function", "name"),
    *("arguments", "description", "parameters", "properties", "required", "items", "enum", "default"),
    *("anyOf", "oneOf", "allOf", "$ref", "$defs", "additionalProperties", "nullable", "title", "format"),
}
_Kind = Literal["message", "arguments", "data", "schema", "map"]
_OF_FUNCTION: dict[str, _Kind] = {"arguments": "arguments", "parameters": "schema"}
# White space next to a mark: where it is missing, the template trimmed the text.
_SPACE = "\u2004"
_ESCAPE = re.compile(r"\\ud[89ab]..\\ud[c-f]..|\\u....|\\.")


class Run(NamedTuple):
    """Characters `start` to `end` (end-exclusive) come from position `offset` on in the text `source`.

    `source` is the message whose content it is, or `OTHER`. A run without characters says that a content is
    written and was not found.
    """

    start: int
    end: int
    source: int
    offset: int = 0


class Rendering(Struct, frozen=True):
    """A rendered conversation, and the runs of `text` that come from messages and tools."""

    text: str
    runs: tuple[Run, ...] = ()


def rendered(
    write: Write, turns: Sequence[Turn], tools: Sequence[Turn], begins: bool, control: re.Pattern[str]
) -> Rendering:
    """The conversation as the template behind `write` writes it; `control` matches control tokens.

    Raises `ChatTemplateError` if the template refuses one of the renderings, or exceeds a limit.
    """
    text = write(turns, tools, begins)
    nonce = secrets.randbits(64)
    pieces = list(_text_pieces(turns))
    contents = [words for _, _, words in pieces]
    firsts = {turn: number for number, (turn, _, _) in reversed(list(enumerate(pieces)))}

    def marked(value: Any, source: int) -> Any:
        def mark(words: str, key: str) -> str:
            if key in _COMPARED or (key == "key" and words in _WORDS):
                return words
            return _between(words, f"{nonce}{1 + (OTHER if key == 'thinking' else source)}")

        return changed(value, mark)

    def marked_content(content: Any, first: int) -> Any:
        if not isinstance(content, list):
            return marked(content, first)
        numbers = count(first)
        return [marked(part, next(numbers) if "text" in part else OTHER) for part in content]

    marked_turns = [
        {
            key: marked_content(value, firsts.get(at, OTHER))
            if key == "content"
            else value
            if key in _COMPARED
            else marked(value, OTHER)
            for key, value in turn.items()
        }
        for at, turn in enumerate(turns)
    ]
    written = write(marked_turns, marked(list(tools), OTHER), begins)
    # The text up to a mark, the mark's four parts, the text after it.
    space = rf"({_SPACE}|\\u{ord(_SPACE):x})?"
    parts = re.split(rf"{space}([\[\]]){nonce}(\d+)[\[\]]{space}", written)
    unmarked = "".join(parts[::5])
    ends = accumulate(map(len, parts[::5]))
    marks = list(zip(ends, parts[1::5], parts[2::5], (int(each) - 1 for each in parts[3::5]), parts[4::5]))
    found = [
        _widened(unmarked, contents, Run(start, end, source), bool(lead), bool(trail))
        for (start, lead, opens, source, _), (end, _, closes, closed, trail) in pairwise(marks)
        if (opens, closes, source) == ("[", "]", closed)
    ]
    sources = {source for *_, source, _ in marks}
    if unmarked != text:
        searched = list(_searched(contents, text, (), sources))
        if _own(control, text, searched) <= _own(control, unmarked, found):
            found = searched
        else:
            text = unmarked
    found += _searched(contents, text, found, sources)
    runs = (each for run in sorted(found) for each in _pieces(run, text, contents))
    return Rendering(text, tuple(_of_turn(run, pieces) for run in runs))


def _text_pieces(turns: Sequence[Turn]) -> Iterator[tuple[int, int, str]]:
    """The texts of the turns' contents: the turn, the offset in its content, and the words of each."""
    for number, turn in enumerate(turns):
        content, at = turn["content"], 0
        texts = (
            [part["text"] for part in content if "text" in part] if isinstance(content, list) else [content]
        )
        for words in texts:
            yield number, at, words
            at += len(words)


def _of_turn(run: Run, pieces: Sequence[tuple[int, int, str]]) -> Run:
    """`run`, whose source is one of `pieces`, with the turn as its source."""
    if run.source == OTHER:
        return run
    turn, at, _ = pieces[run.source]
    return run._replace(source=turn, offset=run.offset + at)


def _own(control: re.Pattern[str], text: str, runs: Sequence[Run]) -> Counter[str]:
    """The control tokens of `text` outside of `runs`."""
    ends = [0, *(run.end for run in sorted(runs))]
    starts = [*(run.start for run in sorted(runs)), len(text)]
    return Counter(control.findall("\0".join(text[end:start] for end, start in zip(ends, starts))))


def changed(value: Any, change: Callable[[str, str], str], under: str = "", kind: _Kind = "message") -> Any:
    """`value`, a part of a message or of the declared tools, with each of its texts changed.

    `change` gets the text, and the key it is under: “key” for a key itself, unless a person chose it, as in
    arguments and for properties. `kind` says what a dict is: names of `map` have a schema each.
    """
    if isinstance(value, str):
        if kind != "arguments":
            return change(value, under)
        return json.dumps(changed(json.loads(value), change, "argument", "data"), ensure_ascii=False)
    if isinstance(value, list):
        return [changed(each, change, under, kind) for each in value]
    if not isinstance(value, dict):
        return value
    if kind == "arguments":
        under, kind = "argument", "data"
    is_chosen = kind in ("data", "map")
    return {
        change(key, "" if is_chosen else "key"): changed(
            each, change, under if is_chosen else key, _kind_of(key, each, under, kind)
        )
        for key, each in value.items()
    }


def _kind_of(key: str, value: Any, under: str, kind: _Kind) -> _Kind:
    """The kind of `value`, by its `key` in a dict of this `kind` under the key `under`."""
    if kind == "message" and under == "function":
        return _OF_FUNCTION.get(key, kind)
    if kind == "schema" and key in SCHEMA_DATA:
        return "data"
    if kind == "schema" and key in SCHEMA_MAPS and isinstance(value, dict):
        return "map"
    return "schema" if kind == "map" else kind


def _between(text: str, name: str) -> str:
    """`text` with its words between marks. White space at its ends is outside, where templates trim it."""
    words = text.strip()
    if not words:
        return text
    before, _, after = text.partition(words)
    lead, trail = before and _SPACE, after and _SPACE
    return f"{before}{lead}[{name}[{words}]{name}]{trail}{after}"


def _widened(text: str, contents: Sequence[str], run: Run, lead: bool, trail: bool) -> Run:
    """The `run` of a content's words with the white space that the template kept before or after them."""
    start, end, source, _ = run
    if source == OTHER:
        return run
    content = contents[source]
    first = len(content) - len(content.lstrip())
    last = len(content.rstrip())
    while lead and first and start and text[start - 1] == content[first - 1]:
        start, first = start - 1, first - 1
    while trail and last < len(content) and text[end : end + 1] == content[last]:
        end, last = end + 1, last + 1
    return Run(start, end, source, first)


def _searched(
    contents: Sequence[str], text: str, found: Sequence[Run], written: Iterable[int]
) -> Iterator[Run]:
    """The `written` contents that are not in `found`, the last one first; none has another's characters."""
    used = [(run.start, run.end) for run in found]
    limit = len(text)
    for source in sorted(set(written) - {OTHER, *(run.source for run in found)}, reverse=True):
        words = contents[source].strip()
        run = Run(0, 0, source)
        for end in (limit, len(text)):
            start = text.rfind(words, 0, end)
            while start >= 0 and any(start < b and a < start + len(words) for a, b in used):
                start = text.rfind(words, 0, start + len(words) - 1)
            if start >= 0:
                limit = min(limit, start)
                used.append((start, start + len(words)))
                run = _widened(text, contents, Run(start, start + len(words), source), True, True)
                break
        yield run


def _pieces(run: Run, text: str, contents: Sequence[str]) -> Iterator[Run]:
    """`run`, or the pieces of a content that is written with the escapes of JSON."""
    start, end, source, offset = run
    written = text[start:end]
    if source == OTHER or contents[source].startswith(written, offset):
        yield run
        return
    for part in re.split(f"({_ESCAPE.pattern})", written):
        if part:
            yield Run(start, start + len(part), source, offset)
        start += len(part)
        offset += 1 if _ESCAPE.fullmatch(part) else len(part)
