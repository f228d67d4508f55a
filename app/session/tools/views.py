"""Content of a call's card: the record, the tool, why it needs approval, and where its arguments are from.

Pure. The origin of a part of an argument is the person's messages, a document, the result of an earlier call,
or the model itself; if several have a part, the longest match wins, then this order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct

from app.session import strings
from app.session.chats.conversation import Turn
from app.session.tools.calls import CallRecord
from app.session.tools.form import shown_value
from core.origins import copies
from core.tools.messages import ServerTool

ArgumentOrigin = Literal["question", "document", "result", "model"]


class ArgumentSpan(Struct, frozen=True):
    """Characters `start` to `end` (end-exclusive) of an argument's value as it is shown (`shown_value`).

    `name`: the document, or the tool whose result it is. `document`: its number among the attachments of all
    messages, as in `core.events.Passage.source`; −1 for other origins.
    """

    argument: str
    start: int
    end: int
    origin: ArgumentOrigin
    name: str = ""
    document: int = -1


class CallView(Struct, frozen=True):
    """A call as its card and its line in the answer show it.

    `tool` is as it was declared; its texts are empty if the server does not run. `reasons`: sentences that
    say why an earlier permission does not cover the call. `spans`: the origins of strings and numbers in
    all arguments, in order.
    """

    record: CallRecord
    tool: ServerTool
    reasons: tuple[str, ...] = ()
    spans: tuple[ArgumentSpan, ...] = ()


class _Source(Struct, frozen=True):
    text: str
    origin: ArgumentOrigin
    name: str = ""
    document: int = -1


_MODEL = _Source("", "model")


def argument_spans(turns: Sequence[Turn], call: CallRecord) -> tuple[ArgumentSpan, ...]:
    """The origins of the arguments of `call`, a call in the answer of the last of `turns`.

    The time grows with the length of all sources; any thread.
    """
    try:
        values = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return ()
    if not isinstance(values, dict):
        return ()
    sources = _sources(turns, call)
    texts = [source.text for source in sources]
    found: list[ArgumentSpan] = []
    for name, value in values.items():
        for text, places in _texts(*shown_value(value)):
            for start, end, source in _parts(text, texts):
                of = sources[source] if source >= 0 else _MODEL
                span = ArgumentSpan(name, places[start], places[end], of.origin, of.name, of.document)
                found.append(span)
    return tuple(found)


_VALUE = re.compile(r'(?P<string>"(?:[^"\\]|\\.)*")(?P<name>\s*:)?|(?P<number>-?\d[\d.eE+-]*)')
_CHARACTER = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.|.", re.S)


def _texts(shown: str, plain: bool) -> Iterator[tuple[str, Sequence[int]]]:
    """The strings and numbers in a value as it is shown, and the place of each of their characters there,
    and of their end."""
    if plain:
        yield shown, range(len(shown) + 1)
        return
    for value in _VALUE.finditer(shown):
        if value["name"]:
            continue
        if value["string"] is None:
            yield value[0], range(value.start(), value.end() + 1)
            continue
        characters = list(_CHARACTER.finditer(shown, value.start("string") + 1, value.end("string") - 1))
        text = "".join(json.loads(f'"{one[0]}"') if len(one[0]) > 1 else one[0] for one in characters)
        yield text, [*(one.start() for one in characters), value.end("string") - 1]


def _parts(text: str, sources: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """The parts of `text` with the number of their source; −1 for parts that no source has."""
    at = 0
    for copy in copies(text, sources):
        yield from _between(text, at, copy.start)
        yield copy
        at = copy.end
    yield from _between(text, at, len(text))


def _between(text: str, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """The part between two others, without white space around it, if there is any."""
    part = text[start:end]
    if part.strip():
        first = start + len(part) - len(part.lstrip())
        yield first, first + len(part.strip()), -1


def _sources(turns: Sequence[Turn], call: CallRecord) -> list[_Source]:
    asked = [_Source(turn.user.content, "question", strings.PASTED) for turn in turns]
    documents: list[_Source] = []
    results: list[_Source] = []
    number = 0
    for turn in turns:
        for attachment in turn.user.attachments:
            documents.append(_Source(attachment.text, "document", attachment.name, number))
            number += 1
        for record in turn.answer.calls:
            document = number if record.document else -1
            number += record.document is not None
            if record.id != call.id and record.state == "done":
                results.append(_Source(record.result, "result", record.tool, document))
    return [*asked, *documents, *results]
