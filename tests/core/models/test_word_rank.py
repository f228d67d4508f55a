"""word_rank: what a tokenizer learned early is common."""

from __future__ import annotations

from core.engine.engine import Engine


def test_a_word_without_its_own_token_is_rare(toy_engine: Engine) -> None:
    assert toy_engine.loaded.word_rank("quagga") == 1.0
