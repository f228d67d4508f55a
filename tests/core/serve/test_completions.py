"""The older API: a prompt goes on as it stands."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.engine.engine import Engine
from core.events import Generate, Message, Token
from tests.core.serve.served import Served, settings

PATH = "/v1/completions"


def complete(served: Served, prompt: Any = "Once upon", **fields: Any) -> Any:
    return served.ask("POST", PATH, {"prompt": prompt, "max_tokens": 16, **fields})


def test_the_prompt_is_read_without_a_template(served: Served, toy_engine: Engine) -> None:
    body = complete(served).json
    asked = Generate("r", (Message("user", "Once upon"),), settings(sampling__max_tokens=16), raw=True)
    events = list(toy_engine.generate(asked, lambda: False))
    expected = "".join(event.text for event in events if isinstance(event, Token))
    assert body["choices"] == [{"index": 0, "text": expected, "logprobs": None, "finish_reason": "length"}]
    assert body["usage"]["prompt_tokens"] == len("Once upon")
    assert (body["object"], body["id"][:5]) == ("text_completion", "cmpl-")


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"echo": True}, "echo"),
        ({"suffix": "x"}, "suffix"),
        ({"best_of": 3}, "best_of"),
        ({"prompt": ["a", "b"]}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [1, 2]}, "prompt[0]"),
        ({"logprobs": 21}, "logprobs"),
        ({"messages": [{"role": "user"}]}, "messages"),
    ],
)
def test_what_is_not_done_is_refused_by_name(served: Served, fields: dict[str, Any], param: str) -> None:
    reply = complete(served, **fields)
    assert (reply.status, reply.error["param"]) == (400, param)


def test_a_request_is_cancelled_by_its_id(served: Served) -> None:
    line = served.line()
    body = {"prompt": "who is cancelled", "max_tokens": 400, "stream": True, "drafter": "off"}
    line.request("POST", PATH, json.dumps(body), {"content-type": "application/json"})
    reply = line.getresponse()
    request = reply.headers["x-request-id"]
    served.until(lambda: served.records[-1].tokens > 3)
    told = served.ask("POST", f"/v1/requests/{request}/cancel", b"")
    assert (told.status, told.json["cancelled"]) == (200, True)
    *_, last, done = [part for part in reply.read().decode().split("\n\n") if part]
    assert done == "data: [DONE]"
    ended = json.loads(last.removeprefix("data: "))
    assert ended["choices"][0]["finish_reason"] == "length"
    assert ended["draftlight"]["cancelled"] is True
    assert ended["timings"]["predicted_n"] < 400
    assert served.answers.requests.of(request).state == "cancelled"  # type: ignore[union-attr]
    line.close()
    again = served.ask("POST", f"/v1/requests/{request}/cancel", b"")
    assert (again.status, again.error["code"]) == (404, "not_found")
