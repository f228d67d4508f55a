"""The index of transformers: it says what reading the files says, and saves reading them."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from core.models import runtime
from core.models.runtime import Structure, index_file, indexed
from core.system.buffer_limits import BufferLimits

FOUND: Structure = {
    frozenset(): {"llama.configuration_llama": {"LlamaConfig"}},
    frozenset({"torch", "tokenizers"}): {"llama.modeling_llama": {"LlamaModel", "LlamaHead"}},
}


class Reader:
    """Stands for the function that reads all files, and counts."""

    def __init__(self) -> None:
        self.asked: list[tuple[object, str | None]] = []

    def __call__(self, module_path: object, prefix: str | None = None) -> Structure:
        self.asked.append((module_path, prefix))
        return {backends: dict(modules) for backends, modules in FOUND.items()}


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path / "home"))
    folder = tmp_path / "transformers" / "models"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder.parent / "__init__.py").write_text("first")
    return folder


def test_what_was_read_once_is_not_read_again(models: Path) -> None:
    first, second = Reader(), Reader()
    read = indexed(first, models)(models)
    kept = indexed(second, models)(str(models / "__init__.py"))
    assert read == kept == FOUND
    prefixed = indexed(second, models)(models, prefix="models")
    assert prefixed[frozenset()] == {"models.llama.configuration_llama": {"LlamaConfig"}}
    assert (len(first.asked), len(second.asked)) == (1, 0)


def test_another_version_and_an_added_model_are_read(models: Path) -> None:
    reader = Reader()
    indexed(reader, models)(models)
    (models.parent / "__init__.py").write_text("second")
    indexed(reader, models)(models)
    os.utime(models, ns=(1, 1))
    indexed(reader, models)(models)
    assert len(reader.asked) == 3


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"marks": [], "groups": 1}', b"\xff\xfe"])
def test_a_damaged_index_is_read_and_made_anew(models: Path, content: bytes) -> None:
    indexed(Reader(), models)(models)
    index_file().write_bytes(content)
    assert indexed(Reader(), models)(models) == FOUND
    again = Reader()
    assert indexed(again, models)(models) == FOUND
    assert not again.asked


def test_a_cache_that_takes_nothing_is_no_trouble(models: Path) -> None:
    index_file().parent.parent.mkdir(parents=True)
    index_file().parent.touch()
    for _ in range(2):
        reader = Reader()
        assert indexed(reader, models)(models) == FOUND
        assert reader.asked


def test_other_folders_and_other_layouts_are_asked_as_ever(models: Path) -> None:
    reader = Reader()
    ask = indexed(reader, models)
    ask(models / "llama" / "__init__.py")
    (models.parent / "__init__.py").unlink()
    ask(models, "models")
    assert reader.asked == [(models / "llama" / "__init__.py", None), (models, "models")]
    assert not index_file().exists()


_COUNTING = """
import sys
opened = set()
def hear(event, given):
    name = str(given[0]) if event == "open" else ""
    if "transformers/models/" in name and name.endswith(".py"):
        opened.add(name)
sys.addaudithook(hear)
from core.models.runtime import prepare
prepare()
import transformers
from transformers import AutoTokenizer
from transformers.utils import import_utils
assert AutoTokenizer.__module__ == "transformers.models.auto.tokenization_auto"
assert import_utils.__loader__ is import_utils.__spec__.loader
assert not any(type(each).__module__ == "core.models.runtime" for each in sys.meta_path)
print(len(opened))
"""


@pytest.mark.sweep
def test_the_second_process_opens_no_models(tmp_path: Path) -> None:
    counts = []
    for _ in range(2):
        said = subprocess.run(
            [sys.executable, "-c", _COUNTING],
            env={**os.environ, "DRAFTLIGHT_HOME": str(tmp_path)},
            capture_output=True,
            check=True,
            text=True,
        )
        counts.append(int(said.stdout))
    assert counts[0] > 1000
    assert counts[1] < 50


def test_the_index_is_what_transformers_would_say() -> None:
    utils = importlib.import_module("transformers.utils.import_utils")
    models = Path(utils.__file__).parents[1] / "models"
    plain = utils.spread_import_structure(utils.create_import_structure_from_path(models))
    for _ in range(2):
        assert utils.define_import_structure(models) == plain


def test_variables_that_mlx_reads_are_set_unless_a_person_has_set_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wanted = {"MLX_ENABLE_TF32": "0", "MLX_MAX_OPS_PER_BUFFER": "100", "MLX_MAX_MB_PER_BUFFER": "200"}
    monkeypatch.setattr("core.system.buffer_limits.load_limits", lambda: BufferLimits(100, 200))
    for name in wanted:
        monkeypatch.setenv(name, "7")
    runtime.prepare()
    assert {os.environ[name] for name in wanted} == {"7"}
    for name in wanted:
        monkeypatch.delenv(name)
    runtime.prepare()
    assert {name: os.environ[name] for name in wanted} == wanted
