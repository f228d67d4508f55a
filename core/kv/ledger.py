"""Ledger: the KV cache of one conversation and the token ids it holds, kept equal.

Invariant: the cache is what reading `tokens` from nothing would leave. Everything that puts
tokens into the cache or takes them out goes through here or through a `Block` whose outcome is
recorded here. Owned by the worker's main thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mlx.core as mx

from core.errors import InternalError
from core.kv.entries import keeps_all, leaves, why_no_rollback


class Ledger:
    """`new_cache()` makes an empty cache list; it is called again whenever reuse is impossible."""

    def __init__(self, new_cache: Callable[[], list[Any]]) -> None:
        self._new_cache = new_cache
        self.cache = new_cache()
        self.tokens: list[int] = []
        self.why_no_rollback = why_no_rollback(self.cache)
        self.keeps_all = keeps_all(self.cache)

    def reuse(self, prompt: Sequence[int]) -> int:
        """Keep the longest prefix shared with `prompt`, drop the rest; returns its length.

        At most len(prompt) − 1: the last token is always run, because its logits are needed.
        A cache that does not keep all positions is reused only if it is itself such a prefix.
        """
        shared = 0
        for held, wanted in zip(self.tokens, prompt[:-1]):
            if held != wanted:
                break
            shared += 1
        if shared == len(self.tokens):
            return shared
        if not self.keeps_all:
            self.clear()
            return 0
        self.truncate(shared)
        return shared

    def append(self, tokens: Sequence[int]) -> None:
        """A forward pass has put `tokens` into the cache."""
        self.tokens.extend(tokens)

    def truncate(self, length: int) -> None:
        """Take back everything from position `length` on. Only where `keeps_all`."""
        excess = len(self.tokens) - length
        for entry in leaves(self.cache):
            if excess and entry.trim(excess) != excess:
                raise InternalError(f"A {type(entry).__name__} did not take back {excess} tokens.")
        del self.tokens[length:]

    def settle(self) -> None:
        """Wait until the cache's arrays are computed."""
        mx.eval([entry.state for entry in self.cache])

    def clear(self) -> None:
        """Forget everything; the memory is returned."""
        self.cache = self._new_cache()
        self.tokens = []
        mx.clear_cache()
