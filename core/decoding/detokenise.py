"""TokenTexts: the text of each token of an answer, exactly once, in order.

Segments of mlx-lm's streaming detokenizers are not one to one with tokens: a lone space or the
first bytes of a character give nothing, and arrive with a later token. Tokens wait here until
their text is certain, and a segment that ends several tokens is divided among them: each owns
the characters it completes. So the texts concatenate to the answer, a token that only began a
character has empty text, and a space belongs to the token that is the space.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlx_lm.tokenizer_utils import StreamingDetokenizer, TokenizerWrapper

from core.events.text import well_formed

_INCOMPLETE = "\ufffd"


class TokenTexts:
    """One answer's detokeniser. Stop tokens are never passed to it.

    `before` are tokens of the answer whose texts were told by another one: what comes goes on from
    them, so a space at its beginning stays, and a character whose first bytes they are is whole.
    """

    def __init__(self, tokenizer: TokenizerWrapper, before: Sequence[int] = ()) -> None:
        self._tokenizer = tokenizer
        self._stream = tokenizer.detokenizer
        self._stream.reset()
        self._waiting: list[int] = []
        self._told = ""
        if before:
            _feed(self._stream, before)
            self._told = _end_of(tokenizer, before).rstrip(_INCOMPLETE)

    def add(self, token: int) -> Iterator[str]:
        """Take the next token; yields the texts that are now certain, oldest token first."""
        self._waiting.append(token)
        self._stream.add_token(token)
        segment = self._stream.last_segment
        if segment:
            # What was held back at the end of `before` was told when that ended.
            told, self._told = self._told, ""
            yield from self._divide(segment.removeprefix(told))

    def finish(self) -> Iterator[str]:
        """The answer has ended; yields the texts of all tokens that still wait."""
        if not self._waiting:
            return
        self._stream.finalize()
        yield from self._divide(self._stream.last_segment.removeprefix(self._told))

    def _divide(self, segment: str) -> Iterator[str]:
        waiting, self._waiting = self._waiting, []
        segment = well_formed(segment)
        cut = 0
        for count in range(1, len(waiting)):
            whole = self._tokenizer.decode(waiting[:count]).rstrip(_INCOMPLETE)
            # Where decoding a part disagrees with the stream (cleaned spaces), the last token owns it.
            end = len(whole) if len(whole) >= cut and segment.startswith(whole) else cut
            yield segment[cut:end]
            cut = end
        yield segment[cut:]


def _feed(stream: StreamingDetokenizer, tokens: Sequence[int]) -> None:
    """Take `tokens`, whose texts are of no interest."""
    for token in tokens:
        stream.add_token(token)
    _ = stream.last_segment


def _end_of(tokenizer: TokenizerWrapper, tokens: Sequence[int]) -> str:
    """What the end of an answer adds to the texts of its `tokens`: a lone space, half a character."""
    stream = tokenizer.detokenizer
    stream.reset()
    _feed(stream, tokens)
    stream.finalize()
    return str(stream.last_segment)
