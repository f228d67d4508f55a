"""Inputs of one request's decode loop besides its settings: options, and the limits of its exactness mode."""

from __future__ import annotations

from math import isfinite

from msgspec import Struct, field

from core.decoding.grammar import GrammarState
from core.errors import RequestError
from core.settings.drafting import ExactnessMode


class DecodingOptions(Struct, frozen=True):
    """`bias` is added to the logits of these ids. `top_logprobs`: number of the most probable tokens reported
    with each token's logprob; None reports no logprobs. `grammar` is at the position where the answer
    continues. `prediction`: ids of the predicted answer.
    """

    bias: dict[int, float] = field(default_factory=dict)
    top_logprobs: int | None = None
    grammar: GrammarState | None = None
    prediction: tuple[int, ...] = ()

    def check(self, vocabulary: int) -> None:
        """Raises `RequestError` if a model with `vocabulary` ids cannot satisfy the options."""
        strange = next((token for token in self.bias if not 0 <= token < vocabulary), None)
        if strange is not None:
            raise RequestError(
                f"logit_bias names the token id {strange:,}; the model has 0 to {vocabulary - 1:,}.",
                "Remove the id, or choose a model that has it.",
            )
        endless = next((token for token, value in self.bias.items() if not isfinite(value)), None)
        if endless is not None:
            raise RequestError(
                f"logit_bias of token id {endless:,} is {self.bias[endless]}, not a finite number.",
                "Use −100 to ban a token and 100 to force it.",
            )
        if self.top_logprobs is not None and self.top_logprobs < 0:
            raise RequestError(
                f"top_logprobs is {self.top_logprobs}; it must be at least 0.", "Omit it for no logprobs."
            )


# Options of a request that sets none.
PLAIN = DecodingOptions()


class Exactness(Struct, frozen=True):
    """Limits of the decode loop.

    - `width_limit`: widest block; None: no limit.
    - `length_limit`: context length up to which blocks are verified; None: no limit.
    - `noise`: margin below which a choice is computed again at width 1; 0: never.
    - `summary`: for `Effective.exactness`.
    """

    mode: ExactnessMode
    width_limit: int | None = None
    noise: float = 0.0
    length_limit: int | None = None
    summary: str = ""


FAST = Exactness("fast")
