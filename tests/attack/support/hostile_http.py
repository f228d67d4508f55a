"""Requests that nobody should send: bytes for a socket, and how they are sent. Seeded, without a network."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from msgspec import Struct

from tests.attack.support.sent_images import with_images

CHAT = "/v1/chat/completions"
# Stands for what a case calls itself, so that it is known whose a request is that comes late.
AGENT = "the-agent-of-this-case"
KEY = "dl-a-key-that-is-told-to-nobody"
_PATHS = (CHAT, "/v1/completions", "/v1/responses", "/v1/messages", "/v1/embeddings", "/v1/models", "/health")
_TYPES = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "application/jsonx")
_FIELDS = (
    "model", "messages", "stream", "stream_options", "max_tokens", "temperature", "top_p", "top_k", "min_p",
    "seed", "stop", "logit_bias", "n", "frequency_penalty", "presence_penalty", "repetition_penalty",
    "logprobs", "top_logprobs", "tools", "tool_choice", "response_format", "prediction", "drafter", "input",
    "specprefill", "specprefill_keep_pct", "settings", "draftlight", "no_such_field", "encoding_format",
    "dimensions",
)  # fmt: skip
# Parts of unknown fields that carry a part of the conversation.
_BEFORE = ("previous_", "additional_", "x-", "chat", "")
_CARRIERS = ("Thread", "_history", "_turns", "_transcript", "_dialogue", "_memories", "_documents")
_NAMES = (*_FIELDS, "role", "content", "type", "function", "name", "parameters", "json_schema", "schema", "")
_HOSTS = ("evil.example", "localhost.evil.example", "127.0.0.1.nip.example", "[::2]", "", "a" * 900)


class Hostile(Struct, frozen=True):
    """`parts` are sent one after the other; `then` is what the client does: `read` the answer, `hold` the
    line and send no more, `half` close it, or `drop` it. `may_answer`: a right answer is no fault.
    `must_answer`: anything else is one.
    """

    kind: str
    parts: tuple[bytes, ...]
    then: str = "read"
    may_answer: bool = False
    must_answer: bool = False


def hostile(chance: random.Random) -> Hostile:
    """One of them."""
    return chance.choice(_KINDS)(chance)


def head(
    length: int | None,
    *,
    path: str = CHAT,
    method: str = "POST",
    host: str = "localhost",
    key: str = KEY,
    kind: str = "application/json",
    more: str = "",
) -> bytes:
    """A request's head, right unless it is told otherwise."""
    lines = [
        f"{method} {path} HTTP/1.1",
        f"host: {host}",
        f"authorization: Bearer {key}",
        f"user-agent: {AGENT}",
    ]
    lines += [f"content-type: {kind}"] if kind else []
    lines += [f"content-length: {length}"] if length is not None else []
    return ("\r\n".join(lines) + f"\r\n{more}\r\n").encode("utf-8", "surrogateescape")


def question(**fields: Any) -> dict[str, Any]:
    """A right one."""
    return {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 8, **fields}


def value(chance: random.Random, depth: int = 0) -> Any:
    """Any JSON."""
    plain: tuple[Callable[[], Any], ...] = (
        lambda: None,
        lambda: chance.choice((True, False)),
        lambda: chance.choice((-1, 0, 1, 2**31, 2**63, -(2**63), 10**30)),
        lambda: chance.choice((0.5, -1e300, 1e-300, 1e308)),
        lambda: chance.choice(("", "x", "auto", "json_object", "\0", "\ud800", "💥" * 50, "x" * 5000)),
        lambda: {"type": chance.choice(("text", "function", "json_schema", "content", "image_url"))},
    )
    if depth > 3 or chance.random() < 0.6:
        return chance.choice(plain)()
    if chance.random() < 0.5:
        return [value(chance, depth + 1) for _ in range(chance.randint(0, 4))]
    return {chance.choice(_NAMES): value(chance, depth + 1) for _ in range(chance.randint(0, 4))}


def _bad_json(chance: random.Random) -> Hostile:
    body = bytearray(json.dumps(question(stream=chance.random() < 0.5)).encode())
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(body))
        what = chance.random()
        if what < 0.4:
            body[at] = chance.randrange(256)
        elif what < 0.7:
            body = body[:at] or bytearray(b"{")
        else:
            body[at:at] = chance.choice((b"[" * 50_000, b"\0", b"\xff\xfe", b'"', b"}}", b"//x", b"NaN"))
    return Hostile("bad JSON", (head(len(body)), bytes(body)), may_answer=True)


def _wrong_types(chance: random.Random) -> Hostile:
    fields = {chance.choice(_FIELDS): value(chance) for _ in range(chance.randint(1, 4))}
    body = json.dumps({**question(), **fields}).encode()
    path = chance.choice((CHAT, CHAT, "/v1/completions", "/v1/responses", "/v1/messages"))
    return Hostile("wrong types", (head(len(body), path=path), body), may_answer=True)


def _carrying(chance: random.Random) -> Hostile:
    name = chance.choice(_BEFORE) + chance.choice(_CARRIERS)
    said = {"role": "user", "content": "as before"}
    given = chance.choice(("an earlier one", [said], {"id": "t", "items": [{"parts": [said]}]}))
    body = json.dumps({**question(stream=chance.random() < 0.5), name: given}).encode()
    path = chance.choice((CHAT, "/v1/messages"))
    return Hostile("unknown carrier", (head(len(body), path=path), body))


def _huge(chance: random.Random) -> Hostile:
    what = chance.randrange(4)
    if what == 0:
        return Hostile("huge body", (head(chance.choice((10**8, 10**15, 10**40))), b"x" * 100))
    if what == 1:
        body = json.dumps(question(messages=[{"role": "user", "content": "y" * 3_000_000}])).encode()
        return Hostile("huge body", (head(len(body)), body))
    more = "transfer-encoding: chunked\r\n"
    if what == 2:
        pieces = tuple(b"10000\r\n" + b"z" * 65536 + b"\r\n" for _ in range(40))
        return Hostile("huge body", (head(None, more=more), *pieces, b"0\r\n\r\n"))
    odd = chance.choice((b"FFFFFFFFFFFFFFFFFFFF\r\n", b"-5\r\n", b"zz\r\n", b"5;" + b"e" * 70_000 + b"\r\n"))
    return Hostile("huge body", (head(None, more=more), odd, b"hello"))


def _slow(chance: random.Random) -> Hostile:
    whole = head(500) + b"{" * 499
    cut = chance.randrange(len(whole) - 1)
    pieces = sorted(chance.randrange(cut + 1) for _ in range(3))
    edges = [0, *pieces, cut]
    return Hostile("slow", tuple(whole[a:b] for a, b in pairwise(edges) if a < b), "hold")


def _half_closed(chance: random.Random) -> Hostile:
    body = json.dumps(question(stream=chance.random() < 0.5, max_tokens=400)).encode()
    whole = head(len(body)) + body
    cut = len(whole) if chance.random() < 0.6 else chance.randrange(len(whole))
    return Hostile("half closed", (whole[:cut],), chance.choice(("half", "drop")), may_answer=True)


def _head_flood(chance: random.Random) -> Hostile:
    more = chance.choice(
        (
            "x: y\r\n" * chance.randint(200, 20_000),
            f"x: {'y' * chance.randint(70_000, 500_000)}\r\n",
            f"{'x' * 70_000}: y\r\n",
            f"cookie: {'a=b; ' * 20_000}\r\n",
        )
    )
    return Hostile("header flood", (head(0, path="/health", method="GET", more=more),))


def _bad_head(chance: random.Random) -> Hostile:
    line = chance.choice(
        (
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"GET /health\r\n\r\n",
            b"GET /health HTTP/9.9\r\nhost: localhost\r\n\r\n",
            head(5, more="content-length: 6\r\n") + b"hello!",
            head(5, more="transfer-encoding: chunked\r\n") + b"0\r\n\r\nGET /health HTTP/1.1\r\n\r\n",
            head(0, more="transfer-encoding: gzip, chunked\r\n"),
            head(0, more="x : y\r\n"),
            head(0, more=" folded\r\n"),
            head(0, more="x: a\0b\r\n"),
            head(0, host="localhost\r\nhost: localhost"),
            head(-5),
            b"\r\n" * 50_000,
            bytes(chance.randrange(256) for _ in range(chance.randint(1, 3000))) + b"\r\n\r\n",
        )
    )
    return Hostile("bad head", (line,), "half")


def _foreign(chance: random.Random) -> Hostile:
    host = chance.choice(_HOSTS)
    body = json.dumps(question()).encode()
    if chance.random() < 0.5:
        path, method = chance.choice(_PATHS), chance.choice(("GET", "POST", "OPTIONS"))
        return Hostile("foreign host", (head(len(body), host=host, path=path, method=method), body))
    origin = chance.choice(
        ("https://evil.example", "null", "http://localhost", "file://", "http://127.0.0.1:1")
    )
    more = f"origin: {origin}\r\naccess-control-request-method: POST\r\n"
    method = chance.choice(("GET", "POST", "OPTIONS"))
    return Hostile("foreign origin", (head(len(body), method=method, more=more), body))


def _wrong_key(chance: random.Random) -> Hostile:
    key = chance.choice(("", KEY[:-1], KEY + "x", KEY.upper(), "x" * 20_000, "ü", "Bearer " + KEY, "sk-1234"))
    body = json.dumps(question()).encode()
    path = chance.choice(_PATHS)
    method = "POST" if path.startswith("/v1/") and path != "/v1/models" else "GET"
    return Hostile("wrong key", (head(len(body), key=key, path=path, method=method), body))


def _wrong_place(chance: random.Random) -> Hostile:
    path = chance.choice(
        (
            "/../../etc/passwd",
            "/v1/models/..%2f..%2fetc%2fpasswd",
            "/v1/%00",
            "//evil.example/v1/models",
            "/v1/chat/completions/",
            "/v1/requests/" + "x" * 5000 + "/cancel",
            "http://evil.example/v1/models",
            "/%ff%fe",
            "/docs",
            "/nothing?a=" + "b" * 9000,
        )
    )
    method = chance.choice(("GET", "POST", "PUT", "DELETE", "TRACE", "PATCH", "BREW"))
    return Hostile("wrong place", (head(2, path=path, method=method), b"{}"))


def _wrong_type(chance: random.Random) -> Hostile:
    body = json.dumps(question()).encode()
    return Hostile("wrong content type", (head(len(body), kind=chance.choice(_TYPES)), body))


def _images(chance: random.Random) -> Hostile:
    path, fields, is_right = with_images(chance)
    body = json.dumps({**fields, "stream": chance.random() < 0.5}).encode()
    then = chance.choice(("read", "read", "read", "drop"))
    parts, must_answer = (head(len(body), path=path), body), is_right and then == "read"
    return Hostile("images", parts, then, may_answer=is_right, must_answer=must_answer)


_KINDS: tuple[Callable[[random.Random], Hostile], ...] = (
    _bad_json,
    _wrong_types,
    _carrying,
    _wrong_types,
    _huge,
    _slow,
    _half_closed,
    _head_flood,
    _bad_head,
    _foreign,
    _wrong_key,
    _wrong_place,
    _wrong_type,
    _images,
    _images,
)
