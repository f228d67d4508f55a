"""Records what mlx-vlm's heads compute on tiny random weights, for tests/core/heads/test_head_outputs.py.

    python -m venv out/oracle && out/oracle/bin/pip install mlx-vlm==0.7.10
    python -m tests.tuning.head_oracle out/oracle/bin/python

Recorded with mlx-vlm 0.7.10 and mlx 0.32.4. On Linux also install mlx-cpu of the same version. Run as a file,
by the other Python, it computes the outputs for a folder of cases.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

# Guesses in a row, each from the one before it; a block guesses as many at once.
GUESSES = 3
# Every this many columns of the logits are recorded.
EVERY = 5


def main(python: str) -> None:
    from tests.core.published_heads import CASES, RECORDED, write_case

    found = {}
    with TemporaryDirectory() as place:
        for name in CASES:
            write_case(Path(place) / name, name)
        subprocess.run([python, __file__, place], check=True)
        for name in CASES:
            found[name] = json.loads((Path(place) / name / "outputs.json").read_text("utf-8"))
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in found.items()]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def compute(folder: Path) -> None:
    """Writes outputs.json beside a case's config.json, model.safetensors and inputs.safetensors."""
    import mlx.core as mx

    config = json.loads((folder / "config.json").read_text("utf-8"))
    given: Any = mx.load(str(folder / "inputs.safetensors"))
    weights: Any = mx.load(str(folder / "model.safetensors"))
    kind = config.get("model_type")
    logits = _guesses(str(kind), config, weights, given)
    tokens = [int(token) for token in mx.argmax(logits, axis=-1)]
    rows = [[round(float(value), 5) for value in row[::EVERY]] for row in logits]
    (folder / "outputs.json").write_text(json.dumps({"tokens": tokens, "logits": rows}), encoding="utf-8")


class _Target:
    """What drafters take from the model: embedding, its scale, and the output layer, which is tied."""

    def __init__(self, given: Any) -> None:
        import mlx.nn as nn

        self.embed_tokens = nn.Embedding(*given["embedding"].shape)
        self.embed_tokens.weight = given["embedding"]
        self.embed_scale = float(given["scale"].item())
        self.lm_head = self.embed_tokens.as_linear


def _guesses(kind: str, config: dict[str, Any], weights: Any, given: Any) -> Any:
    """float32 logits [GUESSES, vocabulary]."""
    import mlx.core as mx
    from mlx_vlm.speculative.drafters import eagle3, gemma4_assistant, qwen3_5_mtp, qwen3_dflash

    modules = {"gemma4_assistant": gemma4_assistant, "qwen3_5_mtp": qwen3_5_mtp}
    module = qwen3_dflash if "dflash_config" in config else modules.get(kind, eagle3)
    if module is eagle3:
        # Its loader renames the flat layout; layer numbers do not matter here.
        inner = config.get("transformer_layer_config", config)
        config = {**config, "transformer_layer_config": inner, "target_layer_ids": [1, 2, 3]}
        layers = {name.replace("midlayer.", "layers.0."): each for name, each in weights.items()}
        weights = (
            layers
            if "embed_tokens.weight" in layers
            else {**layers, "embed_tokens.weight": given["embedding"]}
        )
    if kind == "qwen3_5_mtp":  # for images; of texts all three positions are equal
        config["text_config"]["rope_parameters"] |= {"type": "default", "mrope_section": [1, 1, 0]}
    head = module.Model(module.ModelConfig.from_dict(config))
    head.load_weights(list(head.sanitize(dict(weights)).items()))
    cache = head.reset(_Target(given))
    if config.get("embed_requires_grad"):  # it takes the model's
        head.embed_tokens = type(head.embed_tokens)(1, 1)
        head.embed_tokens.weight = weights["embed_tokens.weight"]
    ids, states = given["ids"][None], given["states"][None]
    found = []
    if kind == "gemma4_assistant":
        kinds = ("full_attention", "sliding_attention")
        keys = {each: (given[f"{each}.keys"], given[f"{each}.values"]) for each in kinds}
        held = keys["full_attention"][0].shape[2]
        head.set_shared_kv(keys, held, position=held - 1)
        token, state = ids[:, -1:], states[:, -1:]
        for _ in range(GUESSES):
            embedded = head._input_embed(token) * head._input_embed_scale
            state, logits = head(mx.concatenate([embedded, state], -1), keys, mx.array([[held - 1]]))
            found.append(logits[0, -1])
            token = mx.argmax(logits[:, -1:], axis=-1)
        return mx.stack(found)
    if module is qwen3_dflash:
        block = mx.array([[ids[0, -1].item(), *[config["dflash_config"]["mask_token_id"]] * GUESSES]])
        return head(block, states, cache)[0, 1:]
    hidden = head._forward_tokens(ids, states, mx.int32)[:, -1:]
    for _ in range(GUESSES):
        if module is eagle3:
            row = head._logits(hidden)[0, -1]
            columns = head._draft_to_target(mx.arange(len(row)), mx.int32)
            found.append(mx.full(head.target_vocab_size, row.min() - 1.0))
            found[-1][columns] = row
        else:
            found.append(head._lm_head_fn(hidden)[0, -1])
        token = mx.argmax(found[-1])[None, None]
        hidden = head._forward_tokens(token, hidden, mx.int32)
    return mx.stack(found)


if __name__ == "__main__":
    if Path(sys.argv[1]).is_dir():
        for case in sorted(Path(sys.argv[1]).iterdir()):
            compute(case)
    else:
        main(sys.argv[1])
