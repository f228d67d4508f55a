"""A model folder is somebody's file: no code in it is run, a chat template has bounds, and a quantisation
that lies does no harm."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import pytest
from mlx.utils import tree_flatten

from core.errors import ChatTemplateError, ModelError
from core.events import Message
from core.models import chat_template, loader
from core.models.loader import load
from core.models.prompt import render
from core.models.template import TemplateRenderer
from tests.core.toy import TEMPLATE, toy_config, toy_model, write_toy_model


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


def answer(folder: Path) -> list[int]:
    tokenizer = load(str(folder)).tokenizer
    return render(tokenizer, [Message("user", "Hello")]).ids


@pytest.fixture
def bounded(monkeypatch: pytest.MonkeyPatch) -> Iterator[TemplateRenderer]:
    """With a second's patience."""
    made = TemplateRenderer(render_s=1.0, memory_bytes=128 * 2**20)
    monkeypatch.setattr(loader, "renderer", lambda: made)
    monkeypatch.setattr(chat_template, "renderer", lambda: made)
    yield made
    made.close()


RANGES = "{% for i in range(100000) %}" * 3 + "{% endfor %}" * 3
DOUBLED = "{% set n = namespace(x='a') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}"
LISTED = "{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (RANGES, "took more than 1 s"),
        ("{{ 10 ** (10 ** 9) }}", "took more than 1 s|MB of memory"),
        ("{{ 'a' * 10 ** 9 }}", "takes more than 128 MB of memory"),
        ("{{ 'a' | center(10 ** 9) }}", "takes more than 128 MB of memory"),
        (DOUBLED, "takes more than 128 MB of memory"),
        (LISTED, "takes more than 128 MB of memory"),
        ("{{ range(10 ** 9) | list }}", "Range too big"),
        ("{{ 'a' * 10 ** 7 }}", r"writes more than 1,000,0\d\d characters"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "recursion"),
        ("{{ raise_exception('No system prompt') }}", "No system prompt"),
        ("{{ messages.append(1) }}", "unsafe"),
        ("{% set n = namespace(__class__=1) %}", "a namespace does not accept the name"),
        ("{{ ().__class__.__base__.__subclasses__() }}", "unsafe"),
        ("{% if %}", "."),
    ],
)
def test_a_template_beyond_its_bounds_is_an_error_and_not_a_hang(
    folder: Path, bounded: TemplateRenderer, body: str, says: str
) -> None:
    honest = answer(folder)
    change(folder / "tokenizer_config.json", chat_template=body + TEMPLATE)
    began = time.monotonic()
    with pytest.raises(ChatTemplateError, match=says) as caught:
        answer(folder)
    assert time.monotonic() - began < 20
    assert caught.value.message.startswith("The chat template of model ")
    change(folder / "tokenizer_config.json", chat_template=TEMPLATE)
    assert answer(folder) == honest
