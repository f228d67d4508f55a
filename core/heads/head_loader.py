"""Loads the head of a model: the first one that fits, of any kind. Worker's main thread."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlx.core as mx
from msgspec.structs import replace

from core.errors import reason_of
from core.folders.heads import heads
from core.folders.json_files import read_object
from core.folders.mtp_files import Head, HeadTensor
from core.heads.assistant import assistant
from core.heads.dflash import dflash
from core.heads.draft_head import DraftHead, Weights, why_unsound
from core.heads.eagle3 import eagle3
from core.heads.mtp import mtp_head
from core.models.loader import MakeRoom
from core.models.memory import fault
from core.models.parts import SplitModel, split

NO_HEAD = "no head for it was found"
# By kind: makes a head from the model's parts, the tensors, and their config. Raises ValueError.
_MAKERS: dict[str, Callable[[SplitModel, Weights, dict[str, Any]], DraftHead]] = {
    "mtp": mtp_head,
    "assistant": assistant,
    "eagle3": eagle3,
    "dflash": dflash,
}


def load_head(model: Any, folder: Path, make_room: MakeRoom = lambda size_bytes: None) -> DraftHead | str:
    """The first head for `model` in `folder` that loads, evaluated; or why not. `make_room`: as in `load`."""
    try:
        found = heads(folder)
    except (OSError, ValueError) as error:
        return f"its head cannot be loaded: {reason_of(error)}"
    if not found:
        return NO_HEAD
    parts = split(model)
    if isinstance(parts, str):
        return parts
    problems = []
    for each in found:
        head = each.problem or _loaded(parts, each, folder, make_room)
        if isinstance(head, DraftHead):
            return head
        problems.append(head)
    return problems[0]


def _loaded(parts: SplitModel, found: Head, folder: Path, make_room: MakeRoom) -> DraftHead | str:
    make_room(found.size_bytes)
    try:
        # Files of MTP heads may have no config of their own; their blocks are the model's.
        config = read_object((folder if found.kind == "mtp" else found.source) / "config.json")
        head = replace(_MAKERS[found.kind](parts, _read(found.tensors), config), source=str(found.source))
        if reason := why_unsound(head.module):
            return found.why_not(reason)
        reason = parts.why_no_states(head.layers)
    except Exception as error:  # the files' numbers are used before anything has compared them
        if fault(error):
            raise
        return found.why_not(f"cannot be loaded: {reason_of(error)}")
    return found.why_not(f"cannot be used: {reason}") if reason else head


def _read(tensors: tuple[HeadTensor, ...]) -> Weights:
    weights: Weights = {}
    for file in sorted({tensor.file for tensor in tensors}):
        loaded: Any = mx.load(str(file))
        weights |= {tensor.name: loaded[tensor.stored] for tensor in tensors if tensor.file == file}
    return weights
