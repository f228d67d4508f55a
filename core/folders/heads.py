"""The heads for a model: trained drafters of every kind, where they lie, and whether they fit. No MLX.

MTP heads may lie among the model's files (`mtp_files`). All kinds may lie in a folder of their own: a
download, imported, in the hub's cache or LM Studio's folder, next to the model's folder or in it. A separate
head belongs to every model of its type, sizes and tokenizer, preferably to that of its name. Several models
may have all of these in common. The head of another one costs little, because what does not pay is not asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from core.errors import ModelError
from core.folders.config import is_number
from core.folders.folder import family_of, read_header
from core.folders.json_files import read_object
from core.folders.mtp_files import Head, HeadTensor, fitted, heads_beside, mtp_types, separate_head
from core.folders.places import head_folders, head_kind, model_words
from core.system.paths import shown


class _Kind(Struct, frozen=True):
    """Requirements of a separate head of one kind.

    - `sizes`: names in the model's config, each with its names in the head's, of which the first one given
      counts. Values must be equal if both give them; the head may have another number of layers.
    - `parts`: modules without whose tensors it is incomplete.
    - `types`: model types for which the kind exists; empty: any.
    """

    sizes: Mapping[str, tuple[str, ...]]
    parts: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


_OWN_BLOCK = (
    "hidden_size",
    "vocab_size",
    "intermediate_size",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "num_experts",
    "moe_intermediate_size",
)
_KEYS = ("head_dim", "global_head_dim", "num_key_value_heads", "num_global_key_value_heads", "vocab_size")
_KINDS = {
    "mtp": _Kind({key: (key,) for key in _OWN_BLOCK}),
    "assistant": _Kind(
        {"hidden_size": ("backbone_hidden_size",)} | {key: (key,) for key in _KEYS},
        ("pre_projection", "post_projection", "model.embed_tokens", "model.norm"),
        ("gemma4", "gemma4_unified"),
    ),
    "eagle3": _Kind(
        {"hidden_size": ("target_hidden_size", "hidden_size"), "vocab_size": ("vocab_size",)},
        ("fc", "self_attn.q_proj", "norm"),
    ),
    "dflash": _Kind(
        {key: (key,) for key in ("hidden_size", "vocab_size")}
        | {"num_hidden_layers": ("num_target_layers",)},
        ("fc", "self_attn.q_proj", "hidden_norm", "norm"),
    ),
}


def heads(folder: Path, separate: Sequence[Path] | None = None) -> tuple[Head, ...]:
    """The heads for the model in `folder`, usable ones first. Raises OSError, ValueError if it has no config.

    `separate`: folders of heads; None searches for them. A separate head that does not fit is left out unless
    its name is the model's.
    """
    config = read_object(folder / "config.json")
    found = list(heads_beside(folder, config))
    places = head_folders([folder]) if separate is None else separate
    alike = {place for place in places if model_words(place) == model_words(folder)}
    for place in sorted(places, key=lambda place: place not in alike):
        head = _separate(place, folder, config)
        if place in alike or not head.problem:
            found.append(head)
    fitting = [fitted(each, folder, config) if each.kind == "mtp" else each for each in found]
    return tuple(sorted(fitting, key=lambda head: bool(head.problem)))


def found_heads(folder: Path, separate: Sequence[Path] | None = None) -> tuple[Head, ...]:
    """As `heads`; empty without a readable config."""
    try:
        return heads(folder, separate)
    except (OSError, ValueError):
        return ()


def _separate(place: Path, folder: Path, config: dict[str, Any]) -> Head:
    """The head in the folder `place`, for the model in `folder`."""
    try:
        own = read_object(place / "config.json")
    except (OSError, ValueError):
        return Head(place).unusable("has no readable config.json")
    kind = head_kind(own)
    head = separate_head(place, config) if kind == "mtp" else _whole(place, kind)
    reason = _foreign(kind, own, config)
    if not reason and len({family for each in (place, folder) if (family := family_of(each))}) > 1:
        reason = "does not fit: its tokenizer is another one"
    return head.unusable(reason) if reason else head


def _whole(place: Path, kind: str) -> Head:
    """A head with all tensors of its folder, under their own names."""
    head = Head(place, kind=kind)
    try:
        tensors = tuple(
            HeadTensor(tensor.name, file, tensor.name, tensor.size_bytes)
            for file in sorted(place.glob("*.safetensors"))
            for tensor in read_header(file)
        )
    except ModelError as error:
        return head.unusable(f"cannot be read: {error.message.removesuffix('.')}")
    stems = {tensor.name.rpartition(".")[0] for tensor in tensors}
    head = replace(head, tensors=tensors)
    for part in _KINDS[kind].parts if kind in _KINDS else ():
        if not any(f".{stem}".endswith(f".{part}") for stem in stems):
            return head.unusable(f"is incomplete: it has no {part}")
    return head


def _foreign(kind: str, head: dict[str, Any], config: dict[str, Any]) -> str:
    """Why a head with the config `head` is not one of the model with `config`; empty if it may be."""
    if kind not in _KINDS:
        return "is of a kind that is not supported"
    rules, theirs, own = _KINDS[kind], _flat(head), _flat(config)
    wanted = _type_of(own)
    types = rules.types if kind != "mtp" else mtp_types(_type_of(theirs))
    if types and wanted not in types:
        return f"is for models of the type {shown(types[0])}, not {wanted}"
    for key, names in rules.sizes.items():
        name = next((name for name in names if is_number(theirs.get(name))), "")
        if name and is_number(own.get(key)) and theirs[name] != own[key]:
            return f"does not fit: its {name} is {theirs[name]:,}, the model's {own[key]:,}"
    return ""


def _flat(config: dict[str, Any]) -> dict[str, Any]:
    inner = config.get("text_config", config.get("transformer_layer_config"))
    return {**config, **inner} if isinstance(inner, dict) else config


def _type_of(config: dict[str, Any]) -> str:
    """The type of the language model, or of the head."""
    return str(config.get("model_type")).removesuffix("_text")
