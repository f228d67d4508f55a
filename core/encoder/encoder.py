"""Encoder: all-MiniLM-L6-v2, a BERT of 6 layers, in MLX.

The weights ship in resources/encoder as int8 rows with a float32 scale each and stay so in memory
(22.7 MB). A forward expands one matrix at a time to float32, at about 4% of its time, so that nothing
else is held between two calls. Float32 on Metal, too: float16 has not been measured there.

`open_encoder` and every method run on the thread that owns MLX.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np

from core.errors import EncoderUnavailableError
from core.system.paths import resources_dir

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Array = np.ndarray[Any, Any]

LAYERS = 6
WIDTH = 384
# Word pieces of one row of a forward, with the first and the last token that BERT needs.
WINDOW = 128
# Tokens that the published model reads of a text, with the first and the last token.
MOST_TOKENS = 256
UNKNOWN = 100  # The piece of a word or character that the vocabulary lacks.

_HEADS = 12
_EPS = 1e-12
_ERF = (0.0000430638, 0.0002765672, 0.0001520143, 0.0092705272, 0.0422820123, 0.0705230784, 1.0)
_PAD, _FIRST, _LAST = 0, 101, 102
# SHA-256 of the shipped files, as `make encoder` prints them.
SHIPPED = {
    "encoder.safetensors": "b8d0c81981535425c40acee45eadeceea506e2d52cf0086a91a87a8f74c8a913",
    "tokenizer.json": "5fd1c882abbd30517dced455a2c9768945ec726b96727927e4959348d9de550b",
}
NAME = "all-MiniLM-L6-v2"
# Names vectors of this encoder on the disk. The file of this hash had no positions after 128, which
# passages do not use: their vectors are the same.
MODEL_ID = f"{NAME}/93f010f99a414a00"


class Encoder:
    """The weights and the tokenizer. `nbytes`: memory of the weights."""

    def __init__(self, arrays: dict[str, mx.array], tokenizer: Tokenizer) -> None:
        self._arrays = arrays
        self._tokenizer = tokenizer
        self.nbytes = sum(array.nbytes for array in arrays.values())

    def pieces(self, text: str) -> tuple[Array, Array]:
        """The word pieces of a well-formed text: int32 ids [n], end-exclusive character ranges [n, 2]."""
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        ids = np.array(encoding.ids, np.int32)
        return ids, np.array(encoding.offsets, np.int32).reshape(len(ids), 2)

    def states(self, windows: Sequence[Array]) -> mx.array:
        """Last hidden states, float32 [windows, longest + 2, 384], not evaluated.

        `windows` are ids of at most `MOST_TOKENS` - 2 pieces each. Row 0 of a window belongs to the first
        token, row 1 to its first piece; rows after the last token are padding and mean nothing.
        """
        lengths = np.array([len(window) + 2 for window in windows])
        ids = np.full((len(windows), int(lengths.max())), _PAD, np.int32)
        for row, window in zip(ids, windows):
            row[: len(window) + 2] = [_FIRST, *window, _LAST]
        used = np.arange(ids.shape[1]) < lengths[:, None]
        mask = None if used.all() else mx.array(used)[:, None, None, :]
        words = mx.array(ids)
        x = self._arrays["words"][words] * self._arrays["words.scales"][words][..., None]
        x = self._norm("norm", x + self._arrays["positions"][: ids.shape[1]])
        for layer in range(LAYERS):
            x = self._layer(f"layers.{layer}", x, mask)
        return x

    def _layer(self, name: str, x: mx.array, mask: mx.array | None) -> mx.array:
        rows, length, _ = x.shape
        qkv = self._linear(f"{name}.qkv", x).reshape(rows, length, 3, _HEADS, -1)
        q, k, v = qkv.transpose(2, 0, 3, 1, 4)
        scale = 1 / math.sqrt(WIDTH // _HEADS)
        attended = mx.fast.scaled_dot_product_attention(q, k, v, scale=scale, mask=mask)
        attended = self._linear(f"{name}.attended", attended.transpose(0, 2, 1, 3).reshape(x.shape))
        x = self._norm(f"{name}.attended.norm", x + attended)
        return self._norm(
            f"{name}.down.norm",
            x + self._linear(f"{name}.down", _gelu(self._linear(f"{name}.up", x))),
        )

    def _linear(self, name: str, x: mx.array) -> mx.array:
        matrix = self._arrays[name].astype(mx.float32) * self._arrays[f"{name}.scales"][:, None]
        return x @ matrix.T + self._arrays[f"{name}.bias"]

    def _norm(self, name: str, x: mx.array) -> mx.array:
        weight, bias = self._arrays[f"{name}.weight"], self._arrays[f"{name}.bias"]
        normed: mx.array = mx.fast.layer_norm(x, weight, bias, _EPS)
        return normed


def _gelu(x: mx.array) -> mx.array:
    """GELU. On the CPU by sums and products alone, as MLX computes `erf` there one element at a time.

    erf by Abramowitz and Stegun, “Handbook of Mathematical Functions”, 7.1.28: off by 3e-7 at most.
    """
    if mx.default_device() == mx.gpu:
        return mx.array(nn.gelu(x))
    z = mx.abs(x) * math.sqrt(0.5)
    y = mx.array(_ERF[0])
    for coefficient in _ERF[1:]:
        y = y * z + coefficient
    for _ in range(4):
        y = y * y
    return 0.5 * (x + mx.abs(x) * (1 - 1 / y))


def open_encoder(folder: Path | None = None) -> Encoder:
    """The encoder in `folder` (None: the one that ships), some 50 ms.

    Raises `EncoderUnavailableError` if a file is missing, differs from what ships, or cannot be read.
    """
    folder = folder or resources_dir() / "encoder"
    check_files(folder)
    try:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        loaded: Any = mx.load(str(folder / "encoder.safetensors"))
        mx.eval(loaded)
    except Exception as error:  # tokenizers raises plain Exception
        raise _unavailable(f"cannot be read: {error}") from error
    return Encoder(loaded, tokenizer)


def check_files(folder: Path | None = None) -> None:
    """Compare the encoder's files with what ships. Raises `EncoderUnavailableError`."""
    folder = folder or resources_dir() / "encoder"
    for name, expected in SHIPPED.items():
        try:
            with (folder / name).open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise _unavailable(f"cannot be read: {name}: {error.strerror}") from error
        if found != expected:
            raise _unavailable(
                f"is damaged: {name} has the SHA-256 {found[:16]}…, and {expected[:16]}… is expected"
            )


def _unavailable(what: str) -> EncoderUnavailableError:
    return EncoderUnavailableError(
        f"The sentence encoder {what}.",
        "Install Draftlight again. Until then, text is compared by its words.",
    )
