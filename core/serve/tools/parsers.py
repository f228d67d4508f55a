"""Parsers of tool calls: those that mlx-lm ships, loaded without MLX.

They are pure Python, but `import mlx_lm.tool_parsers…` runs `mlx_lm/__init__.py`, which loads MLX. So
their folder is made a package of another name. Which of them is a model's is told by the worker
(`ModelInfo.tool_parser`).
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
from msgspec import Struct

from core.errors import InternalError
from core.events import Tool

_PACKAGE = "draftlight_tool_parsers"
# The longest call that is looked at. The parsers are regular expressions over all of it.
_MOST_CHARACTERS = 256 * 1024


class Call(Struct, frozen=True):
    """What a model calls; `arguments` is JSON, as text."""

    name: str
    arguments: str


class ToolParser(Struct, frozen=True):
    """`start` comes before a call and `end` behind it; an empty `end` is the end of the answer."""

    start: str
    end: str
    inner: Callable[[str, Any], Any]

    def parse(self, text: str, tools: Sequence[Tool]) -> tuple[Call, ...]:
        """The calls in `text`, which stood between `start` and `end`; none if it is not one."""
        if len(text) > _MOST_CHARACTERS:
            return ()
        told = [
            {"type": "function", "function": {"name": tool.name, "parameters": _decoded(tool.parameters)}}
            for tool in tools
        ]
        # Some want what is around the call, too.
        for tried in (text, f"{self.start}{text}{self.end}"):
            try:
                found = self.inner(tried, told)
                calls = tuple(_call(one) for one in (found if isinstance(found, list) else [found]))
            except Exception:  # whatever a model wrote: what is no call stays text
                continue
            if calls:
                return calls
        return ()


@cache
def parser(name: str) -> ToolParser:
    """mlx-lm's parser `name`. Raises `InternalError` if it ships none of that name."""
    try:
        module = importlib.import_module(f"{_package().__name__}.{name}")
    except ImportError as error:
        raise InternalError(f"mlx-lm has no tool parser “{name}”: {error}.") from error
    return ToolParser(module.tool_call_start, module.tool_call_end, module.parse_tool_call)


def _package() -> ModuleType:
    if _PACKAGE in sys.modules:
        return sys.modules[_PACKAGE]
    # Finding a package does not run it.
    found = importlib.util.find_spec("mlx_lm")
    if found is None or not found.submodule_search_locations:
        raise InternalError("mlx-lm is not installed.")
    folder = Path(found.submodule_search_locations[0], "tool_parsers")
    spec = importlib.util.spec_from_file_location(
        _PACKAGE, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[_PACKAGE] = package
    spec.loader.exec_module(package)
    return package


def _call(found: Any) -> Call:
    """Raises ValueError, KeyError or TypeError if it is none."""
    name = found["name"]
    arguments = found["arguments"] if "arguments" in found else found.get("parameters", {})
    if not isinstance(name, str) or not name:
        raise ValueError("a call has a name")
    if isinstance(arguments, str):
        arguments = msgspec.json.decode(arguments)
    if not isinstance(arguments, dict):
        raise ValueError("arguments are an object")
    return Call(name, msgspec.json.encode(arguments).decode())


def _decoded(parameters: str) -> Any:
    try:
        return msgspec.json.decode(parameters)
    except msgspec.DecodeError:
        return {}
