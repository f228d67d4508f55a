"""Isolated answers start from nothing, whatever was asked before, and leave all as it was; titles, too."""

from __future__ import annotations

import itertools

import pytest

from core.engine.engine import Engine
from core.engine.prompts import MOST_TOKENS, cleaned, title_request
from core.events import Attachment, Finished, Generate, Message, Token
from core.settings import Settings, assign_all

CHAT = (
    Message("user", "When may the ferry leave in fog?"),
    Message("assistant", "If three conditions hold."),
)


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("Ferry Departures in Fog", "Ferry Departures in Fog"),
        ("\n  “Ferry departures in fog.”\n\nI hope that helps!", "Ferry departures in fog"),
        ('**Title:** "ferries in fog"', "Ferries in fog"),
        ("# Fähren im Nebel", "Fähren im Nebel"),
        ("天气", "天气"),
        ("हिंदी में कविता", "हिंदी में कविता"),
        ("", ""),
        ("\n\n", ""),
        ("42", ""),
        ("fog", "Fog"),
        ("TV", ""),
        ("<think>\nThe user asks about", ""),
        ("Sure! Here is a title for you", ""),
        ("Dear [Friend’s Name]", ""),
        ("This conversation is about ferries", ""),
        ("Ferries leave. They always do", ""),
        ("Title title title title", ""),
        ('{ "type": "person", "name": "Adams', ""),
        ("a very long line " * 8, ""),
    ],
)
def test_what_is_a_title(written: str, title: str) -> None:
    assert cleaned(written) == title


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("Text Summary", ""),
        ("Summary of the Following Text", ""),
        ("Translation Request", ""),
        ("Summarizing a passage", ""),
        ("Summary of the Peace of Westphalia", "Summary of the Peace of Westphalia"),
        ("Code Review Habits", "Code Review Habits"),
    ],
)
def test_a_title_of_the_task_alone_is_none(written: str, title: str) -> None:
    assert cleaned(written) == title


def test_the_end_of_a_long_question_is_in_the_request() -> None:
    question = Message("user", "Passage. " * 500 + "Which cities signed it?")
    request = title_request((question, Message("assistant", "Münster.")), 8192)
    assert request is not None
    (asked,) = request.messages
    assert "Which cities signed it?" in asked.content
    assert len(asked.content) < 1500


def test_a_title_that_was_cut_loses_what_may_not_be_whole() -> None:
    assert cleaned("Conditions for the Dep", cut=True) == "Conditions"
    assert cleaned("", cut=True) == ""
    assert cleaned("Ferry departures\nThe conv", cut=True) == "Ferry departures"
    assert cleaned("To solve this equation, we can use the formula for the", cut=True) == ""


def test_a_title_asks_little_of_the_model() -> None:
    long = (Message("user", "word " * 50_000, (Attachment("rules.txt", "x" * 99_999),)), CHAT[1])
    request = title_request(long, 8192)
    assert request
    assert request.isolated
    assert len(request.messages[0].content) < 1_200
    settings = request.settings
    assert settings.sampling.max_tokens == MOST_TOKENS
    assert (settings.drafting.drafter, settings.tables.learn, settings.chat.thinking) == ("off", False, "off")
    named = title_request((Message("user", "", (Attachment("rules.txt", "x"),)), CHAT[1]), 8192)
    assert named
    assert "rules.txt" in named.messages[0].content
    assert title_request(CHAT[:1], 8192) is None
    assert title_request((CHAT[0], Message("assistant", " ")), 8192) is None


def test_nothing_notices_a_title(toy_engine: Engine) -> None:
    toy_engine.forget(tables=True)
    values = [("drafting.drafter", "ngram-mod"), ("sampling.max_tokens", 24), ("gate.mode", "always")]
    chosen = assign_all(Settings(), values)

    def told(messages: tuple[Message, ...]) -> tuple[list[Token], Finished]:
        events = list(toy_engine.generate(Generate("r", messages, chosen)))
        assert isinstance(events[-1], Finished)
        return [event for event in events if isinstance(event, Token)], events[-1]

    first, one = told(CHAT[:1])
    sequence, held = toy_engine.sequence, list(toy_engine.sequence.tokens)
    table = toy_engine.memory.tables.for_family(toy_engine.loaded.info.family)[0]
    inserts = table.figures().inserts
    answer = Message("assistant", "".join(token.text for token in first))
    assert isinstance(toy_engine.title((CHAT[0], answer)), str)
    assert toy_engine.sequence is sequence
    assert sequence.tokens == held
    assert table.figures().inserts == inserts
    on = (CHAT[0], answer, Message("user", "Why?"))
    _, second = told(on)
    assert second.stats.reused_tokens >= one.stats.prompt_tokens


def test_a_title_ends_when_it_is_cancelled(toy_engine: Engine) -> None:
    looks = itertools.count(1)
    assert toy_engine.title(CHAT, lambda: next(looks) >= 3) is None
    assert next(looks) <= 5
