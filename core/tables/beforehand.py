"""Beforehand: what was learned before the first answer, for `auto` with one model: answers, texts or both.

Files are read when they are first asked for, and once. Engine's thread.
"""

from __future__ import annotations

from core.drafting.gram_table import GramTable
from core.drafting.joined import Joined
from core.drafting.learned import Continuations
from core.events import Change, ModelInfo
from core.settings.drafting import Auto
from core.tables.built import SUFFIX, TEXTS_SUFFIX, load_built


class Beforehand:
    """Of the family of the model that `info` describes."""

    def __init__(self, info: ModelInfo) -> None:
        self._info = info
        self._read: dict[str, tuple[GramTable | None, tuple[str, ...]]] = {}

    def continuations(self, auto: Auto, changes: list[Change]) -> Continuations | None:
        """What `auto` wants of it and is at hand; `changes` gains one for each file that is no use."""
        answers = self._table("auto.learned", SUFFIX, changes) if auto.learned else None
        texts = self._table("auto.texts", TEXTS_SUFFIX, changes) if auto.texts else None
        return Joined(answers, texts) if answers is not None or texts is not None else None

    def forget(self) -> None:
        """A table was built: read again for the next answer."""
        self._read.clear()

    def _table(self, setting: str, suffix: str, changes: list[Change]) -> GramTable | None:
        if suffix not in self._read:
            self._read[suffix] = load_built(self._info, suffix)
        table, troubles = self._read[suffix]
        changes.extend(Change(setting, "on", "on" if table else "off", text) for text in troubles)
        return table
