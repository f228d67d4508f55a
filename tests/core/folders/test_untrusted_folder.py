"""A model folder is somebody's file: no code in it is run, a chat template has bounds, and a quantisation
that lies does no harm."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import msgspec
import pytest
from mlx.utils import tree_flatten

from core.errors import ChatTemplateError, ModelError
from core.events import Message
from core.folders.catalogue import Catalogue
from core.folders.config import NAMES, Machine
from core.folders.folder import describe
from core.models import loader
from core.models.loader import load
from core.models.memory import machine
from core.prompt import probe as chat_template
from core.prompt import render
from core.prompt.template import TemplateRenderer
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
    with pytest.raises(ModelError, match=r"wants to run its own Python file modeling\.py"):
        load(str(folder))
    assert not marker.exists()


@pytest.mark.parametrize(
    "named", ["evil.Tok", ["evil.Tok", None], [None, "evil.Tok"], "owner/repo--evil.Tok"]
)
@pytest.mark.parametrize("entry", [load, loader.load_family])
def test_a_tokenizer_of_code_is_refused_without_a_question(
    folder: Path, monkeypatch: pytest.MonkeyPatch, named: Any, entry: Callable[[str], object]
) -> None:
    marker = folder.parent / "run"
    (folder / "evil.py").write_text(f"open({str(marker)!r}, 'w').close()\nclass Tok: ...\n")
    change(folder / "tokenizer_config.json", tokenizer_class="Tok", auto_map={"AutoTokenizer": named})
    answers = io.StringIO("y\n1\nyes\n")
    monkeypatch.setattr("sys.stdin", answers)
    with pytest.raises(ModelError, match=r"wants to run Python code.*evil\.Tok of evil\.py") as caught:
        entry(str(folder))
    assert "never runs code" in caught.value.hint
    assert (answers.tell(), marker.exists()) == (0, False)
    listed = describe(folder, "it", "folder", machine())
    assert (listed.problem, listed.hint) == (caught.value.message, caught.value.hint)


def test_classes_that_a_folder_brings_are_not_run(folder: Path, marker: Path) -> None:
    classes = {"AutoConfig": "configuration.Model", "AutoModelForCausalLM": "modeling.Model"}
    change(folder / "config.json", auto_map=classes)
    change(
        folder / "tokenizer_config.json",
        auto_map={"AutoTokenizer": ["tokenization.Tokenizer", None]},
        trust_remote_code=True,
    )
    assert load(str(folder)).info.architecture == "llama"
    assert not describe(folder, "it", "folder", machine()).problem
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
def bounded(monkeypatch: pytest.MonkeyPatch, says: str) -> Iterator[TemplateRenderer]:
    """With a second's patience if time is the expected bound, else with enough for a busy machine."""
    made = TemplateRenderer(render_s=1.0 if "1 s" in says else 60.0, memory_bytes=128 * 2**20)
    monkeypatch.setattr(loader, "renderer", lambda: made)
    monkeypatch.setattr(chat_template, "renderer", lambda: made)
    yield made
    made.close()


RANGES = "{% for i in range(100000) %}" * 3 + "{% endfor %}" * 3
DOUBLED = "{% set n = namespace(x='a') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}"
LISTED = "{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}"


@pytest.mark.sweep
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
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "nested too deeply"),
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
    with pytest.raises(ChatTemplateError, match=says) as caught:
        answer(folder)
    assert caught.value.message.startswith("The chat template of model ")
    change(folder / "tokenizer_config.json", chat_template=TEMPLATE)
    assert answer(folder) == honest


# ---- folders that are damaged, wrong or made to exhaust the reader

NESTED = "[" * 200_000
DEEP = '{"a":' * 900 + "1" + "}" * 900


def text(name: str, content: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(content)


def config(**fields: Any) -> Callable[[Path], object]:
    return lambda folder: change(folder / "config.json", **fields)


def in_place_of(name: str, make: Callable[[Path], object]) -> Callable[[Path], object]:
    def replaced(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        make(folder / name)

    return replaced


def header(content: str) -> Callable[[Path], object]:
    data = content.encode()
    return lambda folder: (folder / "model.safetensors").write_bytes(
        len(data).to_bytes(8, "little") + data + bytes(64)
    )


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def loop(path: Path) -> None:
    path.symlink_to(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


BAD: dict[str, Callable[[Path], object]] = {
    "nested": text("config.json", NESTED),
    "deep": text("config.json", DEEP),
    "many values": text("config.json", f'{{"model_type": "llama", "a": [{"[]," * 2_000_000}1]}}'),
    "digits": text("config.json", '{"model_type": "llama", "num_hidden_layers": ' + "9" * 4000 + "}"),
    "half a character": text("config.json", '{"model_type": "llama", "draftlight_name": "\\ud800"}'),
    "list": text("config.json", "[1]"),
    "bytes": in_place_of("config.json", lambda path: path.write_bytes(b"\xff\xfe{}")),
    "layers": config(num_hidden_layers=10**9),
    "layers as a float": config(num_hidden_layers=1e9),
    "long layers": config(num_hidden_layers=10**400),
    "experts": config(num_experts=10**12),
    "inner": config(text_config={"model_type": "llama", "num_hidden_layers": 10**8}),
    "layer types": config(layer_types=["full_attention"] * 100_000),
    "pattern": config(hybrid_override_pattern="M" * 1_000_000),
    "heads": config(num_key_value_heads=1 << 40),
    "window": config(sliding_window=1 << 70),
    "dimension": config(head_dim=1 << 30),
    "context": config(max_position_embeddings=-1),
    "long type": config(model_type="x" * 1_000_000),
    "type of another type": config(model_type={"llama": 1}),
    "nested index": text("model.safetensors.index.json", NESTED),
    "index of numbers": text("model.safetensors.index.json", '{"weight_map": {"a": 1}}'),
    "nested header": header(NESTED),
    "header of strings": header('{"a": {"dtype": "F32", "shape": "x", "data_offsets": [0, 4]}}'),
    "shape": header('{"a": {"dtype": "F32", "shape": [9007199254740992], "data_offsets": [0, 4]}}'),
    "negative": header('{"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}'),
    "backwards": header('{"a": {"dtype": "F9", "shape": [1], "data_offsets": [8, 4]}}'),
    **{
        f"{what} in place of {name}": in_place_of(name, make)
        for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
        for what, make in (("pipe", os.mkfifo), ("loop", loop), ("device", device))
    },
    "sparse config": in_place_of("config.json", sparse),
    "sparse tokenizer": in_place_of("tokenizer.json", sparse),
}


@pytest.mark.sweep
@pytest.mark.parametrize("name", list(BAD))
def test_a_bad_folder_is_one_row_with_its_reason(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    models = folder.parent / "home" / "data" / "models"
    write_toy_model(models / "good")
    write_toy_model(models / "bad")
    BAD[name](models / "bad")
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(folder.parent / "home"))
    monkeypatch.setenv("HOME", str(folder.parent))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(folder.parent / "hub"))
    entries = Catalogue(Machine(1 << 36, expands=True)).entries()
    msgspec.json.encode(entries)
    by_name = {Path(entry.path).name: entry for entry in entries}
    assert by_name["good"].problem == ""
    assert 20 < len(by_name["bad"].problem) < 1_000
    with pytest.raises(ModelError) as caught:
        load(str(models / "bad"))
    assert str(caught.value) == f"{by_name['bad'].problem} {by_name['bad'].hint}"


@pytest.mark.sweep
def test_wrong_types_everywhere_are_never_a_traceback(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each field of the config in turn has each kind of value."""
    given = json.loads((folder / "config.json").read_text())
    keys = {*NAMES, *given, "layer_types", "quantization", "text_config", "architectures", "draftlight_name"}
    for key in sorted(keys - {"model_type"}):
        for value in (None, True, -1, 0, 1.5, "x", [], [None, {}], {}, {"bits": "x", "group_size": []}):
            (folder / "config.json").write_text(json.dumps(given | {key: value}))
            msgspec.json.encode(describe(folder, str(folder), "folder", Machine(1 << 36, expands=True)))
