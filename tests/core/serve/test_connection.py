"""What a client may leave undone has an end, and what is slow but honest has none."""

from __future__ import annotations

import gzip
import json
import socket
import time

import pytest

from core.serve.security import AccessPolicy
from tests.core.serve.served import CHAT, Served, question, read_reply, send_request

HEAD = f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"


def is_closed(line: socket.socket, limit_s: float = 60.0) -> bool:
    line.settimeout(limit_s)
    try:
        while line.recv(65536):
            pass
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False
    return True


def sent(body: bytes) -> bytes:
    return f"{HEAD}content-length: {len(body)}\r\n\r\n".encode() + body


@pytest.mark.parametrize("part", ["", "GET /hea", HEAD, HEAD + "x-slow: "])
def test_a_head_that_does_not_come_ends_the_line(
    served: Served, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    monkeypatch.setattr("core.serve.server.HEAD_S", 0.4)
    with served.raw() as line:
        for letter in part.encode():
            line.sendall(bytes([letter]))
        assert is_closed(line)


def test_a_second_head_has_the_same_time(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.serve.server.HEAD_S", 0.4)
    with served.raw() as line:
        line.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
        reply = b""
        while not reply.endswith(b'{"status":"ok"}'):
            reply += line.recv(9999)
        time.sleep(0.6)  # an idle line is kept longer
        line.sendall(b"GET /health HTTP/1.1\r\n")
        assert is_closed(line, 5)


def test_a_body_that_does_not_come_is_told(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.serve.http.BODY_S", 0.4)
    with served.raw() as line:
        line.sendall(sent(b'{"messages": []}' + b" " * 50)[:-50])
        assert line.recv(9999).startswith(b"HTTP/1.1 408 ")


def test_a_body_in_pieces_and_a_long_answer_are_no_fault(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.serve.server.HEAD_S", 0.4)
    body = json.dumps(question("in pieces", max_tokens=400, drafter="off", logit_bias={"0": -100})).encode()
    with served.raw() as line:
        whole = sent(body)
        for at in range(0, len(whole), 40):
            line.sendall(whole[at : at + 40])
            time.sleep(0.05 if at > len(whole) - 200 else 0)
        line.settimeout(60)
        reply = line.recv(9999)
        assert reply.startswith(b"HTTP/1.1 200 ")


def test_a_client_that_does_not_read_is_let_go(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.serve.server.STUCK_S", 0.4)
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    line.connect(("127.0.0.1", served.port))
    long = {"max_tokens": 480, "draftlight": {"tokens": True}, "logit_bias": {"0": -100}}
    with line:
        line.sendall(sent(json.dumps(question("stuck", stream=True, **long)).encode()))
        served.until(lambda: served.records[-1].is_over)
        # All of it may have gone into the system's buffers; then there was nothing to wait for.
        served.until(lambda: served.answers.gate.open == 0)
    assert served.chat().status == 200


def test_a_second_request_before_the_answer_ends_the_line_and_the_answer(served: Served) -> None:
    body = json.dumps(question("pipelined", max_tokens=480, drafter="off")).encode()
    with served.raw() as line:
        line.sendall(sent(body))
        served.until(lambda: served.records[-1].state == "writing")
        line.sendall(sent(body))
        assert is_closed(line)
    served.until(lambda: served.records[-1].is_over)
    assert served.answers.gate.open == 0


def test_so_many_lines_and_no_more(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.serve.server.MOST_CONNECTIONS", 5)
    lines = [served.raw() for _ in range(9)]
    try:
        assert sum(is_closed(line, 0.3) for line in lines) == 4
    finally:
        for line in lines:
            line.close()
    served.until(lambda: served.ask("GET", "/health").status == 200)


@pytest.mark.parametrize(
    "line",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /health\r\n\r\n",
        b"GET /health HTTP/1.1\r\n\r\n",
        b"GET /health HTTP/1.1\r\nhost: a\r\nhost: localhost\r\n\r\n",
        b"GET /health HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n",
        b"GET /health HTTP/1.1\r\nhost: localhost\r\nx: " + b"y" * 100_000 + b"\r\n\r\n",
        b"GET /health HTTP/1.1\r\nhost: localhost\r\n" + b"x: y\r\n" * 20_000 + b"\r\n",
        b"GE\0T /health HTTP/1.1\r\nhost: localhost\r\n\r\n",
    ],
)
def test_what_is_no_http_is_refused(served: Served, line: bytes) -> None:
    with served.raw() as raw:
        raw.sendall(line)
        raw.settimeout(5)
        try:
            reply = raw.recv(9999)
        except ConnectionResetError:
            reply = b""
        assert not reply or reply.startswith(b"HTTP/1.1 4")
    assert served.ask("GET", "/health").status == 200


def test_a_web_socket_is_not_served(served: Served) -> None:
    headers = {
        "connection": "upgrade",
        "upgrade": "websocket",
        "sec-websocket-key": "x",
        "sec-websocket-version": "13",
    }
    assert served.ask("GET", CHAT, headers=headers).status == 405


@pytest.mark.parametrize(
    "path",
    ["//v1/chat/completions", "/v1/chat/completions/", "/v1//chat/completions", "/v1/v1/chat/completions//"],
)
def test_slashes_too_many_are_none(served: Served, path: str) -> None:
    assert served.ask("POST", path, question(max_tokens=1)).status == 200


def test_what_is_not_there_is_named(served: Served) -> None:
    reply = served.ask("POST", "/v1/nothing", {})
    assert (reply.status, reply.error["code"]) == (404, "not_found")
    assert "/v1/nothing" in reply.error["message"]


def test_one_line_carries_many_requests(served: Served) -> None:
    line = served.line()
    try:
        for stream in (False, True, False):
            send_request(line, "POST", CHAT, question(stream=stream))
            assert read_reply(line).status == 200
        kept = line.sock
        send_request(line, "GET", "/v1/models")
        assert read_reply(line).status == 200
        assert line.sock is kept is not None
    finally:
        line.close()


def test_head_and_options_are_answered(served: Served) -> None:
    for path in ("/", "/health", "/v1/models"):
        reply = served.ask("HEAD", path)
        assert (reply.status, reply.body) == (200, b"")
    reply = served.ask("OPTIONS", CHAT)
    assert (reply.status, reply.headers["allow"]) == (204, "POST")
    assert served.ask("OPTIONS", "/nothing").status == 404


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_compressed_bodies_are_refused(served: Served, encoding: str) -> None:
    body = json.dumps(question(max_tokens=1)).encode()
    assert served.ask("POST", CHAT, body, {"content-encoding": "identity"}).status == 200
    reply = served.ask("POST", CHAT, gzip.compress(body), {"content-encoding": encoding})
    assert (reply.status, reply.error["code"]) == (415, "unsupported_content_encoding")


@pytest.mark.parametrize(
    ("path", "more", "status"),
    [
        (CHAT, "", 413),
        ("/v1/messages", "", 413),
        ("/nothing", "", 404),
        (CHAT, "content-encoding: br\r\n", 415),
    ],
)
def test_a_refused_large_body_is_read_first(served: Served, path: str, more: str, status: int) -> None:
    """A client that writes its whole body before it reads sees the error, not a reset."""
    size = AccessPolicy().most_bytes + (2**20 if status == 413 else 0)
    head = f"{HEAD.replace(CHAT, path)}{more}content-length: {size}\r\n\r\n"
    with served.raw() as line:
        line.settimeout(60)
        line.sendall(head.encode())
        for _ in range(size // 2**16):
            line.sendall(b" " * 2**16)
        time.sleep(0.2)
        line.sendall(b" " * (size % 2**16))
        assert line.recv(9999).startswith(f"HTTP/1.1 {status} ".encode())


def test_a_refused_body_that_does_not_come_is_not_waited_for(served: Served) -> None:
    with served.raw() as line:
        line.settimeout(60)
        line.sendall(f"{HEAD.replace(CHAT, '/nothing')}content-length: 9000000\r\n\r\n{{".encode())
        assert line.recv(9999).startswith(b"HTTP/1.1 404 ")
