"""IdleRehearsal: rehearsal in the moments when nothing is asked, dropped at once when something is.

A piece is one forward pass of a few rows, so whoever asks waits for no more than that. Answers
under way are lost then; those that were finished are kept, and the next quiet moment goes on after
them. Small batches, for what is lost is small then, too.

Owns the work under way. Knows no engine; it is told which model to use, and whether it is wanted.
"""

from __future__ import annotations

from collections.abc import Generator

from core.errors import DraftlightError
from core.models.loader import LoadedModel
from core.rehearsal.conversations import default_conversations, read_conversations
from core.rehearsal.rehearsal import Plan, Progress, Rehearsal
from core.tables.built import rehearsal_paths

_BATCH = 4
_CHUNK_TOKENS = 64
# A first table after so many tokens, and one more each time as many have come.
_TABLE_EVERY_TOKENS = 20_000


class IdleRehearsal:
    """Of one model after the other. `trouble` says why it stopped for good, in words."""

    def __init__(self) -> None:
        self.wanted = False
        self.trouble = ""
        self.progress: Progress | None = None
        self._work: Generator[Progress, None, None] | None = None
        self._finished = False

    def piece(self, loaded: LoadedModel) -> bool:
        """One piece of work, if it is wanted; whether there is more. `made_table` tells of a new table."""
        self.progress = None
        if not self.wanted or self._finished:
            return False
        try:
            if self._work is None:
                self._work = self._begin(loaded)
            self.progress = next(self._work)
            return True
        except StopIteration:
            self._finished = True
        except (DraftlightError, MemoryError, RuntimeError) as error:  # MLX out of memory, among others
            self.trouble, self._finished = str(error), True
        self._work = None
        return False

    @property
    def made_table(self) -> bool:
        """Whether the last piece wrote a table."""
        return self.progress is not None and self.progress.contexts > 0

    def drop(self) -> None:
        """Something is asked: let go of the model, of the memory and of the files."""
        if self._work is not None:
            self._work.close()
        self._work = self.progress = None

    def forget_model(self) -> None:
        """Another model comes, or none: begin anew with it."""
        self.drop()
        self.trouble, self._finished = "", False

    def _begin(self, loaded: LoadedModel) -> Generator[Progress, None, None]:
        records, table = rehearsal_paths(loaded.info.name)
        plan = Plan(
            records,
            table,
            batch=_BATCH,
            chunk_tokens=_CHUNK_TOKENS,
            table_every_tokens=_TABLE_EVERY_TOKENS,
        )
        return Rehearsal(loaded, read_conversations(default_conversations()), plan).work()
