"""Texts of answers whose tokenizer treats the beginning of a text in its own way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.engine.engine import Engine
from core.events import Generate, Message, Token
from core.settings import Settings, assign
from tests.core.tokenizers import KINDS, write
from tests.core.toy import write_toy_model

WORD = "value"


@pytest.mark.parametrize("kind", ["byte-level", "hybrid-sentencepiece", "sentencepiece", "unigram-always"])
def test_a_completion_continues_the_prompts_text(kind: str, tmp_path: Path) -> None:
    rows = KINDS[kind]().get_vocab_size()
    write_toy_model(tmp_path, vocab_size=rows)
    write(kind, tmp_path)
    engine = Engine()
    engine.load(str(tmp_path))
    tokenizer = engine.loaded.tokenizer
    token = tokenizer.encode(f"a {WORD}", add_special_tokens=False)[-1]
    assert tokenizer.convert_ids_to_tokens(token)[1:] == WORD
    settings = assign(assign(Settings(), "sampling.max_tokens", 1), "sampling.temperature", 0.0)
    bias = {token: 100.0}

    def text(*, raw: bool) -> str:
        messages = (Message("user", "The capital of France is"),)
        request = Generate("", messages, settings, raw=raw, logit_bias=bias)
        return "".join(event.text for event in engine.generate(request) if isinstance(event, Token))

    assert text(raw=True) == f" {WORD}"
    # An answer is a text of its own.
    starts = tokenizer.decode([token])
    (tmp_path / "tokenizer_config.json").write_text(
        json.dumps(
            {"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": "{{ messages[0].content }}"}
        )
    )
    engine.load(str(tmp_path))
    assert text(raw=False) == starts
    engine.close()
