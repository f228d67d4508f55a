"""The parts of an mlx-lm model: its rotary modules, and its body and output layer.

Forward passes with a position per row, for trees and prompts with gaps: `mx.fast.rope` accepts one offset per
batch element, so rows and batch are swapped for the length of one call. The call is that of the model's own
module, with its frequencies, partial dimensions and dtypes; every manual rotation in other ports had a bug.
Invariant: after a pass, also after an exception, the model has its original objects. Worker's main thread.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx_lm.models.cache import make_prompt_cache
from msgspec import Struct
from numpy.typing import NDArray

from core.errors import InternalError, reason_of
from core.models.memory import fault


@dataclass(frozen=True)
class Rotation:
    """`owner[key]` is `rope`, a module that is called with (x, offset)."""

    owner: Any
    key: str
    rope: Any


def rotations(model: nn.Module) -> list[Rotation]:
    """Every rotary module of `model`. Known by its call: names differ, and an nn.RoPE is falsy."""
    found: list[Rotation] = []
    rotates: dict[type, bool] = {}
    for _, owner in model.named_modules():
        for key, value in owner.items():
            if not isinstance(value, nn.Module):
                continue
            kind = type(value)
            if kind not in rotates:
                rotates[kind] = list(inspect.signature(kind.__call__).parameters)[2:3] == ["offset"]
            if rotates[kind]:
                found.append(Rotation(owner, key, value))
    return found


def use_plain_attributes(model: nn.Module) -> None:
    """Makes the modules within the layers of `model` plain attributes of their owners, in addition.

    An `nn.Module` keeps its parts in a dict: an access fails as an attribute first, and then calls a Python
    function. Over a pass of a Llama that is a sixth of the time in which Python builds it. Such a module must
    not be replaced afterwards; rotary ones and whole layers, which a pass may replace, are left as they are.
    """
    replaced = {id(rotation.rope) for rotation in rotations(model)}
    for _, owner in model.named_modules():
        for layer in (each for value in owner.values() if isinstance(value, list) for each in value):
            for part in layer.modules() if isinstance(layer, nn.Module) else ():
                for key, value in part.items():
                    if isinstance(value, nn.Module) and id(value) not in replaced:
                        vars(part)[key] = value


class Steps:
    """Positions of the rows of a forward pass: row i is `steps[i]` (int32) after a layer's offset.

    `rotated`: number of calls of rotary modules in the pass.
    """

    def __init__(self, steps: NDArray[np.int32]) -> None:
        self.size = len(steps)
        self.rotated = 0
        self._steps = mx.array(steps.astype(np.int32))
        # Layers mostly share their offset.
        self._positions: dict[int, mx.array] = {}

    def positions(self, offset: Any) -> mx.array:
        """int32 [size]. `offset` is a number or, as some models pass it, an array of one."""
        if not isinstance(offset, int):
            return mx.array(self._steps + offset)
        if offset not in self._positions:
            self._positions[offset] = self._steps + offset
        return self._positions[offset]


@contextmanager
def row_positions(found: Sequence[Rotation], steps: Steps) -> Iterator[None]:
    """While open, forwards have `steps.size` rows, and each is rotated to its own position."""
    try:
        for rotation in found:
            rotation.owner[rotation.key] = _Placed(rotation.rope, steps)
        yield
    finally:
        for rotation in found:
            rotation.owner[rotation.key] = rotation.rope


class _Placed:
    """Replaces `rope` during a pass."""

    def __init__(self, rope: Any, steps: Steps) -> None:
        self._rope = rope
        self._steps = steps

    def __call__(self, x: mx.array, offset: Any = 0, *rest: Any, **options: Any) -> mx.array:
        """`x` and the result are [1, …, N, dims]."""
        if x.shape[0] != 1 or x.shape[-2] != self._steps.size:
            raise InternalError(f"A pass of {self._steps.size} rows is open; {x.shape} was to be rotated.")
        self._steps.rotated += 1
        turned = self._rope(x.swapaxes(0, -2), self._steps.positions(offset), *rest, **options)
        return mx.swapaxes(turned, 0, -2)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rope, name)


# ---- body, layers and output layer, so that the hidden states of tokens are available
#
# mlx-lm's models compute logits as an output layer on the result of a body: `model.model`, or
# `model.language_model.model` where a language model is part of a larger one. During a forward pass the body
# or some of its layers are replaced by objects that call them and keep their results, so the model computes
# the same. The output layer may be a module (`lm_head`) or the transposed embedding.


_PROBE_IDS = (1, 2, 3, 1)


class _Tap:
    """Replaces `module` during a pass and keeps its result, of several the first."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.result: mx.array | None = None

    def __call__(self, *given: Any, **options: Any) -> Any:
        found = self.module(*given, **options)
        self.result = found[0] if isinstance(found, tuple) else found
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self.module, name)


class SplitModel(Struct, frozen=True):
    """The parts of `model`. `owner`: the module that has the body as `model`.

    - `embed`: ids [1, n] to embeddings [1, n, size].
    - `output`: results of the body to logits [1, n, vocabulary], without what some models do to them.
    """

    model: Any
    owner: Any
    embed: Callable[[mx.array], mx.array]
    output: Callable[[mx.array], mx.array]

    def read(
        self, ids: mx.array, cache: Any, layers: Sequence[int] = (), **given: Any
    ) -> tuple[mx.array, mx.array]:
        """One forward pass over `ids` [1, n]: the model's logits, and hidden states [1, n, width].

        `given`: other arguments of the model.

        The states are the results of the `layers`, joined in this order, or the body's, after its final norm.
        """
        body = self.owner["model"]
        whole, taps = _Tap(body), {number: _Tap(body.layers[number]) for number in {*layers}}
        try:
            for number, tap in taps.items():
                body.layers[number] = tap
            self.owner["model"] = body if layers else whole
            logits = self.model(ids, cache=cache, **given)
        finally:
            self.owner["model"] = body
            for number, tap in taps.items():
                body.layers[number] = tap.module
        states = [taps[number].result for number in layers] or [whole.result]
        return logits, mx.concatenate(states, axis=-1)  # type: ignore[arg-type]

    def why_no_states(self, layers: Sequence[int] = ()) -> str:
        """Why `read` would not return the states, or would change the logits; empty if it works."""
        try:
            ids = mx.array([_PROBE_IDS])
            whole = self.model(ids, cache=make_prompt_cache(self.model))
            logits, states = self.read(ids, make_prompt_cache(self.model), layers)
            same = mx.array_equal(whole, logits).item() and states.shape[:2] == ids.shape
        except Exception as error:  # any exception of a model's code
            if fault(error):
                raise
            return f"the model's hidden states cannot be taken ({reason_of(error)})"
        return "" if same else "taking the model's hidden states changes its logits"

    def why_other_output(self) -> str:
        """Why logits are not those of `output` on the state after the final norm; empty if they are."""
        logits, states = self.read(mx.array([_PROBE_IDS]), make_prompt_cache(self.model))
        same = mx.array_equal(logits, self.output(states)).item()
        return "" if same else "the model's logits are not those of its output layer on its last hidden state"


class StateReceiver(Protocol):
    """Receives the hidden states of all tokens that the model reads for one answer."""

    def read(self, ids: mx.array, cache: Any, **given: Any) -> tuple[mx.array, mx.array]:
        """One forward pass over `ids` [1, n]: logits [1, n, vocabulary] and states [n, width].

        `given`: other arguments of the model.
        """

    def begin(self, sequence: Any, prompt: Sequence[int]) -> None:
        """Starts the reading of `prompt` into `sequence`, which holds a prefix of it."""

    def receive(self, positions: Sequence[int], ids: Sequence[int], states: mx.array) -> None:
        """Receives `states` [n, width] after the tokens `ids` at ascending `positions` of the context.

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
        return "it has no output layer"
    return SplitModel(model, owner, embedding, output)
