"""Heads in folders of their own: found wherever they lie, and paired by type, sizes and tokenizer."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from core.cli.models import _facts
from core.errors import ModelError
from core.folders.catalogue import Catalogue
from core.folders.config import Machine
from core.folders.folder import check, check_whole
from core.folders.heads import heads
from core.folders.places import HEAD_KINDS, download_folder, head_folders
from core.heads.draft_head import DraftHead
from core.heads.eagle3 import taken_layers
from core.heads.head_loader import NO_HEAD, load_head
from core.models.loader import load
from core.system.paths import models_dir
from tests.core.heads.test_head_outputs import guesses
from tests.core.published_heads import ASSISTANTS, EAGLES, OTHERS, head_folder, inputs, write_drafted_model
from tests.core.toy import write_toy_model


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path / "home"))


def label(name: str) -> str:
    return HEAD_KINDS["assistant" if name in ASSISTANTS else "eagle3" if name in EAGLES else "dflash"]


@pytest.mark.sweep
@pytest.mark.parametrize("name", OTHERS)
def test_a_head_is_found_beside_or_in_its_model_under_any_name(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "Tiny-4bit"
    write_drafted_model(folder, name)
    place = head_folder(folder)
    for moved in (folder / "assistant", tmp_path / "other", models_dir() / "owner--Other"):
        moved.parent.mkdir(parents=True, exist_ok=True)
        place = place.rename(moved)
        (head,) = heads(folder)
        assert (head.problem, head.source) == ("", place)
    entry = Catalogue(Machine(1 << 40, expands=True)).take(str(folder))
    assert f"{label(name)} included" in _facts(entry)
    assert entry.heads[0].size_bytes == head.size_bytes > 0
    assert load(str(folder)).info.has_head
    check_whole(place)
    with pytest.raises(ModelError, match="a drafting head"):
        check(place)


@pytest.mark.sweep
@pytest.mark.parametrize("name", OTHERS)
def test_every_layout_gives_the_same_guesses(name: str, tmp_path: Path) -> None:
    """With or without a prefix, quantised or not, in one file or several, beside the model or in it."""
    rng = random.Random(name)
    folder = tmp_path / "Tiny"
    write_drafted_model(folder, name)
    model: Any = load(str(folder)).model
    given = {key: mx.array(value) for key, value in inputs(name).items()}
    place = head_folder(folder)
    file = place / "model.safetensors"
    weights = dict(mx.load(str(file)))  # type: ignore[arg-type]
    mode = rng.choice(["affine", "mxfp8", "mxfp4"])
    form: dict[str, Any] = {"group_size": 32, "bits": 4 if mode == "mxfp4" else 8, "mode": mode}
    stored = dict(weights)
    for key in [key for key, each in weights.items() if each.ndim == 2 and each.shape[1] % 32 == 0]:
        parts = mx.quantize(weights[key], **form)
        stored |= dict(zip((key, f"{key[:-6]}scales", f"{key[:-6]}biases"), parts))
        weights[key] = mx.dequantize(*parts, **form, dtype=mx.float32)
    assert len(stored) > len(weights)
    mx.save_safetensors(str(file), weights)
    expected = load_head(model, folder)
    assert isinstance(expected, DraftHead), expected
    prefix = "model." if name not in ASSISTANTS and rng.random() < 0.7 else ""
    file.unlink()
    shards = rng.randint(2, 3)
    for number in range(shards):
        part = {prefix + key: stored[key] for key in sorted(stored)[number::shards]}
        mx.save_safetensors(str(place / f"model-{number + 1:05}-of-{shards:05}.safetensors"), part)
    if rng.random() < 0.5:
        place.rename(folder / "draft")
    found = load_head(model, folder)
    assert isinstance(found, DraftHead), found
    for one, other in zip(guesses(found, model, given, 2), guesses(expected, model, given, 2), strict=True):
        assert np.abs(one - other).max() < 1e-4


def test_a_downloaded_head_is_no_longer_offered_and_a_second_one_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "qwen3-8b-4bit"
    write_drafted_model(folder, "dflash")
    catalogue = Catalogue(Machine(1 << 40, expands=True))
    repository = "z-lab/Qwen3-8B-DFlash-b16"
    place, downloaded = tmp_path / "kept" / "aside" / "head", download_folder(repository)
    for parent in (place.parent, downloaded.parent):
        parent.mkdir(parents=True)
    head_folder(folder).rename(place)
    assert [each.repository for each in catalogue.take(str(folder)).heads] == [repository]
    place = place.rename(downloaded)
    assert [each.repository for each in catalogue.entry(str(folder)).heads] == [""]
    shutil.copytree(place, tmp_path / "other")
    first, second = catalogue.entry(str(folder)).heads
    assert first.problem == ""
    assert second.problem.endswith(" is not used: another head is.")
    catalogue.take(str(tmp_path / "other"))  # each has a row of its own now
    used, unused = catalogue.entry(str(folder)).heads
    hints = {entry.path: entry.hint for entry in catalogue.entries()}
    assert hints[used.source] == "qwen3 8b drafts with it."
    assert hints[unused.source] == "It fits qwen3 8b, which drafts with another head."


SIZES: list[tuple[str, dict[str, Any], str]] = [
    ("gemma4", {"backbone_hidden_size": 48}, "its backbone_hidden_size is 48, the model's 32"),
    ("gemma4", {"global_head_dim": 32}, "its global_head_dim is 32, the model's 16"),
    ("gemma4", {"vocab_size": 9}, "its vocab_size is 9, the model's 260"),
    ("dflash", {"num_target_layers": 4}, "its num_target_layers is 4, the model's 6"),
    ("eagle3-specforge", {"hidden_size": 48}, "its hidden_size is 48, the model's 32"),
    ("eagle3-speculators", {"target_hidden_size": 48}, "its target_hidden_size is 48, the model's 32"),
    ("eagle3-speculators", {"vocab_size": 9}, "its vocab_size is 9, the model's 260"),
]


@pytest.mark.parametrize(("name", "change", "reason"), SIZES)
def test_one_that_does_not_fit_says_why(
    name: str, change: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    folder = tmp_path / "Tiny"
    write_drafted_model(folder, name)
    place = head_folder(folder).rename(tmp_path / "Tiny-draft")
    config = json.loads((place / "config.json").read_text())
    for inner in (config, config.get("text_config", {}), config.get("transformer_layer_config", {})):
        inner.update({key: value for key, value in change.items() if key in inner})
    (place / "config.json").write_text(json.dumps(config))
    (head,) = heads(folder)
    assert label(name) in head.problem
    assert reason in head.problem
    assert reason in Catalogue(Machine(1 << 40, expands=True)).take(str(folder)).heads[0].problem
    place.rename(tmp_path / "other")
    assert heads(folder) == ()


@pytest.mark.parametrize("name", [next(iter(ASSISTANTS)), "eagle3-numbered"])
def test_another_type_tokenizer_or_file_is_refused(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "Tiny"
    write_drafted_model(folder, name)
    place = head_folder(folder).rename(tmp_path / "Tiny-draft")
    file = place / "model.safetensors"
    whole = file.read_bytes()
    file.write_bytes(whole[:-8])
    assert "cannot be read" in heads(folder)[0].problem
    weights = dict(mx.load(str(head_file(tmp_path, whole))))  # type: ignore[arg-type]
    gone = "pre_projection.weight" if name in ASSISTANTS else "fc.weight"
    mx.save_safetensors(str(file), {key: each for key, each in weights.items() if key != gone})
    assert "is incomplete: it has no" in heads(folder)[0].problem
    bad = {gone: mx.full(weights[gone].shape, mx.nan)}
    mx.save_safetensors(str(file), weights | bad)
    assert "contains NaN" in str(load_head(load(str(folder)).model, folder))
    mx.save_safetensors(str(file), weights | {gone: mx.ones((3, 3))})
    assert "cannot be loaded" in str(load_head(load(str(folder)).model, folder))
    file.write_bytes(whole)
    assert isinstance(load_head(load(str(folder)).model, folder), DraftHead)
    tokenizer = json.loads((place / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"]["another"] = 1 + max(tokenizer["model"]["vocab"].values())
    (place / "tokenizer.json").write_text(json.dumps(tokenizer))
    assert "its tokenizer is another one" in heads(folder)[0].problem
    write_toy_model(tmp_path / "Tiny-8bit")
    assert head_folders([tmp_path / "Tiny-8bit"]) == (place,)
    if name in ASSISTANTS:
        (other,) = heads(tmp_path / "Tiny-8bit")
        assert "is for models of the type gemma4, not llama" in other.problem


def head_file(folder: Path, content: bytes) -> Path:
    path = folder / "whole.safetensors"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, (1, 15, 28)),
        ([1, 14, 27], (1, 14, 27)),
        ([2, 16, 29], (1, 15, 28)),
        ([24, 30, 32], (23, 29, 31)),
    ],
)
def test_the_layers_of_eagle_3_are_told_in_both_ways(given: Any, expected: tuple[int, ...]) -> None:
    flat = {"eagle_aux_hidden_state_layer_ids": given}
    assert taken_layers(flat, 32) == taken_layers({"eagle_config": flat}, 32) == expected
    with pytest.raises(ValueError, match="layer 39; the model's are 0 to 31"):
        taken_layers({"eagle_aux_hidden_state_layer_ids": [3, 20, 40]}, 32)


@pytest.mark.parametrize("given", [3, "1", {"a": 1}, ["1"], [2, None], [[1]]])
def test_layers_of_eagle_3_that_are_no_list_of_numbers_are_refused_as_such(given: Any) -> None:
    flat = {"eagle_aux_hidden_state_layer_ids": given}
    for config in (flat, {"eagle_config": flat}):
        with pytest.raises(ValueError, match="its layer numbers are not numbers"):
            taken_layers(config, 32)


NO_LAYERS = "its config names no layers (target_layer_ids)"
BLOCK_VALUES: list[tuple[str, Any, str]] = [
    *(("target_layer_ids", value, NO_LAYERS) for value in (None, 3, "1", [], ["1"], [1, None])),
    ("target_layer_ids", [1, 6], "it takes the states of layer 6; the model's are 0 to 5"),
    ("target_layer_ids", [-1, 2], "it takes the states of layer -1"),
    ("attention_sink_bias", True, "attention sinks are not supported"),
    ("block_size", 1, "its block_size is 1, and it must guess one token at least"),
    ("mask_token_id", -1, "its mask_token_id -1 is not one of 260 ids"),
    ("mask_token_id", 260, "its mask_token_id 260 is not one of 260 ids"),
]


def test_a_block_head_with_a_wrong_value_says_which(tmp_path: Path) -> None:
    folder = tmp_path / "Tiny"
    write_drafted_model(folder, "dflash")
    model: Any = load(str(folder)).model
    place = head_folder(folder)
    config = json.loads((place / "config.json").read_text())
    for key, value, reason in BLOCK_VALUES:
        changed = {**config, "dflash_config": {**config["dflash_config"], key: value}}
        (place / "config.json").write_text(json.dumps(changed))
        assert reason in str(load_head(model, folder)), (key, value)
    (place / "config.json").write_text(json.dumps(config))
    assert isinstance(load_head(model, folder), DraftHead)
    shutil.rmtree(place)
    assert load_head(model, folder) == NO_HEAD
