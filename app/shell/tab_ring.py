"""The Tab order of the whole window, in reading order, as a ring.

Qt's own order is the order of creation. Answers are created as the reader scrolls to them, so Qt would put
them last, among other late widgets.
"""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QWidget

from app.chat.transcript.tab_order import takes_tab
from app.controllers.views import Views


def pass_on(window: QWidget, views: Views, forward: bool) -> bool:
    """Focus the next widget of `window`. Returns False if the focus is not in the ring."""
    ring, focus = _ring(window, views), QApplication.focusWidget()
    if focus not in ring:
        return False
    target = ring[(ring.index(focus) + (1 if forward else -1)) % len(ring)]
    target.setFocus(Qt.FocusReason.TabFocusReason if forward else Qt.FocusReason.BacktabFocusReason)
    if target in views.transcript.stops:
        views.transcript.ensureWidgetVisible(target)
    return True


def _ring(window: QWidget, views: Views) -> list[QWidget]:
    """The focusable widgets part by part: by Qt's order within a part, by the transcript's own within it."""
    parts = (
        views.sidebar,
        views.header,
        views.banner,
        views.first_page,
        views.transcript,
        views.notice_bar,
        views.queue_bar,
        views.editing_bar,
        views.composer,
        views.offer_bar,
        views.race,
        views.side,
    )
    conversation = views.transcript.stops
    chain = [widget for widget in _chain(window) if widget not in conversation]
    ring: list[QWidget] = []
    for part in parts:
        ring += [widget for widget in chain if part.isAncestorOf(widget)]
        ring += conversation if part is views.transcript else []
    return ring


def _chain(window: QWidget) -> list[QWidget]:
    found: list[QWidget] = []
    widget: QWidget | None = window.nextInFocusChain()
    while widget is not None and widget is not window:
        if takes_tab(widget):
            found.append(widget)
        widget = widget.nextInFocusChain()
    return found
