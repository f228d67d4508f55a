"""Fields of chat completions and what they do to an answer. How they are read: test_cases."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.serve.served import CHAT, Reply, Served, question


def refused(served: Served, body: Any) -> Reply:
    before = [record.id for record in served.records]
    reply = served.ask("POST", CHAT, body)
    assert reply.status == 400, reply.body
    assert reply.error["type"] == "invalid_request_error"
    assert all(record.state == "failed" for record in served.records if record.id not in before)
    return reply


def test_without_a_seed_every_answer_is_drawn_anew(served: Served) -> None:
    assert len({served.asked(served.chat(max_tokens=1)).settings.sampling.seed for _ in range(4)}) == 4


def test_without_a_limit_the_context_is_one_and_that_is_no_change(served: Served) -> None:
    body = question("hello " * 75, logit_bias={"0": -100})
    del body["max_tokens"]
    reply = served.ask("POST", CHAT, body)
    assert reply.json["usage"]["total_tokens"] >= 512
    assert reply.json["draftlight"]["changes"] == []
    asked = served.chat("hello " * 75, max_tokens=400, logit_bias={"0": -100}).json["draftlight"]["changes"]
    assert [change["setting"] for change in asked] == ["sampling.max_tokens"]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b'{"messages": ' + b"[" * 100_000, b"{}", b"1" * 9000],
)
def test_what_is_no_request_is_refused(served: Served, body: bytes) -> None:
    assert refused(served, body).error["code"] in ("invalid_json", "missing_required_parameter")


def test_half_a_character_does_no_harm(served: Served) -> None:
    body = b'{"messages": [{"role": "user", "content": "a\\ud800b \xff"}], "max_tokens": 2}'
    reply = served.ask("POST", CHAT, body)
    assert reply.status == 200
    asked = served.answers.requests.asked(reply.json["id"])
    assert asked is not None
    assert asked.messages[0].content.startswith("a\ufffdb")


def test_origins_say_where_each_token_came_from(served: Served) -> None:
    fields: dict[str, Any] = {"draftlight": {"tokens": True}, "max_tokens": 60, "drafter": "ngram-simple"}
    fields["settings"] = {"ngram_simple.n_min": 1, "gate.mode": "always"}
    streamed = served.chat("origins", stream=True, **fields)
    tokens = [token for chunk in streamed.chunks for token in chunk.get("draftlight", {}).get("tokens", ())]
    assert [token["position"] for token in tokens] == list(range(60))
    assert "".join(token["text"] for token in tokens) == streamed.text
    figures = streamed.chunks[-1]["timings"]
    assert sum(token["origin"] == "accepted" for token in tokens) == figures["draft_n_accepted"] > 0
    assert all((token["draft_index"] > 0) == (token["origin"] == "accepted") for token in tokens)
    whole = served.chat("origins", **fields).json["draftlight"]["tokens"]
    assert [token["id"] for token in whole] == [token["id"] for token in tokens]


def test_stops_end_the_answer_before_them(served: Served) -> None:
    text = served.chat("stops", max_tokens=40).json["choices"][0]["message"]["content"]
    stop = text[20:23]
    choice = served.chat("stops", max_tokens=40, stop=["never said", stop]).json["choices"][0]
    assert choice["message"]["content"] == text[: text.index(stop)]
    assert choice["finish_reason"] == "stop"


def test_a_clients_system_message_goes_before_that_of_the_settings(served: Served) -> None:
    """The window's own system prompt is for who says nothing of the kind."""

    def prompt_tokens(*messages: dict[str, str]) -> int:
        fields = {"messages": messages, "max_tokens": 1, "settings": {"chat.system_prompt": "long " * 20}}
        return int(served.ask("POST", CHAT, fields).json["usage"]["prompt_tokens"])

    question = {"role": "user", "content": "?"}
    told = prompt_tokens({"role": "system", "content": "Be short."}, question)
    assert told < 60
    assert prompt_tokens(question) > 100
