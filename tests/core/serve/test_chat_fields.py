"""Every field that a request may have: done, left aside, or refused by name before the model is touched."""

from __future__ import annotations

from typing import Any

import pytest

from core.events import Generate
from tests.core.serve.served import CHAT, Reply, Served, question


def generate_of(served: Served, **fields: Any) -> Generate:
    """What the worker was asked for a request with `fields`."""
    reply = served.chat(**fields)
    assert reply.status == 200, reply.body
    asked = served.answers.requests.asked(reply.json["id"])
    assert asked is not None
    return asked


def refused(served: Served, body: Any) -> Reply:
    before = [record.id for record in served.records]
    reply = served.ask("POST", CHAT, body)
    assert reply.status == 400, reply.body
    assert reply.error["type"] == "invalid_request_error"
    assert all(record.state == "failed" for record in served.records if record.id not in before)
    return reply


def test_sampling_is_what_was_asked(served: Served) -> None:
    asked = generate_of(
        served,
        temperature=0.7,
        top_p=0.9,
        top_k=40,
        min_p=0.05,
        seed=7,
        repetition_penalty=1.1,
        frequency_penalty=0.5,
        presence_penalty=-0.5,
        stop=["END", "\n\n"],
        logit_bias={"17": -100, "18": 3.5},
        max_tokens=3,
    )
    sampling = asked.settings.sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.min_p) == (0.7, 0.9, 40, 0.05)
    assert (sampling.seed, sampling.max_tokens) == (7, 3)
    assert (sampling.repetition_penalty, sampling.frequency_penalty) == (1.1, 0.5)
    assert sampling.presence_penalty == -0.5
    assert asked.stops == ("END", "\n\n")
    assert asked.logit_bias == {17: -100.0, 18: 3.5}


def test_what_others_write_otherwise_is_taken(served: Served) -> None:
    assert generate_of(served, top_k=-1).settings.sampling.top_k == 0
    assert 0 < generate_of(served, top_p=0).settings.sampling.top_p < 1e-6
    assert generate_of(served, seed=-1).settings.sampling.seed == 2**31 - 1
    assert generate_of(served, stop="END").stops == ("END",)
    assert generate_of(served, max_completion_tokens=5, max_tokens=9).settings.sampling.max_tokens == 5


def test_without_a_seed_every_answer_is_drawn_anew(served: Served) -> None:
    assert len({generate_of(served, max_tokens=1).settings.sampling.seed for _ in range(4)}) == 4


def test_without_a_limit_the_context_is_one_and_that_is_no_change(served: Served) -> None:
    body = question("hello " * 75, logit_bias={"0": -100})
    del body["max_tokens"]
    reply = served.ask("POST", CHAT, body)
    assert reply.json["usage"]["total_tokens"] >= 512
    assert reply.json["draftlight"]["changes"] == []
    asked = served.chat("hello " * 75, max_tokens=400, logit_bias={"0": -100}).json["draftlight"]["changes"]
    assert [change["setting"] for change in asked] == ["sampling.max_tokens"]


def test_draftlights_own_fields(served: Served) -> None:
    asked = generate_of(
        served,
        drafter="ngram-simple",
        specprefill=True,
        specprefill_keep_pct=35,
        settings={"ngram_simple.k": 3, "gate.mode": "always"},
    ).settings
    assert asked.drafting.drafter == "ngram-simple"
    assert (asked.prefill.mode, asked.prefill.keep_pct) == ("on", 35.0)
    assert asked.ngram_simple.k == 3
    assert generate_of(served, specprefill=False).settings.prefill.mode == "off"


def test_messages_become_draftlights(served: Served) -> None:
    called = {"name": "f", "arguments": '{"x":1}'}
    messages = [
        {"role": "developer", "content": "Be short."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
            "name": "x",
        },
        {
            "role": "assistant",
            "content": None,
            "refusal": None,
            "annotations": [],
            "tool_calls": [{"id": "c1", "type": "function", "function": called}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "4"},
    ]
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    asked = generate_of(served, messages=messages, tools=tools, max_tokens=2)
    assert [(one.role, one.content) for one in asked.messages] == [
        ("system", "Be short."),
        ("user", "a\nb"),
        ("assistant", ""),
        ("tool", "4"),
    ]
    [call] = asked.messages[2].tool_calls
    assert (call.id, call.name, call.arguments) == ("c1", "f", '{"x":1}')
    assert asked.messages[3].tool_call_id == "c1"
    assert [tool.name for tool in asked.tools] == ["f"]
    assert generate_of(served, messages=messages, tools=tools, tool_choice="none").tools == ()


def test_what_cannot_change_the_answer_is_left_aside(served: Served) -> None:
    for fields in (
        {"user": "me"},
        {"metadata": {"a": "b"}, "store": True},
        {"service_tier": "auto", "prompt_cache_key": "k", "safety_identifier": "s"},
        {"n": 1, "modalities": ["text"], "parallel_tool_calls": True, "tool_choice": "auto"},
        {"stop": None, "temperature": None, "tools": None, "response_format": {"type": "text"}},
        {"stream": False, "logprobs": False},
    ):
        assert served.chat(max_tokens=1, **fields).status == 200


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"n": 2}, "n"),
        ({"audio": {"voice": "x"}}, "audio"),
        ({"modalities": ["audio"]}, "modalities[0]"),
        ({"reasoning_effort": 5}, "reasoning_effort"),
        ({"chat_template_kwargs": {"enable_thinking": "perhaps"}}, "chat_template_kwargs.enable_thinking"),
        ({"temperature": 3}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"top_p": 1.5}, "top_p"),
        ({"top_k": -2}, "top_k"),
        ({"min_p": -1}, "min_p"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"max_completion_tokens": -2}, "max_completion_tokens"),
        ({"seed": "x"}, "seed"),
        ({"stop": [""]}, "stop"),
        ({"stop": ["x"] * 1001}, "stop"),
        ({"stop": 5}, "stop"),
        ({"frequency_penalty": 3}, "frequency_penalty"),
        ({"logit_bias": {"x": 1}}, "logit_bias"),
        ({"logit_bias": {"1": 101}}, "logit_bias"),
        ({"logit_bias": {"-1": 1}}, "logit_bias"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ({"stream": "yes"}, "stream"),
        ({"messages": []}, "messages"),
        ({"messages": "hello"}, "messages"),
        ({"messages": [{"role": "bot", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].tool_call_id"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
            "messages[0].content[0].type",
        ),
        ({"tools": [{"type": 7}]}, "tools[0].type"),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}] * 2}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, "tool_choice"),
        ({"tool_choice": "perhaps"}, "tool_choice.type"),
        ({"response_format": {"type": "xml"}}, "response_format.type"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema.schema"),
        ({"prediction": {"type": "audio", "content": "x"}}, "prediction.type"),
        ({"drafter": "psychic"}, "drafter"),
        ({"specprefill": "yes"}, "specprefill"),
        ({"specprefill_keep_pct": 0}, "specprefill_keep_pct"),
        ({"settings": {"no.such": 1}}, "settings.no.such"),
        ({"settings": {"ngram_simple.k": -4}}, "settings.ngram_simple.k"),
        ({"settings": {"tables.learn": True}}, "settings.tables.learn"),
        ({"settings": {"draft_model.model": "/etc"}}, "settings.draft_model.model"),
        ({"settings": {"draft_model.model": "../x"}}, "settings.draft_model.model"),
        ({"settings": {"draft_model.model": "~/x"}}, "settings.draft_model.model"),
        ({"draftlight": {"tints": True}}, "draftlight.tints"),
    ],
)
def test_what_is_not_done_is_refused_by_name(served: Served, fields: dict[str, Any], param: str) -> None:
    reply = refused(served, question(**fields))
    assert reply.error["param"] == param
    assert reply.error["message"].endswith((".", "?"))


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


def test_logprobs_have_openais_shape(served: Served) -> None:
    whole = served.chat("logprobs", logprobs=True, top_logprobs=3, max_tokens=20).json["choices"][0]
    content = whole["logprobs"]["content"]
    assert "".join(entry["token"] for entry in content) == whole["message"]["content"]
    for entry in content:
        assert entry["logprob"] <= 0
        assert len(entry["top_logprobs"]) == 3
        assert entry["top_logprobs"][0]["logprob"] >= entry["top_logprobs"][1]["logprob"]
        assert entry["bytes"] == (list(entry["token"].encode()) or None)
    chunks = served.chat("logprobs", logprobs=True, top_logprobs=3, max_tokens=20, stream=True).chunks
    told = [chunk["choices"][0]["logprobs"] for chunk in chunks]
    streamed = [entry for one in told if one for entry in one["content"]]
    assert [entry["token"] for entry in streamed] == [entry["token"] for entry in content]
    # Read from the cache, a prompt gives the same but for the last bits.
    assert [entry["logprob"] for entry in streamed] == pytest.approx(
        [entry["logprob"] for entry in content], abs=1e-4
    )
    assert whole["logprobs"]["refusal"] is None


def test_a_clients_system_message_goes_before_that_of_the_settings(served: Served) -> None:
    """The window's own system prompt is for who says nothing of the kind."""

    def prompt_tokens(*messages: dict[str, str]) -> int:
        fields = {"messages": messages, "max_tokens": 1, "settings": {"chat.system_prompt": "long " * 20}}
        return int(served.ask("POST", CHAT, fields).json["usage"]["prompt_tokens"])

    question = {"role": "user", "content": "?"}
    told = prompt_tokens({"role": "system", "content": "Be short."}, question)
    assert told < 60
    assert prompt_tokens(question) > 100


@pytest.mark.parametrize(
    ("path", "field"),
    [
        (CHAT, "messages"),
        ("/v1/messages", "messages"),
        ("/v1/responses", "input"),
        ("/v1/completions", "prompt"),
    ],
)
def test_an_empty_last_text_is_refused_in_the_apis_words(served: Served, path: str, field: str) -> None:
    empty: Any = [{"role": "user", "content": "  "}] if field != "prompt" else ""
    reply = served.ask("POST", path, {field: empty, "max_tokens": 2})
    assert reply.status == 400
    assert reply.error["message"] == f"“{field}” ends in an empty text. Send one to answer."
