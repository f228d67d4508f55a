"""Every text of this folder that a person reads."""

from __future__ import annotations

from collections.abc import Sequence

from core.documents.folder import Skipped


def remove_attachment(name: str) -> str:
    return f"Remove {name}"


def stop_reading(name: str) -> str:
    return f"Stop reading {name}"


def show_attachment(name: str) -> str:
    return f"Show {name}"


def indexing(fraction: float) -> str:
    return f"Indexing, {fraction:.0%}"


CLOSE_PREVIEW = "Close preview"
MORE_CHIPS = "{count} More"
FEWER_CHIPS = "Show Fewer"
KEEP = "Keep in Library"


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


# What people and other programs call encodings; others have their name in capitals.
_ENCODINGS = {
    "cp1250": "Windows Central European", "cp1251": "Windows Cyrillic", "cp1252": "Windows Western",
    "cp1253": "Windows Greek", "cp1254": "Windows Turkish", "cp1255": "Windows Hebrew",
    "cp1256": "Windows Arabic", "cp1257": "Windows Baltic", "cp932": "Shift JIS", "gb18030": "GB 18030",
    "cp949": "Korean", "big5hkscs": "Big5", "mac_roman": "Mac Roman", "cp437": "DOS US",
    "cp850": "DOS Western", "cp852": "DOS Central European", "cp866": "DOS Cyrillic", "cp874": "Thai",
}  # fmt: skip


def encoding_name(codec: str) -> str:
    return _ENCODINGS.get(codec, codec.upper().replace("_", "-"))


def guessed(size: str, codec: str) -> str:
    return f"{size}, {encoding_name(codec)}?"


def read_as(codec: str) -> str:
    return f"Read as {encoding_name(codec)}"


# ---- attaching files
READING_FILE = "Reading"
READING_PAGE = "Page {page:,} of {pages:,}"


READING_FOLDER = "Looking through it"


def reading_folder(number: int, files: int) -> str:
    return f"File {number:,} of {files:,}"


def folder_text_full(most_characters: int) -> str:
    return f"more than {most_characters:,} characters in all"


EMPTY_FOLDER = "It is empty; choose another one, or files."


def nothing_in_folder(name: str) -> str:
    return f"There is nothing to read in the folder “{name}”."


def folder_attached(name: str, files: int, skipped: int) -> str:
    what = "1 file" if files == 1 else f"{files:,} files"
    left_out = f", {skipped:,} skipped" if skipped else ""
    return f"Attached {what} of “{name}”{left_out}"


SHOW_SKIPPED = "Show Skipped Files"


def skipped_title(name: str) -> str:
    return f"Skipped in “{name}”"


def skipped_note(count: int) -> str:
    return "1 was skipped" if count == 1 else f"{count:,} were skipped"


def skipped_text(skipped: Sequence[Skipped]) -> str:
    return "\n".join(f"{each.name}: {each.reason.rstrip('.')}" for each in skipped)


def files_not_attached(count: int) -> str:
    return f"{count} files were not attached."


def and_more_files(count: int) -> str:
    return f"And {count:,} more."
