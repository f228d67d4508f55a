"""ReadingSpeed: tokens a second while a prompt is read, from its progress. Pure; times are the worker's."""

from __future__ import annotations

from collections import deque

_WINDOW_S = 5.0


class ReadingSpeed:
    """The mean over the last 5 s, or over the last two reports if those are further apart."""

    def __init__(self) -> None:
        self._reports: deque[tuple[float, int]] = deque()

    def add(self, done_tokens: int, now_s: float) -> float | None:
        """Take a report. None until two reports differ in time. Going back starts over."""
        if self._reports and done_tokens < self._reports[-1][1]:
            self._reports.clear()
        self._reports.append((now_s, done_tokens))
        while len(self._reports) > 2 and self._reports[1][0] <= now_s - _WINDOW_S:
            self._reports.popleft()
        first_s, first_tokens = self._reports[0]
        if now_s <= first_s:
            return None
        return (done_tokens - first_tokens) / (now_s - first_s)

    def clear(self) -> None:
        """Forget all reports."""
        self._reports.clear()
