"""How many tokens a text has: as the worker counted, or about how many while nobody has."""

from __future__ import annotations

from app.chat.attachments import strings
from core.events import Attachment

_CHARACTERS_PER_TOKEN = 4.0
# Writing without spaces takes about a token a letter.
_DENSE_FROM = "\u2e80"
# Of a longer text so much of its beginning, its middle and its end is looked at.
_SAMPLE_CHARACTERS = 8_000


def estimated_tokens(text: str) -> int:
    """About how many tokens; within a third for prose in Latin or Chinese writing."""
    sample = text
    if len(text) > 3 * _SAMPLE_CHARACTERS:
        middle = len(text) // 2
        sample = (
            text[:_SAMPLE_CHARACTERS]
            + text[middle : middle + _SAMPLE_CHARACTERS]
            + text[-_SAMPLE_CHARACTERS:]
        )
    dense = 0 if sample.isascii() else sum(1 for letter in sample if letter >= _DENSE_FROM)
    tokens = dense + (len(sample) - dense) / _CHARACTERS_PER_TOKEN
    return round(tokens * len(text) / len(sample)) if sample else 0


def size_words(attachment: Attachment) -> str:
    """“3,201 tokens”, or “about 3,200 tokens” where nobody counted."""
    if attachment.tokens:
        return strings.tokens(attachment.tokens)
    estimate = estimated_tokens(attachment.text)
    digits = max(0, len(str(estimate)) - 2)
    return strings.about(strings.tokens(round(estimate, -digits)))
