"""`/v1/embeddings`: vectors, their forms, and what is refused or named."""

from __future__ import annotations

import base64
import struct
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.core.serve.served import Reply, Served, question, send_request, serving

PATH = "/v1/embeddings"
TEXTS = ["The ferry leaves at nine.", "At nine o'clock the boat departs.", "Copper conducts heat."]


def embed(served: Served, given: Any, **fields: Any) -> Reply:
    return served.ask("POST", PATH, {"model": "all-MiniLM-L6-v2", "input": given, **fields})


def dot(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other))


def test_a_list_has_one_vector_of_unit_length_each_and_near_texts_are_near(served: Served) -> None:
    body = embed(served, TEXTS).json
    vectors = [one["embedding"] for one in body["data"]]
    assert [one["index"] for one in body["data"]] == [0, 1, 2]
    assert all(len(one) == 384 and abs(dot(one, one) - 1) < 1e-5 for one in vectors)
    assert dot(vectors[0], vectors[1]) > dot(vectors[0], vectors[2]) + 0.3
    assert body["usage"] == {"prompt_tokens": 26, "total_tokens": 26}
    assert body["model"] == "all-MiniLM-L6-v2"
    assert body["draftlight"]["changes"] == []
    own = embed(served, TEXTS[:1], drafter="off", settings={"sampling.temperature": 1}).json["draftlight"]
    assert [one["setting"] for one in own["changes"]] == ["drafter", "settings"]


def test_base64_has_the_same_numbers_and_one_text_the_same_vector_as_in_a_list(served: Served) -> None:
    many = [f"{text} {number}" for number in range(7) for text in TEXTS]
    floats = [one["embedding"] for one in embed(served, many).json["data"]]
    coded = [one["embedding"] for one in embed(served, many, encoding_format="base64").json["data"]]
    # The number of BLAS threads follows the machine's load, and the last bits with it.
    decoded = [struct.unpack("<384f", base64.b64decode(one)) for one in coded]
    assert all(a == pytest.approx(b, abs=1e-6) for a, b in zip(decoded, floats, strict=True))
    alone = embed(served, many[20]).json["data"][0]["embedding"]
    assert dot(alone, floats[20]) > 0.999999


def test_a_text_that_is_too_long_is_cut_and_named(served: Served) -> None:
    body = embed(served, ["short", "tide " * 300]).json
    assert body["usage"]["prompt_tokens"] == 3 + 256
    assert [one["setting"] for one in body["draftlight"]["changes"]] == ["input[1]"]
    assert "256 tokens" in body["draftlight"]["changes"][0]["used"]
    # What follows the 256th token does not change the vector.
    other = embed(served, "tide " * 254 + "copper").json["data"][0]["embedding"]
    assert dot(other, body["data"][1]["embedding"]) > 0.999999


@pytest.mark.parametrize(
    ("fields", "param", "words"),
    [
        ({"input": []}, "input", "1 to 2,048 texts"),
        ({"input": ["a"] * 2049}, "input", "2,049"),
        ({"input": ""}, "input", "empty"),
        ({"input": ["a", ""]}, "input[1]", "empty"),
        ({"input": [1, 2, 3]}, "input[0]", "token ids"),
        ({"input": [[1, 2], [3]]}, "input[0]", "token ids"),
        ({"input": ["a", None]}, "input[1]", "not a text"),
        ({"input": {"text": "a"}}, "input", "Expected"),
        ({"input": "a", "dimensions": 256}, "dimensions", "384"),
        ({"input": "a", "encoding_format": "ubinary"}, "encoding_format", "ubinary"),
        ({}, "input", "missing"),
    ],
)
def test_what_cannot_be_embedded_is_refused_by_name(
    served: Served, fields: dict[str, Any], param: str, words: str
) -> None:
    reply = served.ask("POST", PATH, {"model": "x", **fields})
    assert (reply.status, reply.error["param"]) == (400, param)
    assert words in reply.error["message"]


def test_other_model_names_and_unknown_fields_are_named_and_strictly_refused(
    served: Served, toy_folder: Path
) -> None:
    body = embed(served, "a", model="text-embedding-3-small", dimensions=384, colour=1, user="x").json
    assert [one["setting"] for one in body["draftlight"]["changes"]] == ["model", "colour"]
    for name in ("all-minilm:latest", "sentence-transformers/all-MiniLM-L6-v2", ""):
        assert embed(served, "a", model=name).json["draftlight"]["changes"] == []
    with serving(toy_folder, strict=True) as strict:
        assert embed(strict, "a", model="text-embedding-3-small").error["code"] == "model_not_found"
        assert embed(strict, "a", colour=1).error["param"] == "colour"
        assert embed(strict, "a").status == 200


def test_the_encoder_is_listed_after_the_model(served: Served) -> None:
    listed = served.ask("GET", "/v1/models").json["data"]
    assert [one["type"] for one in listed] == ["llm", "embeddings"]
    one = served.ask("GET", "/v1/models/all-MiniLM-L6-v2").json
    assert one == listed[1]
    assert one["capabilities"] == ["embedding"]
    assert one["context_length"] == 256
    anthropic = served.ask("GET", "/v1/models", headers={"anthropic-version": "2023-06-01"}).json["data"]
    assert len(anthropic) == 1


def test_a_running_answer_and_embeddings_do_not_wait_for_each_other(served: Served) -> None:
    """The vectors arrive while the answer is still written, and the answer is the same as without them."""
    asked = question("tell me more", max_tokens=400, temperature=0, stream=True)
    alone = served.ask("POST", "/v1/chat/completions", asked)
    found: list[Reply] = []
    writer = threading.Thread(target=lambda: found.append(served.ask("POST", "/v1/chat/completions", asked)))
    writer.start()
    served.until(lambda: any(one.state == "writing" for one in served.records))
    vectors = embed(served, TEXTS)
    answering = not found
    writer.join()
    assert vectors.status == 200
    assert answering
    assert found[0].text == alone.text


def test_a_worker_that_dies_fails_the_request(toy_folder: Path) -> None:
    with serving(toy_folder) as served:
        found: list[Reply] = []
        asking = threading.Thread(target=lambda: found.append(embed(served, ["tide " * 300] * 2000)))
        asking.start()
        served.until(lambda: bool(served.answers.gate.open))
        import os
        import signal

        os.kill(served.pid, signal.SIGKILL)
        asking.join()
        assert found[0].status in (500, 503)
        served.until(lambda: served.answers.gate.state == "ready", 60)
        assert embed(served, "again").status == 200


def test_its_requests_are_recorded(toy_folder: Path) -> None:
    with serving(toy_folder) as served:
        reply = served.ask("POST", PATH, {"input": TEXTS * 5}, {"user-agent": "rag/1.0"})
        [record] = served.records
        assert record.id == reply.headers["x-request-id"]
        assert (record.path, record.client, record.model) == (PATH, "rag/1.0", "all-MiniLM-L6-v2")
        assert (record.state, record.embeds, record.streams) == ("finished", True, False)
        assert record.prompt_tokens == record.read_tokens == 5 * 26
        assert record.total_s > 0
        served.ask("POST", PATH, {"input": [5]})
        assert [one.state for one in served.records] == ["finished", "failed"]


def test_a_client_that_leaves_cancels_its_vectors(toy_folder: Path) -> None:
    with serving(toy_folder) as served:
        line = served.line()
        send_request(line, "POST", PATH, {"input": ["tide " * 20] * 2048})
        served.until(lambda: bool(served.records) and served.records[0].read_tokens > 0, 120)
        line.close()
        served.until(lambda: served.records[0].state == "cancelled")
