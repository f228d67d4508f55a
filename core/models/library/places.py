"""Places: where models lie on this machine, and which folder a reference means.

A reference is `starter`, a folder, or a hub name (owner/name). Downloads lie under the data
directory, one folder a model; imported folders stay where they are and are remembered in a list;
the hub's own cache, which other programs fill, is read and may be used as it is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from core.errors import ModelError
from core.models.library.naming import folder_name, hub_name, is_hub_name
from core.system.paths import given_path, models_dir

_IMPORTED = "imported.json"
_SNAPSHOT_PREFIX = "models--"


def download_folder(model: str) -> Path:
    """Where the hub model `model` is, once it is downloaded."""
    return models_dir() / folder_name(model)


def downloaded() -> Iterator[tuple[str, Path]]:
    """Hub names and folders of finished downloads, by name."""
    for folder in _folders(models_dir()):
        if name := hub_name(folder.name):
            yield name, folder


def hub_cache() -> Path:
    """The hub client's cache, also where its environment variables move it."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def cached() -> Iterator[tuple[str, Path]]:
    """Hub names in the hub's cache, each with the snapshot that its main branch last was."""
    for folder in _folders(hub_cache()):
        name = hub_name(folder.name.removeprefix(_SNAPSHOT_PREFIX))
        if folder.name.startswith(_SNAPSHOT_PREFIX) and name and (snapshot := _snapshot(folder)):
            yield name, snapshot


def imported() -> tuple[Path, ...]:
    """The folders that were imported, also those that are gone by now."""
    try:
        listed = json.loads((models_dir() / _IMPORTED).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ()
    return tuple(Path(each) for each in listed if isinstance(each, str)) if isinstance(listed, list) else ()


def remember(folder: Path) -> None:
    """Put `folder` on the list of imported ones. Raises `ModelError` if the list cannot be written."""
    if folder not in imported():
        _write((*imported(), folder))


def forget(folder: Path) -> None:
    """Take `folder` off the list. Raises `ModelError` if the list cannot be written."""
    _write(tuple(each for each in imported() if each != folder))


def find(reference: str) -> Path | None:
    """The folder of a path or hub name, if it is on this machine; downloads before the hub's cache.

    Raises `ModelError` for what cannot be a path.
    """
    path = given_path(reference, ModelError)
    if path.is_dir():
        return path
    if not is_hub_name(reference):
        return None
    if (folder := download_folder(reference)).is_dir():
        return folder
    # A snapshot without a config is what is left of somebody's broken download.
    return next(
        (each for name, each in cached() if name == reference and (each / "config.json").is_file()), None
    )


def _snapshot(folder: Path) -> Path | None:
    try:
        commit = (folder / "refs" / "main").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    snapshot = folder / "snapshots" / commit
    return snapshot if commit and snapshot.is_dir() else None


def _folders(place: Path) -> list[Path]:
    try:
        return sorted(each for each in place.iterdir() if each.is_dir() and not each.name.startswith("."))
    except OSError:
        return []


def _write(folders: tuple[Path, ...]) -> None:
    path = models_dir() / _IMPORTED
    fresh = path.with_name(f"{_IMPORTED}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text(json.dumps([str(folder) for folder in folders], indent=1), encoding="utf-8")
        os.replace(fresh, path)
    except OSError as error:
        raise ModelError(
            f"{path} cannot be written: {error}.", "Free some space, or make it writable."
        ) from error
