"""Origins of a call's arguments: each string and number has one, their names have none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.session.chats.conversation import Answer, Turn
from app.session.tools.calls import LONG_CHARACTERS, CallRecord
from app.session.tools.form import shown_value
from app.session.tools.views import argument_spans
from core.events import Attachment, Message

WORDS = st.text(st.sampled_from('ab9 \n"\\é\u200b'), max_size=12)
VALUES = st.recursive(
    WORDS | st.integers(-99, 9999) | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)


def call_of(arguments: dict[str, Any]) -> CallRecord:
    return CallRecord("call", "send", tool="send", arguments=json.dumps(arguments))


def leaves(value: Any) -> str:
    """All strings and numbers in a JSON value, without white space."""
    if isinstance(value, dict | list):
        return "".join(map(leaves, value.values() if isinstance(value, dict) else value))
    return "" if value is None or isinstance(value, bool) else "".join(str(value).split())


@settings(max_examples=60)
@given(value=VALUES, question=WORDS)
def test_the_parts_of_a_value_are_its_strings_and_numbers(value: Any, question: str) -> None:
    shown, plain = shown_value(value)
    spans = argument_spans((Turn("t", Message("user", question)),), call_of({"value": value}))
    found, end = "", 0
    for span in spans:
        assert (span.argument, end <= span.start < span.end <= len(shown)) == ("value", True)
        end = span.end
        part = shown[span.start : span.end]
        found += part if plain else json.loads(f'"{part}"')
    assert "".join(found.split()) == leaves(value)


def test_names_inside_of_an_argument_have_no_origin() -> None:
    value = [{"Bern": "Bern", "Thun": 8400}, "Chur"]
    turns = (Turn("t", Message("user", "Bern, Thun, 8400")),)
    spans = argument_spans(turns, call_of({"to": value}))
    shown, _ = shown_value(value)
    assert [(shown[span.start : span.end], span.origin) for span in spans] == [
        ("Bern", "question"),
        ("8400", "question"),
        ("Chur", "model"),
    ]


def test_documents_and_results_are_numbered_as_in_the_prompt() -> None:
    first = (
        CallRecord("1", "fetch", tool="fetch", state="done", result="harbour pilot " * LONG_CHARACTERS),
        CallRecord("2", "find", tool="find", state="done", result="mole and lantern"),
        CallRecord("3", "find", tool="find", state="failed", result="a red beacon"),
    )
    texts = ("quay to the north", "harbour pilot", "mole and lantern", "a red beacon", "jetty to the south")
    call = call_of(dict(zip("abcde", texts, strict=True)))
    turns = (
        Turn("t", Message("user", "One", (Attachment("a.txt", texts[0]),)), Answer(calls=first)),
        Turn("u", Message("user", "Two", (Attachment("b.txt", texts[4]),)), Answer(calls=(call,))),
    )
    assert [(each.origin, each.name, each.document) for each in argument_spans(turns, call)] == [
        ("document", "a.txt", 0),
        ("result", "fetch", 1),
        ("result", "find", -1),
        ("model", "", -1),
        ("document", "b.txt", 2),
    ]


@pytest.mark.parametrize("arguments", ["", "{", "[1]", "[" * 100_000])
def test_arguments_that_are_no_object_have_no_origins(arguments: str) -> None:
    assert argument_spans((), CallRecord("call", "send", arguments=arguments)) == ()
