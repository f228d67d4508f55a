"""A real server with a real worker, on a loop in a thread of its own, and a plain client for it."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from core.events import Generate
from core.serve.answering import Serving
from core.serve.own_worker import OwnWorker
from core.serve.queue import Answers
from core.serve.security import AccessPolicy
from core.serve.served_requests import ServedRequest, ServedRequests
from core.serve.server import LocalServer
from core.settings import Settings, assign_all

T = TypeVar("T")
CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
RESPONSES, MESSAGES = "/v1/responses", "/v1/messages"
COUNT = f"{MESSAGES}/count_tokens"
_LIMIT_S = 180.0  # of a machine that does much else


class Reply(Struct):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        return self.json["error"]  # type: ignore[no-any-return]

    @property
    def comments(self) -> list[str]:
        return [line[2:] for line in self.body.decode().split("\n") if line.startswith(": ")]

    @property
    def data(self) -> list[str]:
        """What each event of a stream carries."""
        return [line[6:] for line in self.body.decode().split("\n") if line.startswith("data: ")]

    @property
    def chunks(self) -> list[Any]:
        """The events of a stream that ended as it should."""
        assert self.data[-1] == "[DONE]"
        return [json.loads(one) for one in self.data[:-1]]

    @property
    def text(self) -> str:
        choices = [choice for chunk in self.chunks for choice in chunk["choices"]]
        return "".join(choice["delta"].get("content") or "" for choice in choices)


class Served:
    """`answers` and `worker` belong to the loop: `on_loop` does something there."""

    def __init__(self, loop: asyncio.AbstractEventLoop, server: LocalServer, answers: Answers) -> None:
        self.loop = loop
        self.server = server
        self.answers = answers
        self.worker: OwnWorker
        self.port = int(server.address.rpartition(":")[2])

    def on_loop(self, work: Callable[[], Awaitable[T]]) -> T:
        async def here() -> T:
            return await work()

        return asyncio.run_coroutine_threadsafe(here(), self.loop).result(_LIMIT_S)

    def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Reply:
        """`body` is sent as JSON, unless it is bytes."""
        line = self.line()
        try:
            send_request(line, method, path, body, headers)
            return read_reply(line)
        finally:
            line.close()

    def chat(self, text: str = "hello", **fields: Any) -> Reply:
        return self.ask("POST", CHAT, question(text, **fields))

    def line(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=_LIMIT_S)

    def raw(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=_LIMIT_S)

    def asked(self, reply: Reply) -> Generate:
        """The command that became of a request."""
        assert reply.status == 200, reply.body
        asked = self.answers.requests.asked(reply.json["id"])
        assert asked is not None
        return asked

    @property
    def pid(self) -> int:
        """The worker's process."""
        return self.answers.gate.worker.pid or 0  # type: ignore[attr-defined, no-any-return]

    @property
    def records(self) -> tuple[ServedRequest, ...]:
        return self.answers.requests.all

    def until(self, true: Callable[[], bool], limit_s: float = 60.0) -> None:
        """Wait until it is so."""
        end_s = time.monotonic() + limit_s
        while not true():
            assert time.monotonic() < end_s, f"not within {limit_s:g} s"
            time.sleep(0.01)


def user(content: Any = "hi") -> dict[str, Any]:
    return {"role": "user", "content": content}


def message(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A short request to chat completions or messages."""
    return {"max_tokens": 2, "messages": messages or (user(),), **fields}


def response(*items: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"max_output_tokens": 2, "input": list(items) or "hi", **fields}


def question(text: str = "hello", **fields: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], "max_tokens": 12, **fields}


def send_request(
    line: http.client.HTTPConnection, method: str, path: str, body: Any = None, headers: Any = None
) -> None:
    encoded = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    kind = {"content-type": "application/json"} if method == "POST" else {}
    line.request(method, path, encoded, {**kind, **(headers or {})})


def read_reply(line: http.client.HTTPConnection) -> Reply:
    reply = line.getresponse()
    return Reply(reply.status, {name.lower(): value for name, value in reply.headers.items()}, reply.read())


def settings(**values: Any) -> Settings:
    """Groups and fields joined by two underscores."""
    usual = {"prefill.mode": "off", "tables.learn": False, "ngram_simple.n_min": 1}
    said = {name.replace("__", "."): value for name, value in values.items()}
    return assign_all(Settings(), (usual | said).items())


@contextmanager
def serving(
    model: Path, *, waiting: int = 16, doors: AccessPolicy | None = None, ready: bool = True, **options: Any
) -> Iterator[Served]:
    """Serve `model` at a port that was free. Everything is gone at the end, tasks included."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="server")
    thread.start()

    async def begin() -> Served:
        worker = OwnWorker(str(model), lambda told: None)
        answers = Answers(worker.gate, ServedRequests(500, whole=True), waiting)
        base = settings()
        chosen = Serving(doors or AccessPolicy(), 0, base=lambda: base)
        server = LocalServer(answers, replace(chosen, **options))
        await server.start()
        worker.start()
        served = Served(loop, server, answers)
        served.worker = worker
        return served

    async def end(served: Served) -> list[str]:
        await served.server.stop()
        await served.worker.stop()
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        return [str(task) for task in left]

    try:
        served = asyncio.run_coroutine_threadsafe(begin(), loop).result(_LIMIT_S)
        try:
            if ready:
                served.until(lambda: served.answers.gate.state == "ready", 180)
            yield served
        finally:
            left = asyncio.run_coroutine_threadsafe(end(served), loop).result(_LIMIT_S)
            assert not left
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
