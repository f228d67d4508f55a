"""A model split into body and output layer, so that the hidden states of its tokens are available.

mlx-lm's models compute logits as an output layer on the result of a body: `model.model`, or
`model.language_model.model` where a language model is part of a larger one. `split` finds both and compares
their logits with the model's own. The output layer may be a module (`lm_head`) or the transposed embedding.
No object of mlx-lm is changed. Worker's main thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.cache import make_prompt_cache
from msgspec import Struct

_PROBE_IDS = (1, 2, 3, 1)


class SplitModel(Struct, frozen=True):
    """`output(body(ids, cache=cache))` equals the model's logits.

    - `body`: ids [1, n] to hidden states [1, n, size], after the final norm.
    - `output`: hidden states to logits [1, n, vocabulary].
    - `embed`: ids [1, n] to embeddings [1, n, size].
    """

    body: Callable[..., mx.array]
    output: Callable[[mx.array], mx.array]
    embed: Callable[[mx.array], mx.array]


class StateReceiver(Protocol):
    """Receives the hidden states of all tokens that the model reads for one answer."""

    @property
    def split(self) -> SplitModel:
        """The model, whose body computes the states."""

    def begin(self, sequence: Any, prompt: Sequence[int]) -> None:
        """Starts the reading of `prompt` into `sequence`, which holds a prefix of it."""

    def receive(self, positions: Sequence[int], ids: Sequence[int], states: mx.array) -> None:
        """Receives `states` [n, size] after the tokens `ids` at ascending `positions` of the context.

        The positions follow those received before, without those between them that the model skipped. Tokens
        can be repeated, because accepted tokens on recurrent layers are read again in the next block.
        """


def split(model: Any) -> SplitModel | str:
    """The parts of `model`, or why it cannot be split."""
    owner = getattr(model, "language_model", model)
    body = getattr(owner, "model", None)
    embedding = getattr(body, "embed_tokens", None)
    if not isinstance(body, nn.Module) or not isinstance(embedding, nn.Module):
        return f"mlx-lm's {type(model).__module__.rpartition('.')[2]} has no body apart from its output layer"
    head = owner.get("lm_head") if isinstance(owner, nn.Module) else None
    output = head if head is not None else getattr(embedding, "as_linear", None)
    if output is None:
        return "it has no output layer of its own"
    found = SplitModel(body, output, embedding)
    try:
        ids = mx.array([_PROBE_IDS])
        whole = model(ids, cache=make_prompt_cache(model))
        parts = found.output(found.body(ids, cache=make_prompt_cache(model)))
        same = whole.shape == parts.shape and mx.array_equal(whole, parts).item()
    except Exception as error:  # any exception of a model's code
        return f"its body cannot run alone ({type(error).__name__}: {error})"
    return found if same else "its logits are not those of its output layer on its last hidden state"
