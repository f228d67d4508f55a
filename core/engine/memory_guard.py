"""MemoryGuard: fits an answer into the memory that is left, so that MLX never runs out of it.

    peak = memory in use + growth of the KV cache + working memory of a prefill chunk

with the figures of `MemoryNeed`, which are estimates from the model's config (starter model on Linux: 83 MiB
estimated and 65 measured for 1,000 tokens, 268 and 296 for 4,000). What does not fit is fitted in
this order: other chats' caches and the sentence encoder are freed; the prompt is read in smaller chunks; the
answer is shortened; the request is refused. Worker's main thread.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from core.errors import NotEnoughMemoryError
from core.events import MemoryNeed
from core.models.folder import gigabytes

# The smallest chunk, as in the setting, and the shortest answer for which a prompt is read.
_LEAST_CHUNK_TOKENS = 32
_LEAST_ANSWER_TOKENS = 64
_UNLIMITED_BYTES = 1 << 60


class MemoryGuard:
    """`need`: None for a model without an estimate, for which everything fits.

    `left_bytes()` returns the memory that is left; `release()` frees what an answer does not need, once.
    """

    def __init__(
        self, need: MemoryNeed | None, left_bytes: Callable[[], int], release: Callable[[], None]
    ) -> None:
        self._need = need or MemoryNeed()
        self._left_bytes = left_bytes if need else lambda: _UNLIMITED_BYTES
        self._release = release
        self._released = False

    def chunk_tokens(self, held: int, columns: int, wanted: int) -> int:
        """The chunk, at most `wanted`, with which the cache can grow from `held` columns to `columns`.

        Raises `NotEnoughMemoryError` if not even the smallest chunk fits.
        """
        longest = min(wanted, max(columns - held, _LEAST_CHUNK_TOKENS))
        columns += _LEAST_ANSWER_TOKENS
        grown = self._need.cache_at(columns) - (self._need.cache_at(held) if held else 0)
        a_token = max(1, self._need.working_at(columns, 1))

        def chunk() -> int:
            return (self._left_bytes() - grown) // a_token

        found = chunk()
        if found < longest and self._frees():
            found = chunk()
        if found >= longest:
            return wanted
        if found < _LEAST_CHUNK_TOKENS:
            least = grown + a_token * _LEAST_CHUNK_TOKENS
            raise NotEnoughMemoryError(
                f"A context of {columns - _LEAST_ANSWER_TOKENS:,} tokens needs {gigabytes(least)} GB more"
                f" memory, and {gigabytes(max(0, self._left_bytes()))} GB are left.",
                "Shorten the prompt, lower the context limit, close other programs, or load a smaller model.",
            )
        return 1 << found.bit_length() - 1

    def holds(self, columns: int) -> bool:
        """Whether another cache of `columns` fits with the smallest chunks. Frees nothing."""
        working = self._need.working_at(columns, _LEAST_CHUNK_TOKENS)
        return self._need.cache_at(columns) + working <= self._left_bytes()

    def answer_tokens(self, held: int, wanted: int) -> int:
        """The length of an answer, at most `wanted` tokens, that fits after `held` columns; at least 1."""
        need = self._need

        def peak(tokens: int) -> int:
            # A step verifies a few dozen drafted tokens at most.
            grown = need.cache_at(held + tokens) - need.cache_at(held)
            return grown + need.working_at(held + tokens, _LEAST_CHUNK_TOKENS)

        if peak(wanted) <= self._left_bytes() or (self._frees() and peak(wanted) <= self._left_bytes()):
            return wanted
        return max(1, bisect_right(range(wanted), self._left_bytes(), key=peak) - 1)

    def _frees(self) -> bool:
        """Calls `release` once; returns whether it did."""
        released, self._released = self._released, True
        if not released:
            self._release()
        return not released
