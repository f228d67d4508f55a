"""The reading card's words."""

from __future__ import annotations

from app.chat.reading_card import is_worth_showing, read_now, time_left, title_of
from core.events import PrefillProgress


def test_a_short_prompt_needs_no_card() -> None:
    assert not is_worth_showing(PrefillProgress("r", 0, 200, 0))
    assert not is_worth_showing(PrefillProgress("r", 5000, 5100, 5000))
    assert is_worth_showing(PrefillProgress("r", 0, 300, 0))


def test_titles() -> None:
    assert title_of(PrefillProgress("r", 0, 28020, 0)) == "Reading 28,020 tokens"
    assert title_of(PrefillProgress("r", 400, 5620, 120)) == "Reading 5,500 of 5,620 tokens"


def test_what_was_reused_does_not_count_as_read() -> None:
    assert read_now(PrefillProgress("r", 632, 5620, 120)) == 512
    assert read_now(PrefillProgress("r", 0, 5620, 120)) == 0


def test_time_left() -> None:
    assert time_left(None) == ""
    assert time_left(0.2) == "About 1 s left"
    assert time_left(8.4) == "About 8 s left"
    assert time_left(112) == "About 1 min 52 s left"
