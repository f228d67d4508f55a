"""Token ids of an answer that a person edited, so that the model can continue it.

Unchanged tokens keep the ids that the model chose. Where the person wrote, the ids are those that the
tokenizer gives the whole answer, up to the nearest token boundaries of both tokenizations, because a token
may reach across the boundary of an edit: "hel" followed by a typed "lo" becomes "hello".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import accumulate

from mlx_lm.tokenizer_utils import TokenizerWrapper

from core.answer_format import AnswerFormat
from core.decoding.text import TokenTexts
from core.events import TYPED
from core.events.wire import well_formed
from core.models.chat_template import inner_of
from core.models.prompt import Prompt
from core.models.tokenizer import Span, encode

# Enough of the prompt to tokenize the answer as its continuation.
_CONTEXT_CHARACTERS = 200


def edited_ids(
    tokenizer: TokenizerWrapper,
    prompt: Prompt,
    format: AnswerFormat | None,
    ids: Sequence[int],
    texts: Sequence[str],
) -> list[int]:
    """The ids of an answer after `prompt` whose tokens have these `ids` and `texts`.

    A token `TYPED` is a person's text, or a deletion if it is empty. Control tokens in that text are ordinary
    text, except the tags around thoughts of `format`. Raises `RequestError` if a control token cannot be
    avoided.
    """
    texts = [well_formed(text) for text in texts]
    starts = [0, *accumulate(map(len, texts))]
    typed = [(starts[at], starts[at + 1]) for at, each in enumerate(ids) if each == TYPED]
    text = "".join(texts)
    whole = _tokenized(tokenizer, prompt, format, text, typed)
    whole_texts = _texts_of(tokenizer, whole)
    if "".join(whole_texts) != text:  # the tokenizer normalizes text
        return whole
    own, canonical = _boundaries(texts), _boundaries(whole_texts)
    shared = sorted(own.keys() & canonical.keys())
    found: list[int] = []
    at = 0
    for start, end in typed:
        low = max(each for each in shared if at <= each <= max(at, start))
        high = min(each for each in shared if each >= end)
        found += ids[own[at] : own[low]]
        found += whole[canonical[low] : canonical[high]]
        at = high
    found += ids[own[at] :]
    # An edit beside a token that ends inside a character leaves half of it.
    return found if TYPED not in found and "".join(_texts_of(tokenizer, found)) == text else whole


def _tokenized(
    tokenizer: TokenizerWrapper,
    prompt: Prompt,
    format: AnswerFormat | None,
    text: str,
    typed: Sequence[Span],
) -> list[int]:
    """The ids of `text` as an answer after `prompt`."""
    inner = inner_of(tokenizer)
    contents = list(_without_tags(text, typed, format))
    before = prompt.text[-_CONTEXT_CHARACTERS:]
    # After white space the answer continues the prompt's text. Otherwise it begins after a control token,
    # where a decoder drops the space that a SentencePiece tokenizer adds to the beginning of a text.
    if before[-1:].isspace():
        shifted = [(start + len(before), end + len(before)) for start, end in contents]
        first = encode(inner, before, (), prompt.rows).ids
        ids = encode(inner, before + text, shifted, prompt.rows).ids
        if ids[: len(first)] == first:
            return ids[len(first) :]
    return encode(inner, text, contents, prompt.rows).ids


def _without_tags(text: str, spans: Iterable[Span], format: AnswerFormat | None) -> Iterable[Span]:
    """`spans` without the tags around thoughts."""
    tags = {tag for each in format.thoughts for tag in (each.begin, each.end)} if format else set()
    tags = {tag for tag in (*tags, format.thought_end if format else "") if tag}
    pattern = re.compile("|".join(map(re.escape, tags)) or "(?!)")
    for start, end in spans:
        for tag in pattern.finditer(text, start, end):
            if start < tag.start():
                yield start, tag.start()
            start = tag.end()
        if start < end:
            yield start, end


def _texts_of(tokenizer: TokenizerWrapper, ids: Sequence[int]) -> list[str]:
    """The text of each token."""
    texts = TokenTexts(tokenizer)
    return [*(text for token in ids for text in texts.add(token)), *texts.finish()]


def _boundaries(texts: Sequence[str]) -> dict[int, int]:
    """The index of the first token from each token boundary on, by character offset.

    A token without text holds the first bytes of the next character.
    """
    found = {0: 0}
    at = 0
    for number, text in enumerate(texts, start=1):
        at += len(text)
        if text:
            found[at] = number
    return found
