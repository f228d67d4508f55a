"""Servers at an address: headers, refusals, redirections, bounds, and that no call is sent twice."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from core.tools.messages import CallResult, ServerEntry, ToolsError
from tests.core.tools.serving import Serving, outcome, until


class Handler(BaseHTTPRequestHandler):
    """A server of the older protocol, one JSON answer for a request. `server.tricks` says what else it
    does."""

    protocol_version = "HTTP/1.1"
    server: Remote

    def do_GET(self) -> None:
        self.answer(405)

    def do_DELETE(self) -> None:
        self.answer(200)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        message = json.loads(body)
        method, number = message.get("method"), message.get("id")
        trick = self.server.tricks.get(method, "")
        self.server.seen.append((method, self.headers.get("authorization", "")))
        if self.server.tricks.get("key") not in (None, self.headers.get("authorization")):
            self.answer(401)
        elif trick == "redirect":
            self.answer(307, {"location": self.server.tricks["to"]})
        elif trick == "close":
            self.close_connection = True
        elif trick in ("endless", "endless lines"):
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.end_headers()
            piece = b" " * ((1 << 16) - 1) + (b"\n" if trick == "endless lines" else b" ")
            try:
                while self.server.sent_bytes < 1 << 30:
                    self.wfile.write(piece)
                    self.server.sent_bytes += len(piece)
            except OSError:
                pass
            self.close_connection = True
        elif number is None:
            self.answer(202)
        else:
            result = self.result(method, message.get("params") or {})
            error = {"code": -32601, "message": "Method not found"}
            outcome = {"error": error} if result is None else {"result": result}
            data = json.dumps({"jsonrpc": "2.0", "id": number, **outcome}).encode()
            headers = {"mcp-session-id": "s"} if method == "initialize" else {}
            if trick == "gzip":  # the answer itself is right
                headers, data = {"content-encoding": "gzip"}, gzip.compress(data)
            self.answer(200, headers, data)

    def result(self, method: str, given: dict[str, Any]) -> dict[str, Any] | None:
        match method:
            case "initialize":
                information = {"name": "remote", "version": "1"}
                version = given["protocolVersion"]
                return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": information}
            case "tools/list":
                return {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
            case "tools/call":
                return {"content": [{"type": "text", "text": json.dumps(given["arguments"])}]}
        return None

    def answer(self, status: int, headers: dict[str, str] | None = None, data: bytes = b"") -> None:
        self.send_response(status)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        pass


class Remote(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.tricks: dict[str, str] = {}
        self.seen: list[tuple[str, str]] = []
        self.sent_bytes = 0
        self.url = f"http://127.0.0.1:{self.server_port}/mcp"

    def handle_error(self, *args: object) -> None:
        pass

    @property
    def calls(self) -> int:
        return sum(method == "tools/call" for method, _ in self.seen)


@pytest.fixture(scope="module")
def serving() -> Iterator[Serving]:
    held = Serving()
    yield held
    held.close()


@pytest.fixture
def remote(serving: Serving) -> Iterator[Remote]:
    with Remote() as server:
        thread = threading.Thread(target=lambda: server.serve_forever(0.01))
        thread.start()
        yield server
        serving.run(serving.client.stop("remote"))
        server.shutdown()
        thread.join()


def start(serving: Serving, remote: Remote, **headers: str) -> Any:
    return serving.run(serving.client.start(ServerEntry("remote", url=remote.url, headers=headers)))


def call(serving: Serving) -> Any:
    return serving.run(outcome(serving.client.call("remote", "echo", '{"a": null}', timeout_s=20)))


def test_a_server_at_an_address_is_called_with_its_headers(serving: Serving, remote: Remote) -> None:
    remote.tricks["key"] = "Bearer 1234"
    state = start(serving, remote, Authorization="Bearer 1234")
    assert (state.phase, state.pid) == ("ready", 0), state
    result = call(serving)
    assert isinstance(result, CallResult), result
    assert json.loads(result.text) == {"a": None}
    assert {header for _, header in remote.seen} == {"Bearer 1234"}


def test_a_missing_key_is_told(serving: Serving, remote: Remote) -> None:
    remote.tricks["key"] = "Bearer 1234"
    state = start(serving, remote)
    assert state.phase == "failed"
    assert "401 Unauthorized" in state.problem
    assert "Authorization" in state.hint


def test_a_redirection_is_not_followed(serving: Serving, remote: Remote) -> None:
    with Remote() as other:
        thread = threading.Thread(target=lambda: other.serve_forever(0.01))
        thread.start()
        remote.tricks |= {"to": other.url, "tools/call": "redirect"}
        assert start(serving, remote, Authorization="secret").phase == "ready"
        answered = call(serving)
        remote.tricks["to"] = remote.url
        again = call(serving)
        calls = remote.calls
        remote.tricks |= {"initialize": "redirect", "server/discover": "redirect"}
        state = serving.run(serving.client.restart("remote"))
        other.shutdown()
        thread.join()
        assert not isinstance(answered, CallResult) or answered.is_error
        assert state.phase == "failed"
        assert "307" in state.problem
        assert other.seen == []
        assert not isinstance(again, CallResult) or again.is_error
        assert calls == 2


@pytest.mark.parametrize("trick", ["close", "gzip", "endless", "endless lines"])
def test_a_call_whose_answer_is_lost_is_not_sent_again(serving: Serving, remote: Remote, trick: str) -> None:
    assert start(serving, remote).phase == "ready"
    process = serving.client.pid
    remote.tricks["tools/call"] = trick
    error = call(serving)
    assert isinstance(error, ToolsError) or error.is_error
    assert getattr(error, "ran", None) is None
    assert serving.client.pid == process  # its memory was not exhausted
    assert remote.sent_bytes < (28 << 20 if trick == "endless" else 64 << 20)  # with what sockets hold
    remote.tricks.clear()
    serving.run(until(lambda: serving.client.states["remote"].phase == "ready"))
    assert remote.calls == 1
    assert isinstance(call(serving), CallResult)
    assert remote.calls == 2


@pytest.mark.sweep
def test_an_address_that_nobody_listens_at_is_told(serving: Serving, remote: Remote) -> None:
    remote.server_close()
    state = start(serving, remote)
    assert state.phase == "failed"
    assert state.problem
    assert state.hint
