"""word_rank: what a tokenizer learned early is common."""

from __future__ import annotations

from core.engine.engine import Engine


def test_a_word_without_its_own_token_is_rare(toy_engine: Engine) -> None:
    assert toy_engine.loaded.word_rank("quagga") == 1.0


def test_a_word_with_a_token_has_its_place_in_the_vocabulary(toy_engine: Engine) -> None:
    loaded = toy_engine.loaded
    ids = loaded.tokenizer.convert_tokens_to_ids(["a", "b"])
    assert [loaded.word_rank(word) for word in "ab"] == [at / loaded.info.vocabulary for at in ids]
    assert 0 < loaded.word_rank("a") < loaded.word_rank("b") < 1
