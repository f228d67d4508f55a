"""A model folder is somebody's file: no code in it is run, and a quantisation that lies does no harm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import pytest
from mlx.utils import tree_flatten

from core.errors import ModelError
from core.models.loader import load
from tests.core.toy import toy_config, toy_model, write_toy_model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_toy_model(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def marker(folder: Path) -> Path:
    """A file that any module of the folder would write if it were run."""
    marker = folder.parent / "run"
    code = f"open({str(marker)!r}, 'w').close()\nModel = ModelArgs = Tokenizer = object\n"
    for name in ("modeling.py", "tokenization.py", "configuration.py", "llama.py"):
        (folder / name).write_text(code)
    return marker


def change(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def test_a_config_that_names_a_file_of_code_is_refused(folder: Path, marker: Path) -> None:
    change(folder / "config.json", model_file="modeling.py")
    with pytest.raises(ModelError):
        load(str(folder))
    assert not marker.exists()


def test_classes_that_a_folder_brings_are_not_run(folder: Path, marker: Path) -> None:
    classes = {"AutoConfig": "configuration.Model", "AutoModelForCausalLM": "modeling.Model"}
    change(folder / "config.json", auto_map=classes)
    change(
        folder / "tokenizer_config.json",
        auto_map={"AutoTokenizer": ["tokenization.Tokenizer", None]},
        trust_remote_code=True,
    )
    assert load(str(folder)).info.architecture == "llama"
    assert not marker.exists()


def quantised(folder: Path, **said: int) -> None:
    """4 bits in groups of 32 in the weights; `said` is what the config says."""
    model = toy_model()
    nn.quantize(model, group_size=32, bits=4)
    mx.save_safetensors(str(folder / "model.safetensors"), dict(tree_flatten(model.parameters())))
    (folder / "config.json").write_text(json.dumps(toy_config(quantization=said)))


def logits(folder: Path) -> mx.array:
    return load(str(folder)).model(mx.array([[5, 6, 7, 8, 9]]))


@pytest.mark.parametrize(
    "said",
    [
        {"bits": 8, "group_size": 32},
        {"bits": 2, "group_size": 32},
        {"bits": 4, "group_size": 64},
        {"bits": 5, "group_size": 32},
        {"bits": 0, "group_size": 32},
        {"bits": 4, "group_size": 7},
    ],
)
def test_a_quantisation_that_lies_is_refused_or_read_off_the_weights(
    folder: Path, said: dict[str, int]
) -> None:
    quantised(folder, bits=4, group_size=32)
    honest = logits(folder)
    quantised(folder, **said)
    try:
        found = logits(folder)
    except ModelError:
        return
    assert mx.array_equal(found, honest)
