"""ChipShelf: the chips of a message in a frame that grows to a few rows of them and then scrolls.

In a low window, or with large texts, that are fewer: what is written below needs its room.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QApplication, QFrame, QScrollArea, QSizePolicy, QWidget

from app.chat.attachments.chip_row import ChipRow
from app.controls.scroll_bar import ScrollBar
from app.theme.theme import Theme
from app.theme.zoom import px

# Three rows, and the upper edge of the next so that it is seen.
_MOST_PX = 3 * 51 + 12
_LEAST_PX = 43
_ROOM_PX = 8
_MOST_SHARE = 0.2  # of the window


class ChipShelf(QScrollArea):
    """Around `row`; hidden while that is."""

    def __init__(self, theme: Theme, row: ChipRow, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._row = row
        self._window: QWidget | None = None
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBar(ScrollBar(theme, Qt.Orientation.Vertical))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.viewport().setAutoFillBackground(False)
        self.setWidget(row)
        row.setAutoFillBackground(False)
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.focusChanged.connect(self._follow)
        self._fit()

    def sizeHint(self) -> QSize:
        return QSize(200, self.height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._row.resize(self.viewport().width(), self._row.height())

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._window is not self.window():
            self._window = self.window()
            self._window.installEventFilter(self)
        self._fit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._window:
            if event.type() == QEvent.Type.Resize:
                self._fit()
            return False
        if event.type() in (QEvent.Type.Resize, QEvent.Type.ShowToParent, QEvent.Type.HideToParent):
            self._fit()
        # It is the scroll area's own way to know how much there is to scroll, too.
        return super().eventFilter(watched, event)

    def _fit(self) -> None:
        self.setVisible(not self._row.isHidden())
        most = px(_MOST_PX)
        # A composer that is a window itself grows with what is in it.
        if self._window is not None and self._window is not self.parentWidget():
            most = min(most, max(px(_LEAST_PX), round(_MOST_SHARE * self._window.height())))
        self.setFixedHeight(min(self._row.height(), most))

    def _follow(self, old: QWidget | None, now: QWidget | None) -> None:
        """The keyboard goes on to a chip that is not seen."""
        if now is not None and self._row.isAncestorOf(now):
            self.ensureWidgetVisible(now, 0, px(_ROOM_PX))
