"""Prebuilt tables of a family: gram tables for `auto`, frozen tables for `cacheback`.

Tables that were built on this machine precede shipped ones, and newer ones precede older ones. Files of other
families are skipped; a damaged file of this family is reported, and the next one used. A file is a container
of `core.tables.files` with the family and the origin of the table.

A frozen table:

    leaders    [n, LL]   the leaders, most frequent first
    followers  [m, FL]   all followers, those of one leader together, most frequent first
    counts     [n]       followers of each leader; they sum to m. A table without any has shapes of [0, 0]

Ids are uint16 if all of them fit, else int32; counts are int32.

A gram table:

    sizes    int32 [orders]            contexts of 0, 1, 2 … tokens
    keys     uint32 [n]                their keys, ascending inside each order
    totals   uint8 [n]                 occurrences of each, coded
    counts   uint8 [n]                 followers of each, at least one
    ids      uint16 or uint32 [m]      all followers, those of one context together, most probable first
    shares   uint8 [m]                 their probabilities, 255 being 1.0

Every size, sum, order, share and id is checked before a table is made, so a truncated, foreign or
malicious file is an error with its name and never a wrong table.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from core.drafting.cacheback import FrozenTable, Gram
from core.drafting.gram_table import FULL_SHARE, GramTable, Level
from core.drafting.ngram_mod import ID_END
from core.errors import TableError, reason_of
from core.events import LearnedTable, ModelInfo
from core.settings.drafting import Cacheback
from core.system.files import write_atomic
from core.system.paths import resources_dir, tables_dir
from core.system.private import make_folder
from core.tables.files import Arrays, Fingerprint, InvalidFileError, decode, encode, read_file

# ---- file formats


# The shipped tables are under 3 MB together.
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
    """One kind of file, whose names end in `suffix`. `make` makes a table of arrays and a vocabulary size, or
    raises `InvalidFileError`.
    """

    def __init__(self, name: str, version: int, suffix: str, make: Callable[[Arrays, int], T]) -> None:
        self._name = name
        self._version = version
        self.suffix = suffix
        self._make = make

    def header(self, family: str, family_name: str, learned_from: str) -> LearnedHeader:
        """A header with texts truncated to the lengths that can be read again."""
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
        """Writes the file atomically. Raises `TableError`, also for a table that `load` would refuse."""
        content = encode(self.header(family, family_name, learned_from), arrays)
        try:
            if len(content) > MOST_BYTES:
                raise InvalidFileError(f"takes more than {MOST_BYTES >> 20:,} MiB")
            self._make(dict(arrays), ID_END)
            make_folder(path.parent)
            write_atomic(path, content)
        except InvalidFileError as refusal:
            raise TableError(f"{path.name} is not written: it {refusal}.", "Build a smaller table.") from None
        except OSError as error:
            raise TableError(
                f"{path} cannot be written: {reason_of(error)}.",
                "Choose a writable folder with enough space.",
            ) from error

    def load(self, path: Path, *, vocabulary: int, family: str = "", family_name: str = "") -> T:
        """The table in `path`, for a model of `family` (empty: of any) with ids below `vocabulary`.

        Raises `TableError` that names the file and the problem, or both families.
        """
        try:
            header, arrays, _ = self.inspect(path)
            if family in ("", header.family):
                return self._make(arrays, vocabulary)
        except (InvalidFileError, OSError) as error:
            why = f"cannot be read ({error.strerror})" if isinstance(error, OSError) else str(error)
            raise TableError(
                f"{path.name} cannot be used as a table: it {why}.", "Build it again, or choose another."
            ) from error
        raise TableError(
            f"{path.name} was built for the {header.family_name or 'nameless'} tokenizer; the model"
            f" uses the {family_name} tokenizer.",
            f"Choose a table of the {family_name} family, or none.",
        )

    def newest(
        self, info: ModelInfo, why_not: Callable[[T], str] = lambda table: ""
    ) -> tuple[T | None, tuple[str, ...]]:
        """The newest usable table of the family of `info`, and the problems with skipped files.

        Valid tables for which `why_not` returns a reason are skipped; it is a problem if no table is left.
        """
        notes: list[str] = []
        unfit = ""
        for path in self.paths():
            if self.family_of(path) not in (info.family, None):
                continue  # one whose family cannot be read may be this family's, so it is reported
            try:
                table = self.load(
                    path, vocabulary=info.vocabulary, family=info.family, family_name=info.family_name
                )
            except TableError as error:
                notes.append(error.message)
                continue
            if not (unfit := why_not(table)):
                return table, tuple(notes)
        return None, tuple(filter(None, (*notes, unfit)))

    def paths(self) -> Iterator[Path]:
        """All files of this kind: those built on this machine, then shipped ones; newest first."""
        for folder in (built_dir(), shipped_dir()):
            if folder.is_dir():
                found = (path for path in folder.glob(f"*{self.suffix}") if path.exists())
                yield from sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)

    def decode(self, content: bytes) -> tuple[LearnedHeader, Arrays]:
        """Header and arrays of a file's content. Raises `InvalidFileError`."""
        return decode(content, LearnedHeader, self._name, self._version)

    def inspect(self, path: Path) -> tuple[LearnedHeader, Arrays, int]:
        """Header, arrays and size in bytes of a file of any family. Raises `InvalidFileError` and
        `OSError`.
        """
        content = read_file(path, MOST_BYTES)
        return *self.decode(content), len(content)

    def family_of(self, path: Path) -> str | None:
        """The family of a file; None if it is not a file of this kind."""
        try:
            return self.inspect(path)[0].family
        except (InvalidFileError, OSError):
            return None


_PARTS = {"leaders", "followers", "counts"}
_ID_TYPES = (np.uint16, np.int32)


def save_frozen(table: FrozenTable, path: Path, *, family: str, family_name: str, learned_from: str) -> None:
    """Writes `table` atomically; all leaders have one length, all followers another. Raises `TableError`."""
    entries = table.entries()
    followers = _grid([gram for held in entries.values() for gram in held])
    counts = np.array([len(held) for held in entries.values()], dtype=np.int32)
    parts = {"leaders": _grid(list(entries)), "followers": followers, "counts": counts}
    FROZEN.write(path, parts, family=family, family_name=family_name, learned_from=learned_from)


def chosen_table(settings: Cacheback, info: ModelInfo) -> FrozenTable:
    """The table in `settings.frozen_file`. Raises `TableError`, also if its leader length does not fit."""
    path = Path(settings.frozen_file).expanduser()
    held = FROZEN.load(path, family=info.family, family_name=info.family_name, vocabulary=info.vocabulary)
    length = leader_tokens(held)
    if length not in (0, settings.leader_tokens):
        raise TableError(
            f"{path.name} has leaders of {length} tokens, not {settings.leader_tokens}.",
            f"Set cacheback.leader_tokens to {length}, or choose another table.",
        )
    return held


def leader_tokens(table: FrozenTable) -> int:
    """Tokens per leader; 0 if the table is empty."""
    return len(next(iter(table.entries()), ()))


def _frozen_table(parts: Arrays, vocabulary: int) -> FrozenTable:
    """A table of a file's arrays, with ids below `vocabulary`. Raises `InvalidFileError`."""
    if parts.keys() != _PARTS:
        raise InvalidFileError("does not contain the expected arrays")
    leaders, followers, counts = parts["leaders"], parts["followers"], parts["counts"]
    if counts.dtype != np.int32 or any(ids.dtype not in _ID_TYPES for ids in (leaders, followers)):
        raise InvalidFileError("has ids that are not 16- or 32-bit integers")
    if leaders.ndim != 2 or followers.ndim != 2 or counts.shape != leaders.shape[:1]:
        raise InvalidFileError("has parts that do not fit together")
    if (counts < 0).any() or int(counts.sum(dtype=np.int64)) != len(followers):
        raise InvalidFileError("has counts that do not add up")
    for ids in (leaders, followers):
        if ids.size and (int(ids.min()) < 0 or int(ids.max()) >= vocabulary):
            raise InvalidFileError(f"holds ids outside the model's vocabulary of {vocabulary:,}")
    grams = [tuple(gram) for gram in followers.tolist()]
    ends = np.cumsum(counts).tolist()
    keys = [tuple(leader) for leader in leaders.tolist()]
    if len(set(keys)) != len(keys):
        raise InvalidFileError("has a leader that occurs twice")
    return FrozenTable({key: tuple(grams[a:b]) for key, a, b in zip(keys, [0, *ends], ends)})


def _grid(grams: list[Gram]) -> NDArray[Any]:
    """Rows of ids, in 16 bits where all fit."""
    ids = np.array(grams or np.zeros((0, 0)), dtype=np.int32)
    return ids if (ids >> 16).any() else ids.astype(np.uint16)


FROZEN = LearnedKind("draftlight-frozen", 2, ".frozen.safetensors", _frozen_table)


HIGHEST_ORDER = 8
_TYPES = {"sizes": "int32", "keys": "uint32", "totals": "uint8", "counts": "uint8", "shares": "uint8"}
_NAMES = (*_TYPES, "ids")


def save_grams(table: GramTable, path: Path, *, family: str, family_name: str, learned_from: str) -> None:
    """Writes `table` atomically. Raises `TableError`."""
    levels = table.levels
    ids = np.concatenate([np.zeros(0, np.uint32), *(np.asarray(level.ids, np.uint32) for level in levels)])
    starts = [np.diff(np.asarray(level.starts, np.int64)) for level in levels]
    parts = {
        "sizes": np.array([len(level.keys) for level in levels], dtype=np.int32),
        "keys": np.concatenate([np.zeros(0, np.uint32), *(np.asarray(x.keys, np.uint32) for x in levels)]),
        "totals": np.frombuffer(b"".join(level.totals for level in levels), dtype=np.uint8),
        "counts": np.concatenate([np.zeros(0, np.int64), *starts]).astype(np.uint8),
        "ids": ids.astype(np.uint16) if not ids.size or int(ids.max()) < 2**16 else ids,
        "shares": np.frombuffer(b"".join(level.shares for level in levels), dtype=np.uint8),
    }
    GRAMS.write(path, parts, family=family, family_name=family_name, learned_from=learned_from)


def _gram_table(parts: Arrays, vocabulary: int) -> GramTable:
    """A table of a file's arrays, with ids below `vocabulary`. Raises `InvalidFileError`."""
    _check_grams(parts, vocabulary)
    levels, context, follower = [], 0, 0
    for size in parts["sizes"].tolist():
        counts = parts["counts"][context : context + size].astype(np.int64)
        followers = int(counts.sum())
        levels.append(
            Level(
                _packed(parts["keys"][context : context + size]),
                parts["totals"][context : context + size].tobytes(),
                _packed(np.concatenate([[0], np.cumsum(counts)])),
                _packed(parts["ids"][follower : follower + followers]),
                parts["shares"][follower : follower + followers].tobytes(),
            )
        )
        context, follower = context + size, follower + followers
    return GramTable(levels)


def _check_grams(parts: Arrays, vocabulary: int) -> None:
    if parts.keys() != set(_NAMES):
        raise InvalidFileError("does not contain the expected arrays")
    if any(parts[name].dtype != dtype for name, dtype in _TYPES.items()) or (
        parts["ids"].dtype not in (np.uint16, np.uint32)
    ):
        raise InvalidFileError("has parts of the wrong types")
    if any(part.ndim != 1 for part in parts.values()) or len(parts["sizes"]) > HIGHEST_ORDER + 1:
        raise InvalidFileError("has parts of the wrong shapes")
    sizes, keys, counts = parts["sizes"].astype(np.int64), parts["keys"], parts["counts"].astype(np.int64)
    if (sizes < 0).any() or int(sizes.sum()) != len(keys) or (sizes[:1] > 1).any():
        raise InvalidFileError("has orders that do not add up")
    if not len(keys) == len(counts) == len(parts["totals"]) or len(parts["ids"]) != len(parts["shares"]):
        raise InvalidFileError("has parts that do not fit together")
    if (counts == 0).any() or int(counts.sum()) != len(parts["ids"]):
        raise InvalidFileError("has counts that do not add up")
    if len(parts["ids"]) and int(parts["ids"].max()) >= vocabulary:
        raise InvalidFileError(f"holds ids outside the model's vocabulary of {vocabulary:,}")
    order = np.repeat(np.arange(len(sizes)), sizes)
    placed = order << 32 | keys
    if (np.diff(placed) <= 0).any():
        raise InvalidFileError("has keys that are not in order")
    owner = np.repeat(np.arange(len(keys)), counts)
    shares = parts["shares"].astype(np.int64)
    rising = (np.diff(shares) > 0) & (np.diff(owner) == 0)
    # Shares are rounded, so those of a context may sum to slightly more than 1.
    sums = np.bincount(owner, weights=shares, minlength=len(keys))
    if (shares == 0).any() or rising.any() or (sums > FULL_SHARE + counts).any():
        raise InvalidFileError("has shares that are not probabilities")


def _packed(values: np.ndarray) -> array[int]:
    return array("I", values.astype(np.uint32).tobytes())


# Tables of a model's own answers, for `auto`.
GRAMS = LearnedKind("draftlight-grams", 2, ".grams.safetensors", _gram_table)


# ---- tables of a family


class PrebuiltTables:
    """Prebuilt tables of the family of the model `info`, read on first use. Engine's thread."""

    def __init__(self, info: ModelInfo) -> None:
        self._info = info
        self._grams: tuple[GramTable | None, tuple[str, ...]] | None = None
        self._frozen: dict[int, tuple[FrozenTable | None, tuple[str, ...]]] = {}

    def continuations(self) -> tuple[GramTable | None, tuple[str, ...]]:
        """The family's gram table, if there is one, and a sentence for each unusable file."""
        if self._grams is None:
            self._grams = GRAMS.newest(self._info)
        return self._grams

    def frozen(self, cacheback: Cacheback) -> tuple[FrozenTable | None, tuple[str, ...]]:
        """The table in `frozen_file`, else the family's newest one whose leader length fits.

        With a sentence for each unusable file, or the reason for no table. Raises `TableError` if the table
        in `frozen_file` is unusable.
        """
        if cacheback.frozen_file:
            return chosen_table(cacheback, self._info), ()
        wanted = cacheback.leader_tokens

        def why_not(table: FrozenTable) -> str:
            length = leader_tokens(table)
            return "" if length in (0, wanted) else f"the prebuilt table has leaders of {length} tokens"

        if wanted not in self._frozen:
            self._frozen[wanted] = FROZEN.newest(self._info, why_not)
        table, notes = self._frozen[wanted]
        if table is None:
            return None, (" ".join(notes) or "there is no prebuilt table for this tokenizer",)
        return table, notes

    def forget(self) -> None:
        """Reads the files again for the next answer, because they were erased."""
        self._grams, self._frozen = None, {}


def built_dir() -> Path:
    """The folder of tables that were built on this machine."""
    return tables_dir() / "built"


def frozen_path(family_name: str) -> Path:
    """Path of the family's frozen table that `draftlight tables build` writes."""
    return built_dir() / f"{_file_name(family_name)}{FROZEN.suffix}"


def shipped_dir() -> Path:
    """The folder of tables that are part of Draftlight."""
    return resources_dir() / "tables"


def prebuilt_listing() -> tuple[tuple[LearnedTable, ...], tuple[str, ...]]:
    """Every prebuilt table, of all families, newest first, and a sentence for each invalid file."""
    tables: list[LearnedTable] = []
    refused: list[str] = []
    kinds: tuple[LearnedKind[Any], ...] = (GRAMS, FROZEN)
    for kind, path in ((each, path) for each in kinds for path in each.paths()):
        try:
            tables.append(_description(kind, path))
        except InvalidFileError as refusal:
            refused.append(f"{path.name} {refusal}.")
        except OSError as error:
            refused.append(f"{path.name} could not be read: {error.strerror}.")
    return tuple(tables), tuple(refused)


def erase_built(folder: Path, family: str) -> int:
    """Deletes everything in `folder` that was built for `family`; returns the number of files.

    Files whose family cannot be read are deleted too, because they may be this family's. Raises `TableError`
    that names the first file that cannot be erased.
    """
    if not folder.is_dir():
        return 0
    paths = [
        path
        for path in sorted(folder.iterdir())
        if path.is_file() and (GRAMS.family_of(path) or FROZEN.family_of(path)) in (family, None)
    ]
    for path in paths:
        try:
            path.unlink()
        except OSError as error:
            raise TableError(
                f"{path} could not be erased: {error.strerror}.", "Make the folder writable and reset again."
            ) from error
    return len(paths)


def _description(kind: LearnedKind[Any], path: Path) -> LearnedTable:
    header, arrays, size_bytes = kind.inspect(path)
    grams = kind is GRAMS
    return LearnedTable(
        path.name,
        header.family,
        header.family_name,
        "auto" if grams else "cacheback",
        path.parent == shipped_dir(),
        header.learned_from,
        # Contexts or leaders.
        len(arrays["keys" if grams else "leaders"]),
        size_bytes,
        path.stat().st_mtime,
    )


def _file_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-") or "model"
