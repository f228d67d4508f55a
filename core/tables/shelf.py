"""Where evidence learned beforehand lies: what ships with Draftlight, and what was rehearsed here.

    resources/tables/<family>/*.grams        shipped, see the README there
    <data>/rehearsal/<family>/<model>.jsonl  a model's own answers here, and the table made of them
    <data>/rehearsal/<family>/<model>.grams

`<family>` is the beginning of the tokenizer's fingerprint. Nothing is created here.
"""

from __future__ import annotations

import re
from pathlib import Path

from core.drafting.gram_table import GramTable
from core.errors import TableError
from core.paths import data_dir, resources_dir
from core.tables.gram_file import load_grams

_FAMILY_DIGITS = 16


def shipped_dir(family: str) -> Path:
    """The folder of tables that came with Draftlight for `family`; it may not exist."""
    return resources_dir() / "tables" / family[:_FAMILY_DIGITS]


def rehearsal_dir(family: str) -> Path:
    """The folder of what was rehearsed here by models of `family`; it may not exist."""
    return data_dir() / "rehearsal" / family[:_FAMILY_DIGITS]


def rehearsal_paths(family: str, model: str) -> tuple[Path, Path]:
    """A model's file of answers, and the table made of it."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", model).strip(".-") or "model"
    folder = rehearsal_dir(family)
    return folder / f"{name}.jsonl", folder / f"{name}.grams"


def gram_tables(family: str, family_name: str, vocabulary: int) -> tuple[list[GramTable], list[str]]:
    """Every gram table for `family`, shipped ones first; and why others cannot be used, in words."""
    tables, notes = [], []
    for folder in (shipped_dir(family), rehearsal_dir(family)):
        for path in sorted(folder.glob("*.grams")):
            try:
                tables.append(load_grams(path, family=family, family_name=family_name, vocabulary=vocabulary))
            except TableError as error:
                notes.append(str(error))
    return tables, notes
