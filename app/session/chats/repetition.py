"""Repetition: whether an answer has begun to repeat itself for good. Pure.

A small model at temperature 0 can fall into a loop that only the token limit ends. The rule is meant to
be certain, not early: the same stretch of at most 96 tokens over and over, at least four times and for
240 tokens without one that differs. Tables, lists and code repeat their form, and not every token of it.
"""

from __future__ import annotations

LONGEST_PERIOD = 96
LEAST_TOKENS = 240
LEAST_TIMES = 4


class Repetition:
    """Of one answer. `add()` takes its token ids in order; a token costs a comparison a period."""

    def __init__(self) -> None:
        self._recent: list[int] = []
        # For each period, how many tokens in a row were the same as the one so many tokens before.
        self._same = [0] * (LONGEST_PERIOD + 1)

    def add(self, token_id: int) -> bool:
        """Whether with this token the end of the answer is a loop."""
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
