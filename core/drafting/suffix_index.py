"""SuffixIndex: every suffix of the text, with its last occurrence, number of occurrences and followers.

A suffix automaton, built online. A *state* (int) is a set of strings that occur at exactly the same end
offsets; `ROOT` is the empty string. Suffix links lead from `longest_suffix()` through every suffix of the
text that occurred before, longest first. A new token adds at most two states, O(1) amortised.

Invariants, for a text within the limits below: a state's `count` is the number of end offsets of its strings,
`latest` the last one and `before` the one before that (end-exclusive, −1 if there is none), including the end
of the text.

Two limits keep the work per token constant and the memory small:
- Only the `REFRESHED` longest suffixes get their counts and ends updated with a token. This matters in
  monotonous text (“aaaa…”), where every length is a separate state: there the short contexts look rarer and
  older than they are, and the long ones decide anyway.
- At `capacity_tokens` the older half is dropped. A second index, fed with the newer half as it arrives, takes
  over, so no step pays for building it.

Most states have one follower, kept in two flat arrays; only forks have a dict. A state takes 32 bytes, and a
token adds at most two.

Source: Blumer et al., “The smallest automaton recognizing the subwords of a text” (1985). Keeping counts and
ends online along the chain of suffixes is ours.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence

ROOT = 0
ABSENT = -1
REFRESHED = 24


class SuffixIndex:
    """`text` holds the indexed tokens; element i is the token that follows end offset i."""

    def __init__(self, capacity_tokens: int, refreshed: int = REFRESHED) -> None:
        self._capacity = max(2, capacity_tokens)
        self._refreshed = refreshed
        self._newer_half: SuffixIndex | None = None
        self.text: list[int] = []
        # Tokens dropped before text[0].
        self.dropped: int = 0
        self._last_state = ROOT
        self._lengths = array("i", [0])
        self._suffix_links = array("i", [ABSENT])
        self.count = array("i", [0])
        self.latest = array("i", [ABSENT])
        self.before = array("i", [ABSENT])
        self._follower: list[int] = [0]
        self._next = array("i", [ABSENT])
        self._forks: dict[int, dict[int, int]] = {}

    def __len__(self) -> int:
        """Tokens held."""
        return len(self.text)

    @property
    def capacity_tokens(self) -> int:
        return self._capacity

    def extend(self, tokens: Sequence[int]) -> None:
        """Appends `tokens`."""
        for token in tokens:
            self.append(token)

    def append(self, token: int) -> None:
        """Appends `token`."""
        if len(self.text) >= self._capacity:
            self._forget_older_half()
        if len(self.text) >= self._capacity - self._capacity // 2:
            if self._newer_half is None:
                self._newer_half = SuffixIndex(self._capacity, self._refreshed)
            self._newer_half.append(token)
        self._append(token)

    # ---- looking up

    def longest_suffix(self) -> int:
        """The state of the longest suffix of the text that occurred earlier; `ROOT` if none did."""
        return max(self._suffix_links[self._last_state], ROOT)

    def suffix_link(self, state: int) -> int:
        """The state of the longest shorter suffix that also occurs elsewhere; `ABSENT` for `ROOT`."""
        return self._suffix_links[state]

    def length(self, state: int) -> int:
        """Length in tokens of the longest string of `state`."""
        return self._lengths[state]

    def transition(self, state: int, token: int) -> int:
        """The state of `state` followed by `token`; `ABSENT` if that never occurred."""
        fork = self._forks.get(state)
        if fork is not None:
            return fork.get(token, ABSENT)
        next_state = self._next[state]
        return next_state if next_state >= 0 and self._follower[state] == token else ABSENT

    def advance(self, state: int, length: int, token: int) -> tuple[int, int]:
        """The longest suffix of a string followed by `token` that occurs in the text: its state and length.

        The longest suffix of the string itself that occurs is the one of `length` tokens in `state`.
        """
        onward = self.transition(state, token)
        while onward < 0 and state > ROOT:
            state = self._suffix_links[state]
            length = self._lengths[state]
            onward = self.transition(state, token)
        return (onward, length + 1) if onward >= 0 else (ROOT, 0)

    def follower_count(self, state: int) -> int:
        """Number of different tokens that followed `state`."""
        fork = self._forks.get(state)
        return len(fork) if fork is not None else int(self._next[state] >= 0)

    def followers(self, state: int) -> Iterator[tuple[int, int]]:
        """Each token that followed `state`, and the state it leads to, oldest first."""
        fork = self._forks.get(state)
        if fork is not None:
            yield from fork.items()
        elif self._next[state] >= 0:
            yield self._follower[state], self._next[state]

    def newest_follower(self, state: int) -> int:
        """Offset of the token that last followed `state`; `ABSENT` if there is none yet."""
        end = self.latest[state]
        if end == len(self.text):
            end = self.before[state]
        return end

    # ---- building

    def _append(self, token: int) -> None:
        length, up, text = self._lengths, self._suffix_links, self.text
        end = len(text) + 1
        new = self._new_state(end, token_end=end, count=1)
        state = self._last_state
        while state >= 0 and self.transition(state, token) < 0:
            self._set_transition(state, token, new)
            state = up[state]
        if state < 0:
            up[new] = ROOT
        else:
            target = self.transition(state, token)
            if length[target] != length[state] + 1:
                target = self._split(state, token, target)
            up[new] = target
        text.append(token)
        self._last_state = new
        state = up[new]
        count, latest, before = self.count, self.latest, self.before
        for _ in range(self._refreshed):
            if state <= ROOT:
                break
            count[state] += 1
            before[state] = latest[state]
            latest[state] = end
            state = up[state]

    def _new_state(self, length: int, *, token_end: int, count: int) -> int:
        self._lengths.append(length)
        self._suffix_links.append(ABSENT)
        self.count.append(count)
        self.latest.append(token_end)
        self.before.append(ABSENT)
        self._follower.append(0)
        self._next.append(ABSENT)
        return len(self._lengths) - 1

    def _set_transition(self, state: int, token: int, target: int) -> None:
        """Makes `token` lead from `state` to `target`."""
        fork = self._forks.get(state)
        if fork is not None:
            fork[token] = target
        elif self._next[state] < 0 or self._follower[state] == token:
            self._follower[state], self._next[state] = token, target
        else:
            self._forks[state] = {self._follower[state]: self._next[state], token: target}

    def _split(self, state: int, token: int, target: int) -> int:
        """Splits `target` into the strings that end in the shorter suffix and the longer ones."""
        shorter = self._new_state(
            self._lengths[state] + 1, token_end=self.latest[target], count=self.count[target]
        )
        self.before[shorter] = self.before[target]
        self._follower[shorter], self._next[shorter] = self._follower[target], self._next[target]
        fork = self._forks.get(target)
        if fork is not None:
            self._forks[shorter] = dict(fork)
        self._suffix_links[shorter] = self._suffix_links[target]
        self._suffix_links[target] = shorter
        while state >= 0 and self.transition(state, token) == target:
            self._set_transition(state, token, shorter)
            state = self._suffix_links[state]
        return shorter

    def _forget_older_half(self) -> None:
        newer = (
            self._newer_half if self._newer_half is not None else SuffixIndex(self._capacity, self._refreshed)
        )
        dropped = self.dropped + len(self.text) - len(newer.text)
        self.__dict__.update(newer.__dict__)
        self.dropped = dropped
