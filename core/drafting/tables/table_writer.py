"""TableWriter: writes what one request says into the `NgramTable` that all requests share (the ngram-mod
article).

Owns the request's window of n tokens, its rolling hash, and transitions not yet written. As in
the seed the prompt is written at once; while decoding, transitions wait until
i_last + 32 < cur_len (i_last: first window not yet written), then all go in together, so an
answer is not drafted from its own last words.

Deviation: the gate is tested for every token, not once a step: what the table learns then depends
on the tokens alone, not on how steps cut them up. The hash rolls, so this costs O(1) a token.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from core.drafting.tables.ngram_table import NgramTable

# The seed's chunked insert gate.
INSERT_GATE_TOKENS = 32


class TableWriter:
    """Of one request. `window` are the newest tokens, at most n, and `hash` is theirs."""

    def __init__(self, table: NgramTable) -> None:
        self.table = table
        self.window: deque[int] = deque(maxlen=table.n)
        self.hash: int = 0
        self._waiting: list[tuple[int, int]] = []

    @property
    def full(self) -> bool:
        """Whether there are n tokens to ask with."""
        return len(self.window) == self.table.n

    def read(self, prompt: Sequence[int]) -> None:
        """Write a prompt at once."""
        self.hear(prompt)
        self._write()

    def hear(self, tokens: Sequence[int]) -> None:
        """The text goes on with `tokens`."""
        table, window, waiting = self.table, self.window, self._waiting
        n, value = table.n, self.hash
        for token in tokens:
            if len(window) == n:
                waiting.append((value, token))
                value = table.roll(value, window[0], token)
                # cur_len − i_last is the window plus what waits.
                if n + len(waiting) > INSERT_GATE_TOKENS:
                    self._write()
            else:
                value = table.roll(value, 0, token)
            window.append(token)
        self.hash = value

    def _write(self) -> None:
        self.table.insert_all(self._waiting)
        self._waiting.clear()
