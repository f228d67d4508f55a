"""Detects an answer that repeats itself without end. Pure.

A small model at temperature 0 can enter a loop that only the token limit ends. The rule avoids false alarms
rather than reacting early: the same stretch of at most 96 tokens, at least four times and over 240 tokens,
without a differing token. Tables, lists and code repeat their form, but not every token.
"""

from __future__ import annotations

LONGEST_PERIOD = 96
LEAST_TOKENS = 240
LEAST_TIMES = 4


class Repetition:
    """State for one answer. `add()` takes its token ids in order; a token costs one comparison per period."""

    def __init__(self) -> None:
        self._recent: list[int] = []
        # For each period: the number of consecutive tokens equal to the token one period before.
        self._same = [0] * (LONGEST_PERIOD + 1)

    def add(self, token_id: int) -> bool:
        """Whether the answer ends in a loop after this token."""
        recent, same = self._recent, self._same
        looping = False
        for period in range(1, min(LONGEST_PERIOD, len(recent)) + 1):
            if recent[-period] == token_id:
                same[period] += 1
                if same[period] + period >= max(LEAST_TOKENS, LEAST_TIMES * period):
                    looping = True
            else:
                same[period] = 0
        recent.append(token_id)
        if len(recent) > 2 * LONGEST_PERIOD:
            del recent[:LONGEST_PERIOD]
        return looping
