"""OpenAI's responses: what golden transcripts do not show, besides how requests are read (test_cases)."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from typing import Any

from tests.core.serve.served import RESPONSES, Reply, Served, read_reply, send_request, serving

# The toy model does not stop.
ENDLESS = {"logit_bias": {"0": -100}}


def body(**fields: Any) -> dict[str, Any]:
    return {"max_output_tokens": 8, "input": "hello", **fields}


def ask(served: Served, **fields: Any) -> Reply:
    return served.ask("POST", RESPONSES, body(**fields))


def events(reply: Reply) -> list[dict[str, Any]]:
    """The events of a stream; each is named as what it carries, and they are numbered."""
    names = [line[7:] for line in reply.body.decode().split("\n") if line.startswith("event: ")]
    carried = [json.loads(one) for one in reply.data]
    assert [one["type"] for one in carried] == names
    assert [one["sequence_number"] for one in carried] == list(range(len(carried)))
    return carried


def test_a_stream_begins_while_the_prompt_is_read(served: Served) -> None:
    reply = ask(
        served, input="x" * 400, stream=True, settings={"prefill.chunk_tokens": 64}, max_output_tokens=2
    )
    lines = reply.body.decode().split("\n")
    alive = next(place for place, line in enumerate(lines) if re.match(r": keepalive \d+%", line))
    assert lines.index("event: response.created") < alive < lines.index("event: response.output_item.added")
    assert lines.count("event: response.created") == 1
    events(reply)


def test_a_worker_that_dies_in_the_middle_is_told_as_an_event(toy_folder: Path) -> None:
    with serving(toy_folder) as served:
        line = served.line()
        try:
            send_request(line, "POST", RESPONSES, body(stream=True, max_output_tokens=400, **ENDLESS))
            served.until(lambda: bool(served.records) and served.records[-1].state == "writing")
            os.kill(served.pid, signal.SIGKILL)
            told = events(read_reply(line))
        finally:
            line.close()
        assert told[-1]["type"] == "response.failed"
        assert told[-1]["response"]["error"]["code"] == "server_error"
        served.until(lambda: served.answers.gate.state == "ready", 60)
        assert ask(served).status == 200


def test_a_response_repeats_what_was_requested(served: Served) -> None:
    echoed = {"max_tool_calls": 3, "safety_identifier": "s", "prompt_cache_key": "k", "presence_penalty": 0.5}
    response = ask(served, **echoed).json
    assert {name: response[name] for name in echoed} == echoed


def test_a_kept_response_can_be_read_and_dropped(served: Served) -> None:
    made = served.ask("POST", RESPONSES, {"input": "hi", "max_output_tokens": 3})
    place = f"{RESPONSES}/{made.json['id']}"
    assert served.ask("GET", place).json == made.json
    assert served.ask("DELETE", place).json == {"id": made.json["id"], "object": "response", "deleted": True}
    for method in ("GET", "DELETE"):
        assert served.ask(method, place).status == 404
    after = {"input": "hi", "max_output_tokens": 3, "previous_response_id": made.json["id"]}
    assert served.ask("POST", RESPONSES, after).status == 400
    unkept = served.ask("POST", RESPONSES, {"input": "hi", "max_output_tokens": 3, "store": False})
    assert served.ask("GET", f"{RESPONSES}/{unkept.json['id']}").status == 404


def test_the_input_of_a_kept_response_is_listed_in_pages(served: Served) -> None:
    """Texts become messages with parts; every item has an id; earlier responses' items are included."""
    first = served.ask("POST", RESPONSES, {"input": "hi", "max_output_tokens": 3}).json
    given = [{"role": "user", "content": f"and {number}?"} for number in range(3)]
    second = {"input": given, "max_output_tokens": 3, "previous_response_id": first["id"]}
    place = f"{RESPONSES}/{served.ask('POST', RESPONSES, second).json['id']}/input_items"
    whole = served.ask("GET", f"{place}?order=asc").json
    texts = [item["content"][0]["text"] for item in whole["data"] if item["role"] == "user"]
    assert texts == ["hi", "and 0?", "and 1?", "and 2?"]
    assert whole["data"][1] == first["output"][0]
    ids = [item["id"] for item in whole["data"]]
    assert (whole["first_id"], whole["last_id"], whole["has_more"]) == (ids[0], ids[-1], False)
    newest = served.ask("GET", place).json
    assert [item["id"] for item in newest["data"]] == ids[::-1]
    seen, page = [], served.ask("GET", f"{place}?limit=2").json
    while page["data"]:
        seen += [item["id"] for item in page["data"]]
        assert page["has_more"] == (len(seen) < len(ids))
        page = served.ask("GET", f"{place}?limit=2&after={seen[-1]}").json
    assert seen == ids[::-1]
    for wrong in ("limit=0", "limit=101", "limit=%C2%B2", "order=up", "after=nothing"):
        refused = served.ask("GET", f"{place}?{wrong}")
        assert refused.status == 400
        assert refused.json["error"]["param"] == wrong.partition("=")[0]
    assert served.ask("GET", f"{RESPONSES}/resp_none/input_items").status == 404


def test_input_tokens_are_those_of_the_prompt(served: Served) -> None:
    made = served.ask("POST", RESPONSES, {"input": "hi", "max_output_tokens": 3})
    asked = {"input": "and now?", "previous_response_id": made.json["id"], "instructions": "Be brief."}
    counted = served.ask("POST", f"{RESPONSES}/input_tokens", asked)
    answered = served.ask("POST", RESPONSES, asked | {"max_output_tokens": 3})
    assert counted.json["object"] == "response.input_tokens"
    assert counted.json["input_tokens"] == answered.json["usage"]["input_tokens"]
