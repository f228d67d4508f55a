"""`server.strict`: what is otherwise left out of a request and named in the answer is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.core.serve.served import CHAT, Served, serving
from tests.core.serve.test_agents import BLOCK, PIXEL, message, response, user
from tests.core.serve.test_unknown_fields import COMPLETIONS, MESSAGES, RESPONSES

SET = {"type": "json_schema", "json_schema": {"schema": {"type": "array", "uniqueItems": True}}}


@pytest.fixture(scope="module")
def strict(toy_folder: Path) -> Iterator[Served]:
    with serving(toy_folder, strict=True) as found:
        yield found


@pytest.mark.parametrize(
    ("path", "asked", "named"),
    [
        (CHAT, message(colour="red"), "colour"),
        (CHAT, message(reasoning_effort="high"), "reasoning_effort"),
        (CHAT, message(tools=[{"type": "web_search"}]), "tools[0]"),
        (CHAT, message(response_format=SET), "response_format.uniqueItems"),
        (
            CHAT,
            message(user([{"type": "image_url", "image_url": {"url": PIXEL}}]), user()),
            "messages[0].content[0]",
        ),
        (RESPONSES, response(text={"verbosity": "low"}), "text.verbosity"),
        (RESPONSES, response(user(), {"type": "item_reference", "id": "x"}), "input[1]"),
        (COMPLETIONS, {"prompt": "hi", "max_tokens": 1, "colour": "red"}, "colour"),
    ],
)
def test_what_would_be_left_out_is_refused(
    served: Served, strict: Served, path: str, asked: dict[str, Any], named: str
) -> None:
    assert served.ask("POST", path, asked).status == 200
    reply = strict.ask("POST", path, asked)
    assert (reply.status, reply.error["param"]) == (400, named)
    assert named in reply.error["message"]


def test_messages_name_the_place_in_words(strict: Served) -> None:
    asked = message(user([BLOCK]), {"role": "assistant", "content": "no"}, user())
    for path in (MESSAGES, f"{MESSAGES}/count_tokens"):
        reply = strict.ask("POST", path, asked)
        assert reply.status == 400
        assert "messages[0].content[0]" in reply.error["message"]


def test_other_models_are_not_there(strict: Served) -> None:
    for path, asked in ((CHAT, message()), (MESSAGES, message()), (RESPONSES, response())):
        assert strict.ask("POST", path, asked | {"model": "toy"}).status == 200
        reply = strict.ask("POST", path, asked | {"model": "claude-sonnet-4-5"})
        assert reply.status == 404
        assert "toy" in reply.error["message"]


def test_what_the_answer_honours_is_answered(strict: Served) -> None:
    assert strict.ask("POST", CHAT, message(user="u", metadata={}, seed=2**40)).status == 200
