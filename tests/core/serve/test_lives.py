"""Clients that go away, a queue that is full, a worker that dies, a server that ends."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
from pathlib import Path

import pytest

from core.errors import RequestError, WorkerError
from core.events import LoadProgress, encode, failure
from core.serve.answering import Serving
from core.serve.own_worker import OwnWorker
from core.serve.security import AccessPolicy
from core.serve.server import AddressError, LocalServer
from core.worker import client
from tests.core.serve.served import CHAT, Reply, Served, question, read_reply, send_request, serving

# A toy model's longest answer takes a second or more.
LONG = {"max_tokens": 480, "drafter": "off"}


class Asking:
    """A request that was sent and whose answer is not read yet."""

    def __init__(self, served: Served, stream: bool, text: str = "hello", **fields: object) -> None:
        self._line = served.line()
        send_request(self._line, "POST", CHAT, question(text, stream=stream, **fields))

    def vanish(self) -> None:
        self._line.sock.shutdown(socket.SHUT_RDWR)
        self._line.close()

    def reply(self) -> Reply:
        try:
            return read_reply(self._line)
        finally:
            self._line.close()


def newest_is(served: Served, *states: str) -> bool:
    return bool(served.records) and served.records[-1].state in states


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_goes_away_cancels(served: Served, stream: bool) -> None:
    line = Asking(served, stream, f"who goes {stream}", **LONG)
    served.until(lambda: newest_is(served, "writing") and served.records[-1].tokens > 3)
    line.vanish()
    at = served.records[-1].tokens
    served.until(lambda: newest_is(served, "cancelled"))
    assert served.records[-1].tokens < at + 200
    assert served.answers.gate.open == 0
    assert not served.answers.sent


def test_a_client_that_goes_away_while_its_prompt_is_read_cancels(served: Served) -> None:
    line = Asking(served, True, "y" * 470, settings={"prefill.chunk_tokens": 64}, max_tokens=20)
    served.until(lambda: newest_is(served, "reading"))
    line.vanish()
    served.until(lambda: newest_is(served, "cancelled", "finished"))
    assert not served.answers.sent


def test_a_client_that_goes_away_while_it_waits_is_never_asked(served: Served) -> None:
    first = Asking(served, True, "first in line", **LONG)
    served.until(lambda: newest_is(served, "writing"))
    second = Asking(served, True, "second in line", **LONG)
    served.until(lambda: len(served.answers.sent) == 2)
    served.until(lambda: served.records[-1].position == 1)
    waiting = served.records[-1]
    assert waiting.state == "waiting"
    second.vanish()
    served.until(lambda: served.answers.requests.of(waiting.id).state == "cancelled")  # type: ignore[union-attr]
    assert served.answers.requests.events(waiting.id) == ()
    assert len(served.answers.sent) == 1
    assert first.reply().chunks


def test_requests_are_answered_in_the_order_they_came(served: Served) -> None:
    replies: list[tuple[int, Reply]] = []

    def ask(number: int) -> None:
        replies.append((number, served.chat(f"number {number}", max_tokens=40, stream=True)))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for number, thread in enumerate(threads):
        thread.start()
        served.until(lambda text=f"number {number}": text in asked_texts(served))  # type: ignore[misc]
    for thread in threads:
        thread.join()
    assert [number for number, _ in replies] == [0, 1, 2, 3]
    assert all(reply.chunks for _, reply in replies)


def asked_texts(served: Served) -> list[str]:
    found = [served.answers.requests.asked(record.id) for record in served.records]
    return [generate.messages[-1].content for generate in found if generate is not None]


def test_beyond_the_queue_others_are_told_to_come_back(toy_folder: Path) -> None:
    with serving(toy_folder, waiting=1) as served:
        first = Asking(served, True, "one", **LONG)
        served.until(lambda: newest_is(served, "writing"))
        second = Asking(served, False, "two", max_tokens=2)
        served.until(lambda: len(served.answers.sent) == 2)
        reply = served.chat("three")
        assert (reply.status, reply.error["code"]) == (503, "queue_full")
        # Nothing has ended yet, so nobody knows how long an answer takes.
        assert 1 <= int(reply.headers["retry-after"]) <= 10
        assert len(served.records) == 2
        first.vanish()
        assert second.reply().status == 200
        assert served.chat("three").status == 200


def test_a_worker_that_dies_is_told_and_the_next_request_works(toy_folder: Path) -> None:
    with serving(toy_folder) as served:
        before = served.chat("the same").json["choices"][0]["message"]["content"]
        stream = Asking(served, True, "who dies", **LONG)
        served.until(lambda: newest_is(served, "writing"))
        whole = Asking(served, False, "who waits", max_tokens=3)
        served.until(lambda: len(served.answers.sent) == 2)
        os.kill(served.pid, signal.SIGKILL)
        told = stream.reply()
        assert told.status == 200
        assert '"error"' in told.data[-1]
        assert "worker_failed" in told.data[-1]
        # Who only waited is answered by the next one.
        assert whole.reply().status == 200
        assert served.chat("the same").json["choices"][0]["message"]["content"] == before


def test_whoever_asks_while_the_model_is_loaded_waits(toy_folder: Path) -> None:
    with serving(toy_folder, ready=False) as served:
        assert served.ask("GET", "/health").status == 503
        assert served.ask("GET", "/v1/models").json["data"][0]["id"] == "toy"
        assert served.chat(stream=True).chunks


def test_a_model_that_cannot_be_loaded_is_told(tmp_path: Path) -> None:
    with serving(tmp_path / "nothing", ready=False) as served:
        reply = served.chat()
        assert (reply.status, reply.error["code"]) == (503, "no_model")
        assert served.ask("GET", "/health").json == {"status": "no model"}
        assert str(tmp_path) not in reply.body.decode()


def test_the_server_ends_in_the_middle_of_answers(toy_folder: Path) -> None:
    with serving(toy_folder) as served:
        lines = [Asking(served, stream, **LONG) for stream in (True, False, True)]
        served.until(lambda: len(served.answers.sent) == 3)
        served.until(lambda: any(record.state == "writing" for record in served.records))
        idle = served.raw()
        served.on_loop(served.server.stop)
        assert served.server.address == ""
        assert idle.recv(10) == b""
        idle.close()
        told = [line.reply() for line in lines]
        assert told[1].status == told[2].status == 503
        assert "server_ends" in told[0].data[-1]
        with pytest.raises(ConnectionRefusedError):
            served.raw()
        served.until(lambda: served.answers.gate.open == 0)


def test_a_port_that_is_taken_is_told(served: Served) -> None:
    second = LocalServer(served.answers, Serving(port=served.port))
    with pytest.raises(AddressError, match="another port"):
        served.on_loop(second.start)
    assert isinstance(AddressError("x"), RequestError)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "0.0.0.0", "::"])
def test_both_addresses_of_this_machine_are_served(served: Served, host: str) -> None:
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    server = LocalServer(served.answers, Serving(AccessPolicy(host, key="k"), 0))
    served.on_loop(server.start)
    for own in ("127.0.0.1", "::1"):
        with socket.create_connection((own, int(server.address.rpartition(":")[2])), timeout=60) as line:
            line.sendall(b"GET / HTTP/1.1\r\nhost: [::1]\r\nconnection: close\r\n\r\n")
            assert line.recv(20).startswith(b"HTTP/1.1 ")
    served.on_loop(server.stop)


def test_why_no_worker_can_start_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = failure(WorkerError("There is no BLAS."), command="start")
    line = encode(failed).decode().strip()
    monkeypatch.setattr(client, "worker_command", lambda: [sys.executable, "-c", f"print({line!r})"])
    told: list[object] = []

    async def live() -> None:
        worker = OwnWorker("model", told.append)
        worker.start()
        await asyncio.wait_for(worker.ended.wait(), 60)
        await worker.stop()

    asyncio.run(live())
    assert [each for each in told if not isinstance(each, LoadProgress)] == [failed]
