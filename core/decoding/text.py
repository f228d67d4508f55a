"""Text of an answer's tokens: detokenisation and stop texts."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence

from mlx_lm.tokenizer_utils import TokenizerWrapper
from msgspec.structs import replace

from core.events import Token
from core.events.wire import well_formed
from core.models.decoders import decoder_facts

_INCOMPLETE = "\ufffd"
_MOST_INCOMPLETE = 3  # bytes of a character without its last byte
_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_LONGEST_RUN = 64
# Longest text that clean-up of spaces considers (" n't"), plus one character.
_CLEANED = 5
# Window length at which it is halved, and characters before the new ones that must stay unchanged.
_CUT_TOKENS = 24
_KEPT_CHARACTERS = 4


class TokenTexts:
    """One answer's detokeniser: the text of each token, exactly once, in order. Stop tokens are never passed
    to it.

    The texts concatenate to `tokenizer.decode(answer)`, for any tokenizer. For each token the last tokens
    are decoded again: a window that is shortened at its beginning where this leaves the text after it
    unchanged. Of the window's text, only what later tokens cannot change is certain. Not certain are

        the first bytes of a character         until its last byte arrives
        a run of byte-fallback tokens          until it ends or exceeds `_LONGEST_RUN`: the decoder replaces
                                               all of its characters if one byte is invalid
        spaces that the decoder may remove     until the next words

    A token owns the characters that it completes; one that only begins a character has empty text.

    `tokenizer`: as the loader makes it, which repairs a wrong decoder.
    `before`: tokens of the same text that precede the answer: the beginning of a continued answer, or a
    prompt without a template. A space at the beginning of the answer is kept, and a character that they
    begin is completed.
    """

    def __init__(self, tokenizer: TokenizerWrapper, before: Sequence[int] = ()) -> None:
        self._tokenizer = tokenizer
        self._facts = decoder_facts(tokenizer)
        self._window: list[int] = []
        self._cut_at = _CUT_TOKENS
        self._length = 0  # length of the window's text when last decoded
        self._run = _Run(0)
        self._done = 0  # characters of the window's text that were yielded or precede the answer
        self._ends: list[int] = []  # ends of the waiting tokens' characters in the window's text
        self._begun = 0  # last waiting tokens after which a character was incomplete
        first = max(0, len(before) - _CUT_TOKENS // 2)
        while first and self._byte_of(before[first]) is not None:
            first -= 1
        for token in before[first:]:
            self._append(token)
            if not self._run.bytes:
                self._decoded()
        self._done = self._complete(self._decoded())

    def add(self, token: int) -> Iterator[str]:
        """Appends a token; yields the texts that are now certain, oldest token first."""
        self._append(token)
        run = self._run
        if run.bytes and run.is_utf8 and len(run.bytes) <= _LONGEST_RUN:
            self._ends.append(run.start + run.characters)
            return
        text = self._decoded()
        complete = self._complete(text)
        self._ends.append(max(complete, self._ends[-1] if self._ends else self._done))
        self._begun = self._begun + 1 if complete < len(text) else 0
        certain = self._certain(text, complete)
        count = min(sum(1 for end in self._ends if end <= certain), len(self._ends) - self._begun)
        yield from self._divide(text, count)
        if len(self._window) >= self._cut_at:
            self._cut(text)

    def finish(self) -> Iterator[str]:
        """Ends the answer; yields the texts of all waiting tokens."""
        if self._ends:
            text = self._decoded()
            self._ends[-1] = len(text)
            yield from self._divide(text, len(self._ends))

    def alternative(self, *tokens: int) -> str:
        """The text that `tokens` would add as the next ones."""
        known = str(self._tokenizer.decode(self._window)) if self._window else ""
        text = str(self._tokenizer.decode([*self._window, *tokens]))
        return well_formed(text[len(known.rstrip(_INCOMPLETE)) :])

    def _divide(self, text: str, count: int) -> Iterator[str]:
        ends, self._ends = self._ends[:count], self._ends[count:]
        for end in ends:
            start, self._done = self._done, max(self._done, end)
            yield well_formed(text[start : self._done])

    # ---- the window

    def _append(self, token: int) -> None:
        self._window.append(token)
        value = self._byte_of(token)
        if value is None:
            self._run = _Run(0)
        else:
            if not self._run.bytes:
                self._run = _Run(self._length)
            self._run.add(value)

    def _byte_of(self, token: int) -> int | None:
        if not self._facts.falls_back:
            return None
        piece = self._tokenizer.convert_ids_to_tokens(token)
        found = _BYTE.fullmatch(piece) if isinstance(piece, str) else None
        return int(found[1], 16) if found else None

    def _decoded(self) -> str:
        text = str(self._tokenizer.decode(self._window)) if self._window else ""
        self._length = len(text)
        return text

    def _complete(self, text: str) -> int:
        """Number of complete characters of the window's `text`."""
        if self._run.bytes:
            return self._run.start if self._run.is_begun else len(text)
        whole = len(text)
        while whole and len(text) - whole < _MOST_INCOMPLETE and text[whole - 1] == _INCOMPLETE:
            whole -= 1
        return whole

    def _certain(self, text: str, complete: int) -> int:
        """Number of characters of the window's `text` that no later token can change."""
        if self._facts.cleans:
            space = text.find(" ", max(0, complete - _CLEANED), complete)
            return complete if space < 0 else space
        return complete

    def _cut(self, text: str) -> None:
        """Drops the window's first tokens if the text after them stays unchanged."""
        window = self._window
        first = min(len(window) // 2 - len(self._ends), len(window) - len(self._run.bytes) - 1)
        rest = str(self._tokenizer.decode(window[first:])) if first > 0 else ""
        kept = len(text) - max(0, self._done - _KEPT_CHARACTERS)
        if len(rest) > kept and rest.endswith(text[len(text) - kept :]):
            dropped = len(text) - len(rest)
            self._window = window[first:]
            self._length -= dropped
            self._run.start -= dropped
            self._done -= dropped
            self._ends = [end - dropped for end in self._ends]
            self._cut_at = _CUT_TOKENS
        else:
            self._cut_at = len(window) * 3 // 2


class _Run:
    """The byte-fallback tokens at the window's end; `start` is the offset of their text in the window's
    text.
    """

    def __init__(self, start: int) -> None:
        self.start = start
        self.bytes = bytearray()
        self.characters = 0
        self.is_utf8 = True  # whether the bytes are UTF-8, or a prefix of it
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def add(self, value: int) -> None:
        self.bytes.append(value)
        try:
            self.characters += len(self._decoder.decode(bytes([value]))) if self.is_utf8 else 1
        except UnicodeDecodeError:
            self.is_utf8 = False

    @property
    def is_begun(self) -> bool:
        """Whether the last character lacks bytes."""
        return self.is_utf8 and bool(self._decoder.getstate()[0])


class StopTexts:
    """Ends an answer before the first stop text in it. Pure.

    Tokens are added once their texts are certain. Tokens whose text may be the beginning of a stop text are
    held back, so no part of one is emitted. A stop text may begin and end inside tokens and inside accepted
    drafts.

    `stops` are non-empty texts; without any, tokens pass at once. `complete_tokens`: tokens emitted with
    their whole text. `stopped_by`: the stop text that occurred; nothing is emitted after it.
    """

    def __init__(self, stops: Sequence[str] = ()) -> None:
        self._stops = stops
        self._held: list[Token] = []
        self.complete_tokens = 0
        self.stopped_by = ""

    def add(self, token: Token) -> Iterator[Token]:
        """Adds the next token; yields the tokens that can be emitted now, oldest first."""
        if self.stopped_by:
            return
        self._held.append(token)
        if not self._stops:
            yield from self.finish()
            return
        text = "".join(held.text for held in self._held)
        found = [(at, -len(stop), stop) for stop in self._stops if (at := text.find(stop)) >= 0]
        if found:
            at, _, self.stopped_by = min(found)
            yield from self._release(at)
            self._held.clear()
        else:
            yield from self._release(len(text) - max(_partial_match(text, stop) for stop in self._stops))

    def finish(self) -> Iterator[Token]:
        """Ends the answer; yields the tokens that are held back."""
        held, self._held = self._held, []
        self.complete_tokens += len(held)
        yield from held

    def _release(self, end: int) -> Iterator[Token]:
        """Yields the held tokens of the first `end` characters of the held text.

        A token that extends beyond is held, or truncated if the answer has stopped. A token without text
        right before `end` is also held, because it holds the first bytes of the next character.
        """
        at, length = 0, sum(len(held.text) for held in self._held)
        while self._held:
            size = len(self._held[0].text)
            if at + size > end or (not size and at == end < length):
                break
            at += size
            self.complete_tokens += 1
            yield self._held.pop(0)
        if self.stopped_by and at < end:
            yield replace(self._held[0], text=self._held[0].text[: end - at])


def _partial_match(text: str, stop: str) -> int:
    """Length of the longest end of `text` that is a proper prefix of `stop`."""
    longest = min(len(text), len(stop) - 1)
    return next((size for size in range(longest, 0, -1) if text.endswith(stop[:size])), 0)
