"""Token counts of the composer's texts: which are known and which must be requested.

Counts are stored by text, so a chip is counted once however often the question changes. Only the newest texts
are remembered. Pure: it returns `Count` intents and receives the results; the caller decides when to send
them.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from app.session.turn.intents import Count


class TokenCounts:
    """Counts by one model's tokenizer; call `forget()` after another model is loaded."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._asked: dict[str, str] = {}
        self._numbers = count(1)

    def of(self, text: str) -> int | None:
        """Returns the tokens of `text`, None if unknown. The empty text has none."""
        return self._known.get(text) if text else 0

    def total(self, texts: Iterable[str]) -> int:
        """Returns the sum of the known counts of `texts`."""
        return sum(self.of(text) or 0 for text in texts)

    def know(self, text: str, tokens: int) -> None:
        """Store a count from elsewhere."""
        self._known[text] = tokens

    def asked(self, request: str) -> str:
        """Returns the text that `request` counts; empty for another request."""
        return self._asked.get(request, "")

    def ask(self, texts: Iterable[str]) -> tuple[Count, ...]:
        """Returns the counts to request. Forgets all texts but these."""
        wanted = {text for text in texts if text}
        self._known = {text: tokens for text, tokens in self._known.items() if text in wanted}
        open_texts = set(self._asked.values())
        asked = []
        for text in sorted(wanted - self._known.keys() - open_texts):
            request = f"count-{next(self._numbers)}"
            self._asked[request] = text
            asked.append(Count(request, text))
        return tuple(asked)

    def ask_also(self, text: str) -> tuple[Count, ...]:
        """Returns the count to request for `text`, nothing if it is known or requested."""
        if self.of(text) is not None or text in self._asked.values():
            return ()
        request = f"count-{next(self._numbers)}"
        self._asked[request] = text
        return (Count(request, text),)

    def answer(self, request: str, tokens: int | None) -> bool:
        """Store a result, None if the text could not be counted. Returns whether it was new."""
        text = self._asked.pop(request, None)
        if text is None or tokens is None:
            return False
        self._known[text] = tokens
        return True

    def forget(self) -> None:
        """Forget all counts: another tokenizer is loaded, or the worker will not answer."""
        self._known.clear()
        self._asked.clear()
