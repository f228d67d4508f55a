"""Meter: how fast a download is and how long it will take, at most four times a second. Pure but for
the clock."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from core.events import DownloadProgress

_EVERY_S = 0.25
_WINDOW_S = 4.0


class Meter:
    """The speed is over the last seconds, of what came in now and not in an earlier run."""

    def __init__(self, model: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.total_bytes = 0
        self._model = model
        self._clock = clock
        self._seen: deque[tuple[float, int]] = deque()
        self._said_s: float | None = None

    def take(self, done_bytes: int, total_bytes: int) -> DownloadProgress | None:
        """What to say now; None if something was said a moment ago."""
        now = self._clock()
        self.total_bytes = total_bytes
        if not self._seen:
            self._seen.append((now, done_bytes))
        if self._said_s is not None and now - self._said_s < _EVERY_S:
            return None
        self._said_s = now
        self._seen.append((now, done_bytes))
        while len(self._seen) > 2 and now - self._seen[0][0] > _WINDOW_S:
            self._seen.popleft()
        since_s, before = self._seen[0]
        speed = max(0, done_bytes - before) / (now - since_s) if now > since_s else 0.0
        left_s = (total_bytes - done_bytes) / speed if speed > 0 else None
        return DownloadProgress(self._model, "running", done_bytes, total_bytes, speed, left_s)
