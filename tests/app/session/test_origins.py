"""Origins of a chat without the window: slices, growth, edits, sources, and notes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from random import Random

import pytest
from msgspec.structs import replace

from app.session.chats.conversation import Answer, AnswerStatus, Conversation, Turn
from app.session.chats.parts import Result
from app.session.origins import ChatOrigins, origins_of_chat, sources_of, with_sources
from core.events import TYPED, Attachment, Message, Passage, ReadingMap, Token
from core.origins import Index, Source, trace

LEASE = Attachment(
    "lease.md", "The rent is 8,400 euros a year and falls due on the first Monday of March.\n", 20
)
WINCH = Attachment(
    "winch.md", "Grease the drum bearings after every forty hours of use with marine grease.\n", 20
)
ANSWER = (
    "The rent is 8,400 euros a year and falls due on the first Monday of March. "
    "Grease the drum bearings after every forty hours of use, or 420 times."
)


def tokens_of(text: str) -> tuple[Token, ...]:
    return tuple(Token("t", n, word, "normal", 1, n) for n, word in enumerate(re.findall(r"\s*\S+", text)))


def chat_of(*answers: str, status: AnswerStatus = "finished") -> Conversation:
    turns = [
        Turn(
            f"t{n}",
            Message("user", "And then?", (LEASE, WINCH) if n == 0 else ()),
            Answer(tokens_of(text), status),
        )
        for n, text in enumerate(answers)
    ]
    return Conversation("c", datetime(2026, 5, 4, tzinfo=UTC), tuple(turns))


def states(chat: Conversation, turn: str = "t0") -> list[tuple[str, str]]:
    found = origins_of_chat(chat)[turn]
    text = chat.turn(turn).answer.text
    return [(text[fact.start : fact.end], fact.state) for fact in found.origins.facts]


@pytest.mark.parametrize("seed", range(5))
def test_an_answer_that_grows_in_slices_has_the_origins_of_the_whole(seed: int) -> None:
    draw, whole = Random(seed), chat_of(ANSWER * 3)
    tokens = whole.turns[0].answer.tokens
    origins = ChatOrigins(now=iter(range(10**6)).__next__)  # each look at the clock ends a slice
    at = 0
    while at < len(tokens):
        at += draw.randint(1, 9)
        running = Answer(tokens[:at], "writing")
        origins.follow(whole.with_answer("t0", running))
        for _ in range(draw.randint(0, 3)):
            origins.step(0.001)
    origins.follow(whole)
    while not origins.step(0.001)[1]:
        pass
    sources = [Source(each.name, each.text) for each in (LEASE, WINCH)]
    indexes = [Index(source.text) for source in sources]
    assert all(index.build() for index in indexes)
    assert origins.of("t0").origins == trace(ANSWER * 3, sources, indexes, "And then?")
    assert origins.of("t0").complete


def test_what_was_traced_is_not_traced_again() -> None:
    chat, origins = chat_of(ANSWER, ANSWER), ChatOrigins()
    origins.follow(chat)
    assert origins.step(60.0) == (["t0", "t1"], True)
    before = origins.of("t0")
    origins.follow(chat.with_answer("t1", replace(chat.turns[1].answer, note="seen")))
    assert origins.step(60.0) == ([], True)
    assert origins.of("t0") is before


def test_thoughts_typed_words_and_chats_without_sources_have_none() -> None:
    thought = chat_of(f"<think>420 {LEASE.text}</think>Yes.")
    assert origins_of_chat(thought)["t0"].origins.facts == ()
    edited = chat_of(ANSWER, status="edited")
    typed = tuple(
        replace(each, id=TYPED) if "420" in each.text else each for each in edited.turns[0].answer.tokens
    )
    edited = edited.with_answer("t0", replace(edited.turns[0].answer, tokens=typed))
    assert [text for text, _ in states(edited) if "420" in text] == []
    bare = replace(chat_of(ANSWER), turns=(replace(chat_of(ANSWER).turns[0], user=Message("user", "So?")),))
    assert origins_of_chat(bare)["t0"].origins.facts == ()


def test_a_fact_repeated_from_an_earlier_answer_keeps_its_state() -> None:
    chat = chat_of("8,400 + 8,400 = 16,800", "So 16,800, or 420.")
    assert [state for _, state in states(chat, "t1")] == ["computed", "nowhere"]
    assert [state for _, state in states(chat_of("Nothing.", "So 16,800, or 420."), "t1")] == ["nowhere"] * 2


def test_documents_long_messages_and_results_are_sources() -> None:
    turn = chat_of(ANSWER).turns[0]
    answer = replace(turn.answer, results=(Result("search", "Found nothing.", 1),))
    long = Turn("t1", Message("user", "word " * 100), Answer())
    found = sources_of([replace(turn, answer=answer), long])
    assert [(each.name, each.document) for each in found] == [
        ("lease.md", 0), ("winch.md", 1), ("Result of search", -1), ("Your message", -1)
    ]  # fmt: skip


def test_facts_of_skipped_passages_are_told_apart() -> None:
    chat = chat_of("The rent is 8,400 euros.")
    end = len(LEASE.text)
    passages = (Passage(0, 9, False, 0.0, 0, 0, end), Passage(9, 18, True, 1.0, 1, 0, len(WINCH.text)))
    reading = ReadingMap("t0", "lexical", 18, 9, passages)
    assert [state for _, state in states(chat)] == ["document"]
    skipped = chat.with_answer("t0", replace(chat.turns[0].answer, reading=reading))
    assert [state for _, state in states(skipped)] == ["skipped"]


def notes(text: str, ranges: Sequence[tuple[int, int]] = ()) -> str:
    chat = chat_of(text)
    return with_sources(text, ranges or [(0, len(text))], origins_of_chat(chat)["t0"])


def test_footnotes_follow_what_they_are_about_and_equal_ones_have_one_number() -> None:
    rent = "The rent is 8,400 euros a year and falls due on the first Monday of March"
    made = notes(f"{rent}.\n\n{rent}, or 420.")
    assert made.count("[^1]") == 3
    assert made.startswith(f"{rent}[^1].")
    assert "or 420[^2]." in made
    assert made.endswith("[^2]: Not in your documents.\n")
    assert notes("Nothing of that.") == "Nothing of that."


def test_footnotes_are_not_put_into_code() -> None:
    code = f"```\n{LEASE.text}```\n"
    assert notes(code).rstrip("\n") == code.rstrip("\n")
