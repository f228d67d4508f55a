"""Verdict: what trying a model out has shown, kept on disk by itself, and what is known before that.

Trees and drafts of several tokens are exact for most models and not for all (`tree_probe`,
`split_probe`). Trying takes some seconds, so it is done while nothing is asked or by `models profile`,
never before a first token, and the verdict is kept by (config, dtype, versions of MLX and mlx-lm,
processor). Until there is one:

    trees    are not verified; chains are. One verdict ships: the starter's
             (`resources/decoding/verdicts.json`, written by `make starter-verdict`).
    chains   are verified for the architectures on which all drafters were tried without a difference
             (`resources/decoding/tried.json`: the names in `tests.core.architectures`, and those that
             `docs/models.md` shows), unless the config asks for rotary scaling by the length. Others do
             not speculate, nor go on with a prefix, until they were tried: a wrong answer costs more
             than some slow seconds.

Worker's main thread.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mlx.core as mx
import msgspec
from mlx_lm.utils import _get_classes
from msgspec import Struct

from core.decoding.probes.split_probe import Splits
from core.events import ModelInfo
from core.system.paths import cache_dir, resources_dir

NOT_TRIED = "it was not tried on this model yet; that is done while nothing is asked, or by `models profile`"


class Verdict(Struct, frozen=True):
    """What was found for one model. `why_no_trees` is empty if trees are exact."""

    key: str
    why_no_trees: str
    splits: Splits

    def why_not_split(self, tokens: int) -> str:
        """Why no draft is verified in a context that grows to `tokens`; empty if drafts are."""
        agreed = self.splits.agreed_tokens
        return self.splits.reason if agreed is not None and tokens > agreed else ""


def verdict_key(info: ModelInfo) -> str:
    """Names a model by its config, as it runs here. Two copies of one model have one key."""
    versions = (version("mlx"), version("mlx-lm"), mx.default_device().type.name)
    return " ".join(
        map(str, (info.architecture, _config_hash(info), info.dtype, info.quantisation, *versions))
    )


def load_verdict(info: ModelInfo) -> Verdict | None:
    """The verdict that was found earlier or ships; None if there is none."""
    key = verdict_key(info)
    try:
        held = msgspec.json.decode(_path(key).read_bytes(), type=Verdict)
        if held.key == key:
            return held
    except (OSError, msgspec.DecodeError):
        pass  # none yet, or one that cannot be read: it will be found again
    return _shipped().get(key)


def save_verdict(verdict: Verdict) -> None:
    """Keep `verdict`, atomically."""
    path = _path(verdict.key)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(verdict)))
    os.replace(temporary, path)


def is_tried(info: ModelInfo) -> bool:
    """Whether no difference was found on the model's architecture with such rotary scaling.

    A model type can be another name of an architecture: Kimi K2 runs as `deepseek_v3`.
    """
    config = _config(info)
    return _module_of(info.architecture, config) in _tried() and not _scales_by_length(config)


def _module_of(model_type: str, config: Any) -> str:
    """The name of the mlx-lm module that implements a model type; empty if none does."""
    architectures = config.get("architectures") if isinstance(config, dict) else None
    try:
        model_class, _ = _get_classes({"model_type": model_type, "architectures": architectures})
    except ValueError:
        return ""
    return str(model_class.__module__.rpartition(".")[2])


def _scales_by_length(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    if "dynamic" in (value.get("type"), value.get("rope_type")):
        return True
    return any(map(_scales_by_length, value.values()))


def _config(info: ModelInfo) -> Any:
    try:
        return json.loads((Path(info.path) / "config.json").read_bytes()) if info.path else {}
    except (OSError, ValueError):
        return {}


def _config_hash(info: ModelInfo) -> str:
    """Of what the config says, not of how it is written; of the figures known, where there is none."""
    said = _config(info) or [info.path, info.name, info.layers, info.parameters, info.vocabulary]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:24]


def _path(key: str) -> Path:
    return cache_dir() / "profiles" / f"verdict-{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"


@cache
def _tried() -> frozenset[str]:
    return frozenset(
        msgspec.json.decode((resources_dir() / "decoding" / "tried.json").read_bytes(), type=list[str])
    )


@cache
def _shipped() -> dict[str, Verdict]:
    path = resources_dir() / "decoding" / "verdicts.json"
    return {each.key: each for each in msgspec.json.decode(path.read_bytes(), type=list[Verdict])}
