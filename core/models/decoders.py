"""Decoders from tokens to text: what a tokenizer's decoder needs, and repairs of a wrong one.

Some conversions (Devstral, other tekken tokenizers) combine a byte-level vocabulary with SentencePiece's
decoder, which leaves byte characters in the text ("I'mĠglad").
"""

from __future__ import annotations

import json
from typing import Any

from mlx_lm.tokenizer_utils import TokenizerWrapper
from msgspec import Struct
from tokenizers import decoders


class DecoderFacts(Struct, frozen=True):
    """Decoding rules that depend on several tokens.

    `falls_back`: a run of byte tokens is text only if the whole run is UTF-8. `cleans`: spaces before
    punctuation are removed.
    """

    falls_back: bool = False
    cleans: bool = False


def repair_decoder(tokenizer: TokenizerWrapper) -> None:
    """Give a byte-level vocabulary a byte-level decoder if `tokenizer` has another one."""
    backend: Any = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None or not _contains(_state(backend.pre_tokenizer), "ByteLevel"):
        return
    if not _contains(_state(backend.decoder), "ByteLevel"):
        backend.decoder = decoders.ByteLevel()


def decoder_facts(tokenizer: TokenizerWrapper) -> DecoderFacts:
    """The facts that `TokenTexts` needs; defaults for a tokenizer implemented in Python."""
    backend: Any = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return DecoderFacts(cleans=bool(getattr(tokenizer, "clean_up_tokenization_spaces", False)))
    state = _state(backend.decoder)
    forced = getattr(
        tokenizer, "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output", False
    )
    bpe = type(backend.model).__name__ == "BPE"
    return DecoderFacts(
        falls_back=_contains(state, "ByteFallback"),
        cleans=bool(tokenizer.clean_up_tokenization_spaces) and (not bpe or bool(forced)),
    )


def _state(part: Any) -> dict[str, Any]:
    """A pre-tokenizer's or decoder's description, as tokenizer.json has it; empty for none."""
    if part is None:
        return {}
    found: dict[str, Any] = json.loads(part.__getstate__())
    return found


def _contains(state: Any, kind: str) -> bool:
    if isinstance(state, dict):
        return state.get("type") == kind or any(_contains(each, kind) for each in state.values())
    return isinstance(state, list) and any(_contains(each, kind) for each in state)
