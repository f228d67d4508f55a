"""Requests that name another installed model: loaded in turn, or not at all without the setting."""

from __future__ import annotations

import asyncio
import http.client
import json
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from core.events import Cancel, ModelEntry, TakeTurn, TurnTaken
from core.folders.catalogue import Catalogue
from core.folders.config import Machine
from core.serve import answering
from core.serve.queue import InstalledModels
from tests.core.serve.served import CHAT, Reply, Served, question, read_reply, send_request, serving
from tests.core.toy import write_toy_model
from tests.processes import set_home


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home with two models, two quantisations of a third one, and one whose weights are damaged."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        set_home(patch, home)
        for seed, name in enumerate(("First-Toy", "Second-Toy", "Twin-Toy-4bit", "Twin-Toy-8bit")):
            write_toy_model(home / "data" / "models" / name, seed=seed)
        damaged = home / "data" / "models" / "Damaged-Toy"
        shutil.copytree(home / "data" / "models" / "First-Toy", damaged)
        config = (damaged / "config.json").read_text()
        (damaged / "config.json").write_text(config.replace('"hidden_size": 32', '"hidden_size": 48'))
        yield home


LISTED: list[float] = []  # when the installed models were listed


@pytest.fixture(scope="module")
def served(home: Path) -> Iterator[Served]:
    def entries() -> tuple[ModelEntry, ...]:
        LISTED.append(time.monotonic())
        return Catalogue(Machine(1 << 62, expands=True)).entries()

    installed = InstalledModels(partial(asyncio.to_thread, entries))
    with serving(home / "data" / "models" / "First-Toy", installed=installed) as found:
        yield found


def loaded(served: Served) -> str:
    model = served.answers.gate.model
    return model.name if model else ""


def ask(served: Served, model: str, **fields: Any) -> Reply:
    return served.chat("hello", model=model, max_tokens=20, **fields)


def text(reply: Reply) -> str:
    return str(reply.json["choices"][0]["message"]["content"])


def test_the_named_model_answers_and_stays_until_another_one_is_named(served: Served) -> None:
    first = ask(served, "First-Toy")
    second = ask(served, "provider/second-toy")
    assert (first.json["model"], second.json["model"]) == ("First-Toy", "Second-Toy")
    assert loaded(served) == "Second Toy"
    assert text(first) != text(second)
    # No name, and one of no installed model, are answered by whichever is loaded.
    assert text(ask(served, "")) == text(second)
    other = ask(served, "gpt-5")
    assert text(other) == text(second)
    assert other.json["draftlight"]["changes"][0]["asked"] == "gpt-5"
    assert text(ask(served, "first-toy")) == text(first)


def test_models_are_listed_with_their_state(served: Served) -> None:
    ask(served, "First-Toy")
    listed = {each["id"]: each.get("state") for each in served.ask("GET", "/v1/models").json["data"]}
    assert listed["First-Toy"] == "loaded"
    assert listed["Second-Toy"] == "not-loaded"
    assert served.ask("GET", "/v1/models/Second-Toy").json["state"] == "not-loaded"
    assert served.ask("GET", "/v1/models/third").status == 404


def test_each_quantisation_has_an_id_of_its_own(served: Served) -> None:
    ids = [each["id"] for each in served.ask("GET", "/v1/models").json["data"]]
    assert len(ids) == len(set(ids))
    answers = {}
    for name in ("Twin-Toy-8bit", "Twin-Toy-4bit", "Twin-Toy-8bit"):
        assert name in ids
        reply = ask(served, f"openai/{name}")
        assert reply.json["model"] == name
        assert answers.setdefault(name, text(reply)) == text(reply)
        # The name that both have is answered by the one that is loaded.
        assert ask(served, "twin toy").json["model"] == name
    assert len(set(answers.values())) == 2


def test_models_of_one_name_have_their_owners_in_their_ids() -> None:
    first = ModelEntry("one/Toy-4bit", "Toy", "download", "/models/one--Toy-4bit")
    second = ModelEntry("/there/two/Toy-4bit", "Toy", "folder", "/there/two/Toy-4bit")
    third = ModelEntry("starter", "SmolLM2 135M", "starter", "/models/starter")

    async def listed() -> list[ModelEntry]:
        return [first, second, third]

    models = asyncio.run(InstalledModels(listed).by_id(None))
    assert models == {"one/Toy-4bit": first, "two/Toy-4bit": second, "SmolLM2-135M": third}
    for name, model in models.items():
        assert asyncio.run(InstalledModels(listed).other(name, None)) == model.reference


def test_the_installed_models_are_not_listed_for_the_loaded_one(served: Served) -> None:
    ask(served, "First-Toy")
    LISTED.clear()
    for name in ("First-Toy", "first-toy", "", "default"):
        assert ask(served, name).json["model"] == "First-Toy"
    assert not LISTED


def test_tokens_are_counted_by_the_named_model(served: Served) -> None:
    ask(served, "First-Toy")
    fields = {"messages": [{"role": "user", "content": "hello"}]}
    own = served.ask("POST", "/v1/messages/count_tokens", {**fields, "model": "gpt-5"}).json
    assert loaded(served) == "First Toy"
    assert own["draftlight"]["changes"][0]["asked"] == "gpt-5"
    counted = served.ask("POST", "/v1/messages/count_tokens", {**fields, "model": "Second-Toy"}).json
    assert loaded(served) == "Second Toy"
    assert counted["draftlight"]["changes"] == []
    assert not served.answers.sent


def _has_told(line: http.client.HTTPConnection, text: bytes) -> bool:
    return text in line.sock.recv(65536, socket.MSG_PEEK)


def test_a_waiting_request_is_recorded_and_can_be_cancelled(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answering, "_QUIET_S", 0.05)
    ask(served, "First-Toy")
    for stream in (True, False):
        line = served.line()
        with occupied(served):
            body = question("hello", model="Second-Toy", stream=stream)
            send_request(line, "POST", CHAT, body)
            served.until(lambda: served.records[-1].state == "waiting")
            served.until(lambda: served.records[-1].position == 1)
            record = served.records[-1]
            assert (record.model, record.streams) == ("Second-Toy", stream)
            if stream:
                served.until(partial(_has_told, line, b": waiting 1"))
            assert served.ask("POST", f"/v1/requests/{record.id}/cancel").status == 200
            reply = read_reply(line)
            line.close()
        assert served.answers.requests.of(record.id).state == "cancelled"
        if stream:
            assert reply.headers["x-request-id"] == record.id
            assert "waiting 1" in reply.comments  # the first may come before the place is known
            assert json.loads(reply.data[-1])["error"]["code"] == "cancelled"
        else:
            assert (reply.status, reply.error["code"]) == (499, "cancelled")
    assert loaded(served) == "First Toy"


def test_a_request_that_is_refused_after_its_load_is_recorded_once(served: Served) -> None:
    before = len(served.records)
    assert ask(served, "Second-Toy", temperature=-1).status == 400
    assert [each.state for each in served.records[before:]] == ["failed"]
    assert "temperature" in served.records[-1].problem
    assert not served.answers.sent


def test_vectors_are_computed_while_models_are_loaded(served: Served) -> None:
    replies: list[Reply] = []

    def embed() -> None:
        replies.append(served.ask("POST", "/v1/embeddings", {"input": [f"text {n}" for n in range(200)]}))

    thread = threading.Thread(target=embed)
    thread.start()
    while thread.is_alive():
        for name in ("First-Toy", "Second-Toy"):
            assert ask(served, name).status == 200
    assert [(reply.status, len(reply.json["data"])) for reply in replies] == [(200, 200)]


@contextmanager
def occupied(served: Served) -> Iterator[None]:
    """Requests wait in the queue inside."""

    model = served.answers.gate.model
    assert model is not None
    turn = TakeTurn("occupied", model.reference)
    served.on_loop(lambda: served.answers.gate.ask(turn, TurnTaken))
    try:
        yield
    finally:
        served.loop.call_soon_threadsafe(served.answers.gate.worker.post, Cancel("occupied"))


def test_no_answer_is_interrupted_and_the_queue_keeps_its_order(served: Served) -> None:
    names = ("First-Toy", "Second-Toy", "First-Toy", "Second-Toy")
    bodies = [question("hello", model=name, stream=True, max_tokens=150) for name in names]
    alone = [served.ask("POST", CHAT, body).text for body in bodies]
    assert alone[0] != alone[1]
    replies: dict[int, Reply] = {}

    def read(number: int, line: http.client.HTTPConnection) -> None:
        replies[number] = read_reply(line)
        line.close()

    threads = []
    with occupied(served):
        for number, body in enumerate(bodies):
            line = served.line()
            send_request(line, "POST", CHAT, body)
            threads.append(threading.Thread(target=read, args=(number, line)))
            threads[-1].start()
            served.until(lambda: len(served.answers.sent) == len(threads))
    for thread in threads:
        thread.join(120)
    assert list(replies) == [0, 1, 2, 3]
    assert [reply.text for reply in replies.values()] == alone


def test_a_client_that_goes_away_while_it_waits_loads_nothing(served: Served) -> None:
    ask(served, "First-Toy")
    with occupied(served):
        gone = served.line()
        send_request(gone, "POST", CHAT, question("hello", model="Second-Toy"))
        served.until(lambda: len(served.answers.sent) == 1)
        gone.close()
        served.until(lambda: not served.answers.sent)
    assert loaded(served) == "First Toy"
    assert not served.answers.sent


def test_a_stream_is_kept_alive_while_it_waits_and_errors_come_as_events(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = ask(served, "Second-Toy", stream=True).text
    monkeypatch.setattr(answering, "_QUIET_S", 0.05)
    for model in ("Second-Toy", "Damaged-Toy"):
        line = served.line()
        with occupied(served):
            send_request(line, "POST", CHAT, question("hello", model=model, stream=True, max_tokens=20))
            served.until(lambda: len(served.answers.sent) == 1)
            time.sleep(0.2)
        reply = read_reply(line)
        line.close()
        assert reply.status == 200
        assert "waiting 1" in reply.comments
        if model == "Second-Toy":
            assert reply.text == expected
        else:
            error = json.loads(reply.data[-1])["error"]
            assert error["code"] == "bad_model"
    assert not served.answers.sent


@pytest.mark.parametrize("stream", [True, False])
def test_a_model_that_cannot_be_loaded_is_refused_and_the_previous_one_answers(
    served: Served, stream: bool
) -> None:
    before = ask(served, "Second-Toy")
    refused = ask(served, "Damaged-Toy", stream=stream)
    assert refused.status == 400
    assert "cannot be loaded" in refused.error["message"] or "fails at" in refused.error["message"]
    assert text(ask(served, "")) == text(before)


def test_without_the_setting_the_loaded_model_answers(home: Path) -> None:
    with serving(home / "data" / "models" / "First-Toy") as served:
        reply = ask(served, "Second-Toy")
        assert reply.json["model"] == "First-Toy"
        assert reply.json["draftlight"]["changes"][0]["asked"] == "Second-Toy"
        assert loaded(served) == "First Toy"
        assert "Second-Toy" not in {each["id"] for each in served.ask("GET", "/v1/models").json["data"]}


@pytest.mark.sweep
def test_a_worker_that_dies_comes_back_with_the_model_that_was_loaded_last(served: Served) -> None:
    expected = text(ask(served, "Second-Toy"))
    pid = served.pid
    served.on_loop(lambda: _kill(served))
    served.until(lambda: served.pid not in (0, pid) and served.answers.gate.state == "ready", 60)
    assert loaded(served) == "Second Toy"
    assert text(ask(served, "")) == expected


async def _kill(served: Served) -> None:
    client = served.worker._client
    assert client is not None
    client.kill()
