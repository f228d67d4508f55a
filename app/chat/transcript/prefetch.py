"""Prefetch: sees to it that what the reader looks at has its widgets, and soon what is near as well."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence

from PySide6.QtCore import QObject, QTimer

from app.chat.answer.entry import Entry, Reply
from app.chat.transcript.reading_column import ReadingColumn
from app.chat.transcript.widget_pool import WidgetPool

# Widgets are got ready this many views around the one that is seen, and dropped beyond the other.
_READY_VIEWS = 2.0
_KEPT_VIEWS = 4.0
# Of each turn of the event loop, so that a frame at 60 Hz still has room for its painting.
_READYING_S = 0.004


class Prefetch(QObject):
    """Of `entries`, for the `column` that shows them. Those that are `unfinished` always have a widget."""

    def __init__(
        self,
        entries: Sequence[Entry],
        unfinished: Collection[Reply],
        pool: WidgetPool,
        column: ReadingColumn,
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._entries = entries
        self._unfinished = unfinished
        self._pool = pool
        self._column = column
        self._timer = QTimer(self, interval=0, singleShot=True)
        self._timer.timeout.connect(self._get_ready)

    def fill(self) -> None:
        """Whatever is seen gets its widget now; what is near, soon."""
        for _ in range(len(self._entries)):
            seen = self._column.near()
            wanted = [*self._entries[seen.start : seen.stop], *self._unfinished]
            missing = [entry for entry in wanted if not self._pool.is_ready(entry)]
            if not missing:
                break
            for entry in missing:
                self._pool.ready(entry)
            self._column.place()
        if self._next_to_ready() or self._next_to_drop():
            self._timer.start()

    def _next_to_ready(self) -> Entry | None:
        column = self._column
        return self._pool.next_to_ready(
            self._entries, column.entry_layout, column.view(), column.near(_READY_VIEWS)
        )

    def _next_to_drop(self) -> Entry | None:
        kept = self._column.near(_KEPT_VIEWS)
        return self._pool.next_to_drop(self._entries[kept.start : kept.stop])

    def _get_ready(self) -> None:
        """A few milliseconds of work ahead of the reader."""
        until_s = time.perf_counter() + _READYING_S
        entry = self._next_to_ready()
        while entry and time.perf_counter() < until_s:
            if self._pool.ready_some(entry):
                self._pool.ready(entry)
                self._column.place()
                entry = self._next_to_ready()
        far = None if entry else self._next_to_drop()
        if far:
            self._pool.drop(far)
        if entry or far:
            self._timer.start()
