"""Chat completions: models, names, errors, and what the golden transcripts do not show."""

from __future__ import annotations

import re

from msgspec.structs import replace

from core.events import api_id
from core.serve.queue import is_called
from core.serve.status import shape
from tests.core.serve.served import CHAT, Served


def test_a_long_prompt_keeps_the_line_alive_and_says_how_far_it_is(served: Served) -> None:
    reply = served.chat("x" * 400, stream=True, settings={"prefill.chunk_tokens": 64}, max_tokens=2)
    assert any(
        re.fullmatch(r"keepalive \d+%: Reading [\d,]+ tokens.*", comment) for comment in reply.comments
    )
    assert reply.chunks


def test_the_loaded_model_answers_to_any_name(served: Served) -> None:
    for name in ("toy", "TOY", "openai/toy"):
        reply = served.chat(model=name, max_tokens=1).json
        assert (reply["model"], reply["draftlight"]["changes"]) == ("toy", [])
    for name in ("gpt-5", "claude-sonnet-4-5-20250929"):
        reply = served.chat(model=name, max_tokens=1).json
        [named] = reply["draftlight"]["changes"]
        assert reply["model"] == "toy"
        assert (named["setting"], named["asked"], named["used"]) == ("model", name, "toy")


def test_a_listed_model_says_what_clients_of_other_servers_read(served: Served) -> None:
    toy = served.answers.gate.model
    assert toy is not None
    model, _encoder = served.ask("GET", "/v1/models").json["data"]
    for name in ("context_length", "max_context_length", "loaded_context_length", "max_model_len"):
        assert model[name] == toy.context_tokens
    assert (model["state"], model["top_provider"]["context_length"]) == ("loaded", toy.context_tokens)
    assert {"tools", "tool_use", "json_schema"} <= {*model["capabilities"]}
    assert {"tools", "structured_outputs"} <= {*model["supported_parameters"]}
    assert "thinking" not in model["capabilities"]
    thinking = shape("toy", replace(toy, thinks=True), 0)
    assert "thinking" in thinking["capabilities"]
    assert "reasoning" in thinking["supported_parameters"]
    anthropic = {"anthropic-version": "2023-06-01"}
    listed = served.ask("GET", "/v1/models", headers=anthropic).json
    assert (listed["first_id"], listed["has_more"], listed["data"][0]["type"]) == ("toy", False, "model")
    assert served.ask("GET", "/v1/models/toy", headers=anthropic).json["type"] == "model"


def test_a_model_is_called_by_its_id_its_name_or_as_it_was_loaded(served: Served) -> None:
    toy = served.answers.gate.model
    assert toy is not None
    model = replace(toy, name="SmolLM2 135M", reference="starter")
    for name in (api_id(model), "smollm2 135m", "starter", "openai/starter", "", "default"):
        assert is_called(model, name), name
    model = replace(toy, name="Qwen3 4B", reference="owner/Qwen3-4B-4bit")
    for name in ("owner/qwen3-4b-4bit", "openai/Qwen3-4B-4bit", "Qwen3-4B"):
        assert is_called(model, name), name
    for name in ("starter", "owner", "owner/", "gpt-5", "/"):
        assert not is_called(model, name), name
    assert not is_called(replace(model, reference=""), "x/")


def test_models_are_listed_without_their_path(served: Served) -> None:
    listed = served.ask("GET", "/v1/models")
    assert [model["id"] for model in listed.json["data"]] == ["toy", "all-MiniLM-L6-v2"]
    assert served.ask("GET", "/v1/models/toy").json == listed.json["data"][0]
    assert b"/" not in listed.body
    assert served.ask("GET", "/v1/models/other").status == 404
    assert served.ask("GET", "/health").json == {"status": "ok"}


def test_unknown_paths_and_methods_are_refused_in_the_same_shape(served: Served) -> None:
    assert served.ask("GET", "/v1/nothing").error["code"] == "not_found"
    assert served.ask("GET", CHAT).error["code"] == "method_not_allowed"
