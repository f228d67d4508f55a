"""Records what mlx-vlm computes for images on tiny random weights, for tests/core/vision/test_oracle.py.

    python3.11 -m venv out/vlm
    out/vlm/bin/pip install "mlx[cpu]==0.32.4" mlx-lm==0.32.2 Pillow==12.3.0 requests
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
    # Given by the families.
    pixels: Any
    shown: Any
    read: Any
    logits: Any

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
        weights = _weights(folder)
        for part in (self.model, self.model.vision_tower, self.model.language_model):
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


class _QwenMoe(_Qwen):
    module = "qwen3_5_moe"


class _Gemma(_Oracle):
    """Rows of one image attend to each other in both directions where transformers' masks say so."""

    both_ways = ""

    def grouped(self, ids: Any) -> Any:
        """bool [n, n]: whether two rows are of one image."""
        import numpy as np

        is_row = np.array(ids[0]) == self.image_id
        group = np.cumsum(is_row & ~np.append(False, is_row[:-1]))
        return (group[:, None] == group[None]) & is_row[:, None] & is_row[None]

    def read(self, ids: Any, pixels: list[Any]) -> Any:
        import mlx.core as mx
        import numpy as np

        language = self.model.language_model
        cache = language.make_cache()
        count = ids.shape[1]
        steps = np.arange(count)
        behind = steps[:, None] - steps[None]
        for entry in cache:
            window = getattr(entry, "max_size", None)
            sees = behind >= 0
            if self.both_ways == "all" or (self.both_ways and window):
                sees = sees | self.grouped(ids)
            if window:
                sees = sees & (behind < window)
            mask = mx.array(sees)
            entry.make_mask = lambda *given, mask=mask, **options: mask
        logits = self.logits(language, ids, pixels, cache)
        mx.eval(logits)
        for entry in cache:
            del entry.make_mask
        return logits, lambda block: language(block, cache=cache).logits


class _Gemma3(_Gemma):
    module = "gemma3"
    written = "<start_of_image>"
    image = "<image_soft_token>"
    both_ways = "all"

    def pixels(self, folder: Path, path: Path) -> Any:
        import numpy as np
        from PIL import Image

        config = json.loads((folder / "config.json").read_text("utf-8"))
        self.rows = config["mm_tokens_per_image"]
        side = config["vision_config"]["image_size"]
        image = Image.open(path).convert("RGB").resize((side, side), Image.Resampling.BILINEAR)
        return ((np.asarray(image, np.float32) / 255 - 0.5) / 0.5).transpose(2, 0, 1)

    def shown(self, pixels: Any) -> str:
        return f"\n\n<start_of_image>{self.image * self.rows}<end_of_image>\n\n"

    def logits(self, language: Any, ids: Any, pixels: list[Any], cache: Any) -> Any:
        import mlx.core as mx
        import numpy as np

        # The id 0 of a prompt is padding to mlx-vlm, and a token here.
        self.model.config.pad_token_id = 10**6
        given = self.model.get_input_embeddings(ids, mx.array(np.stack(pixels)), mx.ones_like(ids))
        return language(ids, inputs_embeds=mx.array(given.inputs_embeds), cache=cache).logits


class _Gemma4(_Gemma):
    module = "gemma4"
    written = "<|image|>"
    image = "<|image|>"

    def pixels(self, folder: Path, path: Path) -> Any:
        from PIL import Image

        config = json.loads((folder / "config.json").read_text("utf-8"))
        self.both_ways = "sliding" if config["text_config"].get("use_bidirectional_attention") else ""
        given = json.loads((folder / "preprocessor_config.json").read_text("utf-8"))
        module: Any = import_module("mlx_vlm.models.gemma4.processing_gemma4")
        processor = module.Gemma4ImageProcessor(
            patch_size=config["vision_config"]["patch_size"],
            max_soft_tokens=given["max_soft_tokens"],
            pooling_kernel_size=config["vision_config"]["pooling_kernel_size"],
        )
        return processor([Image.open(path).convert("RGB")])

    def shown(self, pixels: Any) -> str:
        return f"<|image>{self.image * pixels[1][0]}<image|>"

    def also(self, tokenizer: Any) -> dict[str, Any]:
        start, end = tokenizer.convert_tokens_to_ids(["<|image>", "<image|>"])
        return {"boi_token_id": start, "eoi_token_id": end, "audio_token_id": 10**6}

    def logits(self, language: Any, ids: Any, pixels: list[Any], cache: Any) -> Any:
        import mlx.core as mx

        values = [mx.array(each[0]["pixel_values"][0]) for each in pixels]
        given = self.model.get_input_embeddings(ids, values)
        return language(
            None,
            inputs_embeds=mx.array(given.inputs_embeds),
            per_layer_inputs=given.per_layer_inputs,
            cache=cache,
        ).logits


_FAMILIES = {"qwen3_5": _Qwen, "qwen3_5_moe": _QwenMoe, "gemma3": _Gemma3, "gemma4": _Gemma4}


if __name__ == "__main__":
    target = sys.argv[1]
    if Path(target).is_dir():
        for case in sorted(Path(target).iterdir()):
            compute(case)
    else:
        main(target)
