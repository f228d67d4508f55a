"""PartFigures: how many tokens a thought, or the answer without its thoughts, has and how long they took.

A thought has the tokens from its opening tag to its closing one, the answer has all others: together they
are the whole answer's. Times are between tokens, so that those of all parts together are the time from the
first token to the last. Pure: no Qt.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from app.richtext.markdown.token_table import TokenTable


class PartFigures(Struct, frozen=True):
    """`accepted` of `tokens` were accepted drafts; None where the whole answer has none."""

    tokens: int
    accepted: int | None
    took_s: float

    @property
    def percent(self) -> int | None:
        """The accepted share."""
        if self.accepted is None:
            return None
        return round(100 * self.accepted / self.tokens) if self.tokens else 0


def figures_of(table: TokenTable, tokens: range) -> PartFigures:
    """Of the tokens with these numbers. Before its first token an answer has no time."""
    if not tokens:
        return PartFigures(0, None, 0.0)
    before_s = table[max(0, tokens.start - 1)].time_s
    took_s = max(0.0, table[tokens[-1]].time_s - before_s)
    accepted = table.accepted_in(tokens) if table.accepted_in(range(len(table))) else None
    return PartFigures(len(tokens), accepted, took_s)


def figures_without(table: TokenTable, thoughts: Sequence[range]) -> PartFigures | None:
    """Of all tokens but those of `thoughts`, in order; None if there are none."""
    if not thoughts:
        return None
    whole = figures_of(table, range(len(table)))
    apart = [figures_of(table, tokens) for tokens in thoughts]
    return PartFigures(
        whole.tokens - sum(part.tokens for part in apart),
        None if whole.accepted is None else whole.accepted - sum(part.accepted or 0 for part in apart),
        max(0.0, whole.took_s - sum(part.took_s for part in apart)),
    )
