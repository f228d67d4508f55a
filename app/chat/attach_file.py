"""Reading a file that is to be attached to a message."""

from __future__ import annotations

from pathlib import Path

from core.errors import RequestError
from core.events import Attachment

# Beyond any context: about eight million tokens.
MAX_FILE_BYTES = 32 * 1024 * 1024


def read_attachment(path: Path) -> Attachment:
    """The text of `path`, under its file name. Raises `RequestError` if it is not a text."""
    try:
        if not path.is_file():
            raise RequestError(f"“{path.name}” is not a file.", "Attach text files one by one.")
        size_bytes = path.stat().st_size
        if size_bytes > MAX_FILE_BYTES:
            raise RequestError(
                f"“{path.name}” has {size_bytes / 1e6:,.0f} MB, the most is {MAX_FILE_BYTES / 1e6:.0f}.",
                "Paste the part that matters.",
            )
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RequestError(
            f"“{path.name}” is not plain text.", "Only text files in UTF-8 can be attached."
        ) from None
    except OSError as error:
        raise RequestError(f"“{path.name}” cannot be read: {error.strerror}.", "Check the file.") from error
    return Attachment(path.name, text.replace("\r\n", "\n"))
