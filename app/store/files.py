"""Files: names for exported files, and atomic replacement of a file."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

_CHARACTERS = 80


def file_name(title: str) -> str:
    """Returns `title` as a valid file name on all systems, without a suffix; may be empty."""
    return re.sub(r'[\x00-\x1f<>:"/\\|?*]+', " ", title).strip(" .")[:_CHARACTERS].strip()


@contextlib.contextmanager
def replacing(path: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Opens a temporary file that replaces `path` at the end, after an fsync if `durable`.

    After an exception the old file is unchanged and the temporary file deleted. A link is followed.
    Raises `OSError`.
    """
    target = path.resolve()
    # The name begins with the target's, so that `draftlight uninstall` finds what a crash left.
    fresh = target.with_name(f"{target.name[:40]}.{uuid4().hex[:8]}.part")
    try:
        with fresh.open("wb") as file:
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, fresh)
        os.replace(fresh, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror or str(error), str(path)) from error
        raise
