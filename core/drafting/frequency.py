"""`frequency`: the most frequent continuation of the last tokens, longest context first (akunu's drafter).

Counts every run of 2 to order_max tokens in a window of the latest 512. To guess, looks up the last order_max
− 1 tokens, then one fewer, down to one. The most frequent follower, or the most recent of equally frequent
ones, is appended to the context for the next guess, up to k.

Invariant: the counts always equal a recount of the window. Work per token is O(orders): the best follower is
maintained as counts rise, and searched for only after its count fell.

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

from core.drafting.draft import Draft, Drafter
from core.events import Occupancy
from core.settings.drafting import Frequency


class _Followers:
    """Counts and last occurrences of the followers of one context. `_best` is None if it is unknown."""

    __slots__ = ("_best", "_counts", "_latest")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._latest: dict[int, int] = {}
        self._best: int | None = None

    def __len__(self) -> int:
        return len(self._counts)

    def add(self, token: int, time: int) -> bool:
        """Counts one more `token` at `time`. Returns whether it is a new follower."""
        counts = self._counts
        before = counts.get(token, 0)
        counts[token] = before + 1
        self._latest[token] = time
        # The newest follower wins ties, so an equal count is enough.
        best = self._best
        if len(counts) == 1 or (best is not None and before + 1 >= counts[best]):
            self._best = token
        return not before

    def remove(self, token: int) -> bool:
        """Counts one fewer `token`. Returns whether its count reached 0."""
        if token == self._best:
            self._best = None
        self._counts[token] -= 1
        if self._counts[token]:
            return False
        del self._counts[token], self._latest[token]
        return True

    def best(self) -> int:
        """The most frequent follower; the most recent of equally frequent ones."""
        if self._best is None:
            counts, latest = self._counts, self._latest
            self._best = max(counts, key=lambda token: (counts[token], latest[token]))
        return self._best


_WINDOW_TOKENS = 512


class FrequencyDrafter(Drafter):
    """Counts of one request."""

    def __init__(self, settings: Frequency) -> None:
        self._k = settings.k
        self._contexts = tuple(range(settings.order_max - 1, 0, -1))
        self._capacity = sum(max(0, _WINDOW_TOKENS - length) for length in self._contexts)
        self._reset()

    def begin(self, prompt: Sequence[int]) -> None:
        self._reset()
        self.observe(prompt)

    def observe(self, tokens: Sequence[int]) -> None:
        # Tokens that leave the window before the last one arrives need not be counted.
        skipped = max(0, len(tokens) - _WINDOW_TOKENS)
        if skipped:
            self._reset(time=self._time + skipped)
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
            if length <= len(tail):
                followers = self._tables[length].get(tuple(tail[-length:]))
                if followers is not None:
                    return followers.best()
        return None

    def _count(self, token: int) -> None:
        tail = tuple(islice(reversed(self._window), self._contexts[0]))[::-1]
        self._time += 1
        for length in self._contexts:
            if length <= len(tail):
                table, context = self._tables[length], tail[-length:]
                followers = table.get(context)
                if followers is None:
                    followers = table[context] = _Followers()
                self._runs += followers.add(token, self._time)
        self._window.append(token)

    def _forget_oldest(self) -> None:
        """Removes the runs that start at the window's oldest token, then the token."""
        head = tuple(islice(self._window, self._contexts[0] + 1))
        for length in self._contexts:
            if length < len(head):
                context = head[:length]
                followers = self._tables[length][context]
                self._runs -= followers.remove(head[length])
                if not len(followers):
                    del self._tables[length][context]
        self._window.popleft()

    def _reset(self, time: int = 0) -> None:
        self._window: deque[int] = deque()
        self._tables: dict[int, dict[tuple[int, ...], _Followers]] = {n: {} for n in self._contexts}
        self._runs = 0
        self._time = time
