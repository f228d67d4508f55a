"""Records what mlx-vlm computes for images on tiny random weights, for tests/core/vision/test_oracle.py.

    python3.11 -m venv out/vlm && out/vlm/bin/pip install "mlx[cpu]==0.32.4" mlx-lm==0.32.2 Pillow requests
    out/vlm/bin/pip install --no-deps mlx-vlm==0.7.10
    python -m tests.tuning.vision_oracle out/vlm/bin/python

Recorded with mlx-vlm 0.7.10, mlx 0.32.4 and mlx-lm 0.32.2. Run as a file, by the other Python, it renders
each conversation with transformers, expands images as the family's processor does, and computes logits with
mlx-vlm's model. Where mlx-vlm has other attention masks than transformers (images of Gemma attend in both
directions), those of transformers 5.24 (`create_masks_for_vision_model`) are given to mlx-vlm's layers.
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

# Of the logits, every this many rows and columns are recorded.
EVERY_ROWS, EVERY_COLUMNS = 6, 5
# Greedy tokens after the prompt.
GREEDY = 12


def main(python: str) -> None:
    from tests.core.seeing import CASES, RECORDED, write_case

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
    """Writes outputs.json beside a case's model, its images and conversation.json."""
    import mlx.core as mx
    from transformers import AutoTokenizer

    config = json.loads((folder / "config.json").read_text("utf-8"))
    conversation = json.loads((folder / "conversation.json").read_text("utf-8"))
    family = _FAMILIES[config["model_type"]]()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    text = str(tokenizer.apply_chat_template(conversation, tokenize=False, add_generation_prompt=True))
    paths = [folder / part["path"] for turn in conversation for part in turn["content"] if "path" in part]
    pixels = [family.pixels(folder, path) for path in paths]
    first, *others = text.split(family.written)
    text = first + "".join(family.shown(each) + other for each, other in zip(pixels, others, strict=True))
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    family.load(folder, config, tokenizer)
    logits, step = family.read(mx.array([ids]), pixels)
    tokens = []
    row = logits[0, -1]
    for _ in range(GREEDY):
        tokens.append(int(mx.argmax(row)))
        row = step(mx.array([tokens[-1:]]))[0, -1]
    rows = [[round(float(value), 5) for value in each[::EVERY_COLUMNS]] for each in logits[0][::EVERY_ROWS]]
    outputs = {"ids": ids, "tokens": tokens, "logits": rows}
    (folder / "outputs.json").write_text(json.dumps(outputs), encoding="utf-8")


def _weights(folder: Path) -> dict[str, Any]:
    """The folder's tensors as float32, quantised ones expanded."""
    import mlx.core as mx

    config = json.loads((folder / "config.json").read_text("utf-8"))
    held: Any = mx.load(str(folder / "model.safetensors"))
    found: dict[str, Any] = {}
    for name, value in held.items():
        stem, _, leaf = name.rpartition(".")
        if leaf in ("scales", "biases"):
            continue
        if f"{stem}.scales" in held:
            own = config["quantization"]
            value = mx.dequantize(
                value, held[f"{stem}.scales"], held[f"{stem}.biases"], own["group_size"], own["bits"]
            )
        found[name] = value.astype(mx.float32)
    return found


def _struct(kind: Any, values: dict[str, Any]) -> Any:
    return kind(**{key: value for key, value in values.items() if key in kind.__dataclass_fields__})


class _Oracle:
    """mlx-vlm's model of one family, with float32 weights of a folder."""

    module = ""
    written = ""
    image = ""

    def load(self, folder: Path, config: dict[str, Any], tokenizer: Any) -> None:
        import mlx.core as mx

        vlm = import_module(f"mlx_vlm.models.{self.module}")
        self.image_id = tokenizer.convert_tokens_to_ids(self.image)
        given = {**config, "image_token_id": self.image_id, "image_token_index": self.image_id}
        given |= {"vocab_size": config["text_config"]["vocab_size"], "video_token_id": 10**6}
        given |= {"text_config": _struct(vlm.TextConfig, config["text_config"])}
        given |= {"vision_config": _struct(vlm.VisionConfig, config["vision_config"])}
        given |= self.also(tokenizer)
        given |= {"hidden_size": config["text_config"]["hidden_size"]}
        self.model = vlm.Model(_struct(vlm.ModelConfig, given))
        weights = self.model.sanitize(_weights(folder))
        for part in (self.model.vision_tower, self.model.language_model):
            if hasattr(part, "sanitize"):
                weights = part.sanitize(weights)
        self.model.load_weights(list(weights.items()))
        mx.eval(self.model.parameters())

    def also(self, tokenizer: Any) -> dict[str, Any]:
        """Further figures of the configuration."""
        return {}


class _Qwen(_Oracle):
    module = "qwen3_5"
    written = "<|image_pad|>"
    image = "<|image_pad|>"

    def pixels(self, folder: Path, path: Path) -> Any:
        from PIL import Image

        config = json.loads((folder / "config.json").read_text("utf-8"))["vision_config"]
        given = json.loads((folder / "preprocessor_config.json").read_text("utf-8"))
        self.merge: int = config["spatial_merge_size"]
        module: Any = import_module("mlx_vlm.models.qwen3_vl.processing_qwen3_vl")
        processor = module.Qwen3VLImageProcessor(
            patch_size=config["patch_size"],
            temporal_patch_size=config["temporal_patch_size"],
            merge_size=self.merge,
            min_pixels=given["size"]["shortest_edge"],
            max_pixels=given["size"]["longest_edge"],
            image_mean=given["image_mean"],
            image_std=given["image_std"],
        )
        return processor([Image.open(path).convert("RGB")])

    def shown(self, pixels: Any) -> str:
        _, height, width = (int(each) for each in pixels["image_grid_thw"][0])
        return self.written * int(height * width // self.merge**2)

    def also(self, tokenizer: Any) -> dict[str, Any]:
        start, end = tokenizer.convert_tokens_to_ids(["<|vision_start|>", "<|vision_end|>"])
        return {"vision_start_token_id": start, "vision_end_token_id": end}

    def read(self, ids: Any, pixels: list[Any]) -> Any:
        import mlx.core as mx
        import numpy as np

        language = self.model.language_model
        values = np.concatenate([np.array(each["pixel_values"]) for each in pixels])
        grids = np.concatenate([np.array(each["image_grid_thw"]) for each in pixels])
        given = self.model.get_input_embeddings(
            ids, mx.array(values.astype(np.float32)), image_grid_thw=mx.array(grids)
        )
        cache = language.make_cache()
        logits = language(
            ids,
            inputs_embeds=mx.array(given.inputs_embeds),
            cache=cache,
            position_ids=given.position_ids,
            rope_deltas=given.rope_deltas,
        ).logits
        mx.eval(logits)
        return logits, lambda block: language(block, cache=cache, rope_deltas=given.rope_deltas).logits


_FAMILIES = {"qwen3_5": _Qwen}


if __name__ == "__main__":
    target = sys.argv[1]
    if Path(target).is_dir():
        for case in sorted(Path(target).iterdir()):
            compute(case)
    else:
        main(target)
