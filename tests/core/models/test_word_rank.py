"""word_rank: what a tokenizer learned early is common."""

from __future__ import annotations

from core.engine.engine import Engine


def test_common_words_come_first(starter_engine: Engine) -> None:
    rank = starter_engine.loaded.word_rank
    assert rank("the") < 0.01
    assert rank("document") < 0.1
    assert rank("document") < rank("python") < rank("stderr") <= 1.0
    assert rank("miniters") == 1.0
    assert rank("Ã¼ber") <= 1.0
    assert rank("") <= 1.0


def test_a_word_without_its_own_token_is_rare(toy_engine: Engine) -> None:
    assert toy_engine.loaded.word_rank("quagga") == 1.0
