"""`draftlight generate --json`: its lines, and the schema of them in `docs/json-schema.json`.

The first line is always `Started`, whatever follows; the last is `Finished`, or `Failed` with what
stderr says in words. `python -m core.cli.json_lines docs` writes the schema from the declarations.
"""

from __future__ import annotations

import importlib.metadata
import inspect
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Union

import msgspec

from core.errors import DraftlightError
from core.events import Event, Failed, Finished, Gauges, PrefillProgress, ReadingMap, Token, encode, failure
from core.events.wire import Wire

# Goes up with every change that a reader of today could stumble over; more fields are none.
SCHEMA = 1
REQUEST = "cli"


class Started(Wire, frozen=True):
    """The first line. `schema` is the version of these lines, `version` Draftlight's."""

    schema: int
    version: str


Line = Union[Started, PrefillProgress, ReadingMap, Token, Gauges, Finished, Failed]


def wanted(arguments: Sequence[str]) -> bool:
    """Whether a command line asks for these lines, right or wrong as the rest of it may be."""
    return arguments[:1] == ["generate"] and "--json" in arguments


def begin() -> None:
    """The first line."""
    started = Started(SCHEMA, importlib.metadata.version("draftlight"))
    _write(msgspec.json.encode(started) + b"\n")


def tell(event: Event) -> None:
    """A line."""
    _write(encode(event))


def fail(error: DraftlightError) -> None:
    """The last line, where there is no answer."""
    tell(failure(error, command="generate", request=REQUEST))


def _write(line: bytes) -> None:
    sys.stdout.write(line.decode())
    sys.stdout.flush()


def schema() -> bytes:
    """JSON Schema of a line, the same with every Python: from 3.13 on docstrings come without indentation."""
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
