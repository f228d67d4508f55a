"""Editing an answer: the tokens of its new version, and their figures. Pure.

Tokens that an edit does not touch stay as the model wrote them, so that they keep their tints and ids. The
person's text, and the remainder of a token that the edit touches, becomes one token with the id `TYPED`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from app.session.chats.continuing import end_of
from core.events import TYPED, Finished, Token


class Edit(Struct, frozen=True):
    """Characters `start` to `end` (end-exclusive) of an answer's source, replaced by `text`."""

    start: int
    end: int
    text: str


def with_edits(tokens: Sequence[Token], edits: Sequence[Edit]) -> tuple[Token, ...]:
    """Returns `tokens` with `edits`, which are in order and refer to the text before all of them."""
    kept = _without_end(tokens)
    for edit in reversed(edits):
        kept = _with_edit(kept, edit)
    return tuple(each if each.position == at else replace(each, position=at) for at, each in enumerate(kept))


def cut_after(tokens: Sequence[Token], end: int) -> tuple[Token, ...]:
    """Returns the tokens up to the one that contains the character before offset `end`."""
    last, at = next(each for each in _boundaries(tokens) if each[1] >= end)
    kept = tuple(tokens[:last])
    if at > end and kept[-1].id == TYPED:
        kept = (*kept[:-1], replace(kept[-1], text=kept[-1].text[: end - at]))
    return kept


def all_typed(tokens: Sequence[Token]) -> tuple[Token, ...]:
    """Returns one token with the text of `tokens`, for a model that did not write them."""
    text = "".join(token.text for token in tokens)
    return (
        replace(tokens[0], id=TYPED, text=text, origin="normal", draft_index=0, draft_length=0, source=""),
    )


# Figures that depend on the tokens. The others describe the prompt and the machine.
_OF_TOKENS = (
    *("tokens", "accepted", "tested", "acceptance", "bonus", "normal", "steps", "mean_per_step"),
    *("ttft_s", "decode_s", "total_s", "tokens_per_s", "positions", "drafted", "rechecked"),
)


def end_of_edited(finished: Finished, tokens: Sequence[Token]) -> Finished:
    """Returns the end of an answer whose tokens are now `tokens`, without its sources."""
    counted = end_of(tokens, finished.effective.model, finished.effective.settings).stats
    stats = replace(finished.stats, **{name: getattr(counted, name) for name in _OF_TOKENS})
    return replace(finished, reason="cancelled", stats=stats, sources=(), stopped_by="", citations=())


def _with_edit(tokens: Sequence[Token], edit: Edit) -> tuple[Token, ...]:
    source = "".join(token.text for token in tokens)
    boundaries = list(_boundaries(tokens))
    first, low = max(each for each in boundaries if each[1] <= edit.start)
    last, high = min(each for each in boundaries if each[1] >= edit.end)
    text = source[low : edit.start] + edit.text + source[edit.end : high]
    before, after = tokens[:first], tokens[last:]
    near = before[-1] if before else tokens[0]
    typed = Token(near.request, TYPED, text, "normal", near.step, near.position, time_s=near.time_s)
    # An empty one separates tokens that were not neighbours.
    return (*before, typed, *after) if text or after else tuple(before)


def _boundaries(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Yields the places between tokens where a character ends: the number of tokens and of characters before
    them. A token without text holds the first bytes of the next character.
    """
    yield 0, 0
    at = 0
    for number, token in enumerate(tokens, start=1):
        at += len(token.text)
        if token.text:
            yield number, at


def _without_end(tokens: Sequence[Token]) -> tuple[Token, ...]:
    """`tokens` without the stop token and other tokens without text at the end."""
    last = len(tokens)
    while last and not tokens[last - 1].text:
        last -= 1
    return tuple(tokens[:last])
