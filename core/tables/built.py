"""The learned tables that are at hand for a tokenizer family: those built here, then those shipped.

A file built here is newer evidence than a shipped one, and the newest of several is taken. Files
of other families are passed over; one of this family that is damaged is reported, and the next
one taken. Reads only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from core.drafting.gram_table import GramTable
from core.errors import TableError
from core.events import ModelInfo
from core.paths import resources_dir, tables_dir
from core.tables.gram_file import load_grams
from core.tables.learned_file import family_of

SUFFIX = ".grams.safetensors"


def built_dir() -> Path:
    """Where tables that were built on this machine are put."""
    return tables_dir() / "built"


def rehearsal_paths(model: str) -> tuple[Path, Path]:
    """Where the answers of the model of that name are kept when it rehearses, and the table made of them."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", model).strip(".-") or "model"
    return built_dir() / f"{name}.answers.jsonl", built_dir() / f"{name}{SUFFIX}"


def shipped_dir() -> Path:
    """Where Draftlight's own are."""
    return resources_dir() / "tables"


def load_built(info: ModelInfo) -> tuple[GramTable | None, tuple[str, ...]]:
    """The family's table, if there is one, and what was wrong with those that had to be passed over."""
    troubles: list[str] = []
    for path in _candidates():
        if family_of(path) not in (info.family, None):
            continue  # one that does not even say whose it is may be ours, so it is reported
        try:
            table = load_grams(
                path, family=info.family, family_name=info.family_name, vocabulary=info.vocabulary
            )
        except TableError as error:
            troubles.append(error.message)
            continue
        return table, tuple(troubles)
    return None, tuple(troubles)


def _candidates() -> Iterator[Path]:
    for folder in (built_dir(), shipped_dir()):
        if folder.is_dir():
            yield from sorted(folder.glob(f"*{SUFFIX}"), key=lambda path: path.stat().st_mtime, reverse=True)
