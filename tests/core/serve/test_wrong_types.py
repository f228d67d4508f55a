"""A value of another type anywhere in a request is answered or refused: never an error of the code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest

from core.serve.chat import chat_request
from core.serve.completions import completion_request
from core.serve.http import ApiError
from core.serve.messages import count_request, message_request
from core.serve.response_memory import ResponseMemory
from tests.core.serve.served import CHAT, COMPLETIONS, COUNT, MESSAGES, RESPONSES
from tests.core.serve.test_goldens import REQUESTS
from tests.thinned import thinned

_READ: dict[str, Callable[[dict[str, Any]], object]] = {
    CHAT: chat_request,
    COMPLETIONS: completion_request,
    RESPONSES: ResponseMemory().requested,
    MESSAGES: message_request,
    COUNT: count_request,
}
FORMAT = REQUESTS["chat schema"][1]["response_format"]
SCHEMA = FORMAT["json_schema"]["schema"]
_ALLOWED = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "weather"}]}
_GIVEN = [given for given in REQUESTS.values() if given[0] in _READ] + [
    (RESPONSES, {"input": "hi", "tools": REQUESTS["response tool"][1]["tools"], "tool_choice": _ALLOWED}),
    (RESPONSES, {"input": [{"id": "i"}, {"type": "reasoning", "summary": []}], "response_format": FORMAT}),
    (CHAT, REQUESTS["response result"][1]),
    (CHAT, {"messages": [], "settings": {"drafting.drafter": "off"}, "draftlight": {"tokens": True}}),
    *(
        (path, {"prompt": "hi", name: form})
        for path in (CHAT, COMPLETIONS, RESPONSES)
        for name, form in (("guided_json", SCHEMA), ("structured_outputs", {"json": SCHEMA}))
    ),
]
_VALUES = (None, True, 0, "x", "json", [], [1], [[]], [{}], {}, {"x": 1}, {"type": ["x"]}, {"name": {}})


def _changed(value: Any) -> Iterator[Any]:
    """`value` with each of its parts replaced by each of `_VALUES`, or left out."""
    yield from _VALUES
    if isinstance(value, dict):
        for key, inner in value.items():
            yield {other: one for other, one in value.items() if other != key}
            yield from ({**value, key: new} for new in _changed(inner))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from ([*value[:at], new, *value[at + 1 :]] for new in _changed(inner))


# One in five of all, which hits every part and every value; the others are sweeps.
_PARTS = 5


@pytest.mark.parametrize("path", _READ)
@pytest.mark.parametrize("part", thinned(range(_PARTS), keep=[0]))
def test_a_value_of_another_type_is_answered_or_refused(path: str, part: int) -> None:
    bodies = (new for one, given in _GIVEN if one == path for new in _changed(given) if type(new) is dict)
    for body in islice(bodies, part, None, _PARTS):
        refusal = None
        try:
            _READ[path](body)
        except ApiError as error:
            refusal = error
        except Exception as error:
            raise AssertionError(body) from error
        assert refusal is None or refusal.status == 400, body
