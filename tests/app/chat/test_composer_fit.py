"""Whether a message fits, and what is offered if it does not."""

from __future__ import annotations

from app.chat.composer_fit import MessageSize, Remedy, beginning, remedies, will_skip
from core.settings.prefill import Prefill


def test_what_fits_needs_nothing() -> None:
    assert MessageSize(100, 50, (7000,), 8192).over_tokens == 0
    assert MessageSize(100, 50, (8041,), 8192).over_tokens == 0
    assert MessageSize(100, 50, (8042,), 8192).over_tokens == 1
    assert remedies(MessageSize(100, 50, (7000,), 8192)) == ()


def test_nothing_written_and_nothing_known_is_never_too_long() -> None:
    assert MessageSize(9000, 0, (), 8192).over_tokens == 0
    assert MessageSize(0, 9000, (), 0).over_tokens == 0
    assert MessageSize(0, None, (None,), 8192).over_tokens == 0


def test_a_full_chat_is_left_for_a_new_one() -> None:
    assert remedies(MessageSize(8000, 300, (), 8192)) == (Remedy("new_chat"),)


def test_the_largest_attachment_is_cut_or_removed() -> None:
    written = MessageSize(0, 10, (2000, None, 7000), 8192)
    assert remedies(written) == (Remedy("shorten", 2, 7000 - 819 - 1024), Remedy("remove", 2, 7000))


def test_a_beginning_too_short_to_matter_is_not_offered() -> None:
    assert remedies(MessageSize(0, 8100, (400,), 8192)) == (Remedy("remove", 0, 400),)


def test_the_worker_knows_better() -> None:
    written = MessageSize(0, 10, (8000,), 8192)
    assert remedies(written) == ()
    assert remedies(written, 90) == (Remedy("shorten", 0, 8000 - 90 - 1024), Remedy("remove", 0, 8000))


def test_a_beginning_ends_with_a_whole_line_or_word() -> None:
    lines = "one two three\n" * 100
    assert beginning(lines, 300, 150) == ("one two three\n" * 50).rstrip()
    assert beginning("word " * 100, 100, 33).endswith("word")
    assert len(beginning("x" * 1000, 1000, 100)) == 100


def test_what_will_be_skipped() -> None:
    assert will_skip(10_000, None, Prefill(keep_pct=20.0)) == 8_000 - 512
    assert will_skip(8_191, None, Prefill()) == 0
    assert will_skip(5_000, 8.1, Prefill(keep_pct=20.0)) == 4_000 - 512
    assert will_skip(50_000, 7.9, Prefill()) == 0
    assert will_skip(2_047, 60.0, Prefill()) == 0
    assert will_skip(1_000, None, Prefill(mode="on", keep_pct=30.0)) == 700 - 512
    assert will_skip(1_000, 0.1, Prefill(mode="on", keep_pct=90.0)) == 0
    assert will_skip(50_000, 90.0, Prefill(mode="off")) == 0
