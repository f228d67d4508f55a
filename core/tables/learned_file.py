"""What every file of evidence learned beforehand has in common: whose it is, and what it was learned from.

Its content is a `container`; it is written whole or not at all, and nothing in it is believed.
Knows no kind of table: each has its own format, version and arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from msgspec import Meta, Struct
from numpy.typing import NDArray

from core.errors import TableError
from core.tables.container import Arrays, Refused, decode, encode
from core.tables.folder import read_file, write_whole
from core.tables.table_file import Fingerprint

# The shipped tables are under 3 MB together; nothing sensible is near this.
MOST_BYTES = 256 * 1024 * 1024
_NAME = 200
_FROM = 400

T = TypeVar("T")


class LearnedHeader(Struct, frozen=True, forbid_unknown_fields=True):
    """`family` is the fingerprint of the tokenizer whose ids the arrays hold."""

    format: str
    version: int
    family: Fingerprint
    family_name: Annotated[str, Meta(max_length=_NAME)]
    learned_from: Annotated[str, Meta(max_length=_FROM)]


def write(path: Path, header: LearnedHeader, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write the file in one rename. Raises `TableError` if the place cannot take it."""
    content = encode(header, arrays)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
    except OSError as error:
        raise TableError(f"{path} cannot be written: {error}.", "Choose a place with room for it.") from error


def make_header(kind: str, version: int, family: str, family_name: str, learned_from: str) -> LearnedHeader:
    """A header with words that are short enough to be read again."""
    return LearnedHeader(kind, version, family, family_name[:_NAME], learned_from[:_FROM])


def read(
    path: Path, make: Callable[[Arrays], T], *, kind: str, version: int, family: str, family_name: str
) -> T:
    """What `make` makes of the arrays of a file of `kind` for `family`; it may raise `Refused`.

    Raises `TableError` that names the file and what is wrong with it; of another family, both.
    """
    try:
        header, arrays = decode(read_file(path, MOST_BYTES), LearnedHeader, kind, version)
        if header.family == family:
            return make(arrays)
    except Refused as refusal:
        raise _refused(path, str(refusal)) from None
    except OSError as error:
        raise _refused(path, f"cannot be read ({error.strerror})") from error
    raise TableError(
        f"{path.name} was learned for the {header.family_name or 'nameless'} tokenizer, and the model has"
        f" the {family_name} one.",
        f"Choose a table of the {family_name} family, or none.",
    )


def look(path: Path, kind: str, version: int) -> tuple[LearnedHeader, Arrays, int]:
    """Header, arrays and bytes of a file of `kind`, of whatever family. Raises `Refused` and `OSError`."""
    content = read_file(path, MOST_BYTES)
    return *decode(content, LearnedHeader, kind, version), len(content)


def family_of(path: Path, kind: str, version: int) -> str | None:
    """The family that a file of `kind` was learned for; None if it is no such file."""
    try:
        return look(path, kind, version)[0].family
    except (Refused, OSError):
        return None


def _refused(path: Path, why: str) -> TableError:
    return TableError(
        f"{path.name} cannot be used as a table: it {why}.", "Build it again, or choose another."
    )
