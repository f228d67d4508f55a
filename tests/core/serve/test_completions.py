"""The older API: a prompt goes on as it stands."""

from __future__ import annotations

import json
from typing import Any

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
