"""What every file of evidence learned beforehand has in common: whose it is, and what it was learned from.

Its content is a `container`; it is written whole or not at all, and nothing in it is believed.
Each kind of table has its own name, version and arrays (`LearnedKind`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

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


class LearnedKind(Generic[T]):
    """One kind of these files. `make` makes a table of arrays and a vocabulary, or raises `Refused`."""

    def __init__(self, name: str, version: int, make: Callable[[Arrays, int], T]) -> None:
        self._name = name
        self._version = version
        self._make = make

    def header(self, family: str, family_name: str, learned_from: str) -> LearnedHeader:
        """With words that are short enough to be read again."""
        return LearnedHeader(self._name, self._version, family, family_name[:_NAME], learned_from[:_FROM])

    def write(
        self,
        path: Path,
        arrays: Mapping[str, NDArray[Any]],
        *,
        family: str,
        family_name: str,
        learned_from: str,
    ) -> None:
        """Write the file in one rename. Raises `TableError` if the place cannot take it."""
        content = encode(self.header(family, family_name, learned_from), arrays)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, content)
        except OSError as error:
            raise TableError(
                f"{path} cannot be written: {error}.", "Choose a place with room for it."
            ) from error

    def load(self, path: Path, *, family: str, family_name: str, vocabulary: int) -> T:
        """The table in `path`, for a model of `family` with ids below `vocabulary`.

        Raises `TableError` that names the file and what is wrong with it; of another family, both.
        """
        header, table = self._read(path, vocabulary, lambda header: header.family == family)
        if table is None:
            raise TableError(
                f"{path.name} was learned for the {header.family_name or 'nameless'} tokenizer, and the model"
                f" has the {family_name} one.",
                f"Choose a table of the {family_name} family, or none.",
            )
        return table

    def load_any(self, path: Path, vocabulary: int) -> T:
        """The table in `path`, whatever family's: for ids that only a bench compares. Raises `TableError`."""
        table = self._read(path, vocabulary, lambda header: True)[1]
        assert table is not None
        return table

    def decode(self, content: bytes) -> tuple[LearnedHeader, Arrays]:
        """Header and arrays of a file's content. Raises `Refused`."""
        return decode(content, LearnedHeader, self._name, self._version)

    def look(self, path: Path) -> tuple[LearnedHeader, Arrays, int]:
        """Header, arrays and bytes of a file, of whatever family. Raises `Refused` and `OSError`."""
        content = read_file(path, MOST_BYTES)
        return *self.decode(content), len(content)

    def family_of(self, path: Path) -> str | None:
        """The family that a file was learned for; None if it is no file of this kind."""
        try:
            return self.look(path)[0].family
        except (Refused, OSError):
            return None

    def _read(
        self, path: Path, vocabulary: int, wanted: Callable[[LearnedHeader], bool]
    ) -> tuple[LearnedHeader, T | None]:
        try:
            header, arrays, _ = self.look(path)
            return header, self._make(arrays, vocabulary) if wanted(header) else None
        except Refused as refusal:
            raise _refused(path, str(refusal)) from None
        except OSError as error:
            raise _refused(path, f"cannot be read ({error.strerror})") from error


def _refused(path: Path, why: str) -> TableError:
    return TableError(
        f"{path.name} cannot be used as a table: it {why}.", "Build it again, or choose another."
    )
