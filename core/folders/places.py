"""Folders and names of models.

A model reference is `starter`, a folder, or a hub name (owner/name). Downloads are stored in the data
directory, one folder per model; imported folders are kept in a list; the hub's cache and LM Studio's folders,
which other programs fill, are read in place. Hub names (`owner/name`) become folder names (`owner--name`), as
in the hub's cache.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from filelock import FileLock

from core.errors import ModelError, reason_of
from core.folders.json_files import MOST_LARGE_BYTES, object_in
from core.system.files import write_atomic
from core.system.paths import given_path, models_dir, shown
from core.system.private import FILE_MODE, make_folder

_IMPORTED = "imported.json"
_SNAPSHOT_PREFIX = "models--"
# A folder with more folders than this is not one of models.
_MOST_FOLDERS = 1_000
# Suffixes of the model types of heads in folders of their own: MTP heads, and Gemma's assistants.
HEAD_TYPE = "_mtp"
_ASSISTANT_TYPE = "_assistant"
# Kinds of heads, with their common names.
HEAD_KINDS = {
    "mtp": "MTP head",
    "assistant": "assistant",
    "eagle3": "EAGLE-3 head",
    "dflash": "DFlash drafter",
}


def download_folder(model: str) -> Path:
    """Folder of the downloaded hub model `model`."""
    return models_dir() / folder_name(model)


def downloaded() -> Iterator[tuple[str, Path]]:
    """Hub names and folders of finished downloads, by name."""
    for folder in _folders(models_dir()):
        if name := hub_name(folder.name):
            yield name, folder


def hub_cache() -> Path:
    """The hub client's cache, which its environment variables can move."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def cached() -> Iterator[tuple[str, Path]]:
    """Hub names in the hub's cache, each with the snapshot that is loaded."""
    for folder in _folders(hub_cache()):
        name = hub_name(folder.name.removeprefix(_SNAPSHOT_PREFIX))
        if folder.name.startswith(_SNAPSHOT_PREFIX) and name and (snapshot := _snapshot(folder)):
            yield name, snapshot


def lm_studio() -> Iterator[tuple[str, Path]]:
    """Names (owner/name) and folders of the MLX models of LM Studio."""
    home = Path.home()
    chosen = home / ".lmstudio"
    with contextlib.suppress(OSError, ValueError):
        chosen = Path((home / ".lmstudio-home-pointer").read_text(encoding="utf-8").strip())
    found = [chosen / "models", home / ".lmstudio" / "models", home / ".cache" / "lm-studio" / "models"]
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RuntimeError):
        found.insert(0, Path(object_in(chosen / "settings.json")["downloadsFolder"]).expanduser())
    for place in {os.path.realpath(each): each for each in found if each.is_absolute()}.values():
        for folder in models_in(place):
            yield f"{folder.parent.name}/{folder.name}", folder


def models_in(place: Path) -> tuple[Path, ...]:
    """The model folders in `place` and in its folders, which are one per owner; empty for a model folder."""
    if _is_model(place):
        return ()
    found: list[Path] = []
    for folder in _folders(place)[:_MOST_FOLDERS]:
        inside = [folder] if _is_model(folder) else _folders(folder)[:_MOST_FOLDERS]
        found += [each for each in inside if _is_model(each)]
    return tuple(found)


def is_head_file(name: str) -> bool:
    """Whether a file of a model's folder, with its path in it, has tensors of an MTP head only."""
    return name.endswith(".safetensors") and "mtp" in name.lower()


def head_kind(config: dict[str, Any]) -> str:
    """The kind of the head whose folder has `config`, one of `HEAD_KINDS`; empty if it has a model."""
    kind = str(config.get("model_type"))
    if kind.endswith(HEAD_TYPE):
        return "mtp"
    if kind.endswith(_ASSISTANT_TYPE):
        return "assistant"
    # The type of the others may be that of their layers.
    classes = config.get("architectures")
    named = [kind, config.get("speculators_model_type"), *(classes if isinstance(classes, list) else ())]
    names = " ".join(map(str, named)).lower()
    return next((each for each in ("eagle3", "dflash") if each in names), "")


def is_head_folder(folder: Path) -> bool:
    """Whether `folder` has a head and no model, by its config."""
    return bool(head_kind(object_in(folder / "config.json")))


def head_folders(models: Iterable[Path]) -> tuple[Path, ...]:
    """The folders of heads wherever models are found, and in or next to the folders `models`."""
    found = [folder for place in imported() for folder in models_in(place) or (place,)]
    found += [folder for _, folder in (*cached(), *lm_studio())]
    beside = [place for folder in models for place in (folder.parent, folder)]
    for place in dict.fromkeys([models_dir(), *beside]):
        found += _folders(place)[:_MOST_FOLDERS]
    return tuple(folder for folder in dict.fromkeys(found) if is_head_folder(folder))


def imported() -> tuple[Path, ...]:
    """The imported folders, which may no longer exist."""
    try:
        return _listed()
    except (OSError, ValueError, RecursionError):
        return ()


def remember(folder: Path) -> None:
    """Adds `folder` to the imported ones. Raises `ModelError` if the list cannot be written."""
    _change(lambda listed: dict.fromkeys((*listed, folder)))


def forget(folder: Path) -> None:
    """Removes `folder` from the list. Raises `ModelError` if the list cannot be written."""
    _change(lambda listed: (each for each in listed if each != folder))


def find(reference: str) -> Path | None:
    """The folder of a path or hub name on this machine: downloads, then the hub's cache, then LM Studio's.

    Raises `ModelError` for an invalid path.
    """
    path = given_path(reference, ModelError)
    if path.is_dir():
        return Path(os.path.abspath(path))
    if not is_hub_name(reference):
        return None
    if (folder := download_folder(reference)).is_dir():
        return folder
    # A snapshot without a config is an incomplete download of another program.
    return next(
        (each for name, each in (*cached(), *lm_studio()) if name == reference and _is_model(each)), None
    )


def _is_model(folder: Path) -> bool:
    """Whether the folder has a config, readable or not."""
    return os.path.lexists(folder / "config.json")


def _snapshot(folder: Path) -> Path | None:
    """The snapshot of the main branch, or the newest with all weights, or with some, if that one lacks them.

    Programs that only look at a model's settings make snapshots without weights of newer commits, and an
    update may have stopped half way.
    """
    commit = ""
    with contextlib.suppress(OSError, ValueError):
        commit = (folder / "refs" / "main").read_text(encoding="ascii").strip()
    main = folder / "snapshots" / commit
    usable = [each for each in _folders(folder / "snapshots") if _is_model(each) and _has_weights(each)]
    if usable:
        return max(usable, key=lambda each: (_has_shards(each), each == main, _changed_s(each)))
    return main if commit and main.is_dir() else None


def _has_weights(folder: Path) -> bool:
    return any(file.exists() for file in folder.glob("*.safetensors"))


def _has_shards(folder: Path) -> bool:
    """Whether all files of weights are there that the index names, if there is one."""
    named = object_in(folder / "model.safetensors.index.json", MOST_LARGE_BYTES).get("weight_map")
    names = set(map(str, named.values())) if isinstance(named, dict) else ()
    return all(os.path.exists(folder / name) for name in names)


def _changed_s(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:
        return 0.0


def _folders(place: Path) -> list[Path]:
    try:
        return sorted(each for each in place.iterdir() if each.is_dir() and not each.name.startswith("."))
    except OSError:
        return []


def _listed() -> tuple[Path, ...]:
    listed = json.loads((models_dir() / _IMPORTED).read_text(encoding="utf-8"))
    if not isinstance(listed, list):
        raise ValueError("it holds no list")
    return tuple(dict.fromkeys(Path(os.path.normpath(each)) for each in listed if isinstance(each, str)))


def _change(change: Callable[[tuple[Path, ...]], Iterable[Path]]) -> None:
    """Changes the list of imported folders; a damaged one is set aside, for its folders to be read there."""
    path = models_dir() / _IMPORTED
    try:
        make_folder(path.parent)
        with FileLock(path.with_name(f".{_IMPORTED}.lock"), mode=FILE_MODE):
            listed: tuple[Path, ...] = ()
            try:
                listed = _listed()
            except FileNotFoundError:
                pass
            except (ValueError, RecursionError):
                os.replace(path, path.with_name(f"{_IMPORTED}.damaged"))
            write_atomic(path, json.dumps([*map(str, change(listed))], indent=1).encode())
    except OSError as error:
        raise ModelError(
            f"{path} cannot be written: {reason_of(error)}.", "Free some space, or make it writable."
        ) from error


# ---- names


_HUB_NAME = re.compile(r"^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$")
# Suffixes for the format of weights, which the window shows separately.
_STORED = re.compile(r"(mlx|\d+bit|[qf]\d+\w*|bf16|fp\d+|int\d+|mxfp\d+|nvfp\d+|dwq\d*)", re.IGNORECASE)
_HEAD_WORDS = ("mtp", "draft", "drafter", "head", "assistant", "eagle3", "dflash", "speculator")
# Differences between members of a family: size, version by month, kind of training.
_MEMBER = re.compile(r"(a?\d+(\.\d+)?[bm]|\d{4}|e\d+b|instruct|chat|base|it|thinking)", re.IGNORECASE)


def is_hub_name(text: str) -> bool:
    """Whether `text` has the form owner/name."""
    return _HUB_NAME.fullmatch(text) is not None and ".." not in text and "--" not in text


def folder_name(hub_name: str) -> str:
    """`owner/name` → `owner--name`."""
    return hub_name.replace("/", "--")


def hub_name(folder_name: str) -> str:
    """`owner--name` → `owner/name`; empty for other names."""
    name = folder_name.replace("--", "/", 1)
    return name if is_hub_name(name) else ""


def base_name(folder: Path) -> str:
    """The model's name without its owner, also for a snapshot in the hub's cache."""
    name = folder.name
    if folder.parent.name == "snapshots":
        name = folder.parent.parent.name.removeprefix("models--")
    found = hub_name(name)
    return found.partition("/")[2] if found else name


def display_name(folder: Path, config: dict[str, Any]) -> str:
    """`Qwen3-14B-4bit` → “Qwen3 14B”; `draftlight_name` in the config has precedence."""
    if isinstance(name := config.get("draftlight_name"), str) and name:
        return shown(name)
    return readable(base_name(folder))


def readable(name: str) -> str:
    """`name` with spaces for hyphens and without suffixes for the weights' format."""
    words = [word for word in name.split("-") if word]
    while len(words) > 1 and _STORED.fullmatch(words[-1]):
        words.pop()
    return " ".join(words) or name


def model_words(folder: Path) -> tuple[str, ...]:
    """The words of a model's name, equal for all formats of its weights and for its heads."""
    words = re.split(r"[\s_-]+", base_name(folder).lower())
    return tuple(word for word in words if word not in _HEAD_WORDS and not _STORED.fullmatch(word))


def family_label(names: Iterable[str]) -> str:
    """Display name of a tokenizer family with these members: the shortest of their common parts."""
    labels = []
    for name in names:
        words = [word for word in name.split() if not _MEMBER.fullmatch(word)]
        labels.append(" ".join(words) or name)
    return min(labels, key=lambda label: (len(label), label), default="")
