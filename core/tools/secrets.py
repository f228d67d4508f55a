"""Secrets of tool servers: in the system's keychain, or in a private file where there is none.

The file has mode 0600 and is in Draftlight's data folder; with `DRAFTLIGHT_HOME` it is always used, because
that folder holds everything. Chats, preferences, backups and logs have only the names of secrets, and masks
instead of those in arguments and addresses.

All functions may block, and on macOS the system may ask the person: call them on a thread.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import threading
from collections import Counter
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from core.errors import reason_of
from core.system.files import open_regular, write_atomic
from core.system.paths import data_dir
from core.system.private import make_folder
from core.tools.masks import MASK, masked, texts_of
from core.tools.messages import ServerEntry, ToolsError

_SERVICE = "Draftlight tools"
_FILE = "tool_secrets.json"
_NAME_CHARACTERS = 100
_lock = threading.Lock()


def place() -> Literal["keychain", "file"]:
    """Where secrets are stored on this system."""
    return "keychain" if _keychain() else "file"


def without_values(entry: ServerEntry) -> ServerEntry:
    """`entry` as it is stored: without the values of its secrets, and with masks in arguments and address."""
    values = {name: value for name, value in _values(entry).items() if name not in entry.secrets}
    return _with(entry, values, masked(texts_of(entry)))


def missing(entry: ServerEntry) -> tuple[str, ...]:
    """The names of secrets for which `entry` has no value; for a stored entry, all names."""
    held = _held(entry)
    return tuple(name for name in (*entry.secrets, *_names(entry)) if name not in held)


def keep(entry: ServerEntry) -> ServerEntry:
    """Stores the values of the secrets of `entry`; returns it without them. Raises `ToolsError`."""
    for name, value in _held(entry).items():
        _write(entry.name, name, value)
    return without_values(entry)


def filled(entry: ServerEntry) -> ServerEntry:
    """`entry` with the stored values of its secrets. Raises `ToolsError` if one is missing."""
    found = with_stored(entry, entry.name)
    if lacks := missing(found):
        raise ToolsError(
            f"The secret “{lacks[0]}” of “{entry.name}” is missing.", "Enter it in Window > Tools."
        )
    return found


def with_stored(entry: ServerEntry, server: str) -> ServerEntry:
    """`entry` with the stored values of `server` for secrets that it has none for. Raises `ToolsError`."""
    read = {name: value for name in missing(entry) if (value := _read(server, name)) is not None}
    values = _values(entry) | {name: read[name] for name in entry.secrets if name in read}
    texts = list(texts_of(entry))
    for name, at in _names(entry).items():
        texts[at] = read.get(name, texts[at])
    return _with(entry, values, tuple(texts))


def forget(server: str, names: Iterable[str]) -> None:
    """Erases secrets of a server; missing ones are ignored. Raises `ToolsError`."""
    for name in names:
        _write(server, name, None)


def _values(entry: ServerEntry) -> dict[str, str]:
    return entry.env if entry.command else entry.headers


def _with(entry: ServerEntry, values: dict[str, str], texts: tuple[str, ...]) -> ServerEntry:
    if entry.command:
        return replace(entry, env=values, args=texts)
    return replace(entry, headers=values, url=texts[0])


def _names(entry: ServerEntry) -> dict[str, int]:
    """The secrets among the arguments, or the address, by name: the text with its mask, after its flag.

    So a value is never put into another argument than the one that it was entered for.
    """
    texts = masked(texts_of(entry))
    found: dict[str, int] = {}
    equal: Counter[str] = Counter()
    for at, text in enumerate(texts):
        if MASK in text:
            name = " ".join(texts[max(0, at - 1) : at + 1]) if text == MASK else text
            if len(name) > _NAME_CHARACTERS:
                name = f"{name[:_NAME_CHARACTERS]}… {hashlib.sha256(name.encode()).hexdigest()[:16]}"
            equal[name] += 1
            found[f"{name} {equal[name]}" if equal[name] > 1 else name] = at
    return found


def _held(entry: ServerEntry) -> dict[str, str]:
    """The values that `entry` has for its secrets, by name; of an argument, all of it."""
    values, texts = _values(entry), texts_of(entry)
    found = {name: values[name] for name in entry.secrets if name in values}
    return found | {name: texts[at] for name, at in _names(entry).items() if MASK not in texts[at]}


def _read(server: str, name: str) -> str | None:
    keychain = _keychain()
    if keychain is None:
        with _lock:
            return _stored().get(server, {}).get(name)
    try:
        value = keychain.get_password(_SERVICE, f"{server}/{name}")
    except Exception as error:  # backends raise many kinds
        raise _refused("read", name, error) from None
    return value if isinstance(value, str) else None


def _write(server: str, name: str, value: str | None) -> None:
    """Stores `value`; None erases it."""
    keychain = _keychain()
    if keychain is None:
        with _lock:
            _store(server, name, value)
        return
    try:
        if value is not None:
            keychain.set_password(_SERVICE, f"{server}/{name}", value)
        elif keychain.get_password(_SERVICE, f"{server}/{name}") is not None:
            keychain.delete_password(_SERVICE, f"{server}/{name}")
    except Exception as error:
        raise _refused("write", name, error) from None


def _refused(what: str, name: str, error: Exception) -> ToolsError:
    return ToolsError(
        f"The keychain did not {what} “{name}”: {reason_of(error)}.", "Unlock the keychain and try again."
    )


def _keychain() -> Any:
    """The system's keychain; None if there is none. Only the two listed here are used, never plug-ins."""
    if os.environ.get("DRAFTLIGHT_HOME"):
        return None
    name = "macOS" if sys.platform == "darwin" else "SecretService"
    with contextlib.suppress(Exception):  # not installed, or no service on the bus
        kind: Any = import_module(f"keyring.backends.{name}").Keyring
        if kind.priority:  # raises if it cannot be used
            return kind()
    return None


# ---- the file


def _path() -> Path:
    return data_dir() / _FILE


def _stored() -> dict[str, dict[str, str]]:
    try:
        with open_regular(_path()) as file:
            return msgspec.json.decode(file.read(), type=dict[str, dict[str, str]])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ToolsError(f"Cannot read {_path()}: {reason_of(error)}.", "Fix or remove it.") from None


def _store(server: str, name: str, value: str | None) -> None:
    stored = _stored()
    mine = stored.setdefault(server, {})
    if value is None:
        mine.pop(name, None)
    else:
        mine[name] = value
    stored = {each: values for each, values in stored.items() if values}
    try:
        make_folder(_path().parent)
        write_atomic(_path(), msgspec.json.encode(stored))
    except OSError as error:
        raise ToolsError(
            f"Cannot write {_path()}: {reason_of(error)}.", "Check its folder and disk."
        ) from None
