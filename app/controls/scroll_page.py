"""ScrollPage: a page that scrolls up and down on its panel's own ground, with the overlaid bar."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QScrollArea, QWidget

from app.controls.scroll_bar import OverlayScrollBar
from app.theme.theme import Theme


class ScrollPage(QScrollArea):
    """`page` gets the width there is; what lies behind shows through. Not a stop of the Tab key."""

    def __init__(self, theme: Theme, page: QWidget) -> None:
        super().__init__()
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWidget(page)
        # Only now: setWidget() lets the page fill its own.
        self.viewport().setAutoFillBackground(False)
        page.setAutoFillBackground(False)
        OverlayScrollBar(theme, self)
