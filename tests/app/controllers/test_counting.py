"""Which texts are counted, and that each is counted once."""

from __future__ import annotations

from app.controllers.context_meter import TokenCounts


def test_asks_once_and_adds_up() -> None:
    counts = TokenCounts()
    asked = counts.ask(["one", "two", ""])
    assert {intent.text for intent in asked} == {"one", "two"}
    assert counts.ask(["one", "two"]) == ()
    for intent in asked:
        assert counts.answer(intent.request, len(intent.text))
    assert counts.of("one") == 3
    assert counts.of("two") == 3
    assert counts.ask(["one", "two"]) == ()


def test_nothing_has_no_tokens_and_the_unknown_is_unknown() -> None:
    assert TokenCounts().of("") == 0
    assert TokenCounts().of("text") is None


def test_a_changed_text_is_counted_again_but_the_document_beside_it_is_not() -> None:
    counts = TokenCounts()
    for intent in counts.ask(["a", "document"]):
        counts.answer(intent.request, 1)
    (again,) = counts.ask(["ab", "document"])
    assert again.text == "ab"
    assert counts.of("a") is None


def test_a_failed_count_can_be_asked_again() -> None:
    counts = TokenCounts()
    (intent,) = counts.ask(["text"])
    assert not counts.answer(intent.request, None)
    assert len(counts.ask(["text"])) == 1


def test_an_answer_from_before_forgetting_is_no_news() -> None:
    counts = TokenCounts()
    (intent,) = counts.ask(["text"])
    counts.forget()
    assert not counts.answer(intent.request, 4)
    assert counts.of("text") is None
