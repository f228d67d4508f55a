"""Tiny models that think: the tags are tokens of theirs, and a template may switch it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.core.toy import TEMPLATE, write_toy_model

SWITCHED = TEMPLATE.replace(
    "<|assistant|>{% endif %}",
    "<|assistant|>{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}"
    "{% endif %}",
)


def write_thinking_toy(folder: Path, template: str, *, tags: bool = True) -> None:
    """A tiny model with that template; `tags`: its tokenizer knows the tags of thoughts."""
    write_toy_model(folder, vocab_size=262)
    config = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**config, "chat_template": template}))
    if tags:
        tokenizer = json.loads((folder / "tokenizer.json").read_text())
        for number, tag in enumerate(("<think>", "</think>"), 260):
            tokenizer["model"]["vocab"][tag] = number
            like = tokenizer["added_tokens"][-1]
            tokenizer["added_tokens"].append({**like, "id": number, "content": tag, "special": False})
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
