"""Model folders: completeness, support, description, and the tokenizer family.

Reads the config, the headers of the weights and the tokenizer's vocabulary, but no weights. `check()` raises
with the file or figure that is wrong; `describe()` never raises and puts the same text into the entry's
`problem`, so that a broken model is listed with its reason. No MLX.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from core.errors import ModelError, ModelTooLargeError
from core.events import MemoryNeed, ModelEntry, ModelSource
from core.models.config import (
    CONTEXT_NAMES,
    Machine,
    context_tokens,
    is_supported,
    layer_kinds,
    need_of,
    text_config,
)
from core.models.places import display_name
from core.system.files import write_atomic
from core.system.paths import cache_dir
from core.system.private import make_folder

TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json")
# Tensors of parts that a language model does not load.
_OTHER_PARTS = ("vision_tower.", "visual.", "model.visual.", "audio_tower.", "multi_modal_projector.")
# File types of other runtimes, with advice.
_FOREIGN = {
    "*.gguf": "a GGUF file, which other programs use",
    "pytorch_model*.bin": "PyTorch weights",
    "*.pt": "PyTorch weights",
    "*.npz": "weights in MLX's old form",
}
# Too short for a question and its answer.
_LEAST_CONTEXT_TOKENS = 2048
# Far above any model's context; position ids are 32-bit numbers.
_MOST_CONTEXT_TOKENS = 1 << 30
_MLX_VERSION = "Choose a version for MLX, with config.json and model*.safetensors."

_LONGEST_HEADER_BYTES = 100_000_000  # limit of the format
_COPY_AGAIN = "Download the model again, or copy it again from where it came."


class Tensor(Struct, frozen=True):
    """One tensor of a safetensors file; `dtype` is the format's name (BF16, U32 …)."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    size_bytes: int


class Checked(Struct, frozen=True):
    """A model folder whose files passed all checks."""

    folder: Path
    config: dict[str, Any]
    tensors: tuple[Tensor, ...]

    @property
    def parameters(self) -> int:
        """Number of parameters; quantised ones count as parameters, not as packed words."""
        # Each group has one scale. Bits differ within a model and are not always in the config.
        scaled = {each.name.removesuffix(".scales") for each in self.tensors if each.name.endswith(".scales")}
        count = 0
        for tensor in self.tensors:
            stem, _, leaf = tensor.name.rpartition(".")
            if stem not in scaled or leaf not in ("weight", "scales", "biases"):
                count += math.prod(tensor.shape)
            elif leaf == "scales":
                count += math.prod(tensor.shape) * self._group_of(stem)
        return count

    @property
    def stored_bytes(self) -> int:
        """Bytes of the tensors."""
        return sum(tensor.size_bytes for tensor in self.tensors)

    @property
    def quantisation(self) -> dict[str, Any]:
        """The config's description of the quantisation; empty if the weights are not quantised."""
        found = self.config.get("quantization") or self.config.get("quantization_config") or {}
        return found if isinstance(found, dict) else {}

    @property
    def dtype(self) -> str:
        """MLX's name for the dtype of the first floating-point tensor."""
        names = {"BF16": "bfloat16", "F16": "float16", "F32": "float32"}
        return next((names[each.dtype] for each in self.tensors if each.dtype in names), "")

    def _group_of(self, stem: str) -> int:
        own = self.quantisation.get(stem)
        return int((own if isinstance(own, dict) else self.quantisation).get("group_size", 64))


def check(folder: Path) -> Checked:
    """Raises `ModelError` with the first thing that is wrong, and what to do about it."""
    config = _config(folder)
    files = _weight_files(folder)
    if not any((folder / name).is_file() for name in TOKENIZER_FILES):
        raise ModelError(
            f"{folder} holds no tokenizer ({', '.join(TOKENIZER_FILES[:3])}).",
            "Download the model again, tokenizer files included.",
        )
    if not is_supported(str(config["model_type"])):
        raise ModelError(
            f"The model in {folder} is of the type “{config['model_type']}”, which MLX cannot load.",
            "Choose a language model of another type, or update Draftlight.",
        )
    _check_context(folder, config)
    tied = bool(text_config(config).get("tie_word_embeddings"))
    dropped = (*_OTHER_PARTS, "lm_head.") if tied else _OTHER_PARTS
    tensors = (tensor for file in files for tensor in read_header(file))
    return Checked(folder, config, tuple(each for each in tensors if not each.name.startswith(dropped)))


def _check_context(folder: Path, config: dict[str, Any]) -> None:
    text = text_config(config)
    named = [(name, value) for name in CONTEXT_NAMES if isinstance(value := text.get(name), int | float)]
    for name, value in named[:1]:
        if not 1 <= value <= _MOST_CONTEXT_TOKENS:
            raise ModelError(
                f"{folder / 'config.json'} gives {name} as {value:,}; a context has from 1 to"
                f" {_MOST_CONTEXT_TOKENS:,} tokens.",
                "Correct the figure, or download the model again.",
            )


def check_fits(checked: Checked, machine: Machine) -> MemoryNeed:
    """Raises `ModelTooLargeError` if not even a short context would fit."""
    need = need_of(checked.config, checked.parameters, checked.stored_bytes, machine)
    least = least_context(checked.config)
    if need.total_at(least) > machine.limit_bytes:
        raise ModelTooLargeError(
            f"{display_name(checked.folder, checked.config)} needs {gigabytes(need.total_at(least))} GB with"
            f" a context of {least:,} tokens, and this machine gives it"
            f" {gigabytes(machine.limit_bytes)} GB.",
            "Choose a smaller model, or a version of it with fewer bits.",
        )
    return need


def least_context(config: dict[str, Any]) -> int:
    """The context, in tokens, that must fit for the model to be loaded."""
    return min(_LEAST_CONTEXT_TOKENS, context_tokens(config))


def describe(folder: Path, reference: str, source: ModelSource, machine: Machine) -> ModelEntry:
    """The catalogue's entry for the folder. Never raises."""
    entry = ModelEntry(
        reference, display_name(folder, {}), source, str(folder), disk_bytes=disk_bytes(folder)
    )
    try:
        checked = check(folder)
    except ModelError as error:
        return replace(entry, problem=error.message, hint=error.hint)
    config = checked.config
    text = text_config(config)
    entry = replace(
        entry,
        name=display_name(folder, config),
        architecture=str(config["model_type"]),
        family=family_of(folder),
        parameters=checked.parameters,
        bits=int(checked.quantisation.get("bits", 0)),
        group_size=int(checked.quantisation.get("group_size", 0)),
        dtype=checked.dtype,
        context_tokens=context_tokens(config),
        layers=len(layer_kinds(text)),
        need=need_of(config, checked.parameters, checked.stored_bytes, machine),
    )
    try:
        check_fits(checked, machine)
    except ModelTooLargeError as error:
        return replace(entry, problem=error.message, hint=error.hint)
    return entry


def disk_bytes(folder: Path) -> int:
    """Size of all files in the folder; links count with their targets."""
    try:
        return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    except OSError:
        return 0


def gigabytes(size_bytes: int) -> str:
    """11.2 for 11.2 × 2^30, as the window writes memory."""
    return f"{size_bytes / 2**30:,.1f}"


def _config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    if not folder.is_dir():
        raise ModelError(
            f"There is no folder {folder} any more.", "Connect the disk it is on, or remove it from the list."
        )
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        _refuse_foreign(folder)
        raise ModelError(f"{path} is missing.", "Choose a folder that holds a whole MLX model.") from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read: {error}.", "Download the model again.") from error
    if not isinstance(config, dict) or "model_type" not in config:
        raise ModelError(f"{path} names no model_type.", "Choose a folder that holds a whole MLX model.")
    return config


def _weight_files(folder: Path) -> list[Path]:
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        try:
            names = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ModelError(f"{index} cannot be read: {error}.", "Download the model again.") from error
        missing = sorted(str(name) for name in names if not (folder / str(name)).is_file())
        if missing:
            more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
            raise ModelError(f"{folder} lacks {', '.join(missing[:3])}{more}.", "Download the model again.")
    files = sorted(folder.glob("model*.safetensors"))
    if not files:
        _refuse_foreign(folder)
        raise ModelError(
            f"{folder} holds no weights (model*.safetensors).", "Download the model again, weights included."
        )
    return files


def _refuse_foreign(folder: Path) -> None:
    for pattern, what in _FOREIGN.items():
        if found := sorted(folder.glob(pattern)):
            raise ModelError(f"{found[0]} is {what}, not an MLX model.", _MLX_VERSION)


def read_header(path: Path) -> tuple[Tensor, ...]:
    """The tensors of a safetensors file, from its header alone.

    The format: eight bytes of little-endian length, that many bytes of JSON, then the tensors' bytes; offsets
    count from the end of the JSON. Raises `ModelError` if the file has another format or is truncated.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            start = file.read(8)
            length = struct.unpack("<Q", start)[0] if len(start) == 8 else -1
            if not 2 <= length <= _LONGEST_HEADER_BYTES:
                raise ModelError(f"{path} is not a safetensors file.", _COPY_AGAIN)
            text = file.read(length)
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error}.", _COPY_AGAIN) from error
    if len(text) < length:
        raise ModelError(f"{path} is cut off in its header ({size:,} bytes).", _COPY_AGAIN)
    try:
        header = json.loads(text)
        header.pop("__metadata__", None)
        tensors = tuple(
            Tensor(
                name,
                str(entry["dtype"]),
                tuple(int(each) for each in entry["shape"]),
                int(entry["data_offsets"][1]) - int(entry["data_offsets"][0]),
            )
            for name, entry in header.items()
        )
        end = max((int(entry["data_offsets"][1]) for entry in header.values()), default=0)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise ModelError(f"{path} has a header that cannot be read ({error}).", _COPY_AGAIN) from error
    if size < 8 + length + end:
        raise ModelError(f"{path} is cut off: it has {size:,} of {8 + length + end:,} bytes.", _COPY_AGAIN)
    return tensors


# ---- identity: whether a folder still holds the same weights

_SAMPLES = 16
_SAMPLE_BYTES = 1 << 16


def identity_of(folder: Path) -> str:
    """A SHA-256 that changes with the config or the weights in `folder`; empty if they cannot be read.

    Weights are too large to be read whole. What is hashed of a file are its name, size, time of change, its
    header, and samples from its beginning to its end, so that neither a new version of the same architecture
    nor one copied with its old time passes for the previous one.
    """
    digest = hashlib.sha256()
    try:
        digest.update((folder / "config.json").read_bytes())
        for path in _weight_files(folder):
            with path.open("rb") as file:
                stat = os.fstat(file.fileno())
                digest.update(f"\0{path.name}\0{stat.st_size}\0{stat.st_mtime_ns}\0".encode())
                length = struct.unpack("<Q", file.read(8))[0]
                digest.update(file.read(min(length, _LONGEST_HEADER_BYTES)))
                for index in range(_SAMPLES):
                    file.seek(max(0, stat.st_size - _SAMPLE_BYTES) * index // (_SAMPLES - 1))
                    digest.update(file.read(_SAMPLE_BYTES))
    except (OSError, struct.error, ModelError):
        return ""
    return digest.hexdigest()


# ---- tokenizer family: models whose token-to-id maps are identical
#
# Everything that uses token ids (drafters, tables, draft models) may be shared within a family only. The
# fingerprint is the SHA-256 of the sorted vocabulary with added tokens, so it does not depend on file formats
# or on the order of a JSON object.


def fingerprint(vocabulary: Mapping[str, int]) -> str:
    """64 hex digits that are equal exactly if the token-to-id maps are."""
    # Hashed as one string: 49,152 single updates take three times as long.
    lines = "".join([f"{token}\0{vocabulary[token]}\n" for token in sorted(vocabulary)])
    return hashlib.sha256(lines.encode("utf-8", "surrogatepass")).hexdigest()


def family_of(folder: Path) -> str:
    """The fingerprint of the tokenizer in `folder`, without loading it; empty without a tokenizer.json.

    Cached until the files change, because reading a vocabulary takes a quarter of a second.
    """
    path, settings = folder / "tokenizer.json", folder / "tokenizer_config.json"
    try:
        stats = [each.stat() for each in (path, settings) if each.exists()]
        seen = f"{path.resolve()}:{[(stat.st_size, stat.st_mtime_ns) for stat in stats]}"
        note = cache_dir() / "families" / hashlib.sha256(seen.encode()).hexdigest()[:32]
        if note.is_file():
            return note.read_text(encoding="ascii")
        found = fingerprint(_vocabulary(path, settings))
        make_folder(note.parent)
        write_atomic(note, found.encode("ascii"), durable=False)
    except Exception:  # unreadable files; the tokenizer library raises plain Exception
        return ""
    return found


def _vocabulary(path: Path, settings: Path) -> dict[str, int]:
    """The vocabulary of the loaded tokenizer, including tokens that only the settings add."""
    from tokenizers import Tokenizer

    vocabulary: dict[str, int] = Tokenizer.from_file(str(path)).get_vocab(with_added_tokens=True)
    if settings.exists():
        added = json.loads(settings.read_text(encoding="utf-8")).get("added_tokens_decoder", {})
        for index, token in added.items():
            vocabulary.setdefault(str(token["content"]), int(index))
    return vocabulary
