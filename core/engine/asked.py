"""What a request asks of decoding, as the loaded model can take it: compiled, tokenised, checked."""

from __future__ import annotations

from collections.abc import Sequence

from core.decoding.options import DecodingOptions
from core.engine.model_session import ModelSession
from core.events import Generate
from core.events.text import well_formed
from core.models.loader import LoadedModel


def decoding_options(request: Generate, here: ModelSession, begun: Sequence[int]) -> DecodingOptions:
    """`begun` are the tokens that the answer goes on from.

    Raises `RequestError` kinds: a grammar that cannot be compiled, ids that the model has not.
    """
    grammar = here.grammars.start(request.grammar) if request.grammar is not None else None
    prediction = _predicted(request.prediction, here.model) if request.prediction else ()
    options = DecodingOptions(request.logit_bias, request.top_logprobs, grammar, prediction)
    options.check(here.model.info.vocabulary)
    if grammar is not None:
        grammar.advance(begun)
    return options


def _predicted(text: str, model: LoadedModel) -> tuple[int, ...]:
    """The ids of a predicted answer, as far as one may be long."""
    ids = model.tokenizer.encode(well_formed(text), add_special_tokens=False)
    return tuple(int(token) for token in ids[: model.info.context_tokens])
