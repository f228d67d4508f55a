"""DecodingOptions: what one request asks of decoding beside its settings."""

from __future__ import annotations

from math import isfinite

from msgspec import Struct, field

from core.decoding.grammar import GrammarState
from core.errors import RequestError


class DecodingOptions(Struct, frozen=True):
    """`bias` is added to the logits of ids. `top_logprobs`: how many of the likeliest tokens are told with
    each token, beside its own logprob; None tells neither. `grammar` stands where the answer goes on.
    `prediction`: the ids that will probably come.
    """

    bias: dict[int, float] = field(default_factory=dict)
    top_logprobs: int | None = None
    grammar: GrammarState | None = None
    prediction: tuple[int, ...] = ()

    def check(self, vocabulary: int) -> None:
        """Raises `RequestError` if the model, of so many ids, cannot do this."""
        strange = next((token for token in self.bias if not 0 <= token < vocabulary), None)
        if strange is not None:
            raise RequestError(
                f"logit_bias names the token id {strange:,}; the model has 0 to {vocabulary - 1:,}.",
                "Take the id out, or ask the model that has it.",
            )
        endless = next((token for token, value in self.bias.items() if not isfinite(value)), None)
        if endless is not None:
            raise RequestError(
                f"logit_bias of the token id {endless:,} is {self.bias[endless]}, which is no finite number.",
                "Give −100 to rule a token out and 100 to ask for nothing else.",
            )
        if self.top_logprobs is not None and self.top_logprobs < 0:
            raise RequestError(
                f"top_logprobs is {self.top_logprobs}.", "Give 0 or more, or leave it out for no logprobs."
            )


# Of a request that asks for nothing more than its settings say.
PLAIN = DecodingOptions()
