"""Presets as a JSON file, for export and import.

`{"draftlight_presets": 1, "presets": [{"name": …, "settings": {"sampling.temperature": 0.7, …}}]}`.
The keys are those of docs/settings.md.

A file is imported completely or not at all; the error names an unknown or refused setting and the allowed
values.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from app.session.chats.presets import Override, Preset
from app.store import strings
from app.store.chat_files import decoded
from app.store.faults import TransferError
from core.errors import SettingError
from core.settings import Settings, assign_all
from core.settings.declaration import find

FORMAT = 1
NAME_CHARACTERS = 100


class FilePreset(Struct, frozen=True, forbid_unknown_fields=True):
    """One preset; `settings` by their keys."""

    name: str
    settings: dict[str, Any]


class PresetFile(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    draftlight_presets: int
    presets: tuple[FilePreset, ...]


def to_json(presets: Iterable[Preset]) -> bytes:
    """All of `presets`."""
    found = tuple(FilePreset(each.name, {one.key: one.value for one in each.overrides}) for each in presets)
    return msgspec.json.format(msgspec.json.encode(PresetFile(FORMAT, found))) + b"\n"


def from_json(data: bytes) -> tuple[Preset, ...]:
    """The presets of a file. Raises `TransferError`."""
    raw = decoded(data)
    found = raw.get("draftlight_presets") if isinstance(raw, dict) else None
    if type(found) is not int:
        raise TransferError(strings.NO_PRESETS, strings.NO_PRESETS_HINT)
    if found > FORMAT:
        raise TransferError(strings.NEWER_FILE, strings.newer_file_hint(found, FORMAT))
    try:
        file = msgspec.convert(raw, PresetFile)
    except msgspec.ValidationError as error:
        raise TransferError(strings.DAMAGED_PRESETS, str(error)) from None
    if not file.presets:
        raise TransferError(strings.NO_PRESETS, strings.NO_PRESETS_HINT)
    return tuple(_taken(each) for each in file.presets)


def _taken(file: FilePreset) -> Preset:
    """Raises `TransferError` that names the preset."""
    name = " ".join(file.name.split())
    if not 0 < len(name) <= NAME_CHARACTERS:
        raise TransferError(strings.PRESET_NAME_REFUSED, strings.preset_name_hint(NAME_CHARACTERS))
    try:
        assign_all(Settings(), file.settings.items())
        keys = {find(key).key: value for key, value in file.settings.items()}
    except SettingError as error:
        raise TransferError(strings.in_preset(name, error.message), error.hint) from None
    return Preset(name, tuple(Override(key, value) for key, value in keys.items()))
