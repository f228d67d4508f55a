"""`frequency`: the most frequent continuation of the last tokens, longest context first (akunu's drafter).

Counts every run of 2 to order_max tokens in a window of the latest 512. To guess, looks up the last order_max
− 1 tokens, then one fewer, down to one. The most frequent follower, or the most recent of equally frequent
ones, is appended to the context for the next guess, up to k.

Invariant: the counts always equal a recount of the window. Work per token is O(orders).

Deviations from the source:
- The source keeps counts of tokens that left the window. Here they are removed, so memory is bounded and old
  text cannot outvote new text, which the source gives as the window's purpose.
- Keys are the ids themselves, not their FNV-1a hash: exact, and as fast in Python.
- Ties, which the source leaves open, go to the more recent follower.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import islice

from core.drafting.draft import NO_FACTS, Draft, Drafter, Facts
from core.events import Occupancy
from core.settings.drafting import Frequency

_WINDOW_TOKENS = 512


class FrequencyDrafter(Drafter):
    """Counts of one request."""

    def __init__(self, settings: Frequency) -> None:
        self._k = settings.k
        self._contexts = tuple(range(settings.order_max - 1, 0, -1))
        self._capacity = sum(max(0, _WINDOW_TOKENS - length) for length in self._contexts)
        self._reset()

    def begin(self, prompt: Sequence[int], facts: Facts = NO_FACTS) -> None:
        self._reset()
        self.observe(prompt)

    def observe(self, tokens: Sequence[int]) -> None:
        # Tokens that leave the window before the last one arrives need not be counted.
        skipped = max(0, len(tokens) - _WINDOW_TOKENS)
        if skipped:
            self._reset()
        for token in islice(tokens, skipped, None):
            if len(self._window) == _WINDOW_TOKENS:
                self._forget_oldest()
            self._count(token)

    def draft(self, budget: int) -> Draft:
        longest = self._contexts[0]
        tail = list(islice(reversed(self._window), longest))[::-1]
        known = len(tail)
        for _ in range(min(self._k, budget)):
            guess = self._guess(tail)
            if guess is None:
                break
            tail.append(guess)
        return Draft.chain(tail[known:])

    def occupancy(self) -> Occupancy:
        """Distinct counted runs, of the most that fit into the window."""
        return Occupancy(self._runs, self._capacity)

    def _guess(self, tail: list[int]) -> int | None:
        for length in self._contexts:
            if length <= len(tail) and (followers := self._followers.get(tuple(tail[-length:]))):
                return max(followers, key=followers.__getitem__)
        return None

    def _count(self, token: int) -> None:
        tail = tuple(islice(reversed(self._window), self._contexts[0]))[::-1]
        self._time += 1
        for length in self._contexts:
            if length <= len(tail):
                followers = self._followers.setdefault(tail[-length:], {})
                count = followers[token][0] if token in followers else 0
                followers[token] = count + 1, self._time
                self._runs += not count
        self._window.append(token)

    def _forget_oldest(self) -> None:
        """Removes the runs that start at the window's oldest token, then the token."""
        head = tuple(islice(self._window, self._contexts[0] + 1))
        for length in self._contexts:
            if length < len(head):
                followers, token = self._followers[head[:length]], head[length]
                count, latest = followers[token]
                if count > 1:
                    followers[token] = count - 1, latest
                    continue
                del followers[token]
                self._runs -= 1
                if not followers:
                    del self._followers[head[:length]]
        self._window.popleft()

    def _reset(self) -> None:
        self._window: deque[int] = deque()
        # Context → follower → how often and when last it followed.
        self._followers: dict[tuple[int, ...], dict[int, tuple[int, int]]] = {}
        self._runs = 0
        self._time = 0
