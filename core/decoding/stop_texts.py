"""StopTexts: ends an answer before the first stop text that it would write.

Tokens go through here once their texts are certain. Those whose text may be the beginning of a stop
text are held back, so that nothing of one is ever told. A stop text may begin and end inside tokens,
and inside accepted drafts. Pure; no mlx.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from core.events import Token


class StopTexts:
    """Of one answer. `stops` are texts, none of them empty; without any, tokens pass at once.

    `whole`: how many tokens were told with all their text. `stopped_by`: the stop text that came; after
    it nothing is told.
    """

    def __init__(self, stops: Sequence[str] = ()) -> None:
        self._stops = stops
        self._held: list[Token] = []
        self.whole = 0
        self.stopped_by = ""

    def add(self, token: Token) -> Iterator[Token]:
        """Take the next token; the tokens that can be told now, oldest first."""
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
            yield from self._until(at)
            self._held.clear()
        else:
            yield from self._until(len(text) - max(_begun(text, stop) for stop in self._stops))

    def finish(self) -> Iterator[Token]:
        """The answer has ended: what is held back is told."""
        held, self._held = self._held, []
        self.whole += len(held)
        yield from held

    def _until(self, end: int) -> Iterator[Token]:
        """Tell the held tokens of the first `end` characters of what is held.

        A token that goes on behind them is held, or told in part where the answer has stopped. A token
        without text right before them is held, too: it has the first bytes of the character that follows.
        """
        at, length = 0, sum(len(held.text) for held in self._held)
        while self._held:
            size = len(self._held[0].text)
            if at + size > end or (not size and at == end < length):
                break
            at += size
            self.whole += 1
            yield self._held.pop(0)
        if self.stopped_by and at < end:
            yield replace(self._held[0], text=self._held[0].text[: end - at])


def _begun(text: str, stop: str) -> int:
    """How many characters at the end of `text` may be the beginning of `stop`."""
    longest = min(len(text), len(stop) - 1)
    return next((size for size in range(longest, 0, -1) if text.endswith(stop[:size])), 0)
