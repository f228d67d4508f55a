"""How many tokens a text has, without turning all of a huge one into tokens.

A tokenizer takes seconds and hundreds of megabytes for some million characters, of which no model can
read more than its context. So a long text is counted in pieces, and only until it is clear that it is
too long: then what is told is an estimate.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlx_lm.tokenizer_utils import TokenizerWrapper

from core.errors import PromptTooLongError
from core.events import Message

_PIECE_CHARACTERS = 16_384
# Up to here a text is counted whole: it takes a tenth of a second.
_LONG_CHARACTERS = 200_000
# A word cut in two gives this many tokens more at most, in nearly all texts.
_MORE_A_CUT = 8


def count_tokens(tokenizer: TokenizerWrapper, text: str, limit_tokens: int) -> int:
    """Tokens of `text` without any template; about, of a text far longer than `limit_tokens`."""
    if len(text) <= _LONG_CHARACTERS:
        return len(tokenizer.encode(text, add_special_tokens=False))
    tokens, characters = _counted(tokenizer, text, 2 * limit_tokens)
    return round(tokens * len(text) / characters)


def check_fits(
    tokenizer: TokenizerWrapper, messages: Sequence[Message], limit_tokens: int, chosen: bool
) -> None:
    """Raises `PromptTooLongError` if it is clear before rendering that `messages` are too long.

    Whether a prompt of a likely length fits is for who has its tokens. `chosen` is that error's.
    """
    texts = [text for each in messages for text in (each.content, *(a.text for a in each.attachments))]
    characters = sum(map(len, texts))
    if len(messages) > limit_tokens:
        raise PromptTooLongError(max(len(messages), characters // 4), limit_tokens, chosen)
    if characters <= max(_LONG_CHARACTERS, 8 * limit_tokens):
        return
    tokens = done = 0
    for text in texts:
        counted, of_them = _counted(tokenizer, text, limit_tokens - tokens)
        tokens, done = tokens + counted, done + of_them
        if tokens > limit_tokens:
            raise PromptTooLongError(round(tokens * characters / done), limit_tokens, chosen)


def _counted(tokenizer: TokenizerWrapper, text: str, enough: int) -> tuple[int, int]:
    """Tokens that are surely there, more than `enough` or all; and of how many characters."""
    tokens = at = 0
    while at < len(text) and tokens <= enough:
        piece = text[at : at + _PIECE_CHARACTERS]
        at += len(piece)
        cut = _MORE_A_CUT if at < len(text) else 0
        tokens += max(0, len(tokenizer.encode(piece, add_special_tokens=False)) - cut)
    return tokens, at
