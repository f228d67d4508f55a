"""The catalogue says of every folder what loading it would say, without loading it."""

from __future__ import annotations

import json
import shutil
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import pytest
from mlx.utils import tree_flatten

from core.engine.engine import Engine
from core.errors import ModelError, ModelTooLargeError
from core.events import ModelEntry, fit_of
from core.folders import places
from core.folders.catalogue import Catalogue
from core.folders.config import Machine, layer_kinds
from core.folders.download import NOTE
from core.folders.folder import check, family_of
from core.folders.places import family_label, readable
from core.folders.starter import ensure_starter
from core.kv.mlx_lm_caches import KvQuantisation, quantisable, quantise
from core.models.loader import load
from core.models.memory import machine
from core.settings.prefill import KvCache
from core.system.paths import cache_dir
from tests.core.toy import toy_config, toy_model, write_toy_model

ROOMY = Machine(limit_bytes=64 << 30, expands=True)


@pytest.fixture(scope="module")
def converted() -> Path:
    """The starter's folder, made before any test has a home of its own."""
    return ensure_starter()


@pytest.fixture(autouse=True)
def home(converted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path / "home"))
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    return tmp_path


def of(catalogue: Catalogue, source: str) -> list[ModelEntry]:
    return [entry for entry in catalogue.entries() if entry.source == source]


def quantised(folder: Path) -> Path:
    """A toy with 4-bit weights in groups of 32, but for its embedding, which has 8 bits."""
    write_toy_model(folder)
    model = toy_model()

    def inner(path: str, module: nn.Module) -> bool:
        return "embed" not in path and hasattr(module, "to_quantized")

    nn.quantize(model, group_size=32, bits=4, class_predicate=inner)
    nn.quantize(model, group_size=32, bits=8)
    weights = dict(tree_flatten(model.parameters()))
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
    own = {"model.embed_tokens": {"group_size": 32, "bits": 8}}
    quantization = {"group_size": 32, "bits": 4, **own}
    (folder / "config.json").write_text(json.dumps({**toy_config(), "quantization": quantization}))
    return folder


def in_hub_cache(place: Path, source: Path, name: str, commit: str = "abc123") -> Path:
    """As the hub's client lays it out: files are links into blobs."""
    whole = place / f"models--{name.replace('/', '--')}"
    snapshot = whole / "snapshots" / commit
    snapshot.mkdir(parents=True)
    (whole / "blobs").mkdir()
    (whole / "refs").mkdir()
    (whole / "refs" / "main").write_text(commit)
    for file in source.iterdir():
        shutil.copy(file, whole / "blobs" / file.name)
        (snapshot / file.name).symlink_to(Path("../../blobs") / file.name)
    return snapshot


@pytest.mark.sweep
@pytest.mark.parametrize("form", ["plain", "quantised", "starter"])
def test_an_entry_says_what_loading_says(
    form: str, tmp_path: Path, toy_folder: Path, converted: Path
) -> None:
    catalogue = Catalogue(machine())
    if form == "starter":
        shutil.copytree(converted, tmp_path / "home" / "data" / "models" / converted.name)
        info = load("starter").info
        (entry,) = of(catalogue, "starter")
    else:
        folder = quantised(tmp_path / "quantised") if form == "quantised" else toy_folder
        info, entry = load(str(folder)).info, catalogue.take(str(folder))
    assert entry.problem == ""
    assert (entry.name, entry.path, entry.architecture) == (info.name, info.path, info.architecture)
    assert entry.family == info.family
    assert (entry.parameters, entry.layers) == (info.parameters, info.layers)
    assert entry.context_tokens == info.context_tokens
    assert entry.need.weights == info.size_bytes
    assert (f"{entry.bits}-bit" if entry.bits else "") == info.quantisation


def test_the_cache_is_worked_out_as_it_is(toy_engine: Engine, toy_folder: Path) -> None:
    cache = toy_engine.loaded.new_cache()
    toy_engine.loaded.model(mx.zeros((1, 256), mx.int32), cache=cache)
    mx.eval([layer.state for layer in cache])
    held = sum(layer.keys.nbytes + layer.values.nbytes for layer in cache)
    entry = Catalogue(machine()).take(str(toy_folder))
    assert entry.need.cache_at(256) == held


@pytest.mark.parametrize(("bits", "hidden"), [(8, 128), (4, 128), (4, 256), (4, 32)])
def test_a_quantised_cache_is_worked_out_as_it_is(bits: int, hidden: int, tmp_path: Path) -> None:
    write_toy_model(tmp_path / "toy", hidden_size=hidden)
    model = load(str(tmp_path / "toy"))
    groups = quantisable(model.model, model.new_cache).groups
    cache = model.new_cache()
    if groups:
        quantise(cache, KvQuantisation(bits, groups))
    model.model(mx.zeros((1, 256), mx.int32), cache=cache)
    mx.eval([layer.state for layer in cache])
    need = Catalogue(machine()).take(str(tmp_path / "toy")).need
    kv = KvCache(str(bits))  # type: ignore[arg-type]
    assert need.with_cache(kv).cache_at(256) == sum(layer.nbytes for layer in cache)
    assert (need.with_cache(kv) == need) == (not groups) == (hidden == 32)


@pytest.mark.parametrize("tied", [True, False])
def test_an_output_layer_counts_where_the_model_has_its_own(tied: bool, tmp_path: Path) -> None:
    """Some files of models that share the embedding's have it as well; mlx-lm drops it."""
    write_toy_model(tmp_path / "toy", tie_word_embeddings=tied)
    path = str(tmp_path / "toy" / "model.safetensors")
    weights: Any = mx.load(path)
    mx.eval(weights)  # before the file is replaced
    before = check(tmp_path / "toy").parameters
    rows = weights["model.embed_tokens.weight"]
    mx.save_safetensors(path, weights | {"lm_head.weight": rows}, metadata={"format": "mlx"})
    own = 0 if tied else rows.size
    weights.pop("lm_head.weight", None)
    assert check(tmp_path / "toy").parameters == sum(each.size for each in weights.values()) + own
    assert before == check(tmp_path / "toy").parameters


@pytest.mark.parametrize(
    ("fields", "kinds"),
    [
        ({"layer_types": ["full_attention", "sliding_attention", "linear_attention"]}, "fws"),
        ({"hybrid_override_pattern": "M*-M"}, "sfs"),
        ({"hybrid_override_pattern": ["*", "M", "E"]}, "fs"),
        ({"hybrid_override_pattern": ""}, "fff"),
        ({"hybrid_override_pattern": 7}, "fff"),
        ({"full_attn_idxs": [1]}, "sfs"),
        ({"hybrid_layer_pattern": [0, 1, 1, 0]}, "fww"),
        ({"linear_attn_config": {"full_attn_layers": [3]}}, "ssf"),
        ({"full_attention_interval": 2}, "sfs"),
        ({"attn_layer_period": 2, "attn_layer_offset": 0}, "fsf"),
        ({"sliding_window_pattern": 2, "sliding_window": 8}, "wfw"),
        ({"sliding_window_pattern": 2}, "fff"),
    ],
)
def test_each_layers_cache_is_of_the_kind_that_the_config_says(fields: dict[str, Any], kinds: str) -> None:
    found = layer_kinds({"num_hidden_layers": 3, "num_attention_heads": 4} | fields)
    assert "".join(kind[0] for kind in found) == kinds


def test_every_place_is_looked_at_once(tmp_path: Path, toy_folder: Path) -> None:
    shutil.copytree(toy_folder, places.download_folder("owner/Llama-9B-Instruct-4bit"))
    in_hub_cache(tmp_path / "hub", toy_folder, "owner/Llama-9B-Instruct-4bit")
    snapshot = in_hub_cache(tmp_path / "hub", toy_folder, "other/Llama-1B-8bit")
    catalogue = Catalogue(ROOMY)
    catalogue.take(str(toy_folder))
    entries = catalogue.entries()
    assert [(entry.source, entry.reference, entry.name) for entry in entries] == [
        ("starter", "starter", "SmolLM2 135M"),
        ("hub-cache", "other/Llama-1B-8bit", "Llama 1B"),
        ("download", "owner/Llama-9B-Instruct-4bit", "Llama 9B Instruct"),
        ("folder", str(toy_folder), "toy"),
    ]
    assert {entry.family_name for entry in entries[1:]} == {"toy"}
    assert entries[1].path == str(snapshot)
    assert entries[1].disk_bytes > 100_000
    for entry in entries[1:]:
        assert load(entry.reference).info.path == entry.path


def test_other_kinds_of_models_in_the_hubs_cache_are_not_listed(tmp_path: Path, toy_folder: Path) -> None:
    for kind in ("bert-for-pictures", ""):
        snapshot = in_hub_cache(tmp_path / "hub", toy_folder, f"other/thing{kind}")
        (snapshot / "config.json").unlink()
        if kind:
            (snapshot / "config.json").write_text(json.dumps({"model_type": kind}))
    assert of(Catalogue(ROOMY), "hub-cache") == []


def test_a_broken_folder_is_listed_with_its_reason(tmp_path: Path) -> None:
    write_toy_model(tmp_path / "toy")
    catalogue = Catalogue(ROOMY)
    reference = catalogue.take(str(tmp_path / "toy")).reference
    weights = tmp_path / "toy" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])
    entry = catalogue.entry(reference)
    assert "model.safetensors is cut off: it has 5,000 of" in entry.problem
    assert entry.hint
    shutil.rmtree(tmp_path / "toy")
    assert "There is no folder" in catalogue.entry(reference).problem


@pytest.mark.parametrize(
    ("file", "words"),
    [("weights.gguf", "GGUF"), ("pytorch_model.bin", "PyTorch"), ("weights.npz", "old form")],
)
def test_other_peoples_formats_are_called_by_name(tmp_path: Path, file: str, words: str) -> None:
    (tmp_path / "it").mkdir()
    (tmp_path / "it" / file).write_bytes(b"x")
    with pytest.raises(ModelError, match=f"{file} is .*{words}"):
        Catalogue(ROOMY).take(str(tmp_path / "it"))


def test_a_folder_that_is_not_there_is_called_so(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"There is no folder \S*nowhere\."):
        Catalogue(ROOMY).take(str(tmp_path / "nowhere"))


def too_large(folder: Path) -> Path:
    """A whole model with one tensor of 400 GiB: a hole in the disk, not one byte of it written."""
    write_toy_model(folder)
    size = 400 << 30
    header = json.dumps({"model.huge": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    with (folder / "model-2.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + size)
    return folder


def test_what_is_too_large_is_refused_with_the_figures_and_nothing_is_read(tmp_path: Path) -> None:
    folder = too_large(tmp_path / "huge")
    words = r"huge needs [\d,.]+ GB with a context of 512 tokens.*gives it"
    with pytest.raises(ModelTooLargeError, match=words) as caught:
        load(str(folder))
    assert "smaller" in caught.value.hint
    entry = Catalogue(machine()).take(str(folder))
    assert entry.problem == caught.value.message


def test_tight_is_above_four_fifths() -> None:
    assert [fit_of(need, 100) for need in (80, 81, 100, 101)] == ["fits", "tight", "tight", "too-large"]


def test_importing_twice_lists_once_and_removing_forgets(tmp_path: Path) -> None:
    write_toy_model(tmp_path / "toy")
    catalogue = Catalogue(ROOMY)
    first = catalogue.take(str(tmp_path / "hub" / ".." / "toy"))
    assert catalogue.take(str(tmp_path / "toy" / "config.json")) == first
    assert catalogue.entry(str(tmp_path / "toy" / ".." / "toy")) == first
    assert load(str(tmp_path / "toy" / ".." / "toy")).info.path == first.path == str(tmp_path / "toy")
    assert len(of(catalogue, "folder")) == 1
    removed, freed = catalogue.remove("toy")
    assert (removed, freed) == (first, 0)
    assert of(catalogue, "folder") == []
    assert (tmp_path / "toy" / "config.json").is_file()


def test_removing_erases_downloads_and_never_what_is_in_use(tmp_path: Path, toy_folder: Path) -> None:
    folder = places.download_folder("owner/toy")
    shutil.copytree(toy_folder, folder)
    catalogue = Catalogue(ROOMY)
    with pytest.raises(ModelError, match="in use"):
        catalogue.remove("owner/toy", in_use=(str(folder),))
    with pytest.raises(ModelError, match="starter"):
        catalogue.remove("starter")
    with pytest.raises(ModelError, match="by hand"):
        catalogue.remove("owner/toy")
    (folder / NOTE).write_text("{}")
    assert catalogue.remove("owner/toy")[1] > 100_000
    assert not folder.exists()
    with pytest.raises(ModelError, match="no model “owner/toy” on this machine"):
        catalogue.remove("owner/toy")


def files_of(place: Path) -> dict[str, tuple[int, int]]:
    """Size and time of change of everything in `place`."""
    found = {}
    for path in sorted(place.rglob("*")):
        status = path.lstat()
        found[str(path.relative_to(place))] = (status.st_size, status.st_mtime_ns)
    return found


def test_models_of_other_apps_are_listed_and_loaded_from_there_and_never_changed(
    tmp_path: Path, toy_folder: Path
) -> None:
    person, mine = tmp_path / "person", tmp_path / "mine"
    new, old = person / ".lmstudio" / "models", person / ".cache" / "lm-studio" / "models"
    shutil.copytree(toy_folder, new / "owner" / "Toy-1B-4bit")
    shutil.copytree(toy_folder, old / "owner" / "Toy-1B-4bit")
    shutil.copytree(toy_folder, old / "a b" / "Toy-2B")
    (new / "owner" / "Toy-GGUF").mkdir()
    (new / "owner" / "Toy-GGUF" / "toy.gguf").write_bytes(b"GGUF")
    in_hub_cache(tmp_path / "hub", toy_folder, "other/cached")
    shutil.copytree(toy_folder, mine / "Toy-3B")
    shutil.copytree(toy_folder, mine / "owner" / "Toy-4B")
    (mine / "pictures").mkdir()
    before = {place: files_of(place) for place in (person, tmp_path / "hub", mine)}
    catalogue = Catalogue(ROOMY)
    assert catalogue.take(str(mine)).path == str(mine / "Toy-3B")
    assert catalogue.take(str(mine)).path == str(mine / "Toy-3B")
    found = [
        (each.source, each.reference, each.listed_in)
        for each in catalogue.entries()
        if each.source != "starter"
    ]
    assert sorted(found) == sorted(
        [
            ("hub-cache", "other/cached", ""),
            ("other-app", "owner/Toy-1B-4bit", ""),
            ("other-app", str(old / "owner" / "Toy-1B-4bit"), ""),
            ("other-app", str(old / "a b" / "Toy-2B"), ""),
            ("other-app", str(mine / "Toy-3B"), str(mine)),
            ("other-app", str(mine / "owner" / "Toy-4B"), str(mine)),
        ]
    )
    assert places.find("owner/Toy-1B-4bit") == new / "owner" / "Toy-1B-4bit"
    for entry in catalogue.entries():
        if entry.source != "starter":
            assert load(entry.reference).info.path == entry.path
    for reference in ("owner/Toy-1B-4bit", "other/cached"):
        with pytest.raises(ModelError, match="another app's folder"):
            catalogue.remove(reference)
    removed, freed = catalogue.remove(str(mine / "owner" / "Toy-4B"))
    assert (removed.listed_in, freed) == (str(mine), 0)
    assert [each.path for each in catalogue.entries() if str(mine) in each.path] == []
    assert {place: files_of(place) for place in before} == before


def test_lm_studios_folders_that_were_moved_are_found(tmp_path: Path, toy_folder: Path) -> None:
    person, disk = tmp_path / "person", tmp_path / "disk"
    moved = disk / "LM Studio"
    moved.mkdir(parents=True)
    person.mkdir(exist_ok=True)
    (person / ".lmstudio-home-pointer").write_text(f"{moved}\n")
    (moved / "settings.json").write_text(json.dumps({"downloadsFolder": str(disk / "big")}))
    shutil.copytree(toy_folder, moved / "models" / "owner" / "Toy-1B")
    shutil.copytree(toy_folder, disk / "big" / "owner" / "Toy-2B")
    (person / ".lmstudio").mkdir()
    (person / ".lmstudio" / "models").symlink_to(disk / "big")
    assert sorted(name for name, _ in places.lm_studio()) == ["owner/Toy-1B", "owner/Toy-2B"]
    (moved / "settings.json").write_text("[]")
    (person / ".lmstudio-home-pointer").write_bytes(b"\xff\0")
    assert [name for name, _ in places.lm_studio()] == ["owner/Toy-2B"]


def test_a_newer_snapshot_without_weights_does_not_hide_the_model(tmp_path: Path, toy_folder: Path) -> None:
    """As another program leaves it that looked at the settings of a newer commit, or loaded an older one."""
    whole = in_hub_cache(tmp_path / "hub", toy_folder, "owner/toy", "aaa")
    newer = whole.parent / "bbb"
    newer.mkdir()
    shutil.copy(toy_folder / "config.json", newer)
    main = whole.parent.parent / "refs" / "main"
    for commit in ("bbb", "ccc", ""):
        main.write_text(commit)
        assert places.find("owner/toy") == whole
        assert [each.problem for each in of(Catalogue(ROOMY), "hub-cache")] == [""]
    main.unlink()
    assert load("owner/toy").info.path == str(whole)
    main.write_text("bbb")
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    (newer / "model.safetensors.index.json").write_text(json.dumps(index))
    shutil.copy(toy_folder / "model.safetensors", newer / "model-1.safetensors")  # an update at its half
    assert places.find("owner/toy") == whole
    (whole / "model.safetensors").unlink()
    (entry,) = of(Catalogue(ROOMY), "hub-cache")
    assert (entry.path, bool(entry.problem)) == (str(newer), True)


def test_no_import_is_lost_by_damage_or_another_process(tmp_path: Path) -> None:
    folders = [tmp_path / str(number) for number in range(20)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(places.remember, folders))
    assert sorted(places.imported()) == sorted(folders)
    (listed,) = places.models_dir().glob("imported.json")
    for damaged in (listed.read_text()[:-1], json.dumps({"folders": []})):
        listed.write_text(damaged)
        places.remember(tmp_path)
        assert places.imported() == (tmp_path,)
        assert listed.with_name("imported.json.damaged").read_text() == damaged


def test_a_name_of_several_models_lists_their_references(toy_folder: Path) -> None:
    for name in ("owner/Foo-7B-4bit", "owner/Foo-7B-8bit"):
        shutil.copytree(toy_folder, places.download_folder(name))
    with pytest.raises(ModelError, match="2 models “Foo 7B”") as caught:
        Catalogue(ROOMY).entry("Foo 7B")
    assert caught.value.hint == "Choose one of owner/Foo-7B-4bit, owner/Foo-7B-8bit."


def test_the_family_is_told_from_the_file_and_remembered(tmp_path: Path, toy_folder: Path) -> None:
    assert family_of(toy_folder) == load(str(toy_folder)).info.family
    copy = tmp_path / "toy"
    shutil.copytree(toy_folder, copy)
    assert family_of(copy) == family_of(toy_folder)
    for note in (cache_dir() / "families").iterdir():
        note.write_bytes(b"12\xff")  # as a power failure may leave it
    assert family_of(copy) == load(str(toy_folder)).info.family
    tokenizer = json.loads((copy / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"]["another"] = 260
    (copy / "tokenizer.json").write_text(json.dumps(tokenizer))
    assert family_of(copy) not in ("", family_of(toy_folder))
    (copy / "tokenizer.json").write_text("{")
    assert family_of(copy) == ""


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Qwen3-14B-4bit", "Qwen3 14B"),
        ("Qwen3-30B-A3B-MLX-8bit", "Qwen3 30B A3B"),
        ("toy", "toy"),
        ("4bit", "4bit"),
    ],
)
def test_names_people_read(name: str, shown: str) -> None:
    assert readable(name) == shown


def test_a_family_is_called_what_its_members_share() -> None:
    assert family_label(["Qwen3 14B", "Qwen3 0.6B", "Qwen3 30B A3B"]) == "Qwen3"
    assert family_label(["Llama 3.2 1B Instruct"]) == "Llama 3.2"


def test_the_model_in_use_goes_only_when_there_is_no_room_for_both(tmp_path: Path, toy_folder: Path) -> None:
    write_toy_model(tmp_path / "second")
    left = [1 << 40]
    engine = Engine(left_bytes=lambda: left[0])
    engine.load(str(toy_folder))
    engine.make_room(1)
    assert engine.is_loaded
    left[0] = 0
    engine.make_room(1)
    assert not engine.is_loaded
    assert engine.released is not None
    left[0] = 1 << 40
    engine.load(engine.released.reference)
    left[0] = 0
    (tmp_path / "second" / "tokenizer.json").write_text("{")
    with pytest.raises(ModelError):
        engine.load(str(tmp_path / "second"))
    assert engine.loaded.info.path == str(toy_folder)
    left[0] = 1 << 40
    engine.load(str(toy_folder))
    assert engine.is_loaded
    engine.unload()
