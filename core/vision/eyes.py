"""Eyes: the tower of a loaded model, and the rows of the images that it has seen. Worker's main thread.

The tower is loaded with the first image; its weights are in the model's own files, where mlx-lm leaves them
out. Rows are kept for the latest images, so that a chat that is read again needs no tower.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.utils import tree_flatten

from core.documents.client import ImageReading
from core.errors import (
    ModelError,
    ModelTooLargeError,
    NotEnoughMemoryError,
    RequestError,
    reason_of,
)
from core.events import Image, ModelInfo
from core.folders.eyes import FAMILIES
from core.folders.folder import gigabytes, weight_files
from core.folders.json_files import object_in, read_object
from core.models.loader import LoadedModel, MakeRoom, expand_for_cpu
from core.models.memory import fault
from core.models.parts import split
from core.vision.family import Family, Scaled, UnseenError

# Rows that are kept, of the images that were used last.
_KEPT_BYTES = 256 << 20
_CHOOSE = "Choose a model whose images are supported, or send only text."


def family_of(info: ModelInfo) -> Family:
    """The family of the model that `info` describes. Raises `RequestError` if it cannot see."""
    if not info.sees:
        why = info.why_unseeing or "it has no part for images"
        raise RequestError(f"{info.name} cannot see images: {why}.", _CHOOSE)
    folder = Path(info.path)
    try:
        config = read_object(folder / "config.json")
        module = import_module(f"core.vision.{FAMILIES[info.architecture]}")
        found: Family = module.family(config, processor_of(folder))
        found.scale(100, 100)
    except (UnseenError, OSError, ValueError, KeyError, TypeError, ArithmeticError) as error:
        raise RequestError(f"{info.name} cannot see images: {reason_of(error)}.", _CHOOSE) from error
    return found


def image_tokens(image: Image, info: ModelInfo, length: Callable[[str], int]) -> tuple[int, Scaled]:
    """How many tokens `image` adds to a prompt of the model `info`, and its size for the tower.

    `length` counts the tokens of a text. Any thread. Raises `RequestError`.
    """
    family = family_of(info)
    scaled = family.scale(image.width, image.height)
    return length(family.shown) - 1 + scaled.rows, scaled


def processor_of(folder: Path) -> dict[str, Any]:
    """The configuration of a model's image processor; empty if its folder has none."""
    for name in ("preprocessor_config.json", "processor_config.json"):
        found = object_in(folder / name)
        inner = found.get("image_processor", found)
        if isinstance(inner, dict) and inner:
            return inner
    return {}


class Eyes:
    """The vision tower of `model`. `make_room` is called with the bytes of the tower before its weights are
    read, and with those of its computation before each image.
    """

    def __init__(self, model: LoadedModel, family: Family, make_room: MakeRoom) -> None:
        self.family = family
        self._model = model
        self._make_room = make_room
        self._tower: nn.Module | None = None
        self._seen: OrderedDict[tuple[str, Scaled], mx.array] = OrderedDict()
        self.sees: bool | None = None  # whether its answers depend on images; None: not looked at yet
        self.new_cache = model.new_cache
        parts = split(model.model)
        if isinstance(parts, str):
            raise RequestError(f"{model.info.name} cannot see images: {parts}.", _CHOOSE)
        self.parts = parts

    @property
    def nbytes(self) -> int:
        """Bytes of the tower, if it is loaded, and of the rows."""
        tower = self._tower.parameters() if self._tower is not None else {}
        held = sum(int(value.nbytes) for _, value in tree_flatten(tower))
        return held + sum(int(rows.nbytes) for rows in self._seen.values())

    def rows(self, image: Image) -> mx.array:
        """The image's rows [rows, size], evaluated, in the dtype of the embeddings.

        Decodes the image in a child process. Raises `RequestError`, also if memory does not suffice, and
        `ModelError`.
        """
        scaled = self.family.scale(image.width, image.height)
        key = image.hash, scaled
        if key in self._seen:
            self._seen.move_to_end(key)
            return self._seen[key]
        reading = ImageReading(Path(image.path), name=image.name)
        data = reading.scaled(image.hash, scaled.width, scaled.height, self.family.filter)
        pixels = np.frombuffer(data, np.uint8).reshape(scaled.height, scaled.width, 3)
        tower = self._loaded()
        self._fit(self.family.working(scaled))
        rows: mx.array = tower(pixels)
        kind = self.parts.embed(mx.array([[0]])).dtype
        rows = (rows / self.family.embed_scale(kind)).astype(kind)
        mx.eval(rows)
        if rows.shape[0] != scaled.rows or not mx.all(mx.isfinite(rows)).item():
            raise ModelError(
                f"The vision part of {self._model.info.name} gives rows that are not numbers: its weights are"
                " damaged.",
                "Download the model again, or choose another.",
            )
        self._seen[key] = rows
        while sum(each.nbytes for each in self._seen.values()) > _KEPT_BYTES and len(self._seen) > 1:
            self._seen.popitem(last=False)
        mx.clear_cache()
        return rows

    def kept(self, image: Image) -> mx.array | None:
        """The image's rows if they are kept. Decodes nothing."""
        return self._seen.get((image.hash, self.family.scale(image.width, image.height)))

    def _loaded(self) -> nn.Module:
        """The tower, loaded at the first call. Raises `ModelError`."""
        if self._tower is None:
            self._fit(self._model.need.eyes if self._model.need else 0)
            self._tower = load_tower(Path(self._model.info.path), self.family)
        return self._tower

    def _fit(self, size_bytes: int) -> None:
        """Raises `NotEnoughMemoryError` if fewer than `size_bytes` are left."""
        try:
            self._make_room(size_bytes)
        except ModelTooLargeError as error:
            raise NotEnoughMemoryError(
                f"For images {self._model.info.name} needs {gigabytes(size_bytes)} GB more memory than is"
                " left.",
                "Close other programs, send a smaller image, or send only text.",
            ) from error

    def unload(self, *, rows: bool = True) -> None:
        """Frees the tower, and the `rows` of images, which later images load again."""
        self._tower = None
        if rows:
            self._seen.clear()
        mx.clear_cache()


def load_tower(folder: Path, family: Family) -> nn.Module:
    """The tower in a model's folder. Raises `ModelError`."""
    try:
        tower = family.tower()
        weights: dict[str, mx.array] = {}
        for file in weight_files(folder):
            held: Any = mx.load(str(file))
            weights |= dict(filter(None, (family.weight(name, value) for name, value in held.items())))
        _quantise(tower, weights, read_object(folder / "config.json"))
        tower.load_weights(list(weights.items()))
        if mx.default_device() == mx.cpu:
            tower = expand_for_cpu(tower)
        mx.eval(tower.parameters())
    except (ModelError, MemoryError):
        raise
    except Exception as error:  # MLX raises ValueError, RuntimeError …
        if fault(error):
            raise
        raise ModelError(
            f"The vision part of the model in {folder} cannot be loaded: {reason_of(error)}.",
            "Check that the model is complete, or send only text.",
        ) from error
    return tower


def _quantise(tower: nn.Module, weights: dict[str, mx.array], config: dict[str, Any]) -> None:
    """Replaces the modules of the tower whose weights are quantised."""
    if not any(name.endswith(".scales") for name in weights):
        return
    general = config.get("quantization") or config.get("quantization_config") or {}

    def settings(path: str, module: nn.Module) -> Any:
        if f"{path}.scales" not in weights or not hasattr(module, "to_quantized"):
            return False
        own = next((value for key, value in general.items() if key.endswith(path)), None)
        own = own if isinstance(own, dict) else general
        return {key: own[key] for key in ("group_size", "bits", "mode") if key in own}

    nn.quantize(tower, class_predicate=settings)
