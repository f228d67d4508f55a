"""Every text of this folder that a person reads."""

from __future__ import annotations


def remove_attachment(name: str) -> str:
    return f"Remove {name}"


def stop_reading(name: str) -> str:
    return f"Stop reading {name}"


def show_attachment(name: str) -> str:
    return f"Show {name}"


CLOSE_PREVIEW = "Close preview"


def preview_cut(size: str, characters: int) -> str:
    return f"{size}, the first {characters:,} characters shown"


ONE_TOKEN = "1 token"
TOKENS = "{tokens:,} tokens"


def tokens(count: int) -> str:
    """So many of them."""
    return ONE_TOKEN if count == 1 else TOKENS.format(tokens=count)


def about(words: str) -> str:
    """A figure that is not exact."""
    return f"about {words}"


# ---- attaching files
READING_FILE = "Reading"
READING_PAGE = "Page {page:,} of {pages:,}"


def files_not_attached(count: int) -> str:
    return f"{count} files were not attached."


def and_more_files(count: int) -> str:
    return f"And {count:,} more."
