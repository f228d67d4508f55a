"""Which caches can take back tokens exactly.

Only caches that hold every position until it is trimmed can: mlx-lm's `KVCache` and
`QuantizedKVCache`. A sliding window that has wrapped and recurrent state have already lost what
a rollback needs; `RotatingKVCache` even says it trimmed when it did not (FACTS: past the wrap
`trim_prompt_cache` returns 0 for all layers).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlx_lm.models.cache import KVCache, QuantizedKVCache

from core.errors import InternalError


def why_not_trimmable(cache: Sequence[Any]) -> str:
    """Why tokens cannot be rolled back from `cache`, in words; empty if they can."""
    for entry in cache:
        if type(entry) not in (KVCache, QuantizedKVCache):
            return f"its cache ({type(entry).__name__}) cannot take back tokens exactly"
    return ""


def rollback(cache: Sequence[Any], tokens: int) -> None:
    """Take the last `tokens` positions back, in place. Raises `InternalError` if any layer refuses."""
    if tokens == 0:
        return
    for entry in cache:
        if entry.trim(tokens) != tokens:
            raise InternalError(f"A {type(entry).__name__} did not take back {tokens} tokens.")
