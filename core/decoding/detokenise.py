"""TokenTexts: the text of each token of an answer, exactly once, in order.

Segments of mlx-lm's streaming detokenizers are not one to one with tokens: a lone space or the
first bytes of a character give nothing, and arrive with a later token. Tokens wait here until
their text is certain, and a segment that ends several tokens is divided among them: each owns
the characters it completes. So the texts concatenate to the answer, a token that only began a
character has empty text, and a space belongs to the token that is the space.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlx_lm.tokenizer_utils import TokenizerWrapper

_INCOMPLETE = "\ufffd"


class TokenTexts:
    """One answer's detokeniser. Stop tokens are never passed to it."""

    def __init__(self, tokenizer: TokenizerWrapper) -> None:
        self._tokenizer = tokenizer
        self._stream = tokenizer.detokenizer
        self._stream.reset()
        self._waiting: list[int] = []

    def add(self, token: int) -> Iterator[str]:
        """Take the next token; yields the texts that are now certain, oldest token first."""
        self._waiting.append(token)
        self._stream.add_token(token)
        segment = self._stream.last_segment
        if segment:
            yield from self._divide(segment)

    def finish(self) -> Iterator[str]:
        """The answer has ended; yields the texts of all tokens that still wait."""
        if not self._waiting:
            return
        self._stream.finalize()
        yield from self._divide(self._stream.last_segment)

    def _divide(self, segment: str) -> Iterator[str]:
        waiting, self._waiting = self._waiting, []
        cut = 0
        for count in range(1, len(waiting)):
            whole = self._tokenizer.decode(waiting[:count]).rstrip(_INCOMPLETE)
            # Where decoding a part disagrees with the stream (cleaned spaces), the last token owns it.
            end = len(whole) if len(whole) >= cut and segment.startswith(whole) else cut
            yield segment[cut:end]
            cut = end
        yield segment[cut:]
