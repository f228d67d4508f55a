"""The parts of an answer: they have all of it, in order, and each its kind."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from app.session.chats.conversation import Answer
from app.session.chats.parts import Part, PartSplitter, parts_of
from core.answer_format import AnswerFormat
from core.events import Token
from tests.app.session.chats.drawn import ANYWHERE, PREFILLED, SECRET, TOOL, answers, returned


def tokens_of(*texts: str) -> tuple[Token, ...]:
    return tuple(Token("r", 7, text, "normal", n, n) for n, text in enumerate(texts))


def kinds(parts: tuple[Part, ...]) -> list[tuple[str, str]]:
    return [(part.kind, part.text.strip()) for part in parts]


@pytest.mark.sweep
@settings(max_examples=300)
@given(answers())
def test_the_parts_have_all_of_the_answer(answer: Answer) -> None:
    parts = answer.parts
    assert "".join(part.source for part in parts) == answer.text
    assert tuple(token for part in parts for token in part.tokens) == answer.tokens
    assert [part.text for part in parts if part.kind == "result"] == [call.result for call in answer.calls]
    for part in parts:
        assert (SECRET in part.text) <= (part.kind == "thought")
        assert ("tool_call" in part.text) == (part.kind == "call")
    assert SECRET not in answer.words
    assert "returned" not in answer.words


@given(answers(calls=False))
def test_an_answer_is_split_alike_however_it_arrives(answer: Answer) -> None:
    format = answer.finished.effective.format if answer.finished else None
    source = ""
    live, whole = PartSplitter(format), PartSplitter(format)
    for token in answer.tokens:
        source += token.text
        live.read(source, whole=False)
        assert [span.closes for span in live.spans[:-1]] == [span.opens for span in live.spans[1:]]
    live.read(source, whole=True)
    whole.read(source, whole=True)
    assert live.spans == whole.spans


def test_a_token_of_two_parts_belongs_to_the_thought() -> None:
    parts = parts_of(tokens_of("One.<think>", "Hm.", "</think>Two", "."), ANYWHERE)
    assert kinds(parts) == [("text", "One."), ("thought", "Hm."), ("text", "Two.")]
    assert [len(part.tokens) for part in parts] == [0, 3, 1]
    parts = parts_of(tokens_of("One.", "<think>Hm.", ""), ANYWHERE)
    assert [len(part.tokens) for part in parts] == [1, 2]


def test_each_generation_begins_as_its_prompt_ends() -> None:
    call = '<tool_call>\n{"name": "find", "arguments": {}}\n</tool_call>'
    tokens = tokens_of("Why?</think>", call, "So.</think>", "Yes.")
    parts = parts_of(tokens, PREFILLED, (TOOL,), (returned(TOOL, "42", 2),))
    assert kinds(parts) == [
        ("thought", "Why?"),
        ("call", call),
        ("result", "42"),
        ("thought", "So."),
        ("text", "Yes."),
    ]
    # Without tools, what looks like a call is text.
    assert ("text", call) in kinds(parts_of(tokens[:2], PREFILLED))


def test_an_answer_that_says_nothing_has_no_words() -> None:
    assert parts_of(()) == ()
    assert kinds(parts_of(tokens_of("", ""))) == [("text", "")]
    assert kinds(parts_of(tokens_of("<think>", "</think>"), ANYWHERE))[0][1] == ""
    assert kinds(parts_of(tokens_of("A.</think>", "B."), AnswerFormat())) == [
        ("thought", "A."),
        ("text", "B."),
    ]


def test_an_edit_drops_the_results_after_it() -> None:
    tokens = tokens_of("One", "two", "three")
    answer = Answer(tokens, "finished", calls=(returned(TOOL, "a", 1), returned(TOOL, "b", 2)))
    edited = answer.with_tokens((tokens[0], *tokens_of("other")))
    assert [call.result for call in edited.calls] == ["a"]
