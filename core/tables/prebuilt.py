"""Prebuilt tables of a model's family: gram tables of answers and texts for `auto`, frozen tables for
`cacheback`.

Tables that were built on this machine precede shipped ones, and newer ones precede older ones. Files of other
families are skipped; a damaged file of this family is reported, and the next one used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from core.drafting.cacheback import FrozenTable
from core.drafting.gram_table import Continuations, GramTable, JoinedTables
from core.errors import TableError
from core.events import Change, LearnedTable, ModelInfo
from core.settings.drafting import Auto, Cacheback
from core.system.paths import resources_dir, tables_dir
from core.tables.prebuilt_files import FROZEN, GRAMS, LearnedKind, chosen_table, leader_tokens
from core.tables.table_file import InvalidFileError


class PrebuiltTables:
    """Prebuilt tables of the family of the model `info`. Files are read once, on first use. Engine's
    thread.
    """

    def __init__(self, info: ModelInfo) -> None:
        self._info = info
        self._loaded: dict[str, tuple[GramTable | None, tuple[str, ...]]] = {}
        self._frozen: tuple[FrozenTable | None, tuple[str, ...]] | None = None

    def continuations(self, auto: Auto, changes: list[Change]) -> Continuations | None:
        """The tables that `auto`'s settings enable, if any. Appends a change for each unusable file."""
        answers = self._table("auto.learned", SUFFIX, changes) if auto.learned else None
        texts = self._table("auto.texts", TEXTS_SUFFIX, changes) if auto.texts else None
        return JoinedTables(answers, texts) if answers is not None or texts is not None else None

    def frozen(self, cacheback: Cacheback, changes: list[Change]) -> FrozenTable | None:
        """The table in `frozen_file`, else the family's own if its leader length fits.

        Appends a change if the settings require a table and there is none. Raises `TableError` if the table
        in `frozen_file` is unusable.
        """
        if cacheback.mode == "dynamic":
            return None
        if cacheback.frozen_file:
            return chosen_table(cacheback, self._info)
        if self._frozen is None:
            self._frozen = load_frozen(self._info)
        table, notes = self._frozen
        reason = " ".join(notes) or "there is no prebuilt table for this tokenizer"
        if table is not None:
            length = leader_tokens(table)
            if length == cacheback.leader_tokens:
                mode = cacheback.mode
                changes.extend(Change("cacheback.mode", mode, mode, text) for text in notes)
                return table
            reason = f"the prebuilt table has leaders of {length} tokens"
        used = "dynamic" if cacheback.mode == "dual" else "none"
        changes.append(Change("cacheback.mode", cacheback.mode, used, reason))
        return None

    def forget(self) -> None:
        """Reads the files again for the next answer, because a table was built."""
        self._loaded.clear()
        self._frozen = None

    def _table(self, setting: str, suffix: str, changes: list[Change]) -> GramTable | None:
        if suffix not in self._loaded:
            self._loaded[suffix] = load_built(self._info, suffix)
        table, notes = self._loaded[suffix]
        changes.extend(Change(setting, "on", "on" if table else "off", text) for text in notes)
        return table


T = TypeVar("T")

# Gram tables for `auto`: of a model's own answers, and of texts.
SUFFIX = ".grams.safetensors"
TEXTS_SUFFIX = ".texts.safetensors"
_FROZEN_SUFFIX = ".frozen.safetensors"


def built_dir() -> Path:
    """The folder of tables that were built on this machine."""
    return tables_dir() / "built"


def rehearsal_paths(model: str) -> tuple[Path, Path]:
    """Paths of a model's rehearsal answers and of the table made of them."""
    name = _file_name(model)
    return built_dir() / f"{name}.answers.jsonl", built_dir() / f"{name}{SUFFIX}"


def texts_path(family_name: str) -> Path:
    """Path of the family's gram table of texts."""
    return built_dir() / f"{_file_name(family_name)}{TEXTS_SUFFIX}"


def shipped_dir() -> Path:
    """The folder of tables that are part of Draftlight."""
    return resources_dir() / "tables"


def load_built(info: ModelInfo, suffix: str = SUFFIX) -> tuple[GramTable | None, tuple[str, ...]]:
    """The family's gram table of answers or of texts, and the problems with skipped files. None if there is
    none.
    """
    return _newest_usable(GRAMS, suffix, info)


def load_frozen(info: ModelInfo) -> tuple[FrozenTable | None, tuple[str, ...]]:
    """The family's newest frozen table for `cacheback`, and the problems with skipped files."""
    return _newest_usable(FROZEN, _FROZEN_SUFFIX, info)


def _newest_usable(kind: LearnedKind[T], suffix: str, info: ModelInfo) -> tuple[T | None, tuple[str, ...]]:
    notes: list[str] = []
    for path in _candidates(suffix):
        if kind.family_of(path) not in (info.family, None):
            continue  # one whose family cannot be read may be this family's, so it is reported
        try:
            table = kind.load(
                path, family=info.family, family_name=info.family_name, vocabulary=info.vocabulary
            )
        except TableError as error:
            notes.append(error.message)
            continue
        return table, tuple(notes)
    return None, tuple(notes)


def prebuilt_listing() -> tuple[tuple[LearnedTable, ...], tuple[str, ...]]:
    """Every prebuilt table, of all families, newest first, and a sentence for each invalid file."""
    tables: list[LearnedTable] = []
    refused: list[str] = []
    for path in (*_candidates(SUFFIX), *_candidates(TEXTS_SUFFIX), *_candidates(_FROZEN_SUFFIX)):
        try:
            tables.append(_description(path))
        except InvalidFileError as refusal:
            refused.append(f"{path.name} {refusal}.")
        except OSError as error:
            refused.append(f"{path.name} could not be read: {error.strerror}.")
    return tuple(tables), tuple(refused)


def erase_built(folder: Path, family: str) -> int:
    """Deletes everything in `folder` that was built for `family`; returns the number of files.

    A rehearsal's answers are deleted with the table made of them. Files whose family cannot be read are
    deleted too, because they may be this family's. Raises `TableError` that names the first file that cannot
    be erased.
    """
    if not folder.is_dir():
        return 0
    paths = [
        path for path in sorted(folder.iterdir()) if path.is_file() and _family_of(path) in (family, None)
    ]
    for path in paths:
        try:
            path.unlink()
        except OSError as error:
            raise TableError(
                f"{path} could not be erased: {error.strerror}.", "Make the folder writable and reset again."
            ) from error
    return len(paths)


def _family_of(path: Path) -> str | None:
    """The family of a file in the folder of built tables; None if unknown."""
    if ".answers." in path.name:
        path = path.with_name(path.name.partition(".answers.")[0] + SUFFIX)
    return GRAMS.family_of(path) or FROZEN.family_of(path)


def _description(path: Path) -> LearnedTable:
    grams = path.name.endswith((SUFFIX, TEXTS_SUFFIX))
    header, arrays, size_bytes = GRAMS.inspect(path) if grams else FROZEN.inspect(path)
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


def _candidates(suffix: str) -> Iterator[Path]:
    for folder in (built_dir(), shipped_dir()):
        if folder.is_dir():
            yield from sorted(folder.glob(f"*{suffix}"), key=lambda path: path.stat().st_mtime, reverse=True)
