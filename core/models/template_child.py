"""The process that renders chat templates, which are untrusted programs.

Reads a line of JSON, `{"template", "context", "characters"}`, and writes a line of JSON: the rendered `text`
with the `runs` of it that are contents, or why the template `refused`, or that the text is too `long`, or
that the `memory` is exhausted. The first line says that the process is ready. It ends when its stdin closes.
The parent process limits the elapsed time; each template has `_CPU_S` of processor time, so that a template
that loops ends even without its parent.

The environment is the one that templates are written for, transformers': a sandbox in which nothing
can be changed, blocks trimmed, `break` and `continue`, `tojson`, `raise_exception`, `strftime_now`, and
namespaces and dicts that lead to nothing inside Python. Contents are traced through it (`traced`). Imports
little: the first answer waits for it.
"""

from __future__ import annotations

import functools
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from types import BuiltinMethodType
from typing import Any, NoReturn

from jinja2 import Template, nodes, pass_environment
from jinja2.compiler import CodeGenerator, Frame
from jinja2.environment import Environment
from jinja2.exceptions import SecurityError, TemplateError
from jinja2.ext import Extension
from jinja2.filters import do_mark_safe, make_attrgetter
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

from core.errors import reason_of
from core.models.traced import (
    Traced,
    concat,
    content_like,
    percent,
    runs_of,
    text_of,
    to_json,
    trace,
    traced_in,
)
from core.system.child_bounds import LineOutput, bound, give_spare_memory, watch

_CPU_S = 30
# Keys of a message whose values are compared by templates and not written by users.
_PLAIN = frozenset({"role", "type"})


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
    context = dict(request["context"])
    context["messages"] = [
        {key: _traced(key, value, number) for key, value in message.items()}
        for number, message in enumerate(context.get("messages", ()))
    ]
    context["tools"] = trace(context.get("tools"), -1)
    text = compiled(request["template"]).render(context)
    if len(text) > request["characters"]:
        return {"long": True}
    return {"text": text, "runs": [number for run in runs_of(text) for number in run]}


def _traced(key: str, value: Any, message: int) -> Any:
    """A field of a message; its content is source `2 * message`, all else in it `2 * message + 1`."""
    if key in _PLAIN:
        return value
    return trace(value, 2 * message + (key != "content"), _PLAIN)


@lru_cache(4)
def compiled(template: str) -> Template:
    """The compiled template."""
    environment = _TracingEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.loopcontrols", _Generation],
        finalize=text_of,
    )
    environment.filters |= {name: _tracing(filter) for name, filter in environment.filters.items()}
    environment.filters |= {"tojson": to_json, "join": _join, "format": _format, "safe": _safe}
    environment.globals |= {
        "raise_exception": _raise_exception,
        "strftime_now": _now,
        "dict": _Dicts(),
        "namespace": _Namespace,
    }
    return environment.from_string(template)


class _TracingGenerator(CodeGenerator):
    """Compiles `~` to an operation that keeps the origins of characters."""

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:
        self.write("environment.concat(map(environment.finalize, (")
        for each in node.nodes:
            self.visit(each, frame)
            self.write(", ")
        self.write(")))")


class _TracingEnvironment(ImmutableSandboxedEnvironment):
    """The sandbox, with strings that keep the origins of their characters."""

    code_generator_class = _TracingGenerator
    concat = staticmethod(concat)
    intercepted_binops = frozenset({"%"})

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        return (
            percent(left, right)
            if isinstance(left, str)
            else super().call_binop(context, operator, left, right)
        )

    def call(__self, __context: Context, __obj: Any, *args: Any, **named: Any) -> Any:
        if isinstance(__obj, BuiltinMethodType) and isinstance(__obj.__self__, str):
            if isinstance(args[0] if args else None, Iterable) and __obj.__name__ in ("join", "replace"):
                parts = args if __obj.__name__ == "replace" else (list(args[0]),)
                __obj, args = getattr(Traced(__obj.__self__), __obj.__name__), parts
            else:
                return _content_if(super().call(__context, __obj, *args, **named), (args, named))
        return super().call(__context, __obj, *args, **named)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        found = super().wrap_str_format(value)
        if found is None:
            return None
        wrapped = found

        def formatted(*args: Any, **named: Any) -> str:
            written: str = _content_if(wrapped(*args, **named), (value.__self__, args, named))
            return written

        return formatted


def _content_if(result: Any, values: object) -> Any:
    """`result`; content, if it is a string without origins and was made from content."""
    if not isinstance(result, str) or runs_of(result):
        return result
    return content_like(result, traced_in(values))


def _tracing(filter: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(filter)
    def traced(*args: Any, **named: Any) -> Any:
        return _content_if(filter(*args, **named), (args, named))

    return traced


@pass_environment
def _join(environment: Environment, value: Iterable[Any], d: Any = "", attribute: Any = None) -> str:
    values = value if attribute is None else map(make_attrgetter(environment, attribute), value)
    separator = text_of(d)
    return Traced(separator, runs_of(separator)).join(map(text_of, values))


def _safe(value: Any) -> Any:
    """Nothing is escaped here, so content needs no mark against it and keeps its origins."""
    return value if isinstance(value, Traced) else do_mark_safe(value)


def _format(value: Any, *args: Any, **named: Any) -> str:
    if args and named:
        raise TypeError("“format” takes positional or named values, not both.")
    return percent(text_of(value), named or args)


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
