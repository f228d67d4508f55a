"""Recent: a cache entry that keeps every key and, while told so, shows attention only the latest.

For scoring by early layers: what a token means is found out from its surroundings, at a cost that
does not grow with the prompt; what the question looks for is then compared with all keys. The
first few columns are always shown, because attention rests on them where it seeks nothing.
"""

from __future__ import annotations

from typing import Any

import mlx.core as mx
from mlx_lm.models.cache import KVCache, create_attention_mask

_FIRST_TOKENS = 4


class Recent(KVCache):  # type: ignore[misc]
    """A `KVCache` whose `span` says how many past columns are shown; None shows all."""

    def __init__(self, span: int) -> None:
        super().__init__()
        self.span: int | None = span

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        shown = self._shown
        every: tuple[mx.array, mx.array] = super().update_and_fetch(keys, values)
        columns = every[0].shape[2]
        if shown + keys.shape[2] == columns:
            return every
        start = columns - keys.shape[2] - (shown - _FIRST_TOKENS)
        first, second = (
            mx.concatenate([part[..., :_FIRST_TOKENS, :], part[..., start:, :]], axis=2) for part in every
        )
        return first, second

    def make_mask(self, width: int, window_size: int | None = None, return_array: bool = False) -> Any:
        return create_attention_mask(
            width, offset=self._shown, return_array=return_array, window_size=window_size
        )

    @property
    def _shown(self) -> int:
        past = int(self.offset)
        return past if self.span is None else min(past, _FIRST_TOKENS + self.span)
