"""How large an attachment is said to be while nobody has counted."""

from __future__ import annotations

import pytest

from app.chat.attachment_chip import estimated_tokens, size_words
from core.events import Attachment


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("word " * 400, 500),
        ("霧" * 400, 400),
        ("word " * 400_000, 500_000),
        ("word " * 40_000 + "霧" * 200_000 + "word " * 40_000, 300_000),
    ],
)
def test_estimates_know_writing_without_spaces_and_look_into_long_texts(text: str, tokens: int) -> None:
    estimate = estimated_tokens(text)
    assert estimate == tokens if len(text) < 10_000 else abs(estimate - tokens) < 0.25 * tokens


@pytest.mark.parametrize(
    ("attachment", "words"),
    [
        (Attachment("a", "word " * 400, 411), "411 tokens"),
        (Attachment("a", "x", 1), "1 token"),
        (Attachment("a", "x" * 12_345), "about 3,100 tokens"),
        (Attachment("a", "x" * 150), "about 38 tokens"),
    ],
)
def test_what_was_counted_is_exact_and_the_rest_is_not(attachment: Attachment, words: str) -> None:
    assert size_words(attachment) == words
