"""Joined: the table of a family's answers and the table of texts, asked as one.

Rows come longest context first; of one length the answers' row outweighs the texts'. Neither need
be there. Knows no file and no request.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from core.drafting.tables.gram_table import GramSeen, GramTable

# What a place in a text counts beside one in an answer. A text says what people wrote, not what the
# model says, and there is far more of it. Between 0.01 and 1 it hardly matters (notes/rehearsal.md).
_TEXT_WORTH = 0.01

_order = attrgetter("order")


class Joined:
    """`answers` and `texts` are frozen and shared."""

    def __init__(self, answers: GramTable | None, texts: GramTable | None) -> None:
        self._answers = answers
        self._texts = texts

    def look(self, context: Sequence[int]) -> list[GramSeen]:
        """What is known about the place after `context`, longest contexts first."""
        rows = self._answers.look(context) if self._answers is not None else []
        if self._texts is None:
            return rows
        # The texts' row of no context says which words are frequent in general. The answers' says
        # that of answers, and is there whenever they are.
        least = 1 if rows else 0
        rows += [
            GramSeen(row.order, row.total * _TEXT_WORTH, row.followers)
            for row in self._texts.look(context)
            if row.order >= least
        ]
        rows.sort(key=_order, reverse=True)  # stable: the answers' row stays first
        return rows
