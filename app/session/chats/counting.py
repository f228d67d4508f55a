"""TokenCounts: which texts of the composer still need counting, and what is known.

Counts are kept by text, so a chip is counted once however often the question beside it
changes. Only the newest texts are remembered. Pure: it makes `Count` intents and is told
the results; when to ask is the window's business.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from app.session.turn.intents import Count


class TokenCounts:
    """Counts of one model's tokenizer; `forget()` when another model is loaded."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._asked: dict[str, str] = {}
        self._numbers = count(1)

    def of(self, text: str) -> int | None:
        """The tokens of `text`, or None while that is not known. Nothing has no tokens."""
        return self._known.get(text) if text else 0

    def total(self, texts: Iterable[str]) -> int:
        """The tokens of all that is known of `texts`."""
        return sum(self.of(text) or 0 for text in texts)

    def know(self, text: str, tokens: int) -> None:
        """The tokens of `text`, counted before."""
        self._known[text] = tokens

    def asked(self, request: str) -> str:
        """Which text `request` counts; empty if it is none of these."""
        return self._asked.get(request, "")

    def ask(self, texts: Iterable[str]) -> tuple[Count, ...]:
        """What to count now. Forgets all texts but these."""
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
        """What to count to know `text` as well; nothing if that is known or asked already."""
        if self.of(text) is not None or text in self._asked.values():
            return ()
        request = f"count-{next(self._numbers)}"
        self._asked[request] = text
        return (Count(request, text),)

    def answer(self, request: str, tokens: int | None) -> bool:
        """Take a result; True if it is news. None means that it could not be counted."""
        text = self._asked.pop(request, None)
        if text is None or tokens is None:
            return False
        self._known[text] = tokens
        return True

    def forget(self) -> None:
        """Another tokenizer, or a worker that will not answer: all is open again."""
        self._known.clear()
        self._asked.clear()
