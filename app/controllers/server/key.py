"""Key: what clients of the window's server must know, kept where only its owner reads it."""

from __future__ import annotations

from pathlib import Path

from core.system.key_file import key_of, new_key, read_key, write_key


class Key:
    """The server's key, in a file that its owner alone can read; without a folder, for this run only."""

    def __init__(self, folder: Path | None) -> None:
        self._path = folder / "server.key" if folder else None
        self._held = ""

    def get(self) -> str:
        """It; made if there is none. Raises `KeyFileError`."""
        if self._path is not None:
            return key_of(self._path)[0]
        self._held = self._held or new_key()
        return self._held

    def there(self) -> str:
        """It, or empty if there is none. Raises `KeyFileError`."""
        if self._path is not None:
            return read_key(self._path) if self._path.exists() else ""
        return self._held

    def renew(self) -> str:
        """Another one; the old one opens nothing any more. Raises `KeyFileError`."""
        key = new_key()
        if self._path is not None:
            write_key(self._path, key)
        self._held = key
        return key
