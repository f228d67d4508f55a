"""Origins of a chat without the window: slices, growth, edits, sources, and notes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from random import Random

import pytest
from msgspec.structs import replace

from app.session.chats.conversation import Answer, AnswerStatus, Conversation, Turn
from app.session.origins import (
    AnswerOrigins,
    ChatOrigins,
    ChatSource,
    distinct,
    note_texts,
    notes_of,
    origins_of_chat,
    question_of,
    run_note,
    sources_of,
    with_sources,
)
from app.session.tools.calls import CallRecord
from core.answer_format import AnswerFormat
from core.answer_format.formats import ThoughtTags
from core.events import TYPED, Attachment, Message, Passage, ReadingMap, Token
from core.origins import PASTED_CHARACTERS, Index, Place, Source, Tracer, trace
from tests.app.session.chats.drawn import returned

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


def test_a_long_answer_without_lines_is_traced_in_slices_of_400_characters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slices: list[str] = []
    extend = Tracer.extend

    def noted(self: Tracer, text: str, *, left_out: bool = False) -> None:
        slices.append(text)
        extend(self, text, left_out=left_out)

    monkeypatch.setattr(Tracer, "extend", noted)
    chat, origins = chat_of(ANSWER * 20), ChatOrigins()
    origins.follow(chat)
    origins.step(60.0)
    assert "".join(slices) == ANSWER * 20
    assert max(map(len, slices)) == 400


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
    answer = replace(turn.answer, calls=(returned("search", "Found nothing.", 1),))
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


FORMAT = AnswerFormat((ThoughtTags("<think>", "</think>", anywhere=True),), calls=("hermes",))
CALL = '<tool_call>\n{"name": "find", "arguments": {"n": 420}}\n</tool_call>'
RENT = "The rent is 8,400 euros a year."


def answer_of(*texts: str, calls: tuple[CallRecord, ...] = (), **more: object) -> Answer:
    tokens = [Token("t", n, text, "normal", 1, n) for n, text in enumerate(texts)]
    tokens[0] = replace(tokens[0], format=FORMAT)
    return replace(Answer(tuple(tokens), "finished", tools=("find",), calls=calls), **more)


def facts_of(answer: Answer) -> list[tuple[str, str]]:
    return states(chat_of("").with_answer("t0", answer))


def test_each_generation_of_an_answer_is_traced_as_its_own() -> None:
    """Calls are left out, results are sources of what follows; thoughts never count."""
    calls = (returned("find", "The toll is 73.50 dollars.", 2),)
    words = ("<think>420</think>The toll", " is 73.50 dollars, the rent 8,400 euros, ", "or 420.")
    answer = answer_of("Wait, ", CALL, *words, calls=calls)
    assert [text for text, _ in facts_of(answer)] == ["73.50 dollars", "8,400 euros", "420"]
    assert [state for _, state in facts_of(answer)] == ["document", "document", "nowhere"]
    assert facts_of(replace(answer, calls=()))[-1] == ("420", "nowhere")


def test_a_result_is_a_source_once_the_call_has_ended() -> None:
    words = ("The toll", " is 73.50 dollars.")
    call = replace(returned("find", "", 1), state="running")
    running = replace(answer_of(CALL, calls=(call,)), status="calling")
    origins = ChatOrigins()
    origins.follow(chat_of("").with_answer("t0", running))
    while not origins.step(1.0)[1]:
        pass
    done = returned("find", "The toll is 73.50 dollars.", 1)
    origins.follow(chat_of("").with_answer("t0", answer_of(CALL, *words, calls=(done,))))
    while not origins.step(1.0)[1]:
        pass
    assert [fact.state for fact in origins.of("t0").origins.facts] == ["document"]


@pytest.mark.parametrize("step_s", [0.0, 1.0])
def test_an_answer_that_turns_out_to_be_a_thought_is_traced_again(step_s: float) -> None:
    """Without a known format, a closing tag makes a thought of all before it."""
    tokens = tokens_of("So 8,400 euros or 420. " * 30)
    chat = chat_of("")
    origins = ChatOrigins(now=iter(range(10**6)).__next__)
    origins.follow(chat.with_answer("t0", Answer(tokens, "writing")))
    while not origins.step(step_s)[1]:
        pass
    assert origins.of("t0").origins.facts
    more = (*tokens, *tokens_of("</think>The rent is 8,400 euros."))
    ended = chat.with_answer("t0", Answer(more, "finished"))
    origins.follow(ended)
    while not origins.step(step_s)[1]:
        pass
    found = origins.of("t0")
    text = "".join(token.text for token in more)
    assert [text[fact.start : fact.end] for fact in found.origins.facts] == ["8,400 euros"]
    assert found == origins_of_chat(ended)["t0"]


def test_only_what_the_model_wrote_is_traced() -> None:
    """Of an imported answer all, of an edited one all but what was typed, in any place."""
    words = ("The rent is 8,400 euros", ", or 420", ", or 512", " and 97.")
    for typed in ((), (1,), (1, 2), (0, 3), (3,), (0, 1, 2, 3)):
        answer = answer_of(*words)
        tokens = tuple(
            replace(token, id=TYPED) if at in typed else token for at, token in enumerate(answer.tokens)
        )
        found = [text for text, _ in facts_of(replace(answer, tokens=tokens, status="edited"))]
        every = ["8,400 euros", "420", "512", "97"]
        assert found == [text for at, text in enumerate(every) if at not in typed]
        imported = facts_of(replace(answer, tokens=tokens, status="imported"))
        assert [text for text, _ in imported] == every


def test_an_answer_is_traced_again_if_what_it_rests_on_changed() -> None:
    origins, chat = ChatOrigins(), chat_of(f"{RENT} Or 420.", f"{RENT} Or 512.")
    origins.follow(chat)
    assert origins.has_sources
    assert origins.step(60.0) == (["t0", "t1"], True)
    assert origins.of("t0").complete
    other = Attachment("other.md", "It costs 420 euros and not more than that.\n", 9)
    asked = replace(chat.turns[0], user=Message("user", "And then?", (other,)))
    origins.follow(chat.with_turns((asked, chat.turns[1])))
    assert not origins.of("t0").complete  # a changed question changes all after it
    assert origins.step(60.0) == (["t0", "t1"], True)
    assert [source.name for source in origins.of("t1").sources] == ["other.md"]
    reading = ReadingMap("t1", "lexical", 9, 9, (Passage(0, 9, True, 0.5, 0, 0, 9),))
    origins.follow(chat.with_turns((asked, chat.turns[1])).read("t1", reading))
    assert origins.step(60.0)[0] == ["t1"]
    again = chat_of(RENT, "Nothing.")
    origins.follow(again)
    origins.step(60.0)
    shorter = again.with_answer("t0", Answer(tokens_of("Or 420."), "writing"))
    origins.follow(shorter)  # not a continuation of what was traced
    assert origins.step(60.0)[0] == ["t0", "t1"]
    assert origins.of("nowhere") == AnswerOrigins()
    bare = replace(chat_of("420"), turns=(Turn("t0", Message("user", "So?"), Answer(tokens_of("420"))),))
    origins.follow(bare)
    assert not origins.has_sources
    assert origins.step(60.0) == ([], True)


@pytest.mark.parametrize(("length", "is_source"), [(PASTED_CHARACTERS, False), (PASTED_CHARACTERS + 1, True)])
def test_a_long_message_is_a_source(length: int, is_source: bool) -> None:
    turns = [Turn("t0", Message("user", "w" * length)), Turn("t1", Message("user", "So?"))]
    assert sources_of(turns) == ((ChatSource("Your message", "w" * length, "t0"),) if is_source else ())
    assert question_of(turns) == f"{'w' * length}\n\nSo?"


@pytest.mark.parametrize("lead", [0, 4])
def test_a_place_is_named_with_its_pages(lead: int) -> None:
    pages = tuple(lead + at for at in (0, 10, 10, 30))  # the second page is empty
    attachment = Attachment("rules.pdf", "x" * 50, pages=pages)
    (source,) = sources_of([Turn("t0", Message("user", "So?", (attachment,)))])
    for start in range(50):
        for end in range(start + 1, 51):
            first, last = (max(1, sum(page <= at for page in pages)) for at in (start, end - 1))
            said = f"rules.pdf, page {first}" if first == last else f"rules.pdf, pages {first} to {last}"
            assert source.named(Place(0, start, end)) == said
    assert replace(source, pages=()).named(Place(0, 0, 50)) == "rules.pdf"


def test_facts_are_listed_once_and_the_list_ends_somewhere() -> None:
    text = f"{LEASE.text}" + " ".join(f"or {1000 + at} litres," for at in range(45)) + " or 1,003 litres."
    found = origins_of_chat(chat_of(text))["t0"]
    assert len(found.unfounded) == 46
    assert found.skipped == ()
    listed = distinct(found.unfounded, text)
    assert len(listed) == 45  # 1003 and 1,003 are one
    *runs, facts = note_texts(found, text)
    assert runs == [run_note(found, found.runs[0])]
    assert runs[0] == f"lease.md: “{LEASE.text.strip()[: len(runs[0]) - 12]}”"
    assert facts.startswith("Not in your documents: 1000 litres, 1001 litres")
    assert facts.endswith(", 1039 litres, …")
    assert facts.count(",") == 40
    few = origins_of_chat(chat_of("or 420 litres"))["t0"]
    assert note_texts(few, "or 420 litres") == ["Not in your documents: 420 litres"]
    assert notes_of(few) == [(len("or 420 litres"), "Not in your documents.")]
    assert note_texts(AnswerOrigins(), "") == []


def test_footnotes_are_of_the_copied_ranges_only_and_behind_code_in_a_line() -> None:
    text = "It is 420 litres. Then `x = 512 litres`, and 97 litres."
    assert notes(text).startswith("It is 420 litres[^1]. Then `x = 512 litres`[^1], and 97 litres[^1].")
    first, last = text.index("Then"), text.index(", and")
    assert notes(text, [(first, last)]) == "Then `x = 512 litres`[^1]\n\n[^1]: Not in your documents.\n"
    end = text.index(" litres. Then")
    assert notes(text, [(0, end)]) == text[:end]  # not before the end of what they are about
    assert notes(text, [(0, 17), (first, len(text))]).startswith("It is 420 litres[^1].Then `x")
