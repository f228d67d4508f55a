"""A suffix automaton over words: the longest match of a growing text in a document, in linear time.

Blumer et al., "The smallest automaton recognizing the subwords of a text" (1985); built word by word. State
`s` up to the number of words is the document's prefix of `s` words, whose transition with the next word
leads to `s + 1` and is not stored; later states are clones. For documents of natural language that leaves
less than one stored transition for each word.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence


class Automaton:
    """The automaton of the words `ids`, which must not change. `extend` builds it in linear time."""

    def __init__(self, ids: Sequence[int]) -> None:
        self._ids = ids
        self._words = len(ids)
        self._links = array("i", [-1]) * (self._words + 1)
        # For a prefix of the document both are its number of words; set when the state is added.
        self._lengths = array("i", [0]) * (self._words + 1)
        self._firsts = array("i", [0]) * (self._words + 1)
        self._more: dict[int, dict[int, int]] = {}
        self.built = 0

    def extend(self, words: int) -> bool:
        """Add up to `words` more words. Returns whether the automaton is complete."""
        end = min(self._words, self.built + words)
        for at in range(self.built, end):
            self._add(at)
        self.built = end
        return end == self._words

    def _add(self, at: int) -> None:
        ids, links, more, total = self._ids, self._links, self._more, self._words
        word, new = ids[at], at + 1
        self._lengths[new] = self._firsts[new] = new
        state = links[at]
        target = -1
        while state != -1:
            if state < total and ids[state] == word:
                target = state + 1
                break
            others = more.get(state)
            if others is None:
                more[state] = {word: new}
            elif word in others:
                target = others[word]
                break
            else:
                others[word] = new
            state = links[state]
        if state == -1:
            links[new] = 0
            return
        lengths = self._lengths
        length = lengths[state] + 1
        if lengths[target] == length:
            links[new] = target
            return
        clone = len(lengths)
        lengths.append(length)
        links.append(links[target])
        self._firsts.append(self._firsts[target])
        copied = dict(more.get(target, ()))
        if target < total:
            copied[ids[target]] = target + 1
        more[clone] = copied
        links[new] = links[target] = clone
        while state != -1:
            others = more.get(state)
            if others is None or others.get(word) != target:
                break
            others[word] = clone
            state = links[state]

    def step(self, state: int, length: int, word: int) -> tuple[int, int]:
        """The state and the length, in words, of the longest match that ends with `word`.

        `state` and `length` are the match before it; 0 and 0 at the beginning. A word that the document does
        not have is −1.
        """
        ids, total, more = self._ids, self._words, self._more
        while True:
            if state < total and ids[state] == word:
                return state + 1, length + 1
            others = more.get(state)
            if others is not None and word in others:
                return others[word], length + 1
            if state == 0:
                return 0, 0
            state = self._links[state]
            length = self._lengths[state]

    def first_end(self, state: int) -> int:
        """Where the first occurrence of a state's matches ends: the number of words up to there."""
        return self._firsts[state]
