"""Layout: what each token of a prompt is, as far as a sparse prefill must know.

Protected tokens are the template's own and the system prompt's; the question is what the last
user message says in its own words; documents are the attachments' texts, whose characters are
mapped for the reading map. A prompt that is known only as ids (no messages behind it) has
neither parts nor documents: its last tokens are taken for the question, and it is text that goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from core.models.prompt import Prompt
from core.prefill.goes_on import asks_to_go_on

Flags = np.ndarray[Any, Any]
# A question longer than this is read as its beginning and its end: people ask before a pasted
# text or after it.
_QUESTION_TOKENS = 256
_QUESTION_HEAD_TOKENS = 48
_UNKNOWN_QUESTION_TOKENS = 64


class Layout(Struct, frozen=True):
    """Arrays over the prompt's tokens: bool `protected` and `question`; `source` is the ordinal of
    the attachment or −1, `first_char` and `last_char` (end-exclusive) the place in its text.
    `goes_on`: what comes next is asked for, and nothing that stands in the text.
    """

    protected: Flags
    question: Flags
    source: np.ndarray[Any, Any]
    first_char: np.ndarray[Any, Any]
    last_char: np.ndarray[Any, Any]
    goes_on: bool

    def followed_by(self, tokens: int) -> Layout:
        """With so many tokens of a begun answer behind it. They are always read."""
        if not tokens:
            return self
        return self.quoting(len(self.protected), tokens)

    def quoting(self, at: int, tokens: int) -> Layout:
        """With so many tokens of no text of its own before the token `at`. They are always read."""

        def widened(array: np.ndarray[Any, Any], value: int) -> np.ndarray[Any, Any]:
            return np.insert(array, at, np.full(tokens, value, dtype=array.dtype))

        return Layout(
            widened(self.protected, True),
            widened(self.question, False),
            widened(self.source, -1),
            widened(self.first_char, 0),
            widened(self.last_char, 0),
            self.goes_on,
        )

    @property
    def borders(self) -> list[int]:
        """Positions where another chat may go on differently: after the fixed head, at the question."""
        tokens = len(self.protected)
        begins = (int(np.argmin(self.protected)), int(np.argmax(self.question)))
        return [at for at in begins if 0 < at < tokens]


def unknown_layout(tokens: int, *, goes_on: bool = True) -> Layout:
    """Of a prompt that is known only as ids."""
    none = np.zeros(tokens, dtype=np.int32)
    question = np.zeros(tokens, dtype=np.bool_)
    question[-_UNKNOWN_QUESTION_TOKENS:] = True
    return Layout(np.zeros(tokens, dtype=np.bool_), question, none - 1, none, none, goes_on)


def layout(prompt: Prompt, offsets: Sequence[tuple[int, int]] | None) -> Layout:
    """`offsets` are the tokens' character ranges in `prompt.text`; None if nobody knows them."""
    goes_on = asks_to_go_on(prompt.asked)
    if not offsets:
        return unknown_layout(len(prompt.ids), goes_on=goes_on)
    starts, ends = np.array(offsets, dtype=np.int64).reshape(-1, 2).T
    protected = np.ones(len(starts), dtype=np.bool_)
    source = np.full(len(starts), -1, dtype=np.int32)
    first, last = (np.zeros(len(starts), dtype=np.int32) for _ in range(2))
    question = np.zeros(len(starts), dtype=np.bool_)
    if prompt.regions:
        figures = [(each.start, each.end, each.source, each.first_char) for each in prompt.regions]
        begins, ends_at, ordinals, first_chars = np.array(figures, dtype=np.int64).T
        kinds = np.array([region.kind for region in prompt.regions])
        # A token belongs to the region that contains its last character.
        owner = np.searchsorted(begins, ends, side="left") - 1
        inside = (owner >= 0) & (ends <= ends_at[owner])
        protected = ~inside | (kinds[owner] == "system")
        document = inside & (kinds[owner] == "document")
        shift = (first_chars - begins)[owner]
        source[document] = ordinals[owner][document]
        first[document] = (np.maximum(starts, begins[owner]) + shift)[document]
        last[document] = (ends + shift)[document]
        asked = np.flatnonzero(kinds == "user")
        if len(asked):
            question = _ends_of(inside & (owner == asked[-1]))
    return Layout(protected, question, source, first, last, goes_on)


def _ends_of(inside: Flags) -> Flags:
    at = np.flatnonzero(inside)
    if len(at) > _QUESTION_TOKENS:
        at = np.concatenate([at[:_QUESTION_HEAD_TOKENS], at[_QUESTION_HEAD_TOKENS - _QUESTION_TOKENS :]])
    question = np.zeros(len(inside), dtype=np.bool_)
    question[at] = True
    return question
