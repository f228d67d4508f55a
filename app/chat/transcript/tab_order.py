"""Tab order inside a conversation: as it is read, whatever order its widgets were made in.

Qt's own order is the order of making, and answers are made as the reader comes near them.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication, QWidget


def stops_in(items: Sequence[QWidget]) -> list[QWidget]:
    """Who takes the keyboard in `items`, which are in reading order."""
    return [stop for item in items for stop in _stops(item)]


def next_stop(stops: Sequence[QWidget], forward: bool) -> QWidget | None:
    """Who gets the keyboard after the one of `stops` that has it now.

    None if the keyboard is not among them or leaves them.
    """
    has_it = QApplication.focusWidget()
    if has_it is None or has_it not in stops:
        return None
    place = stops.index(has_it) + (1 if forward else -1)
    return stops[place] if 0 <= place < len(stops) else None


def _stops(item: QWidget) -> list[QWidget]:
    found = [child for child in item.findChildren(QWidget) if takes_tab(child)]

    def place(child: QWidget) -> tuple[int, int]:
        corner = child.mapTo(item, QPoint(0, 0))
        return corner.y(), corner.x()

    return sorted(found, key=place)


def takes_tab(widget: QWidget) -> bool:
    """Whether Tab may stop at `widget` now."""
    tab = Qt.FocusPolicy.TabFocus
    can = widget.isVisible() and widget.isEnabled() and widget.focusProxy() is None
    return bool(widget.focusPolicy() & tab) and can
