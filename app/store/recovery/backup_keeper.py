"""BackupKeeper: makes a backup while nothing is saved, on a thread and a connection of its own.

Whoever saves says so with `busy()`; a backup under way is then given up and tried again later. Damage
that is found on the way is told: so a letter that changed on the disk is noticed, even in a chat that
nobody opens.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable

from app.store.checksum import ChecksumError
from app.store.recovery.backups import Backups

IDLE_S = 60.0
# Reading a large database is work for Python, too; the window comes first.
_PAUSE_S = 0.005
_CLOSE_S = 2.0


class _BusyError(Exception):
    """Something was saved, or Draftlight quits."""


class BackupKeeper:
    """Starts its thread. `tell` hears of damage, on that thread."""

    def __init__(
        self, backups: Backups, tell: Callable[[Exception], None], *, idle_s: float = IDLE_S
    ) -> None:
        self._backups = backups
        self._tell = tell
        self._idle_s = idle_s
        self._quiet_since_s = time.monotonic()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="draftlight-backups", daemon=True)
        self._thread.start()

    def busy(self) -> None:
        """Something is being saved."""
        self._quiet_since_s = time.monotonic()

    def close(self) -> None:
        """End the thread; a backup under way is given up."""
        self._closing.set()
        self._thread.join(_CLOSE_S)

    # ---- on the thread

    def _run(self) -> None:
        while not self._closing.wait(self._wait_s()):
            if self._wait_s() > 0 or not self._backups.is_due(time.time()):
                continue
            try:
                self._backups.make(self._proceed)
            except (_BusyError, OSError):
                pass  # later
            except (sqlite3.Error, ChecksumError) as error:
                self._tell(error)
                return

    def _wait_s(self) -> float:
        """Until it has been quiet long enough; then, as long again."""
        left_s = self._quiet_since_s + self._idle_s - time.monotonic()
        if left_s <= 0 and not self._backups.is_due(time.time()):
            return self._idle_s
        return max(0.0, left_s)

    def _proceed(self) -> None:
        if self._closing.wait(_PAUSE_S) or time.monotonic() - self._quiet_since_s < self._idle_s:
            raise _BusyError
