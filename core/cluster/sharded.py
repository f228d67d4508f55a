"""ShardedModel: rank 0's part of a model, in the place of the whole one.

It is called like mlx-lm's models. Before it runs, the followers hear what is run; then all run their parts
together and the logits come out here. Ids must be known for that: those that are still being computed are
waited for. Worker's main thread.
"""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.tokenizer_utils import TokenizerWrapper

from core.cluster.leader import Leader
from core.cluster.shard import RAISED, Shard, standing
from core.errors import ClusterError, RequestError
from core.events import MachineUse, ModelInfo
from core.kv.told import ToldCache
from core.models.loader import LoadedModel
from core.models.runtime import memory


class ShardedModel(nn.Module):  # type: ignore[misc]
    """`shard` here, the rest with `leader`'s followers."""

    def __init__(self, shard: Shard, leader: Leader) -> None:
        super().__init__()
        self.part = shard.model  # a child, so that its rotary modules and attentions are found
        self._shard = shard
        self._leader = leader

    @property
    def layers(self) -> list[Any]:
        """Those that are here."""
        found: list[Any] = self.part.layers
        return found

    def make_cache(self) -> list[Any]:
        """An empty cache that has twins on all machines."""
        return ToldCache(self._shard.new_cache(), self._leader)

    def __call__(self, ids: mx.array, cache: list[Any]) -> mx.array:
        """`ids` [1, w] are waited for; logits [1, w, vocabulary]."""
        if not isinstance(cache, ToldCache):
            raise ClusterError(
                "This needs to look into all layers, and a part of them is on other machines.",
                "Choose another way, or run the model on one machine.",
            )
        tokens: Any = ids[0].tolist()
        number = self._leader.forward(cache, tokens)
        try:
            logits, asked = self._shard.forward(ids, cache)
        except Exception:  # the model's code refuses what a trial asks of it, there as here
            self._leader.stands(number, RAISED)
            raise
        self._leader.stands(number, standing(cache))
        try:
            mx.async_eval(asked)  # type: ignore[no-untyped-call]
        except Exception as error:
            self._leader.doubt(error)
            raise
        return logits


class ClusterModel(LoadedModel):
    """A loaded model that runs over several machines."""

    def __init__(
        self, model: ShardedModel, tokenizer: TokenizerWrapper, info: ModelInfo, leader: Leader
    ) -> None:
        super().__init__(model, tokenizer, info)
        self.leader = leader

    def doubt(self, error: BaseException) -> None:
        """Does not return where `error` may have left machines with different caches."""
        if not isinstance(error, RequestError):
            self.leader.doubt(error)

    def settle(self) -> None:
        """Wait for the others, for all that was asked of them."""
        self.leader.settle()

    def close(self) -> None:
        """The followers forget their parts."""
        self.leader.close()

    @property
    def use(self) -> tuple[MachineUse, ...]:
        """Each machine at work, this one first. Any thread."""
        here = MachineUse(
            self.info.machines[0], memory.used_bytes(), memory.limit_bytes(), self.leader.step_s
        )
        return (here, *self.leader.use)
