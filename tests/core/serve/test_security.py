"""Who is let in, and in which order it is looked at."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.serve.answering import Serving
from core.serve.security import AccessPolicy, BadNameError, allowed_host, allowed_origin, host_name
from core.serve.server import LocalServer, NoKeyError
from tests.core.serve.served import CHAT, Reply, Served, question, serving

KEY = "dl-a-key-that-nobody-guesses"
ORIGIN = "http://localhost:3000"


@pytest.fixture(scope="module")
def locked(toy_folder: Path) -> Iterator[Served]:
    """With a key, an origin and a small limit."""
    with serving(toy_folder, doors=AccessPolicy(origins=(ORIGIN,), key=KEY, most_bytes=2000)) as found:
        yield found


def asked(locked: Served, method: str = "POST", path: str = CHAT, body: object = None, **named: str) -> Reply:
    headers = {name.replace("_", "-"): value for name, value in named.items()}
    good = {"authorization": f"Bearer {KEY}"}
    sent = question() if body is None and method == "POST" else body
    return locked.ask(method, path, sent, {**good, **headers})


def test_the_right_request_is_answered(locked: Served) -> None:
    assert asked(locked).status == 200
    assert asked(locked, authorization="", x_api_key=KEY).status == 200
    assert asked(locked, authorization="bearer  " + KEY).status == 200


@pytest.mark.parametrize("path", ["/health", "/v1/models", "/nothing"])
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8317", "127.0.0.1.evil.example", "", "localhost:x"]
)
def test_a_foreign_host_is_refused_on_a_get_too(locked: Served, path: str, host: str) -> None:
    reply = asked(locked, "GET", path, host=host)
    assert (reply.status, reply.error["code"]) == (403, "host_not_allowed")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:80", "localhost."])
def test_this_machines_own_names_are_let_in(locked: Served, host: str) -> None:
    assert asked(locked, "GET", "/health", host=host).status == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", ORIGIN + "0", "http://127.0.0.1"])
def test_an_origin_that_is_not_listed_is_refused(locked: Served, origin: str) -> None:
    for method, path in (("POST", CHAT), ("GET", "/v1/models"), ("OPTIONS", CHAT)):
        reply = asked(locked, method, path, origin=origin)
        assert (reply.status, reply.error["code"]) == (403, "origin_not_allowed")
        assert "access-control-allow-origin" not in reply.headers


def test_a_listed_origin_gets_what_a_browser_needs(locked: Served) -> None:
    before = locked.ask("OPTIONS", CHAT, headers={"origin": ORIGIN, "access-control-request-method": "POST"})
    assert before.status == 204
    wanted = {"access-control-request-headers": "authorization,x-stainless-os", "origin": ORIGIN}
    named = locked.ask("OPTIONS", CHAT, headers=wanted).headers["access-control-allow-headers"]
    assert named == "authorization,x-stainless-os"
    assert before.headers["access-control-allow-origin"] == ORIGIN
    assert "authorization" in before.headers["access-control-allow-headers"]
    reply = asked(locked, origin=ORIGIN)
    assert (reply.status, reply.headers["access-control-allow-origin"]) == (200, ORIGIN)
    assert reply.headers["vary"] == "Origin"


@pytest.mark.parametrize(
    "given", ["", "Bearer", "Bearer ", "Bearer x", f"Basic {KEY}", f"Bearer {KEY}x", "Bearer é"]
)
def test_no_key_or_another_is_refused_everywhere(locked: Served, given: str) -> None:
    for method, path in (("POST", CHAT), ("GET", "/v1/models"), ("GET", "/health"), ("GET", "/nothing")):
        reply = asked(locked, method, path, authorization=given)
        assert (reply.status, reply.error["code"]) == (401, "invalid_api_key")
        assert reply.headers["www-authenticate"] == "Bearer"
        assert KEY not in reply.body.decode()


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", "multipart/mixed"])
def test_what_a_form_can_send_is_refused(locked: Served, kind: str) -> None:
    reply = asked(locked, content_type=kind)
    assert (reply.status, reply.error["code"]) == (415, "unsupported_content_type")
    assert asked(locked, content_type="Application/JSON; charset=utf-8").status == 200


def test_a_body_that_is_too_large_is_refused_whether_it_says_so_or_not(locked: Served) -> None:
    large = b'{"messages": "' + b"x" * 3000 + b'"}'
    reply = asked(locked, body=large)
    assert (reply.status, reply.error["code"]) == (413, "request_too_large")
    with locked.raw() as line:
        head = f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {KEY}\r\n"
        line.sendall(f"{head}content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n".encode())
        line.sendall(b"bb8\r\n" + b"x" * 3000 + b"\r\n")
        assert line.recv(100).startswith(b"HTTP/1.1 413 ")


def test_the_order_of_the_checks(locked: Served) -> None:
    """Of several faults the first in the order is told."""
    faults = [
        ("host", "evil.example", 403, "host_not_allowed"),
        ("origin", "https://evil.example", 403, "origin_not_allowed"),
        ("authorization", "Bearer x", 401, "invalid_api_key"),
        ("content-type", "text/plain", 415, "unsupported_content_type"),
        ("content-length", "5000", 413, "request_too_large"),
    ]
    good = {"authorization": f"Bearer {KEY}"}
    for first, second in itertools.combinations(faults, 2):
        headers = {**good, first[0]: first[1], second[0]: second[1]}
        reply = locked.ask("POST", CHAT, b"{}", headers)
        assert (reply.status, reply.error["code"]) == first[2:]


def test_nothing_was_generated_for_any_of_them(locked: Served) -> None:
    before = len(locked.records)
    asked(locked, authorization="Bearer x")
    asked(locked, host="evil.example")
    asked(locked, origin="https://evil.example")
    assert len(locked.records) == before


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("a:80", "a"),
        ("a", "a"),
        ("[::1]:80", "::1"),
        ("[::1]", "::1"),
        ("[::1", ""),
        ("[::1]x", ""),
        ("a:b", ""),
        ("", ""),
    ],
)
def test_host_headers(header: str, name: str) -> None:
    assert host_name(header) == name


def test_a_chosen_address_is_let_in_and_other_names_are_not() -> None:
    doors = AccessPolicy(host="192.168.1.7", hosts=("studio.local",), key="x" * 20)
    assert doors.knows("192.168.1.7")
    assert doors.knows("Studio.local")
    assert not doors.knows("192.168.1.8")
    everywhere = AccessPolicy(host="0.0.0.0", key="x" * 20)
    assert everywhere.knows("192.168.1.8")
    assert not everywhere.knows("evil.example")


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.7", "::"])
def test_an_address_that_others_reach_needs_a_key(served: Served, host: str) -> None:
    with pytest.raises(NoKeyError, match="API key is required"):
        LocalServer(served.answers, Serving(AccessPolicy(host=host)))
    LocalServer(served.answers, Serving(AccessPolicy(host=host, key="x" * 20)))


def test_a_refusal_names_the_flag(locked: Served) -> None:
    reply = asked(locked, host="studio.local:8317")
    assert "--allow-host" in reply.error["message"]
    assert "studio.local" in reply.error["message"]
    reply = asked(locked, origin="http://localhost:4000")
    assert "--allow-origin" in reply.error["message"]
    assert "http://localhost:4000" in reply.error["message"]


@pytest.mark.parametrize("name", ["host.docker.internal", "host.containers.internal", "[::1]"])
def test_containers_of_this_machine_are_let_in(locked: Served, name: str) -> None:
    assert asked(locked, host=f"{name}:{locked.port}").status == 200


@pytest.mark.parametrize(
    ("given", "origin"),
    [
        ("http://localhost:3000/", "http://localhost:3000"),
        ("HTTPS://Chat.Example", "https://chat.example"),
        ("http://[::1]:3000", "http://[::1]:3000"),
        ("chrome-extension://abcdef", "chrome-extension://abcdef"),
        ("app://obsidian.md", "app://obsidian.md"),
    ],
)
def test_origins_as_browsers_send_them(given: str, origin: str) -> None:
    assert allowed_origin(given) == origin


@pytest.mark.parametrize("given", ["*", "localhost:3000", "http://", "http://a/b", "", "null"])
def test_what_no_origin_is_is_refused(given: str) -> None:
    with pytest.raises(BadNameError):
        allowed_origin(given)


@pytest.mark.sweep
def test_names_of_this_machine() -> None:
    assert allowed_host("studio.local:8317") == "studio.local"
    for given in ("", "http://studio.local", "a b", "a/b"):
        with pytest.raises(BadNameError):
            allowed_host(given)
