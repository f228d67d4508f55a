"""Which texts are counted, and that each is counted once."""

from __future__ import annotations

from app.controllers.context_meter import TokenCounts


def test_asks_once_and_adds_up() -> None:
    counts = TokenCounts()
    asked = counts.ask(["one", "two", ""])
    assert set(asked) == {"one", "two"}
    assert counts.ask(["one", "two"]) == ()
    for text in asked:
        counts.answer(text, len(text))
    assert counts.of("one") == 3
    assert counts.of("two") == 3
    assert counts.ask(["one", "two"]) == ()


def test_nothing_has_no_tokens_and_the_unknown_is_unknown() -> None:
    assert TokenCounts().of("") == 0
    assert TokenCounts().of("text") is None


def test_a_changed_text_is_counted_again_but_the_document_beside_it_is_not() -> None:
    counts = TokenCounts()
    for text in counts.ask(["a", "document"]):
        counts.answer(text, 1)
    assert counts.ask(["ab", "document"]) == ("ab",)
    assert counts.of("a") is None


def test_a_failed_count_can_be_asked_again() -> None:
    counts = TokenCounts()
    assert counts.ask(["text"]) == ("text",)
    counts.answer("text", None)
    assert counts.of("text") is None
    assert counts.ask(["text"]) == ("text",)
