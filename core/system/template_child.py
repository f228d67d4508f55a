"""The process that renders chat templates, which are untrusted programs.

Reads a line of JSON, `{"template", "context", "characters"}`, and writes a line of JSON: the rendered `text`,
or why the template `refused`, or that the text is too `long`, or that the `memory` is exhausted. The first
line says that the process is ready. It ends when its stdin closes. The parent process limits the elapsed
time; each template has `_CPU_S` of processor time, so that a template that loops ends even without its
parent.

The environment is the one that templates are written for, transformers': a sandbox in which nothing
can be changed, blocks trimmed, `break` and `continue`, `tojson`, `raise_exception`, `strftime_now`, and
namespaces and dicts that lead to nothing inside Python. Imports little: the first answer waits for it.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NoReturn

from jinja2 import Template, nodes
from jinja2.exceptions import SecurityError, TemplateError
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

from core.errors import reason_of
from core.system.child_bounds import LineOutput, bound, give_spare_memory, watch

_CPU_S = 30


def main(arguments: Sequence[str]) -> int:
    """Answers lines until stdin is closed. `arguments`: the memory limit in bytes."""
    memory_bytes = int(arguments[0])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    output = LineOutput()

    def write(answer: dict[str, object]) -> None:
        output.write(json.dumps(answer).encode())

    def out_of_memory() -> NoReturn:
        write({"memory": True})
        os._exit(1)

    watch(memory_bytes, out_of_memory)
    bound(memory_bytes)
    write({})
    for line in sys.stdin.buffer:
        try:
            answer = _answer(json.loads(line))
        except MemoryError:
            give_spare_memory()
            out_of_memory()
        except Exception as error:  # templates raise jinja2's and other errors
            answer = {"refused": reason_of(error)}
        write(answer)
    return 0


def _answer(request: dict[str, Any]) -> dict[str, object]:
    most = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + _CPU_S, most))
    text = compiled(request["template"]).render(request["context"])
    return {"long": True} if len(text) > request["characters"] else {"text": text}


@lru_cache(4)
def compiled(template: str) -> Template:
    """The compiled template."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", _Generation]
    )
    environment.filters["tojson"] = _to_json
    environment.globals |= {
        "raise_exception": _raise_exception,
        "strftime_now": _now,
        "dict": _Dicts(),
        "namespace": _Namespace,
    }
    return environment.from_string(template)


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


class _Generation(Extension):
    """`{% generation %}` marks what the model wrote, for training; here it is its body, in a scope."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body).set_lineno(line)


class _Dicts:
    """`dict` without access to the type and its attributes."""

    def __call__(self, *args: Any, **named: Any) -> dict[Any, Any]:
        return dict(*args, **named)

    def fromkeys(self, *args: Any) -> dict[Any, Any]:
        return dict.fromkeys(*args)


class _Namespace(Namespace):
    """Holds no name that begins with an underscore: those are Python's own."""

    def __init__(*args: Any, **named: Any) -> None:  # a name may be `self`
        values = dict(*args[1:], **named)
        for name in values:
            _check_name(name)
        Namespace.__init__(args[0], values)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        super().__setitem__(name, value)


def _check_name(name: object) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(f"a namespace does not accept the name {name!r}")


def _raise_exception(message: str) -> NoReturn:
    raise TemplateError(message)


def _now(form: str) -> str:
    return datetime.now().strftime(form)
