"""Growth: reading a request takes steps in proportion to its length. Counts steps, not time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from core.serve import conversation as module
from core.serve.conversation import ConversationReader
from core.serve.http import ApiError
from core.serve.request import Choice, GivenTool, choose

SHORT, LONG = 50, 1600


def steps_of(work: Callable[[], object]) -> int:
    """The number of Python's instructions that `work` takes."""
    count = 0

    def trace(frame: FrameType, event: str, value: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def _call(number: int) -> dict[str, Any]:
    return {"type": "function_call", "call_id": f"c{number}", "name": "f", "arguments": "{}"}


def _result(number: int, named: bool) -> dict[str, Any]:
    return {"type": "function_call_output", "output": "ok"} | ({"call_id": f"c{number}"} if named else {})


SHAPES: dict[str, Callable[[int], list[Any]]] = {
    "texts": lambda count: [{"role": "user", "content": "a"}] * count,
    "parts": lambda count: [{"role": "user", "content": [{"type": "text", "text": "a"}] * count}],
    "calls and named results": lambda count: [
        *map(_call, range(count)),
        *(_result(number, True) for number in range(count)),
    ],
    "calls and results in order": lambda count: [
        *map(_call, range(count)),
        *(_result(number, False) for number in range(count)),
    ],
    "thoughts and calls": lambda count: [
        each
        for number in range(count)
        for each in ({"type": "reasoning", "content": [{"type": "text", "text": "hm"}]}, _call(number))
    ],
    "calls of one message": lambda count: [
        {
            "role": "assistant",
            "tool_calls": [
                {"id": f"c{number}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
                for number in range(count)
            ],
        }
    ],
}


@pytest.mark.sweep
@pytest.mark.parametrize("shape", SHAPES)
def test_a_conversation_is_read_in_proportion_to_its_length(
    shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = 0
    real = module.replace

    def replace(message: Any, **changes: Any) -> Any:
        nonlocal copied
        copied += sum(len(value) for value in changes.values() if isinstance(value, tuple))
        return real(message, **changes)

    monkeypatch.setattr(module, "replace", replace)

    def total(count: int) -> int:
        given, before = SHAPES[shape](count), copied
        return steps_of(lambda: ConversationReader("input").read(given)) + copied - before

    total(1)  # what is made once
    assert total(LONG) < 1.5 * LONG / SHORT * total(SHORT)


class Counted(str):
    """A name that counts how often it is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return super().__eq__(other)

    __hash__ = str.__hash__


@pytest.mark.parametrize("chosen", [0, 1, LONG])
def test_tools_are_compared_in_proportion_to_their_number(chosen: int) -> None:
    def compared(count: int) -> int:
        names = [Counted(f"tool{number}") for number in range(count)]
        before = Counted.compared
        choose([GivenTool(name) for name in names], Choice(names=[Counted(name) for name in names[:chosen]]))
        return Counted.compared - before

    assert compared(LONG) <= 8 * LONG


def test_a_tool_given_twice_is_refused() -> None:
    with pytest.raises(ApiError, match="“tools” has “b” twice"):
        choose([GivenTool("a"), GivenTool("b"), GivenTool("c"), GivenTool("b")], Choice())
