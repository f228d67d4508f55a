"""The tensors of MTP heads, found by name in every layout in which heads are published. No MLX.

A head predicts the token after the next one (multi-token prediction). mlx-lm drops or refuses its tensors. A
config can declare a head whose tensors were left out, so only tensors count. Layouts, in order of preference:

    *mtp*.safetensors, mtp/*.safetensors   among the model's files, with or without the prefix
    *.safetensors                          the model's own files, with the prefix
    a folder with a type “…_mtp”           with or without the prefix

Names here are `embedding_norm`, `hidden_norm`, `projection`, `norm`, and `block.` followed by the name of a
tensor in one of the model's own blocks. Copies of the embedding and the output layer are left out: a head
shares those of its model. Of several heads the first one counts. Sources: the repositories of Qwen3-Next,
Qwen3.5, DeepSeek-V3, GLM-4.5 and MiMo-7B; for Macs those that mlx-vlm, MTPLX and Rapid-MLX read.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from core.errors import ModelError
from core.folders.config import is_number, text_config
from core.folders.folder import Tensor, read_header
from core.folders.places import HEAD_KINDS, HEAD_TYPE, is_head_file
from core.system.paths import shown


class _Names(Struct, frozen=True):
    """Where a model type keeps its head: `prefix` (a pattern; `{}` is the number of layers), the names of the
    parts, and the prefix of the block's tensors.
    """

    prefix: str
    embedding_norm: str
    hidden_norm: str
    projection: str
    norm: str
    block: str = ""


_QWEN = _Names(r"mtp", "pre_fc_norm_embedding", "pre_fc_norm_hidden", "fc", "norm", "layers.0.")
_DEEPSEEK = _Names(r"layers\.{}", "enorm", "hnorm", "eh_proj", "shared_head.norm")
_MIMO = _Names(r"mtp_layers\.0", "token_layernorm", "hidden_layernorm", "input_proj", "final_layernorm")
_TYPES = {
    "qwen3_next": _QWEN,
    "qwen3_5": _QWEN,
    "qwen3_5_moe": _QWEN,
    "qwen3_5_text": _QWEN,
    "qwen3_5_moe_text": _QWEN,
    "deepseek_v3": _DEEPSEEK,
    "glm4_moe": _DEEPSEEK,
    "mimo": _MIMO,
}
# Besides the block, which every head has.
PARTS = ("embedding_norm", "hidden_norm", "projection", "norm")

_SHARD = re.compile(r"-\d+-of-\d+$")
_BLOCK = re.compile(r"(?:^|\.)layers\.\d+\.(.+)$")
# Not of a head's block: copies of the model's embedding and output layer, and the heads after the first one.
_OTHERS = re.compile(r"model\.|(?:\w+\.)*(?:embed_tokens|lm_head|shared_head\.head|\w*layers\.\d+)\.")


class HeadTensor(Struct, frozen=True):
    """A tensor of the head: `name` here, and `stored` in `file`."""

    name: str
    file: Path
    stored: str
    size_bytes: int
    rows: int = 0


class Head(Struct, frozen=True):
    """A head found for a model, in `source`: a file in the model's folder, or a separate folder.

    `problem`: why the model cannot draft with it, as a phrase; empty if the files show no reason. `kind`: one
    of `HEAD_KINDS`.
    """

    source: Path
    tensors: tuple[HeadTensor, ...] = ()
    problem: str = ""
    kind: str = "mtp"

    @property
    def size_bytes(self) -> int:
        """Size of the tensors."""
        return sum(tensor.size_bytes for tensor in self.tensors)

    def why_not(self, reason: str) -> str:
        """A phrase: the head's place and the `reason` why it is not used."""
        inside = self.source.suffix == ".safetensors"
        kept = self.source.parent.name if inside and self.source.parent.name.lower() == "mtp" else ""
        place = shown("/".join(filter(None, (kept, self.source.name))))
        return f"the {HEAD_KINDS[self.kind]} in {place} {reason}"

    def unusable(self, reason: str) -> Head:
        """This head with the problem that it `reason`."""
        return replace(self, problem=self.why_not(reason))


def head_names(config: dict[str, Any]) -> re.Pattern[str]:
    """Matches the names of a head's tensors in the model's own files."""
    names = _TYPES.get(str(config.get("model_type")))
    patterns = (r"mtp\w*", *((_prefix(names, config),) if names else ()))
    return re.compile(rf"(?:^|\.)(?:{'|'.join(patterns)})\.")


def _prefix(names: _Names, config: dict[str, Any]) -> str:
    layers = text_config(config).get("num_hidden_layers")
    return names.prefix.replace("{}", str(layers) if is_number(layers) else "none")


def heads_beside(folder: Path, config: dict[str, Any]) -> Iterator[Head]:
    """The heads in the model's folder: those in files of their own, then those in the model's files."""
    names = _TYPES.get(str(config.get("model_type")))
    groups: dict[str, list[Path]] = defaultdict(list)
    for file in sorted([*folder.glob("*.safetensors"), *folder.glob("[mM][tT][pP]/*.safetensors")]):
        groups[_SHARD.sub("", file.relative_to(folder).with_suffix("").as_posix())].append(file)
    for stem, files in sorted(groups.items(), key=lambda group: "mtp" not in group[0].lower()):
        head = _of_files(files[0], files, names, config, separate=is_head_file(f"{stem}.safetensors"))
        if head.tensors or head.problem:
            yield head


def separate_head(place: Path, config: dict[str, Any]) -> Head:
    """The head in a separate folder, for the model with `config`."""
    names = _TYPES.get(str(config.get("model_type")))
    return _of_files(place, sorted(place.glob("*.safetensors")), names, config, separate=True)


def mtp_types(kind: str) -> tuple[str, ...]:
    """The model types that can have a separate head of the type `kind`, its own first."""
    own = kind.removesuffix(HEAD_TYPE)
    names = _TYPES.get(own) if kind.endswith(HEAD_TYPE) else None
    return own, *(each for each in _TYPES if names is not None and _TYPES[each] is names)


def _of_files(
    source: Path, files: Sequence[Path], names: _Names | None, config: dict[str, Any], *, separate: bool
) -> Head:
    """The head in `files`. `separate`: they have nothing else, so names may lack the prefix."""
    head = Head(source)
    if names is None:
        reason = f"is not used: heads of the type {config.get('model_type')} are not supported"
        return head.unusable(reason) if separate else head
    prefix = _prefix(names, config)
    found: dict[str, HeadTensor] = {}
    try:
        for file in files:
            for tensor in read_header(file):
                if name := _own_name(tensor.name, names, prefix, separate=separate):
                    made = HeadTensor(name, file, tensor.name, tensor.size_bytes, _rows(tensor))
                    found.setdefault(name, made)
    except ModelError as error:
        reason = f"cannot be read: {error.message.removesuffix('.')}"
        return head.unusable(reason) if separate else head
    stems = {name.rpartition(".")[0] for name in found}
    missing = [part.replace("_", " ") for part in PARTS if part not in stems]
    if not any(stem.startswith("block.") for stem in stems):
        missing.append("block")
    if missing and (found or separate):
        head = head.unusable(f"is incomplete: it has no {missing[0]}")
    return replace(head, tensors=tuple(found.values()))


def fitted(head: Head, folder: Path, config: dict[str, Any]) -> Head:
    """`head`, with a problem if the rows of its tensors are those of no layer of the model."""
    size = text_config(config).get("hidden_size")
    known: dict[str, set[int]] = {f"{part}.weight": {int(size)} for part in PARTS if isinstance(size, int)}
    try:
        for file in folder.glob("model*.safetensors"):
            for tensor in () if is_head_file(file.name) else read_header(file):
                if found := _BLOCK.search(tensor.name):
                    known.setdefault(f"block.{found[1]}", set()).add(_rows(tensor))
    except ModelError:  # the model cannot be loaded either
        return head
    for own in head.tensors:
        rows = known.get(own.name)
        if rows and own.rows not in rows:
            reason = f"does not fit: its {own.name} has {own.rows:,} rows, the model's {min(rows):,}"
            return head.unusable(reason)
    return head


def _rows(tensor: Tensor) -> int:
    return tensor.shape[0] if tensor.shape else 0


def _own_name(stored: str, names: _Names, prefix: str, *, separate: bool) -> str:
    """The name here of the tensor `stored`; empty if it is not one of the head. `separate`: in a file of its
    own, where the prefix may be missing.
    """
    inside = re.search(rf"(?:^|\.){prefix}\.(.+)$", stored)
    if inside is None and not separate:
        return ""
    name = inside[1] if inside else stored
    for part in PARTS:
        own = f"{getattr(names, part)}."
        if name.startswith(own):
            return f"{part}.{name.removeprefix(own)}"
    own = name.removeprefix(names.block)
    return f"block.{own}" if name.startswith(names.block) and not _OTHERS.match(own) else ""
