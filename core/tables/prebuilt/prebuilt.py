"""PrebuiltTables: what was learned before the first answer, with one model: `auto`'s answers and texts,
`cacheback`'s frozen table.

Files are read when they are first asked for, and once. Engine's thread.
"""

from __future__ import annotations

from core.drafting.evidence.learned import Continuations
from core.drafting.tables.frozen_table import FrozenTable
from core.drafting.tables.gram_table import GramTable
from core.drafting.tables.joined import Joined
from core.events import Change, ModelInfo
from core.settings.drafting import Auto, Cacheback
from core.tables.prebuilt.built import SUFFIX, TEXTS_SUFFIX, load_built, load_frozen
from core.tables.prebuilt.frozen_file import chosen_table, leader_tokens


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
        return Joined(answers, texts) if answers is not None or texts is not None else None

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
