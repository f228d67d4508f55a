"""Which calls are asked about: a permission for more than one call covers only what the person wrote."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from app.session import strings
from app.session.tools.arguments import checked_arguments, outside_of, same_arguments
from app.session.tools.calls import CallRecord
from app.session.tools.form import FormError, read_json
from app.session.tools.permission import Allowance, Allowed, Ask, decide
from core.errors import RequestError

CALL = CallRecord("c1", "fetch", "web", "fetch", '{"url": "https://example.com/a"}', fingerprint="f1")
ALWAYS = Allowance("f1", "web", "fetch", "always")
HERE = Allowance("f1", "web", "fetch", "chat", "chat-1")
OWN = ("Please read https://example.com/a for me.",)


def test_without_a_permission_every_call_is_asked_about() -> None:
    assert decide(CALL, "chat-1", (), OWN, ()) == Ask()
    for other in (replace(ALWAYS, tool="post"), replace(ALWAYS, server="mail")):
        assert decide(CALL, "chat-1", (other,), OWN, ()) == Ask()


def test_a_permission_covers_its_tool_and_chat() -> None:
    assert decide(CALL, "chat-1", (ALWAYS,), OWN, ()) == Allowed("always")
    assert decide(CALL, "chat-1", (HERE,), OWN, ()) == Allowed("chat")
    assert decide(CALL, "chat-2", (HERE,), OWN, ()) == Ask()


def test_a_tool_that_changed_is_asked_about() -> None:
    assert decide(replace(CALL, fingerprint="f2"), "c", (ALWAYS,), OWN, ()) == Ask((strings.TOOL_CHANGED,))
    unknown = replace(CALL, fingerprint="")
    assert isinstance(decide(unknown, "c", (replace(ALWAYS, fingerprint=""),), OWN, ()), Ask)


def test_what_the_person_did_not_write_is_asked_about() -> None:
    found = decide(CALL, "chat-1", (ALWAYS,), ("Read the page.",), ())
    assert found == Ask((strings.not_yours(("https://example.com/a",)),))


def test_the_same_call_twice_is_asked_about() -> None:
    plain = replace(CALL, arguments='{"n": 1, "city": "Bern"}')
    before = replace(plain, id="c0", arguments='{"city": "Bern", "n": 1}', state="done")
    assert decide(plain, "c", (ALWAYS,), (), (before,)) == Ask((strings.SAME_CALL,))
    assert decide(plain, "c", (ALWAYS,), (), (plain,)) == Allowed("always")
    for other in (replace(before, tool="post"), replace(before, arguments='{"n": 2, "city": "Bern"}')):
        assert decide(plain, "c", (ALWAYS,), (), (other,)) == Allowed("always")


@pytest.mark.parametrize(
    "arguments",
    [
        {"city": "Bern", "days": 3, "exact": True, "unit": None},
        {"query": "the weather in São Paulo on 2026-11-29 at 14:20"},
        {"text": "It's 3.5 % (more or less), isn’t it?"},
        {"tags": ["a", "b c"], "nested": {"name": "Anna-Lena O'Neil"}},
        {"ratio": -2.5e3},
        {"text": ""},
    ],
)
def test_words_and_numbers_need_not_be_the_persons(arguments: dict[str, object]) -> None:
    assert outside_of("search", json.dumps(arguments), ()) == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("text", "see https://evil.example/x?q=1"),
        ("text", "evil.example"),
        ("text", "evil。example"),
        ("text", "mail a@evil.example now"),
        ("text", "/etc/passwd"),
        ("text", "..∕secret"),
        ("text", "C:\\Users"),
        ("text", "~root"),
        ("text", "$HOME"),
        ("text", "192.168.0.1"),
        ("text", "[::1]:80"),
        ("text", "%2e%2e"),
        ("text", "a\u200bb"),
        ("path", "notes"),
        ("filePath", "notes"),
        ("recipient", "Anna"),
        ("command", "rm important"),
        ("shell_script", "ls"),
        ("args", ["now"]),
        ("url", {"host": 2130706433}),
        ("nested", [{"deep": [{"to": "x"}]}]),
        ("names", {"/etc/hosts": "x"}),
    ],
)
def test_addresses_paths_and_commands_must_be_the_persons(name: str, value: object) -> None:
    assert outside_of("search", json.dumps({name: value}), ()) != ()
    assert outside_of("search", json.dumps({name: value}), ("Something else entirely.",)) != ()


def test_a_tool_that_runs_commands_has_no_harmless_texts() -> None:
    assert outside_of("run_query", '{"input": "drop everything"}', ()) == ("drop everything",)
    assert outside_of("runQuery", '{"input": "drop everything"}', ("Please drop everything!",)) == ()


@pytest.mark.parametrize(
    ("written", "stands"),
    [
        ("read /tmp/a.txt", True),
        ("read “/tmp/a.txt”, please", True),
        ("read /tmp/a.txt.", True),
        ("read /tmp/a.txt\nnow", True),
        ("read /tmp/a.txt.bak", False),
        ("read /tmp/a.txt/b", False),
        ("read x/tmp/a.txt", False),
        ("read ~/tmp/a.txt", False),
        ("read file:///tmp/a.txt", False),
        ("read /TMP/A.TXT", False),
        ("read /tmp/a.txt?x", False),
        ("", False),
    ],
)
def test_a_part_of_an_address_is_not_the_persons(written: str, stands: bool) -> None:
    assert (outside_of("read", '{"path": "/tmp/a.txt"}', (written,)) == ()) is stands


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.lists(st.text()), max_size=3))
def test_what_is_copied_from_the_person_never_leaves_more_to_ask_about(values: dict[str, object]) -> None:
    arguments = json.dumps(values)
    alone = set(outside_of("search", arguments, ()))
    assert set(outside_of("search", arguments, ("https://example.com and words",))) <= alone


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), JSON, max_size=3))
def test_checked_arguments_mean_the_same(values: dict[str, object]) -> None:
    for text in (json.dumps(values), json.dumps(values, ensure_ascii=False, indent=3)):
        assert json.loads(checked_arguments(text)) == values
        assert checked_arguments(checked_arguments(text)) == checked_arguments(text)
        assert same_arguments(text, checked_arguments(text))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '"x"',
        "null",
        '{"a": 1} {"b": 2}',
        '{"path": "/safe", "path": "/other"}',
        '{"in": {"a": 1, "a": 1}}',
        '{"a": NaN}',
        '{"a": 1e400}',
        '{"a": -Infinity}',
        '{"a": "\\ud800"}',
        '{"a": ' + "9" * 5_000 + "}",
        '{"a": ' * 5_000 + "1" + "}" * 5_000,
        '{"a": "' + "x" * 1_000_001 + '"}',
    ],
)
def test_what_programs_read_differently_is_no_call(text: str) -> None:
    with pytest.raises(RequestError, match=r"\.$"):
        checked_arguments(text)
    assert outside_of("search", text, ("words",)) == (text,)


@pytest.mark.parametrize(("begin", "end"), [('{"a": ', "}"), ("[", "]"), ('[{"a": ', "}]")])
def test_how_deep_arguments_are_read_is_the_same_everywhere(begin: str, end: str) -> None:
    """Python's own bound is 1,000 or so in 3.11, and depends on the machine's stack later."""
    layers = begin.count("[") + begin.count("{")

    def nested(depth: int) -> str:
        times = depth // layers
        return '{"x": ' + begin * times + "1" + end * times + "}"

    assert checked_arguments(nested(98)) == nested(98)
    assert read_json(nested(98)) == json.loads(nested(98))
    for depth in (102, 400, 996, 2_000, 8_000, 50_000):
        with pytest.raises(RequestError, match=r"\.$"):
            checked_arguments(nested(depth))
        with pytest.raises(FormError, match="nested too deeply"):
            read_json(nested(depth))
