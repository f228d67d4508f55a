"""Annotations of answers about documents: where their words occur. Grammars force the answers' texts."""

from __future__ import annotations

import json
from typing import Any

from tests.core.serve.served import CHAT, MESSAGES, RESPONSES, Served, user

RULES = "Washing is allowed from 8:30 to 19:00. The tenant shall pay the rent of 1,200 euros in advance."
SAID = "The tenant shall pay the rent of 1200 euros, not 1,300 euros"
COPIED = "The tenant shall pay the rent of 1200 euros"
_START = RULES.index("The tenant")
_PLACE = {"document_index": 0, "start_char_index": _START, "end_char_index": RULES.index(" in advance")}


def _asked(**fields: Any) -> dict[str, Any]:
    source = {"type": "text", "media_type": "text/plain", "data": RULES}
    parts = [
        {"type": "document", "title": "rules.md", "source": source},
        {"type": "text", "text": "How much is the rent?"},
    ]
    schema = {"name": "said", "schema": {"const": SAID}}
    format = {"type": "json_schema", "json_schema": schema}
    return {"messages": [user(parts)], "response_format": format, "max_tokens": 400, **fields}


def _responses(**fields: Any) -> dict[str, Any]:
    asked = _asked(**fields)
    format = {"type": "json_schema", "name": "said", "schema": {"const": SAID}}
    return {
        "input": asked["messages"],
        "text": {"format": format},
        "max_output_tokens": 400,
        **fields,
    }


def _checked(annotations: list[dict[str, Any]], text: str) -> None:
    [found] = annotations
    assert found["type"] == "file_citation"
    assert text[found["start_index"] : found["end_index"]] == COPIED
    assert _PLACE.items() <= found.items()


def _check_facts(facts: list[dict[str, Any]], text: str) -> None:
    told = [(text[each["start_index"] : each["end_index"]], each["state"]) for each in facts]
    assert told == [("1200 euros", "document"), ("1,300 euros", "nowhere")]
    assert [each["kind"] for each in facts] == ["amount", "amount"]
    assert "document_index" in facts[0]
    assert "document_index" not in facts[1]


def test_a_chat_has_them_where_it_asks(served: Served) -> None:
    body = served.ask("POST", CHAT, _asked(draftlight={"annotations": True})).json
    message = body["choices"][0]["message"]
    _checked(message["annotations"], message["content"])
    [annotation] = message["annotations"]
    assert annotation["text"] == COPIED
    citation = annotation["file_citation"]
    quote = RULES[_START:].removesuffix(" in advance.")
    assert citation == {"file_id": "document-1", "filename": "rules.md", "quote": quote}
    _check_facts(body["draftlight"]["facts"], message["content"])


def test_a_streamed_chat_has_them_in_a_chunk_before_the_last(served: Served) -> None:
    reply = served.ask("POST", CHAT, _asked(draftlight={"annotations": True}, stream=True))
    deltas = [chunk["choices"][0]["delta"] for chunk in reply.chunks]
    [annotations] = [delta["annotations"] for delta in deltas if "annotations" in delta]
    _checked(annotations, reply.text)
    _check_facts(reply.chunks[-1]["draftlight"]["facts"], reply.text)


def test_a_response_has_them_in_its_text_and_as_events(served: Served) -> None:
    whole = served.ask("POST", RESPONSES, _responses(draftlight={"annotations": True})).json
    [part] = whole["output"][-1]["content"]
    _checked(part["annotations"], part["text"])
    assert part["annotations"][0]["filename"] == "rules.md"
    assert part["annotations"][0]["index"] == part["annotations"][0]["end_index"]
    _check_facts(whole["draftlight"]["facts"], part["text"])
    reply = served.ask("POST", RESPONSES, _responses(draftlight={"annotations": True}, stream=True))
    events = [json.loads(each) for each in reply.data]
    added = [each for each in events if each["type"] == "response.output_text.annotation.added"]
    assert [each["annotation"] for each in added] == part["annotations"]
    assert events[-1]["response"]["output"][-1]["content"][0]["annotations"] == part["annotations"]


def test_without_the_field_or_documents_there_are_none(served: Served) -> None:
    plain = served.ask("POST", CHAT, _asked()).json
    assert "annotations" not in plain["choices"][0]["message"]
    assert "facts" not in plain["draftlight"]
    asked = _asked(draftlight={"annotations": True}) | {"messages": [user("How much?")]}
    bare = served.ask("POST", CHAT, asked).json
    assert "annotations" not in bare["choices"][0]["message"]
    response = served.ask("POST", RESPONSES, _responses()).json
    assert response["output"][-1]["content"][0]["annotations"] == []


def test_an_api_without_annotations_names_the_field(served: Served) -> None:
    body = {"messages": [user("hi")], "max_tokens": 2, "draftlight": {"annotations": True}}
    changes = served.ask("POST", MESSAGES, body).json["draftlight"]["changes"]
    assert "draftlight.annotations" in [change["setting"] for change in changes]
