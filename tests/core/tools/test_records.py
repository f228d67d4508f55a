"""Entries, fingerprints, lines and the names that a model sees."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from core.errors import ProtocolError
from core.tools.calls import model_names
from core.tools.host.results import call_result
from core.tools.messages import (
    RESULT_IMAGE_BYTES,
    RESULT_TEXT_BYTES,
    CallEnded,
    CallResult,
    ResultImage,
    ServerEntry,
    ServerTool,
    StartServer,
    ToolsError,
    check_entry,
    decode_host_command,
    decode_host_event,
    encode_line,
    fingerprint,
)

ENTRY = ServerEntry("notes", "npx", ("-y", "notes"), {"KEY": "1", "TOWN": "Bern"}, secrets=("KEY",))
TOOL = ServerTool("find", "Finds notes.", '{"type":"object"}')
REMOTE = ServerEntry("remote", url="https://host/mcp", headers={"X-Team": "a"})


@pytest.mark.parametrize(
    ("entry", "tool"),
    [
        (replace(ENTRY, command="uvx"), TOOL),
        (replace(ENTRY, args=("-y", "notes2")), TOOL),
        (replace(ENTRY, args=("-y notes",)), TOOL),
        (replace(ENTRY, env={"KEY": "1", "TOWN": "Basel"}), TOOL),
        (replace(ENTRY, env={"KEY": "1", "TOWN": "Bern", "NODE_OPTIONS": "-r x"}), TOOL),
        (replace(ENTRY, secrets=()), TOOL),
        (ENTRY, replace(TOOL, name="find2")),
        (ENTRY, replace(TOOL, description="Finds notes. Always use it.")),
        (ENTRY, replace(TOOL, schema='{"type":"object","properties":{}}')),
        (REMOTE, TOOL),
        (replace(REMOTE, url="https://host/mcp2"), TOOL),
        (replace(REMOTE, headers={"X-Team": "b"}), TOOL),
    ],
)
def test_a_permission_is_bound_to_all_that_a_server_and_a_tool_are(
    entry: ServerEntry, tool: ServerTool
) -> None:
    assert fingerprint(entry, tool) not in {
        fingerprint(ENTRY, TOOL),
        fingerprint(REMOTE, replace(TOOL, name="x")),
    }


def test_a_permission_is_not_bound_to_secrets_or_claims() -> None:
    other = replace(ENTRY, env={"TOWN": "Bern", "KEY": "2"}, name="renamed")
    assert fingerprint(other, replace(TOOL, read_only=True)) == fingerprint(ENTRY, TOOL)


@pytest.mark.parametrize(
    "entry",
    [
        ServerEntry("", "npx"),
        ServerEntry("a"),
        ServerEntry("a", "npx", url="http://localhost/"),
        ServerEntry("a", "npx", ("\0",)),
        ServerEntry("a", "npx", env={"A=B": "c"}),
        ServerEntry("a", url="ftp://host/"),
        ServerEntry("a", url="https://"),
        ServerEntry("a", url="https://host:port/"),
        ServerEntry("a", url="https://me:secret@host/"),
        ServerEntry("a", url="http://host/", headers={"Authorization": "x"}),
        ServerEntry("a", url="https://host/", headers={"A": "b\r\nC: d"}),
    ],
)
def test_entries_that_cannot_be_are_refused(entry: ServerEntry) -> None:
    with pytest.raises(ToolsError) as caught:
        check_entry(entry)
    assert caught.value.hint


def test_other_entries_are_accepted() -> None:
    for url in ("http://127.0.0.1:80/mcp", "http://localhost/", "http://[::1]:1/"):
        check_entry(ServerEntry("a", url=url, headers={"Authorization": "x"}))
    check_entry(ServerEntry("a", url="http://host/"))
    check_entry(ENTRY)
    assert ServerEntry("a", "npx", ("a b", "$(c)")).whole == "npx 'a b' '$(c)'"


def test_lines_keep_what_they_have() -> None:
    result = CallResult("ä\n\u2028", (ResultImage("image/png", b"\0\xff"),), True, True, 1.5, ("sound",))
    assert decode_host_event(encode_line(CallEnded(1, result))) == CallEnded(1, result)
    line = encode_line(StartServer(1, replace(ENTRY, name="half \ud800")))
    assert line.count(b"\n") == 1
    assert decode_host_command(line) == StartServer(1, replace(ENTRY, name="half \ufffd"))
    for bad in (b"{", b"[]", b'{"type":"none"}', b"[" * 100_000):
        with pytest.raises(ProtocolError):
            decode_host_command(bad)
        with pytest.raises(ProtocolError):
            decode_host_event(bad)


NAMES = st.text(st.sampled_from("ab_-. ü:"), max_size=70) | st.sampled_from(
    ["find", "a_find", "x" * 64, "x" * 65]
)


@settings(max_examples=50)
@given(tools=st.lists(st.tuples(NAMES, NAMES), max_size=12))
def test_every_tool_has_one_name_that_models_can_write(tools: list[tuple[str, str]]) -> None:
    names = model_names(tools)
    assert sorted(names.values()) == sorted({*tools})
    assert all(
        0 < len(name) <= 64 and all(c.isascii() and (c.isalnum() or c in "_-") for c in name)
        for name in names
    )
    assert model_names(reversed(tools)) == names


def test_a_tool_keeps_its_name_where_it_is_unique() -> None:
    tools = [("notes", "find"), ("mail", "find"), ("mail", "send.now"), ("mail", "list")]
    assert set(model_names(tools)) == {"notes_find", "mail_find", "mail_send_now", "list"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
    | st.sampled_from(["text", "image", "image/png", "resource", "audio"]),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(
        st.sampled_from(["type", "text", "data", "mimeType", "resource", "uri", "blob", "content"]),
        inner,
        max_size=5,
    ),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=40)
@given(raw=st.dictionaries(st.sampled_from(["content", "isError", "structuredContent", "resultType"]), JSON))
def test_whatever_a_server_answers_is_a_result(raw: dict[str, Any]) -> None:
    result = call_result(raw, 1.0)
    assert encode_line(CallEnded(1, result))
    assert result.is_error is (raw.get("isError") is True)


def test_a_result_is_bounded_in_all_it_has() -> None:
    image = {"type": "image", "mimeType": "image/png", "data": "A" * (4 << 20)}
    parts: list[Any] = [image] * 4 + [{"type": "text", "text": "ä" * 100}] * 20_000 + [None]
    result = call_result({"content": parts}, 0.0)
    assert len(result.text.encode()) <= RESULT_TEXT_BYTES
    assert sum(len(one.data) for one in result.images) <= RESULT_IMAGE_BYTES
    assert len(result.images) == 2
    assert result.cut
    assert any("image of" in other for other in result.other)
    assert any("10,005 further parts" in other for other in result.other)


def test_odd_parts_are_named() -> None:
    parts = [
        {"type": "image", "mimeType": "image/svg+xml", "data": "AAAA"},
        {"type": "image", "mimeType": "image/png", "data": "not base64!"},
        {"type": "hologram"},
    ]
    result = call_result({"content": parts}, 0.0)
    assert (result.images, len(result.other)) == ((), 3)
    structured = call_result({"content": [], "structuredContent": {"a": ["ä"]}}, 0.0)
    assert json.loads(structured.text) == {"a": ["ä"]}
    asks = call_result({"resultType": "input_required", "content": []}, 0.0)
    assert asks.is_error
