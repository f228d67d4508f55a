"""Tables taken along: one file out to where a person said, one file in from there.

The name of an imported file means nothing: where it goes follows from its checked header alone.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from core.errors import TableError
from core.tables.container import Refused
from core.tables.folder import read_file, write_whole
from core.tables.table_file import MOST_BYTES

T = TypeVar("T")


def export(content: bytes, path: Path, folder: Path | None, *, replace: bool) -> Path:
    """Write `content` to `path` and return where that is, in full. Raises `TableError`.

    Nothing is written into `folder`, where the tables themselves live, nor over anything but a
    plain file, and over that only with `replace`.
    """
    try:
        target = path.expanduser()
        target = target.parent.resolve(strict=True) / target.name
        if folder is not None and target.parent == folder.resolve():
            raise TableError(f"{target.parent} holds the tables themselves.", "Choose another folder.")
        if target.is_symlink() or (target.exists() and not target.is_file()):
            raise TableError(f"{target} is not a plain file.", "Choose another name.")
        if target.exists() and not replace:
            raise TableError(f"{target} exists already.", "Choose another name, or replace it.")
        write_whole(target, content)
    except (OSError, RuntimeError, ValueError) as error:
        raise TableError(
            f"{path} could not be written: {getattr(error, 'strerror', None) or error}.",
            "Choose a folder that exists and can be written.",
        ) from error
    return target


def read(path: Path, decode: Callable[[bytes], T]) -> tuple[T, bytes]:
    """What `decode` makes of the file, and its bytes. Raises `TableError`; the file is left alone."""
    try:
        content = read_file(path.expanduser(), MOST_BYTES)
        return decode(content), content
    except Refused as refusal:
        raise TableError(f"{path} {refusal}.", "Export the table again, or choose another file.") from None
    except (OSError, RuntimeError, ValueError) as error:
        raise TableError(
            f"{path} could not be read: {getattr(error, 'strerror', None) or error}.", "Check the path."
        ) from error
