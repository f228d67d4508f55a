"""The model as a folder of float32 weights, where MLX computes in them: both servers load the same one.

Draftlight expands quantised weights on MLX's CPU build; mlx-lm's server computes with them as they are, at
a third of the speed. A comparison of servers is not to be one of number formats.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import mlx.core as mx
from mlx.utils import tree_flatten

from core.models.loader import LoadedModel


def write_float_folder(loaded: LoadedModel, folder: Path) -> Path:
    """`folder`, with the weights that `loaded` computes with; its own folder where nothing was expanded."""
    source = Path(loaded.info.path)
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    if mx.default_device() == mx.gpu or "quantization" not in config:
        return source
    folder.mkdir(parents=True)
    for file in source.iterdir():
        if file.is_file() and file.suffix != ".safetensors" and not file.name.startswith("draftlight"):
            shutil.copy(file, folder / file.name)
    for key in ("quantization", "quantization_config"):
        config.pop(key, None)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    weights = dict(tree_flatten(loaded.model.parameters()))
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
    return folder
