"""Unsaved: the file beside the database that takes what could not be saved when Draftlight closed.

It is a chat file as exports are, so it can be imported by hand, too. Invariant: it is there as long as
what is in it may be nowhere else; once its chats are in the database it is renamed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from itertools import count
from pathlib import Path

from app.session.chats.conversation import Conversation
from app.store.files.json_file import from_json, to_json
from app.store.recovery.faults import TransferError

# Where the database's disk hangs this file's may hang as well, and a window that closes does not wait.
_WRITE_S = 2.0


class Unsaved:
    """Of the database at `database`. Only the process that saves uses it."""

    def __init__(self, database: Path) -> None:
        self.path = database.with_name(f"{database.stem}-unsaved.json")
        self.set_aside: Path | None = None  # where a damaged one went

    def write(self, chats: Iterable[Conversation], timeout_s: float = _WRITE_S) -> bool:
        """Add `chats` to what is there. False if that fails, or takes longer than `timeout_s`."""
        written = threading.Event()
        chosen = tuple(chats)

        def run() -> None:
            try:
                self._write(chosen)
            except OSError:
                return
            written.set()

        thread = threading.Thread(target=run, name="draftlight-unsaved", daemon=True)
        thread.start()
        thread.join(timeout_s)
        return written.is_set()

    def read(self) -> tuple[Conversation, ...]:
        """What is there. Raises `OSError`; a file that holds no chats is set aside, it gives none."""
        try:
            return from_json(self.path.read_bytes())
        except FileNotFoundError:
            return ()
        except TransferError:
            self.set_aside = self._rename("damaged")
            return ()

    def taken(self) -> None:
        """What is there is in the database now. Raises `OSError`."""
        if self.path.exists():
            self._rename("taken")

    def _write(self, chats: tuple[Conversation, ...]) -> None:
        found = {chat.id: chat for chat in (*self.read(), *chats)}
        fresh = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        with fresh.open("wb") as file:
            file.write(to_json(found.values()))
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, self.path)

    def _rename(self, why: str) -> Path:
        """Its new place, which was free: of two damaged ones both are kept."""
        names = (f"{self.path.stem}-{why}{f'-{number}' if number else ''}.json" for number in count())
        free = next(path for name in names if not (path := self.path.with_name(name)).exists())
        os.replace(self.path, free)
        return free
