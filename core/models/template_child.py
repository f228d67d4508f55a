"""The process that applies chat templates, which are programs that somebody else wrote.

A line of JSON in, a `{"template", "context", "characters"}`; a line out, which is the `text`, why the
template `refused`, that it is too `long`, or that it took all the `memory` there is. Its first line says
that it is ready. It ends when its stdin closes. Time on the clock is bounded by whoever started it; of the
processor's, each template has `_CPU_S`, so that one that loops does not outlive who started it.

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

from core.system.child_bounds import bound, give_spare_memory, watch

_CPU_S = 30


def main(arguments: Sequence[str]) -> int:
    """Answer lines until there are no more; `arguments` are the bytes of memory that it may take."""
    memory_bytes = int(arguments[0])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    out = os.dup(1)
    os.dup2(2, 1)  # no library's print gets among the answers

    def out_of_memory() -> NoReturn:
        _write(out, {"memory": True})
        os._exit(1)

    watch(memory_bytes, out_of_memory)
    bound(memory_bytes)
    _write(out, {})
    for line in sys.stdin.buffer:
        try:
            answer = _answer(json.loads(line))
        except MemoryError:
            give_spare_memory()
            out_of_memory()
        except Exception as error:  # templates raise jinja2's and every other kind
            answer = {"refused": str(error)[:1000] or type(error).__name__}
        _write(out, answer)
    return 0


def _answer(request: dict[str, Any]) -> dict[str, object]:
    most = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + _CPU_S, most))
    text = compiled(request["template"]).render(request["context"])
    return {"text": text} if len(text) <= request["characters"] else {"long": True}


def _write(out: int, answer: dict[str, object]) -> None:
    data = memoryview(json.dumps(answer).encode() + b"\n")
    try:
        while data:
            data = data[os.write(out, data) :]
    except OSError:
        os._exit(0)  # nobody listens any more


@lru_cache(2)
def compiled(template: str) -> Template:
    """Ready to render."""
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


class _Generation(Extension):
    """`{% generation %}` marks what the model wrote, for training; here it is its body, in a scope."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body).set_lineno(line)


class _Dicts:
    """`dict`, without the type and what it leads to."""

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
        raise SecurityError(f"a namespace takes no name like {name!r}")


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Jinja's own escapes what HTML must not hold."""
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _raise_exception(message: str) -> NoReturn:
    raise TemplateError(message)


def _now(form: str) -> str:
    return datetime.now().strftime(form)
