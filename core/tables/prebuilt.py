"""PrebuiltTables: what was learned before the first answer, with one model: `auto`'s answers and texts,
`cacheback`'s frozen table.

Files are read when they are first asked for, and once. Engine's thread.

The tables learned beforehand that are at hand: those built here, then those shipped.

A file built here is newer evidence than a shipped one, and the newest of several is taken. Files
of other families are passed over; one of this family that is damaged is reported, and the next
one taken. Reads only, until a family is erased.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from core.drafting.follower_tables import FrozenTable
from core.drafting.gram_table import GramTable, JoinedTables
from core.drafting.table_evidence import Continuations
from core.errors import TableError
from core.events import Change, LearnedTable, ModelInfo
from core.settings.drafting import Auto, Cacheback
from core.system.paths import resources_dir, tables_dir
from core.tables.container import Refused
from core.tables.prebuilt_files import FROZEN, GRAMS, LearnedKind, chosen_table, leader_tokens


class PrebuiltTables:
    """Of the family of the model that `info` describes."""

    def __init__(self, info: ModelInfo) -> None:
        self._info = info
        self._read: dict[str, tuple[GramTable | None, tuple[str, ...]]] = {}
        self._frozen: tuple[FrozenTable | None, tuple[str, ...]] | None = None

    def continuations(self, auto: Auto, changes: list[Change]) -> Continuations | None:
        """What `auto` wants of it and is at hand; `changes` gains one for each file that is no use."""
        answers = self._table("auto.learned", SUFFIX, changes) if auto.learned else None
        texts = self._table("auto.texts", TEXTS_SUFFIX, changes) if auto.texts else None
        return JoinedTables(answers, texts) if answers is not None or texts is not None else None

    def frozen(self, cacheback: Cacheback, changes: list[Change]) -> FrozenTable | None:
        """The table that is named, else the family's own if its leaders fit.

        `changes` gains one if the settings ask for a table and there is none. Raises `TableError` for a
        named one that is no use.
        """
        if cacheback.mode == "dynamic":
            return None
        if cacheback.frozen_file:
            return chosen_table(cacheback, self._info)
        if self._frozen is None:
            self._frozen = load_frozen(self._info)
        table, troubles = self._frozen
        reason = " ".join(troubles) or "no table learned beforehand is here for this tokenizer"
        if table is not None:
            held = leader_tokens(table)
            if held == cacheback.leader_tokens:
                mode = cacheback.mode
                changes.extend(Change("cacheback.mode", mode, mode, text) for text in troubles)
                return table
            reason = f"the table at hand has leaders of {held} tokens"
        used = "dynamic" if cacheback.mode == "dual" else "none"
        changes.append(Change("cacheback.mode", cacheback.mode, used, reason))
        return None

    def forget(self) -> None:
        """A table was built: read again for the next answer."""
        self._read.clear()
        self._frozen = None

    def _table(self, setting: str, suffix: str, changes: list[Change]) -> GramTable | None:
        if suffix not in self._read:
            self._read[suffix] = load_built(self._info, suffix)
        table, troubles = self._read[suffix]
        changes.extend(Change(setting, "on", "on" if table else "off", text) for text in troubles)
        return table


T = TypeVar("T")

# Gram tables, both for `auto`: of a model's own answers, and of texts.
SUFFIX = ".grams.safetensors"
TEXTS_SUFFIX = ".texts.safetensors"
_FROZEN_SUFFIX = ".frozen.safetensors"


def built_dir() -> Path:
    """Where tables that were built on this machine are put."""
    return tables_dir() / "built"


def rehearsal_paths(model: str) -> tuple[Path, Path]:
    """Where the answers of the model of that name are kept when it rehearses, and the table made of them."""
    name = _file_name(model)
    return built_dir() / f"{name}.answers.jsonl", built_dir() / f"{name}{SUFFIX}"


def texts_path(family_name: str) -> Path:
    """Where the gram table of texts is put for the family of that name."""
    return built_dir() / f"{_file_name(family_name)}{TEXTS_SUFFIX}"


def shipped_dir() -> Path:
    """Where Draftlight's own are."""
    return resources_dir() / "tables"


def load_built(info: ModelInfo, suffix: str = SUFFIX) -> tuple[GramTable | None, tuple[str, ...]]:
    """The family's gram table of answers, or of texts, and what was wrong with those passed over.

    None if there is none.
    """
    return _first(GRAMS, suffix, info)


def load_frozen(info: ModelInfo) -> tuple[FrozenTable | None, tuple[str, ...]]:
    """The family's newest frozen table for `cacheback`, and what was wrong with those passed over."""
    return _first(FROZEN, _FROZEN_SUFFIX, info)


def frozen_for(family: str) -> Path | None:
    """The newest frozen table of `family` for `cacheback` that can be read; None if there is none."""
    for path in _candidates(_FROZEN_SUFFIX):
        if FROZEN.family_of(path) == family:
            return path
    return None


def _first(kind: LearnedKind[T], suffix: str, info: ModelInfo) -> tuple[T | None, tuple[str, ...]]:
    troubles: list[str] = []
    for path in _candidates(suffix):
        if kind.family_of(path) not in (info.family, None):
            continue  # one that does not even say whose it is may be ours, so it is reported
        try:
            table = kind.load(
                path, family=info.family, family_name=info.family_name, vocabulary=info.vocabulary
            )
        except TableError as error:
            troubles.append(error.message)
            continue
        return table, tuple(troubles)
    return None, tuple(troubles)


def prebuilt_listing() -> tuple[tuple[LearnedTable, ...], tuple[str, ...]]:
    """Every table learned beforehand, of all families, newest first; and sentences on files that are none."""
    tables: list[LearnedTable] = []
    refused: list[str] = []
    for path in (*_candidates(SUFFIX), *_candidates(TEXTS_SUFFIX), *_candidates(_FROZEN_SUFFIX)):
        try:
            tables.append(_looked_at(path))
        except Refused as refusal:
            refused.append(f"{path.name} {refusal}.")
        except OSError as error:
            refused.append(f"{path.name} could not be read: {error.strerror}.")
    return tuple(tables), tuple(refused)


def erase_built(folder: Path, family: str) -> int:
    """Delete all that was built here for `family` in `folder`; how many files.

    A rehearsal's answers go with the table made of them. What does not say whose it is goes, too: it may
    be this family's, and nothing of that is to stay. Raises `TableError` that names the first file that
    cannot be erased.
    """
    if not folder.is_dir():
        return 0
    doomed = [path for path in sorted(folder.iterdir()) if path.is_file() and _owner(path) in (family, None)]
    for path in doomed:
        try:
            path.unlink()
        except OSError as error:
            raise TableError(
                f"{path} could not be erased: {error.strerror}.", "Make the folder writable and reset again."
            ) from error
    return len(doomed)


def _owner(path: Path) -> str | None:
    """The family that a file in the folder of built tables is of; None if nothing says it."""
    if ".answers." in path.name:
        path = path.with_name(path.name.partition(".answers.")[0] + SUFFIX)
    return GRAMS.family_of(path) or FROZEN.family_of(path)


def _looked_at(path: Path) -> LearnedTable:
    grams = path.name.endswith((SUFFIX, TEXTS_SUFFIX))
    header, arrays, size_bytes = GRAMS.look(path) if grams else FROZEN.look(path)
    return LearnedTable(
        path.name,
        header.family,
        header.family_name,
        "auto" if grams else "cacheback",
        path.parent == shipped_dir(),
        header.learned_from,
        # Contexts, or leaders: what is looked up.
        len(arrays["keys" if grams else "leaders"]),
        size_bytes,
        path.stat().st_mtime,
    )


def _file_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-") or "model"


def _candidates(suffix: str) -> Iterator[Path]:
    for folder in (built_dir(), shipped_dir()):
        if folder.is_dir():
            yield from sorted(folder.glob(f"*{suffix}"), key=lambda path: path.stat().st_mtime, reverse=True)
