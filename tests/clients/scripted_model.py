"""A model that answers by a script: with tools it calls one of them, after a result it says so.

Its residual stream passes the last token on, and the head maps that token to the next one of the script. The
template chooses the script by the last token of the prompt. The tokenizer is the starter's.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import mlx.core as mx
from mlx.utils import tree_flatten
from mlx_lm.models import llama

from core.folders.starter import ensure_starter

# Pieces that the starter's vocabulary does not have: they would keep their ids.
SAID = ("All is well h", "ere today.")
DONE = ("The tool has r", "un today.")
_HIDDEN = 64
_STARTS = ("<|say|>", "<|call|>", "<|done|>")
_TEMPLATE = """\
{% if tools %}<tools>{{ tools | tojson }}</tools>{# <tool_call> #}{% endif %}\
{% for m in messages %}<|im_start|>{{ m['role'] }}
{{ m['content'] }}{% if m.get('tool_calls') %}{{ m['tool_calls'] | tojson }}{% endif %}<|im_end|>
{% endfor %}\
{% if add_generation_prompt %}<|im_start|>assistant
{% if messages | selectattr('role', 'equalto', 'tool') | list %}<|done|>\
{% elif tools %}<|call|>{% else %}<|say|>{% endif %}{% endif %}"""


def call_pieces(name: str, arguments: dict[str, Any]) -> list[str]:
    """A call as tokens of the script: its text in pieces, each of which is a token of its own."""
    call = json.dumps({"name": name, "arguments": arguments})
    text = f"<tool_call>\n{call}\n</tool_call>"
    return [text[at : at + 12] for at in range(0, len(text), 12)]


def write_scripted_model(
    folder: Path, tool: str, arguments: dict[str, Any], context_tokens: int = 131_072
) -> None:
    """Write the model into `folder`; it calls `tool` with `arguments`."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = json.loads((ensure_starter() / "tokenizer.json").read_text())
    vocabulary = (
        max(*tokenizer["model"]["vocab"].values(), *(one["id"] for one in tokenizer["added_tokens"])) + 1
    )
    eos = next(one["id"] for one in tokenizer["added_tokens"] if one["content"] == "<|im_end|>")
    scripts = (SAID, call_pieces(tool, arguments), DONE)
    texts = [text for script in scripts for text in script]
    first = vocabulary + len(_STARTS)
    added = [*((text, True) for text in _STARTS), *((text, False) for text in texts)]
    for at, (text, special) in enumerate(added):
        tokenizer["added_tokens"].append(
            {"id": vocabulary + at, "content": text, "special": special, "single_word": False,
             "lstrip": False, "rstrip": False, "normalized": False}
        )  # fmt: skip
    chains, at = [], first
    for start, script in enumerate(scripts):
        chains.append([vocabulary + start, *range(at, at + len(script)), eos])
        at += len(script)
    config = {
        "model_type": "llama", "hidden_size": _HIDDEN, "intermediate_size": 32, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 1, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
        "max_position_embeddings": context_tokens, "vocab_size": vocabulary + len(added),
        "tie_word_embeddings": False, "eos_token_id": eos,
    }  # fmt: skip
    model = llama.Model(llama.ModelArgs.from_dict(config))
    weights = dict(tree_flatten(model.parameters()))
    weights = {
        name: mx.ones_like(one) if "norm" in name else mx.zeros_like(one) for name, one in weights.items()
    }
    _write_chains(weights, chains)
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>",
                    "clean_up_tokenization_spaces": False, "chat_template": _TEMPLATE})
    )  # fmt: skip


def _write_chains(weights: dict[str, mx.array], chains: Sequence[Sequence[int]]) -> None:
    """Each token of a chain has a direction of its own, to which the head answers with the next one."""
    pairs = [pair for chain in chains for pair in pairwise(chain)]
    assert len(pairs) <= _HIDDEN, "the script is too long for the model"
    for direction, (token, following) in enumerate(pairs):
        weights["model.embed_tokens.weight"][token, direction] = 1.0
        weights["lm_head.weight"][following, direction] = 10.0
