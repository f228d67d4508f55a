"""SuffixIndex: every suffix of what was said, where it last occurred, how often, and what followed.

A suffix automaton, built online. A *place* (int) is a set of strings that occur at exactly the
same ends; `ROOT` is the empty string. `up(place)` is the place of the longest shorter suffix that
also occurs elsewhere, so the chain from `tip()` upwards is every suffix of the text that has
occurred before, longest first. A new token makes at most two places, O(1) amortised.

Invariants, for a text shorter than the limits below: a place's `count` is the number of ends of
its strings, `latest` the last of them, `before` the one before that (end-exclusive offsets, −1
where there is none), the text's own end included.

Two bounds keep the work a token constant and the memory small:
- Only the `REFRESHED` longest suffixes get their counts and ends updated with a token. This
  matters in monotonous text ("aaaa…"), where every length is a place of its own: there the short
  contexts look rarer and older than they are, and the long ones decide anyway.
- At `capacity_tokens` the older half is forgotten. A second index, which is fed the newer half as
  it comes, takes over, so no step pays for building it.

Most places have one follower. It is kept in two flat arrays, and only forks get a dict: a place
takes 32 bytes, a token makes at most two. Knows no drafter; any int is a token.

Source: Blumer et al., "The smallest automaton recognizing the subwords of a text" (1985). Beyond
it: counts and ends kept online along the chain of suffixes.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence

ROOT = 0
NOWHERE = -1
REFRESHED = 24


class SuffixIndex:
    """`text` is what is indexed; its element i is the token that follows end i."""

    def __init__(self, capacity_tokens: int, refreshed: int = REFRESHED) -> None:
        self._capacity = max(2, capacity_tokens)
        self._refreshed = refreshed
        self._young: SuffixIndex | None = None
        self.text: list[int] = []
        # How many tokens were forgotten before text[0].
        self.dropped: int = 0
        self._tip = ROOT
        self._length = array("i", [0])
        self._up = array("i", [NOWHERE])
        self.count = array("i", [0])
        self.latest = array("i", [NOWHERE])
        self.before = array("i", [NOWHERE])
        self._follower: list[int] = [0]
        self._next = array("i", [NOWHERE])
        self._forks: dict[int, dict[int, int]] = {}

    def __len__(self) -> int:
        """Tokens held."""
        return len(self.text)

    @property
    def capacity_tokens(self) -> int:
        return self._capacity

    def extend(self, tokens: Sequence[int]) -> None:
        """Append `tokens`."""
        for token in tokens:
            self.append(token)

    def append(self, token: int) -> None:
        """The text now ends with `token`."""
        if len(self.text) >= self._capacity:
            self._forget_older_half()
        if len(self.text) >= self._capacity - self._capacity // 2:
            if self._young is None:
                self._young = SuffixIndex(self._capacity, self._refreshed)
            self._young.append(token)
        self._add(token)

    # ---- looking up

    def tip(self) -> int:
        """The place of the longest suffix of the text that occurred earlier; `ROOT` if none did."""
        return max(self._up[self._tip], ROOT)

    def up(self, place: int) -> int:
        """The place of the longest shorter suffix that occurs elsewhere too; `NOWHERE` above `ROOT`."""
        return self._up[place]

    def length(self, place: int) -> int:
        """Tokens in the longest string of `place`."""
        return self._length[place]

    def step(self, place: int, token: int) -> int:
        """Where `place` followed by `token` is; `NOWHERE` if that was never said."""
        fork = self._forks.get(place)
        if fork is not None:
            return fork.get(token, NOWHERE)
        next_place = self._next[place]
        return next_place if next_place >= 0 and self._follower[place] == token else NOWHERE

    def fan(self, place: int) -> int:
        """How many different tokens followed `place`."""
        fork = self._forks.get(place)
        return len(fork) if fork is not None else int(self._next[place] >= 0)

    def followers(self, place: int) -> Iterator[tuple[int, int]]:
        """What followed `place`, with the place that leads to, oldest first."""
        fork = self._forks.get(place)
        if fork is not None:
            yield from fork.items()
        elif self._next[place] >= 0:
            yield self._follower[place], self._next[place]

    def newest(self, place: int) -> int:
        """The offset of the token that last followed `place`; `NOWHERE` if nothing did yet."""
        end = self.latest[place]
        if end == len(self.text):
            end = self.before[place]
        return end

    # ---- building

    def _add(self, token: int) -> None:
        length, up, text = self._length, self._up, self.text
        end = len(text) + 1
        new = self._place(end, token_end=end, count=1)
        place = self._tip
        while place >= 0 and self.step(place, token) < 0:
            self._lead(place, token, new)
            place = up[place]
        if place < 0:
            up[new] = ROOT
        else:
            target = self.step(place, token)
            if length[target] != length[place] + 1:
                target = self._split(place, token, target)
            up[new] = target
        text.append(token)
        self._tip = new
        place = up[new]
        count, latest, before = self.count, self.latest, self.before
        for _ in range(self._refreshed):
            if place <= ROOT:
                break
            count[place] += 1
            before[place] = latest[place]
            latest[place] = end
            place = up[place]

    def _place(self, length: int, *, token_end: int, count: int) -> int:
        self._length.append(length)
        self._up.append(NOWHERE)
        self.count.append(count)
        self.latest.append(token_end)
        self.before.append(NOWHERE)
        self._follower.append(0)
        self._next.append(NOWHERE)
        return len(self._length) - 1

    def _lead(self, place: int, token: int, target: int) -> None:
        """From now on `token` leads from `place` to `target`."""
        fork = self._forks.get(place)
        if fork is not None:
            fork[token] = target
        elif self._next[place] < 0 or self._follower[place] == token:
            self._follower[place], self._next[place] = token, target
        else:
            self._forks[place] = {self._follower[place]: self._next[place], token: target}

    def _split(self, place: int, token: int, target: int) -> int:
        """Part the strings of `target` that end in a shorter suffix from the longer ones."""
        shorter = self._place(
            self._length[place] + 1, token_end=self.latest[target], count=self.count[target]
        )
        self.before[shorter] = self.before[target]
        self._follower[shorter], self._next[shorter] = self._follower[target], self._next[target]
        fork = self._forks.get(target)
        if fork is not None:
            self._forks[shorter] = dict(fork)
        self._up[shorter] = self._up[target]
        self._up[target] = shorter
        while place >= 0 and self.step(place, token) == target:
            self._lead(place, token, shorter)
            place = self._up[place]
        return shorter

    def _forget_older_half(self) -> None:
        young = self._young if self._young is not None else SuffixIndex(self._capacity, self._refreshed)
        dropped = self.dropped + len(self.text) - len(young.text)
        self.__dict__.update(young.__dict__)
        self.dropped = dropped
