"""Learned: what a family's models tend to say after the last few tokens, as probabilities.

A frozen table knows, for contexts of none to a few tokens, what followed them in a model's own
answers to other prompts. Here the contexts' rows become one probability a token: from the
shortest context to the longest,

    p = (N · share + κ · p of the shorter context) / (N + κ)

so a long context is believed as far as it has been seen. A token in no row keeps what is left
over, `unknown`. Invariant: probabilities are in (0, 1). Knows no chat, no draft and no costs.

Source: interpolation of contexts as in Witten and Bell (1991), with one κ for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from core.drafting.gram_table import GramTable, Seen

# κ: places a context must have been seen at for its row to weigh as much as the shorter ones'.
_BELIEF = 0.5
# A token that no row holds, not even the one of no context.
_LEAST = 1e-4
# The same few places are asked for again and again while a draft grows.
_REMEMBERED = 256


class Outlook(NamedTuple):
    """`likely` maps the tokens of all rows to their probabilities; any other token has `unknown`."""

    likely: dict[int, float]
    unknown: float


class Learned:
    """`table` is shared and frozen; this is of one request."""

    def __init__(self, table: GramTable) -> None:
        self._table = table
        self._known: dict[tuple[int, ...], Outlook] = {}

    def after(self, tail: tuple[int, ...]) -> Outlook:
        """What comes after the newest tokens `tail`."""
        outlook = self._known.get(tail)
        if outlook is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            outlook = self._known[tail] = _interpolated(self._table.look(tail))
        return outlook


def _interpolated(rows: Sequence[Seen]) -> Outlook:
    likely: dict[int, float] = {}
    unknown = _LEAST
    for row in reversed(rows):
        backed = _BELIEF / (row.total + _BELIEF)
        trusted = 1.0 - backed
        longer = {token: value * backed for token, value in likely.items()}
        for token, share in row.followers:
            longer[token] = longer.get(token, unknown * backed) + trusted * share
        likely, unknown = longer, max(_LEAST / 10, unknown * backed)
    return Outlook(likely, unknown)
