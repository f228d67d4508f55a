"""Scorers, which rate how much each passage of a prompt matters to the question, and the one list of them.

A scorer's name is also a value of `prefill.scorer`; a test holds the two lists together.
"""

from __future__ import annotations

from msgspec import Struct

from core.prefill.scorers.draft_model import score_by_draft_model
from core.prefill.scorers.embedding import score_by_words_and_meaning
from core.prefill.scorers.lexical import score_by_words
from core.prefill.scorers.scorer import Score


class ScorerSpec(Struct, frozen=True):
    """`needs_draft`: it reads with a draft model."""

    name: str
    score: Score
    needs_draft: bool = False


SCORERS: dict[str, ScorerSpec] = {
    spec.name: spec
    for spec in (
        ScorerSpec("lexical", score_by_words),
        ScorerSpec("fusion", score_by_words_and_meaning),
        ScorerSpec("draft-model", score_by_draft_model, needs_draft=True),
    )
}
