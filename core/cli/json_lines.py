"""Output lines of `draftlight generate --json`, and their schema in `docs/json-schema.json`.

The first line is always `Started`; the last is `Finished`, or `Failed` with the message printed on stderr.
`python -m core.cli.json_lines docs` writes the schema from the declarations.
"""

from __future__ import annotations

import importlib.metadata
import inspect
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Union

import msgspec
from msgspec import Struct

from core.events import Event, Failed, Finished, Gauges, LeftOut, PrefillProgress, ReadingMap, Token, failure
from core.events.wire import Wire, well_formed_record
from core.origins import Fact, Run

# Incremented with every incompatible change; new fields are compatible.
SCHEMA = 1
REQUEST = "cli"


class Started(Wire, frozen=True):
    """The first line. `schema` is the version of these lines, `version` Draftlight's."""

    schema: int
    version: str


class DocumentRead(Wire, frozen=True):
    """The text of a file was read: its length, and which parts of the file were left out.

    `encoding` is the codec if it was guessed and `other_encodings` give another text; otherwise empty.
    """

    name: str
    characters: int
    left_out: tuple[LeftOut, ...] = ()
    encoding: str = ""
    other_encodings: tuple[str, ...] = ()


class AnswerOrigins(Struct, frozen=True):
    """Where the answer's words occur in `sources`, the names of documents, pasted texts and tool results.

    Ranges of the answer count the characters of the tokens' texts one after another.
    """

    sources: tuple[str, ...]
    runs: tuple[Run, ...]
    facts: tuple[Fact, ...]


class AnswerFinished(Finished, frozen=True, tag="finished"):
    """The end of an answer, with its origins if it has sources."""

    origins: AnswerOrigins | None = None


class ImageRead(Wire, frozen=True):
    """An image was read: its upright size in pixels, and which parts of the file were left out."""

    name: str
    width: int
    height: int
    left_out: tuple[LeftOut, ...] = ()


Line = Union[
    Started, DocumentRead, ImageRead, PrefillProgress, ReadingMap, Token, Gauges, AnswerFinished, Failed
]


def wanted(arguments: Sequence[str]) -> bool:
    """Whether a command line requests this output, even if its other arguments are invalid."""
    return arguments[:1] == ["generate"] and "--json" in arguments


def begin() -> None:
    """Write the first line."""
    started = Started(SCHEMA, importlib.metadata.version("draftlight"))
    _write(msgspec.json.encode(started) + b"\n")


def with_origins(finished: Finished, origins: AnswerOrigins | None) -> AnswerFinished:
    """The last line of an answer."""
    given = {name: getattr(finished, name) for name in finished.__struct_fields__}
    return AnswerFinished(**given, origins=origins)


def write_event(event: Event | DocumentRead | ImageRead) -> None:
    """Write an event."""
    _write(msgspec.json.encode(well_formed_record(event)) + b"\n")


def fail(error: Exception) -> None:
    """Write the last line after an error. The details of one of ours are on stderr, not in a log."""
    told = failure(error, command="generate", request=REQUEST)
    write_event(msgspec.structs.replace(told, hint="") if told.code == "internal" else told)


def _write(line: bytes) -> None:
    sys.stdout.write(line.decode())
    sys.stdout.flush()


def schema() -> bytes:
    """JSON Schema of a line. Docstrings are dedented, as Python 3.13 does, so it is equal everywhere."""
    found = _cleaned(msgspec.json.schema(Line))
    found = {"title": f"A line of draftlight generate --json, schema {SCHEMA}", **found}
    return msgspec.json.format(msgspec.json.encode(found, order="deterministic"), indent=1) + b"\n"


def _cleaned(found: dict[str, Any]) -> dict[str, Any]:
    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                name: inspect.cleandoc(part)
                if name == "description" and isinstance(part, str)
                else clean(part)
                for name, part in value.items()
            }
        return [clean(part) for part in value] if isinstance(value, list) else value

    return {name: clean(value) for name, value in found.items()}


if __name__ == "__main__":
    Path(sys.argv[1], "json-schema.json").write_bytes(schema())
