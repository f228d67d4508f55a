"""SteadyClock: a time that no jump of the system's clock moves far, for ages of deleted chats and backups.

It follows the system's clock from reading to reading, and between runs from the last mark in the database. A
step backwards counts as none, a step of more than `MOST_STEP_S` as that much. So a start with a clock that is
months ahead ages nothing by more than a week, and nothing is younger or older than it was when the clock is
right again. Its dates may differ from the system's; only differences between them mean anything.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

from app.store.chat_store import Mark

# People who open Draftlight once a week have exact ages.
MOST_STEP_S = 7 * 86_400.0


class SteadyClock:
    """Continues from `mark`. `wall_s` returns the system's Unix time. For any thread."""

    def __init__(self, mark: Mark | None = None, wall_s: Callable[[], float] = time.time) -> None:
        mark = mark or Mark()
        self._wall_s = wall_s
        self._last_s = mark.wall_s or wall_s()
        self._steady_s = mark.steady_s or self._last_s
        self._lock = threading.Lock()

    def read(self) -> tuple[float, float]:
        """Returns this time and the system's, in s since 1970."""
        with self._lock:
            now_s = self._wall_s()
            self._steady_s += min(max(0.0, now_s - self._last_s), MOST_STEP_S)
            self._last_s = now_s
            return self._steady_s, now_s

    def now(self) -> datetime:
        """Returns this time."""
        return datetime.fromtimestamp(self.read()[0], UTC)
